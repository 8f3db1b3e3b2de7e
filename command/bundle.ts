import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { settingsTold, versions } from '../nodes/environment/bundle';
import type { Values } from '../nodes/environment/config';
import { spec } from '../nodes/environment/spec';

export const help = `Usage: advisor-texting bundle [--user-dir DIR] [--url URL]

Prints what helps whoever is asked for help, as JSON: versions, the settings of each environment without its
secrets, and, of a Node-RED that runs, its state and the last failures with their trace ids. No text, no secret, no
value of a variable and no number in full is in it; read it before you send it all the same.

  --user-dir DIR   the directory of Node-RED, ~/.node-red unless told
  --flows FILE     the flow file, when it is not the one in that directory
  --url URL        the admin address of the running Node-RED; ADVISOR_TEXTING_ADMIN_TOKEN holds an access token
                   where it has logins
  --help           show this
`;

type Variables = Readonly<Record<string, string | undefined>>;

class UsageError extends Error {}

const flowFileIn = (userDir: string): string => {
  const isFlowFile = (name: string): boolean => /^flows.*\.json$/.test(name) && !name.endsWith('_cred.json');
  try {
    const [file] = readdirSync(userDir).filter(isFlowFile).sort();
    if (file !== undefined) return join(userDir, file);
  } catch {
    // Said below.
  }
  throw new UsageError(
    `There is no flow file in ${userDir}: name the directory with --user-dir, or the file with --flows.`,
  );
};

const environmentsIn = (file: string): Values[] => {
  let flows: unknown;
  try {
    flows = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new UsageError(`${file} cannot be read as JSON: check that it exists and what is in it.`);
  }
  const nodes = Array.isArray(flows) ? (flows as unknown[]) : [];
  return nodes.filter(
    (node): node is Values =>
      typeof node === 'object' && node !== null && (node as { type?: unknown }).type === spec.type,
  );
};

const fetched = async (url: string, id: string, token: string | undefined): Promise<object> => {
  const address = new URL(
    `advisor-texting/${encodeURIComponent(id)}/bundle`,
    url.endsWith('/') ? url : `${url}/`,
  );
  try {
    const answer = await fetch(address, {
      redirect: 'error',
      ...(token !== undefined && token !== '' && { headers: { authorization: `Bearer ${token}` } }),
    });
    if (answer.ok) return (await answer.json()) as object;
    return { environment: id, failed: `HTTP ${String(answer.status)}` };
  } catch {
    return { environment: id, failed: 'Node-RED cannot be reached there' };
  }
};

/** The exit code: 0, or 2 when it could not be made. */
export const bundle = async (args: readonly string[], variables: Variables): Promise<number> => {
  try {
    let options;
    try {
      options = parseArgs({
        args: [...args],
        options: {
          'user-dir': { type: 'string' },
          flows: { type: 'string' },
          url: { type: 'string' },
          help: { type: 'boolean', short: 'h' },
        },
      }).values;
    } catch (error) {
      throw new UsageError(error instanceof Error ? error.message : String(error));
    }
    if (options.help === true) {
      process.stdout.write(help);
      return 0;
    }
    const { url } = options;
    if (url !== undefined && !URL.canParse(url))
      throw new UsageError('--url must be an address such as http://127.0.0.1:1880/.');
    const found = environmentsIn(
      options.flows ?? flowFileIn(options['user-dir'] ?? join(homedir(), '.node-red')),
    );
    const environments: object[] = [];
    for (const each of found) {
      const id = typeof each['id'] === 'string' ? each['id'] : '';
      environments.push(
        url === undefined
          ? { environment: id, settings: settingsTold(each) }
          : await fetched(url, id, variables['ADVISOR_TEXTING_ADMIN_TOKEN']),
      );
    }
    const whole = { made: new Date().toISOString(), versions: versions(null), environments };
    process.stdout.write(`${JSON.stringify(whole, null, 2)}\n`);
    return 0;
  } catch (fault) {
    if (!(fault instanceof UsageError)) throw fault;
    process.stderr.write(`${fault.message}\nSee: advisor-texting bundle --help\n`);
    return 2;
  }
};
