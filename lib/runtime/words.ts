import english from '../../locales/en-US/common.json';
import { wordingOf, type Problem } from '../service/problems';
import { pick } from './fields';
import type { Red } from './red';

export type Values = Readonly<Record<string, string | number>>;

/** A sentence or a status in the language of the runtime. */
export interface Words {
  say(key: string, values?: Values): string;
  /** The sentence of `msg.error`; what the service or an older record says stays as it is. */
  problem(why: Problem): string;
  /** `12,400` */
  number(value: number): string;
  /** `14:05`, a clock time rather than a countdown: it stays true without being redrawn. */
  time(at: number): string;
}

const inEnglish = (key: string, values: Values): string => {
  const found = pick(english, key);
  const text = typeof found === 'string' ? found : key;
  return text.replace(/__(\w+)__/g, (_, name: string) => String(values[name] ?? ''));
};

const languageOf = (RED: Red): string => {
  const { lang } = RED.settings as { lang?: unknown };
  return typeof lang === 'string' && lang !== '' ? lang : 'en-US';
};

export const wordsOf = (RED: Red): Words => {
  const language = languageOf(RED);
  const numbers = new Intl.NumberFormat(language);
  const times = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const translated = (key: string, values: Values): string | undefined => {
    const said: unknown = RED._(key, values as Record<string, string>);
    // Without a catalogue (as in the test helper) Node-RED answers with the key.
    return typeof said === 'string' && said !== '' && !said.endsWith(key) ? said : undefined;
  };
  return {
    say: (key, values = {}) => translated(key, values) ?? inEnglish(key, values),
    problem(why) {
      const wording = wordingOf(why);
      return (wording && translated(`errors.${wording.key}`, wording.values)) ?? why.message;
    },
    number: (value) => numbers.format(value),
    time: (at) => times.format(at),
  };
};
