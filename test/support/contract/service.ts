import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import { profiles, startSimulator, type Habits, type ProfileName, type Simulator } from '../../../simulator';
import { numbers } from '../numbers';

/**
 * The service under test: our simulator, or the real sandbox when CONTRACT_BASE_URL, CONTRACT_ACCESS_TOKEN,
 * CONTRACT_API_KEY, CONTRACT_CONSENTED_PHONE and CONTRACT_UNASKED_PHONE are set. Tests that need a simulator
 * are then not registered. CONTRACT_HABITS lists, as JSON, where the sandbox differs from our assumptions: `{
 * "corePrefix": "…", "names": { "page": "…" } }`, see docs/simulator-api.md.
 */
const sandbox = process.env['CONTRACT_BASE_URL'];

export const isSimulated = sandbox === undefined;

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} must be set together with CONTRACT_BASE_URL`);
  return value;
};

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Sent unchanged, instead of `body` as JSON. */
  readonly raw?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
}

let running: Simulator | undefined;

export const phones = {
  /** Has accepted. */
  consented: isSimulated ? numbers.consented : setting('CONTRACT_CONSENTED_PHONE'),
  /** A contact who has not been asked. */
  unasked: isSimulated ? numbers.unasked : setting('CONTRACT_UNASKED_PHONE'),
  /** Owned by no contact, as far as known. */
  unknown: '+12995550199',
};

/** What the service under test does where the contract leaves room. */
export let habits: Habits = profiles.usual;

const blockOn = (title: string, start: () => Promise<void>, tests: () => void): void => {
  describe(title, () => {
    before(start);
    after(async () => {
      await running?.close();
      running = undefined;
    });
    tests();
  });
};

/** Rules of the contract, which hold for all habits: tested for each profile of the simulator, or for the sandbox. */
export const contract = (title: string, tests: () => void): void => {
  if (!isSimulated) {
    const told = JSON.parse(process.env['CONTRACT_HABITS'] ?? '{}') as Partial<Habits>;
    const start = async (): Promise<void> => {
      habits = { ...profiles.usual, ...told };
    };
    blockOn(`contract: ${title}`, start, tests);
    return;
  }
  for (const profile of Object.keys(profiles) as ProfileName[]) {
    const start = async (): Promise<void> => {
      const begin = Date.now();
      running = await startSimulator({ clock: new MovableClock(() => begin), profile });
      ({ habits } = running.settings);
    };
    blockOn(`contract, ${profile} profile: ${title}`, start, tests);
  }
};

const prefixed = (text: string): string =>
  text.replace(
    /^(\/?)(core|text)(?=[/.])/,
    (_, slash: string, half: string) => slash + (half === 'core' ? habits.corePrefix : habits.textPrefix),
  );

/** A scope of the contract, as this service names it. */
export const scopeOf = (scope: string): string => prefixed(scope);

/** A path of the contract with this service's names in its query. */
const onWire = (path: string): string => {
  const [bare = '', query] = path.split('?', 2);
  if (query === undefined) return prefixed(bare);
  const search = /(contacts|groups|content)(\/library\/search)?$/.exec(bare)?.[1] ?? '';
  const { names } = habits;
  const renamed = query.split('&').map((pair) => {
    const [name = '', value = ''] = pair.split('=', 2);
    return `${names[`${search}.${name}`] ?? names[name] ?? name}=${value}`;
  });
  return `${prefixed(bare)}?${renamed.join('&')}`;
};

/** An id in an answer: a number in the contract's tables, and digits in any case. */
export const shouldBeId = (id: unknown): void => {
  if (habits.ids === 'numbers') should(id).be.a.Number().and.not.below(0);
  else should(String(id)).match(/^\d+$/);
};
export const idOnWire = (id: number): unknown => (habits.ids === 'numbers' ? id : String(id));

/** A moment as `deliveryDate`. */
export const deliveryDate = (moment: number): number =>
  habits.deliveryDateUnit === 's' ? Math.round(moment / 1000) : moment;

export const simulator = (): Simulator => {
  if (running === undefined) throw new Error('only with the simulator');
  return running;
};

export const accessToken = (): string => running?.accessToken('default') ?? setting('CONTRACT_ACCESS_TOKEN');

export const credentials = (): Record<string, string> => ({
  authorization: `Bearer ${accessToken()}`,
  'x-api-key': running?.credentials.apiKey ?? setting('CONTRACT_API_KEY'),
});

/** A plain HTTP request; a header given as null is left out. */
export const call = async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
  const payload = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const all: Record<string, string | null> = {
    ...credentials(),
    ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
    ...options.headers,
  };
  const headers = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
  const response = await fetch(`${running?.baseUrl ?? sandbox ?? ''}${onWire(path)}`, {
    method,
    headers,
    redirect: 'manual',
    ...(payload === undefined ? {} : { body: payload }),
  });
  const text = await response.text();
  const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
  return {
    status: response.status,
    type,
    headers: response.headers,
    text,
    body: type.endsWith('json') ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
};

export const send = (phone: string, text = 'Contract test', more: object = {}): Promise<Answer> =>
  call('POST', '/text/messaging/messages', { body: { phone, text, ...more } });

export const askConsent = (...phoneNumbers: string[]): Promise<Answer> =>
  call('POST', '/text/messaging/consent-requests', { body: { phoneNumbers } });

export const consentOf = (phone: string): Promise<Answer> =>
  call('GET', `/text/messaging/consents?phone=${encodeURIComponent(phone)}`);

/** Registered only if the simulator can do it. */
export const simulated = (title: string, test: () => Promise<void>): void => {
  if (isSimulated) it(title, test);
};
