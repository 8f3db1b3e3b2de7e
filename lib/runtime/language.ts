import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { clockFormat, fill, isSpoken, type Language, localeOf, spokenOf } from '../languages';
import { offsetAt, offsetName, ownTimeZone } from './dates';
import { isCountry } from '../kinds';
import { systemLanguage, type Red } from './red';
import { inWords, type MessageValue, type MessageValues, type Problem } from '../service/errors';
import { orMake, processMemory } from '../process-memory';
import { visible } from '../visible';

const folder = join(__dirname, '..', '..', 'locales');

type Strings = ReadonlyMap<string, string>;

const files = processMemory('calculated', new Map<string, Strings>());

/** The strings of a file, by their keys with dots. */
const flat = (group: object, before = ''): [string, string][] =>
  Object.entries(group).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'string' ? [[before + key, value]] : flat(Object(value) as object, `${before}${key}.`),
  );

const stringsIn = (language: Language, file: string): Strings => {
  const path = join(folder, language, `${file}.json`);
  const read = () => JSON.parse(existsSync(path) ? readFileSync(path, 'utf8') : '{}') as object;
  return orMake(files, path, () => new Map(flat(read())));
};

export const sentence = (language: Language, key: string): string | undefined =>
  stringsIn(language, 'runtime').get(key) ?? stringsIn(language, 'common').get(key);

const fieldLabel = (language: Language, type: string, field: string): string | undefined => {
  const own = stringsIn(language, type);
  return own.get(`label.${field}`) ?? own.get(`row.${field}`) ?? sentence(language, `label.${field}`);
};

export const nodeTitle = (language: Language, type: string): string | undefined =>
  stringsIn(language, type).get('title');

/** Turns a value of a sentence into words: fields and settings are called what their forms call them. */
const wordFor = (language: Language): ((value: MessageValue) => string | number) => {
  const word = (value: MessageValue): string | number => {
    if (typeof value !== 'object') return value;
    if ('reason' in value) return sentence(language, `reason.${value.reason}`) ?? value.reason;
    if ('setting' in value)
      return fieldLabel(language, 'advisor-environment', value.setting) ?? value.setting;
    if ('country' in value)
      return isCountry(value.country)
        ? (new Intl.DisplayNames(language, { type: 'region' }).of(value.country) ?? value.country)
        : value.country;
    if ('field' in value) {
      const [type = '', field = ''] = value.field.split('.');
      const label = fieldLabel(language, type, field) ?? field;
      return value.isQuoted ? fill(sentence(language, 'quoted') ?? '__text__', { text: label }) : label;
    }
    return new Intl.ListFormat(language).format(value.map((each) => String(word(each))));
  };
  return word;
};

const dayOf = (at: number): string => new Date(at).toDateString();

export type Words = ReturnType<typeof wordsIn>;

export const wordsIn = (...wanted: string[]) => {
  const language = spokenOf(wanted);
  const locale = localeOf(language, wanted);
  const numbers = new Intl.NumberFormat(locale);
  const clock = clockFormat(wanted.some(isSpoken), locale);
  /** Some versions of ICU put a narrow no-break space before AM and PM, which not every font has. */
  const plain = (text: string): string => text.replaceAll('\u202f', ' ');
  const times = new Intl.DateTimeFormat(locale, clock);
  /**
   * Such as `Nov 17, 09:00`, in the given zone or in that of the process. A time that was written with another offset
   * is shown with that: `Nov 17, 09:00 UTC-6`.
   */
  const moment = (at: number, timeZone = '', offset?: number): string => {
    const isForeign = offset !== undefined && offset !== offsetAt(timeZone || ownTimeZone(), at);
    const zone = isForeign ? 'UTC' : timeZone;
    const format = new Intl.DateTimeFormat(locale, {
      month: 'short',
      day: 'numeric',
      ...clock,
      ...(zone !== '' && { timeZone: zone }),
    });
    return isForeign
      ? `${plain(format.format(at + offset))} ${offsetName(offset)}`
      : plain(format.format(at));
  };
  const time = (at: number, now: number): string =>
    dayOf(at) === dayOf(now) ? plain(times.format(at)) : moment(at);
  const find = (key: string): string | undefined => sentence(language, key) ?? sentence('en-US', key);
  const word = wordFor(language);
  const filled = (text: string, values: MessageValues): string => fill(text, inWords(values, word));
  return {
    language,
    find,
    say: (key: string, values: MessageValues = {}): string => filled(find(key) ?? key, values),
    /** The sentence of `msg.error`; words of the service, or of an older record, stay as they are. */
    problem: (why: Problem): string => {
      const { wording } = why;
      const said = wording && sentence(language, `errors.${wording.key}`);
      return said === undefined ? visible(why.message) : filled(said, wording?.values ?? {});
    },
    /** `12,400` */
    number: (value: number): string => numbers.format(value),
    /** Such as `14:05` or `2:05 PM`, as the language writes it; with a date when it is not on the day of `now`. */
    time,
    /** The same with its zone: `14:05 UTC-6`. */
    zonedTime: (at: number, now: number): string =>
      `${time(at, now)} ${offsetName(offsetAt(ownTimeZone(), at))}`,
    moment,
  };
};

const ofRuntimes = processMemory('calculated', new Map<string, Words>());

/** The words in the language of the runtime. All nodes share them: the formats in them take time and memory to make. */
export const wordsOf = (RED: Red): Words => {
  const language = systemLanguage(RED.settings);
  return orMake(ofRuntimes, language, () => wordsIn(language));
};
