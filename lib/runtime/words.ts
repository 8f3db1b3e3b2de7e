import { localeOf, spokenOf, type Language } from '../languages';
import type { Problem } from '../service/problems';
import { sentence } from './catalogue';
import { named } from './named';
import type { Red } from './red';

export type Values = Readonly<Record<string, string | number>>;

/** Sentences, numbers and times in one language. */
export interface Words {
  readonly language: Language;
  readonly say: (key: string, values?: Values) => string;
  /** A word that not every key has. */
  readonly find: (key: string) => string | undefined;
  /** The sentence of `msg.error`; what the service or an older record says stays as it is. */
  readonly problem: (why: Problem) => string;
  /** `12,400` */
  readonly number: (value: number) => string;
  /** `14:05`, a clock time rather than a countdown: it stays true without being redrawn. */
  readonly time: (at: number) => string;
}

const filled = (text: string, values: Values): string =>
  text.replace(/__(\w+?)__/g, (_, name: string) => String(values[name] ?? ''));

/** The words for the first of these languages that we speak. */
export const wordsIn = (...wanted: string[]): Words => {
  const language = spokenOf(wanted);
  const locale = localeOf(language, wanted);
  const numbers = new Intl.NumberFormat(locale);
  const times = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const find = (key: string): string | undefined => sentence(language, key) ?? sentence('en-US', key);
  return {
    language,
    find,
    say: (key, values = {}) => filled(find(key) ?? key, values),
    problem(why) {
      const { wording } = why;
      const said = wording && sentence(language, `errors.${wording.key}`);
      return said === undefined ? why.message : filled(said, named(wording?.values ?? {}, language));
    },
    number: (value) => numbers.format(value),
    time: (at) => times.format(at),
  };
};

/** As Node-RED itself chooses it: what the settings say, else the system. */
const languageOf = (RED: Red): string => {
  const { lang } = RED.settings as { lang?: unknown };
  const { LC_ALL, LC_MESSAGES, LANG } = process.env;
  const system = LC_ALL ?? LC_MESSAGES ?? LANG ?? '';
  return typeof lang === 'string' && lang !== '' ? lang : system.slice(0, 2);
};

export const wordsOf = (RED: Red): Words => wordsIn(languageOf(RED));
