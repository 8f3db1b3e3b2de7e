import { parseArgs } from 'node:util';
import type { SimulatorOptions } from './';
import { habitChoices, habitNames, profileNames, type Habits, type ProfileName } from './profiles';
import { UsageError } from '../lib/usage-error';
import type { SettingsChange } from './state/settings';
import { defined, settingsChange } from './state/settings-schema';

const defaultPort = 4010;

export const help = `Usage: advisor-texting simulator [options]
       advisor-texting check [options]     (see: advisor-texting check --help)
       advisor-texting bundle [options]    (see: advisor-texting bundle --help)

Runs a simulated texting and address-book service on this machine. Nobody is texted.
It serves the contract under /v1, OAuth under /oauth, a page of phones at /, and a control API.

  --port N               port to listen on (default ${String(defaultPort)}; 0 for any free port)
  --host H               address to listen on (default 127.0.0.1, this machine only)
  --seed contacts=N      number of contacts in a new address book
  --data FILE            keep the state in FILE across restarts
  --profile NAME         which service to simulate: ${profileNames.join(', ')} (default usual).
                         "foreign" follows the contract, but behaves differently wherever it leaves room
  --habit NAME=VALUE     change one habit, such as ids=strings; may be given several times
                         (see the list in docs/simulator-api.md)
  --redirect-uri URI     register a redirect URI; may be given several times
                         ("loopback" registers every http address on this machine)
  --rotate               issue a new refresh token with each refresh, and revoke the old one
  --token-lifetime S     lifetime of an access token in seconds (default 3600)
  --client-id ID         default simulator-client
  --client-secret SECRET default simulator-secret
  --api-key KEY          default simulator-key
  --random-seed N        seed for random faults (default 1)
  --help                 show this help
`;

const flags = {
  port: { type: 'string' },
  host: { type: 'string' },
  seed: { type: 'string', multiple: true },
  data: { type: 'string' },
  profile: { type: 'string' },
  habit: { type: 'string', multiple: true },
  'redirect-uri': { type: 'string', multiple: true },
  rotate: { type: 'boolean' },
  'token-lifetime': { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  'api-key': { type: 'string' },
  'random-seed': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const wholeNumber = (flag: string, text: string, most = Number.MAX_SAFE_INTEGER): number => {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value) || value > most) {
    throw new UsageError(
      `${flag} takes a whole number${most < 1e6 ? ` up to ${String(most)}` : ''}, not "${text}".`,
    );
  }
  return value;
};

const contactsIn = (seeds: readonly string[]): number | undefined => {
  let contacts: number | undefined;
  for (const seed of seeds) {
    const [what, count = ''] = seed.split('=');
    if (what !== 'contacts') throw new UsageError(`--seed takes contacts=N, not "${seed}".`);
    contacts = wholeNumber('--seed contacts', count);
  }
  return contacts;
};

const profileIn = (name: string): ProfileName => {
  const found = profileNames.find((one) => one === name);
  if (found === undefined) {
    throw new UsageError(`There is no profile "${name}". Profiles: ${profileNames.join(', ')}.`);
  }
  return found;
};

const valueOf = (habit: keyof Habits, text: string): unknown => {
  if (habit === 'contactDelay') return wholeNumber('--habit contactDelay', text);
  if (habit !== 'names') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`--habit names takes JSON such as {"page":"p","groups.page":"n"}, not "${text}".`);
  }
};

const habitsIn = (given: readonly string[]): Partial<Habits> => {
  const habits: Partial<Record<keyof Habits, unknown>> = {};
  for (const one of given) {
    const [, name, text] = /^([^=]*)=(.*)$/s.exec(one) ?? [];
    const habit = habitNames.find((known) => known === name);
    if (habit === undefined || text === undefined) {
      throw new UsageError(`--habit takes NAME=VALUE, not "${one}". Names: ${habitNames.join(', ')}.`);
    }
    const choices: readonly string[] =
      habit in habitChoices ? habitChoices[habit as keyof typeof habitChoices] : [text];
    if (!choices.includes(text)) {
      throw new UsageError(`--habit ${habit} takes ${choices.join(' or ')}, not "${text}".`);
    }
    habits[habit] = valueOf(habit, text);
  }
  return habits as Partial<Habits>;
};

const read = (args: readonly string[]) => {
  try {
    return parseArgs({ args: [...args], options: flags, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${message.split('. ', 1)[0] ?? message}.`.replace('..', '.'));
  }
};

const checkedSettings = (change: SettingsChange): SettingsChange => {
  const checked = settingsChange.safeParse(change);
  if (!checked.success) throw new UsageError(checked.error.issues.map(({ message }) => message).join('; '));
  return defined(change);
};

/** The options of a command line, or `help`. */
export const readCommandLine = (args: readonly string[]): SimulatorOptions | 'help' => {
  const { values, positionals } = read(args);
  if (values.help === true || (positionals.length === 0 && args.length === 0)) return 'help';
  const [command, ...rest] = positionals;
  if (command !== 'simulator' || rest.length > 0) {
    throw new UsageError(
      `There is no command "${positionals.join(' ')}". Commands: simulator, check, bundle`,
    );
  }
  const number = (flag: keyof typeof values, most?: number): number | undefined => {
    const text = values[flag];
    return typeof text === 'string' ? wholeNumber(`--${flag}`, text, most) : undefined;
  };
  const options = {
    port: number('port', 65_535) ?? defaultPort,
    settings: checkedSettings({
      profile: values.profile === undefined ? undefined : profileIn(values.profile),
      habits: values.habit && habitsIn(values.habit),
      rotateRefreshTokens: values.rotate,
      redirectUris: values['redirect-uri'],
      accessTokenLifetime: number('token-lifetime'),
    }),
    credentials: defined({
      clientId: values['client-id'],
      clientSecret: values['client-secret'],
      apiKey: values['api-key'],
    }),
    contacts: contactsIn(values.seed ?? []),
    host: values.host,
    data: values.data,
    randomSeed: number('random-seed'),
  };
  return defined(options);
};
