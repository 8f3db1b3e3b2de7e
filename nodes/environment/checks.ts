import { lazy } from '../../lib/runtime/lazy';
import { named } from '../../lib/runtime/named';
import type { Words } from '../../lib/runtime/words';
import type { CallOptions, Client } from '../../lib/service/types';
import { ServiceError } from '../../lib/service/problems';
import { missingScopes, type Grant } from '../../lib/auth/grants';
import { connectionOf, requestSettingsOf, serviceAddressOf, serviceOf, type Values } from './config';
import { originOf } from './form';
import type { Services } from './services';

const checkNames = ['reachability', 'token', 'apiKey', 'scopes'] as const;
type CheckName = (typeof checkNames)[number];

/** Milliseconds. */
const patience = 10_000;

export interface Check {
  readonly check: CheckName;
  readonly ok: boolean;
  readonly message: string;
}

const pass = (check: CheckName, message: string): Check => ({ check, ok: true, message });
const miss = (check: CheckName, message: string): Check => ({ check, ok: false, message });

const saidOf = (fault: unknown, { problem }: Words): string => {
  if (fault instanceof ServiceError) return problem(fault.problem);
  return fault instanceof Error ? fault.message : String(fault);
};

/** Nobody has this number: it is set aside for fiction. */
const nobody = '+12025550100';

type Read = (client: Client, options: CallOptions) => Promise<unknown>;

/** Reads that change nothing, by the scope each needs. */
const reads: readonly (readonly [scope: string, read: Read])[] = [
  [
    'text.messaging.read',
    (client, options) => client.call('getConsent', { query: { phone: nobody } }, options),
  ],
  [
    'core.contacts.read',
    (client, options) => client.call('searchContacts', { query: { page: 1, pageSize: 1 } }, options),
  ],
  [
    'core.content.read',
    (client, options) => client.call('searchContent', { query: { page: 1, pageSize: 1 } }, options),
  ],
];

type Seen = 'fine' | 'failed' | 'refused' | 'lacking';

interface Probe {
  readonly client: Client;
  readonly words: Words;
  readonly asked: readonly string[];
  readonly granted: () => readonly string[] | undefined;
}

/** What the service makes of one read. A 404 for nobody's number is as good as an answer can be. */
const tryRead = async (
  { client, words }: Probe,
  advisor: string,
  read: Read,
): Promise<[seen: Seen, said: string]> => {
  try {
    await read(client, { advisor });
    return ['fine', ''];
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    const { code, status, detail } = fault.problem;
    const said = words.problem(fault.problem);
    if (code === 'not_found') return ['fine', ''];
    if (code === 'unauthorized') return ['refused', said];
    // A gateway that refuses the key answers 403 without the service's problem body.
    if (status === 403) return [detail === undefined ? 'refused' : 'lacking', said];
    return ['failed', said];
  }
};

/** Whether anything answers there, told without handing over a token or a key. */
const tryReach = async (baseUrl: string, proxy: string, { say, language }: Words): Promise<Check> => {
  const { createTransport, trustedUrl } = lazy.transport();
  const { origin, pathname } = trustedUrl(baseUrl, 'baseUrl');
  const transport = createTransport({ origin, timeout: patience, connections: 1, proxy });
  try {
    const result = await transport.send({ method: 'GET', path: pathname, headers: [], body: null });
    return result.state === 'answered'
      ? pass('reachability', say('check.reached'))
      : miss('reachability', say('check.notReached', named({ reason: result.reason }, language)));
  } finally {
    await transport.destroy();
  }
};

/** API key and scopes, which only a token can show. */
const tryReads = async (probe: Probe, advisor: string): Promise<Check[]> => {
  const { asked, granted } = probe;
  const { say } = probe.words;
  const allowed = reads.filter(([scope]) => (granted() ?? asked).includes(scope));
  const chosen = allowed.length > 0 ? allowed : reads.slice(0, 1);
  const results = await Promise.all(
    chosen.map(async ([scope, read]) => [scope, ...(await tryRead(probe, advisor, read))] as const),
  );
  const find = (wanted: Seen): string | undefined => results.find(([, seen]) => seen === wanted)?.[2];
  const lacking = results.flatMap(([scope, seen]) =>
    seen === 'lacking' && asked.includes(scope) ? [scope] : [],
  );
  const missing = [...new Set([...missingScopes(asked, granted() ?? asked), ...lacking])];
  const refused = find('refused') === undefined ? undefined : say('check.apiKeyRefused');
  const trouble = refused ?? find('failed');
  return [
    trouble === undefined ? pass('apiKey', say('check.apiKey')) : miss('apiKey', trouble),
    missing.length === 0
      ? pass('scopes', say('check.scopes'))
      : miss('scopes', say('check.scopesMissing', { scopes: missing.join(', ') })),
  ];
};

const withToken = async (
  words: Words,
  token: () => Promise<unknown>,
  further: () => Promise<Check[]>,
): Promise<Check[]> => {
  try {
    await token();
  } catch (fault) {
    const untried = words.say('check.untried');
    return [miss('token', saidOf(fault, words)), miss('apiKey', untried), miss('scopes', untried)];
  }
  return [pass('token', words.say('check.token')), ...(await further())];
};

/** An environment as it is, or as the form would have it. */
export interface Trial {
  readonly id: string;
  readonly values: Values;
  readonly advisor: string;
  /** The origin that the deployed one sends its requests to. */
  readonly deployedAt: string | undefined;
}

/** Tries an environment with reads that change nothing. */
export const runChecks = async (
  { book, tokens }: Services,
  { id, values, advisor, deployedAt }: Trial,
  words: Words,
): Promise<Check[]> => {
  if (serviceOf(values) === 'simulator') {
    return checkNames.map((check) => pass(check, words.say('check.simulator')));
  }
  const connection = connectionOf(id, values);
  const address = serviceAddressOf(values);
  const { createClient } = lazy.client();
  // Somebody is looking at the dialog: an honest answer now is better than a patient one.
  const settings = requestSettingsOf(values);
  const client = createClient({
    ...settings,
    ...address,
    retries: 0,
    timeout: patience,
    token: (who, rejected) => tokens.tokenWithin(patience, connection, who, rejected),
  });
  const isByCode = connection.grant === 'authorization_code';
  const grant = (): Grant | undefined =>
    isByCode ? book.get(connection, advisor)?.grant : tokens.client.grant(connection);
  // An advisor's token goes where the environment is deployed to, or was to go when the advisor authorized it.
  const mayGo = (): boolean =>
    !isByCode || originOf(address.baseUrl) === (deployedAt ?? originOf(grant()?.baseUrl));
  const undeployed = words.say('refused.notDeployed');
  try {
    const reach = tryReach(address.baseUrl, settings.proxy, words);
    const others = withToken(
      words,
      () => tokens.tokenWithin(patience, connection, advisor),
      async () =>
        mayGo()
          ? tryReads({ client, words, asked: connection.scopes, granted: () => grant()?.scopes }, advisor)
          : [miss('apiKey', undeployed), miss('scopes', undeployed)],
    );
    return [await reach, ...(await others)];
  } finally {
    await client.close();
  }
};
