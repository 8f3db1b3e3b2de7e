import { tried } from './kinds';

export const languages = ['en-US', 'de', 'es-ES', 'ja'] as const;
export type Language = (typeof languages)[number];

/** The language of a tag, without its region: `es` of `es-ES`. */
export const baseOf = (tag: string): string => tag.split(/[-_]/)[0]?.toLowerCase() ?? '';

/** The first of the wanted languages that we have; an unknown region gets the language of another. */
export const spokenOf = (wanted: readonly string[]): Language =>
  wanted
    .map((tag) => languages.find((language) => baseOf(language) === baseOf(tag)))
    .find((language) => language !== undefined) ?? 'en-US';

const isLocale = (tag: string): boolean => tried(() => Intl.getCanonicalLocales(tag)) !== undefined;

/** The locale of numbers and times: the wanted region, if it has the language of the words. */
export const localeOf = (spoken: string, wanted: readonly string[]): string =>
  wanted.find((tag) => baseOf(tag) === baseOf(spoken) && isLocale(tag)) ?? spoken;

/** Whether we have a language, in any region. */
export const isSpoken = (tag: string): boolean =>
  languages.some((language) => baseOf(language) === baseOf(tag));

/** Whether a locale writes one o'clock as `01:00`. */
const isPadded = (locale: string | undefined): boolean =>
  new Intl.DateTimeFormat(locale, { timeStyle: 'short', timeZone: 'UTC' }).format(3_600_000).startsWith('0');

/** How a time of day is written everywhere. Where no language of ours is named, it is written as in the POSIX locale. */
export const clockFormat = (isNamed: boolean, locale?: string): Intl.DateTimeFormatOptions => ({
  hour: isPadded(locale) ? '2-digit' : 'numeric',
  minute: '2-digit',
  ...(!isNamed && { hourCycle: 'h23' }),
});

/** Fills in each `__name__` of a sentence. */
export const fill = (sentence: string, values: Readonly<Record<string, string | number>>): string =>
  sentence.replace(/__(\w+?)__/g, (whole, name: string) => String(values[name] ?? whole));
