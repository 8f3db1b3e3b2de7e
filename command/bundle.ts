import { UsageError } from '../lib/usage-error';
import { visible } from '../lib/visible';
import { settingsTold, installedVersions } from '../nodes/environment/bundle';
import { askRunning, flowFileIn, isEnvironment, optionsIn, savedNodesIn, usualUserDir } from './installation';

export const help = `Usage: advisor-texting bundle [--user-dir DIR] [--url URL]

Prints a support bundle as JSON: versions, the settings of each environment without secrets, and for a running
Node-RED its state and the latest failures with their trace ids. It contains no texts, secrets, values of variables
or complete phone numbers. Read it before you send it to anybody.

  --user-dir DIR   the user directory of Node-RED (default ~/.node-red)
  --flows FILE     the flow file, if it is not in that directory
  --url URL        the admin address of the running Node-RED. If it requires a login, put an access token
                   in ADVISOR_TEXTING_ADMIN_TOKEN
  --help           show this help
`;

/** Resolves with the exit code: 0, or 2 when the bundle could not be made. */
export const bundle = async (args: readonly string[], variables: NodeJS.ProcessEnv): Promise<number> => {
  try {
    const options = optionsIn(args, {
      'user-dir': { type: 'string' },
      flows: { type: 'string' },
      url: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    });
    if (options.help === true) {
      process.stdout.write(help);
      return 0;
    }
    const { url } = options;
    const token = variables['ADVISOR_TEXTING_ADMIN_TOKEN'];
    const found = savedNodesIn(options.flows ?? flowFileIn(options['user-dir'] ?? usualUserDir()));
    const environments: object[] = [];
    for (const each of found.filter(isEnvironment)) {
      const id = typeof each['id'] === 'string' ? each['id'] : '';
      if (url === undefined) {
        environments.push({ environment: id, settings: settingsTold(each) });
        continue;
      }
      const asked = await askRunning({ url, id, route: 'bundle', token });
      environments.push('answer' in asked ? (asked.answer as object) : { environment: id, ...asked });
    }
    const whole = { made: new Date().toISOString(), versions: installedVersions(null), environments };
    process.stdout.write(visible(`${JSON.stringify(whole, null, 2)}\n`, '\n'));
    return 0;
  } catch (fault) {
    if (!(fault instanceof UsageError)) throw fault;
    process.stderr.write(`${visible(fault.message, '\n')}\nSee: advisor-texting bundle --help\n`);
    return 2;
  }
};
