export const languages = ['en-US', 'de', 'es-ES', 'ja'] as const;
export type Language = (typeof languages)[number];

const baseOf = (tag: string): string => tag.split(/[-_]/)[0]?.toLowerCase() ?? '';

/** The first of the wanted languages that we speak; a region we do not know is said as its language is elsewhere. */
export const spokenOf = (wanted: readonly string[]): Language =>
  wanted
    .map((tag) => languages.find((language) => baseOf(language) === baseOf(tag)))
    .find((language) => language !== undefined) ?? 'en-US';

const isLocale = (tag: string): boolean => {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
};

/** How numbers and times are written: as in the wanted region, where it has the language that is spoken. */
export const localeOf = (spoken: string, wanted: readonly string[]): string =>
  wanted.find((tag) => baseOf(tag) === baseOf(spoken) && isLocale(tag)) ?? spoken;

/** The languages of an Accept-Language header, the most wanted first. */
export const acceptedIn = (header: string): string[] =>
  header
    .split(',')
    .map((part) => {
      const [tag = '', ...parameters] = part.split(';').map((piece) => piece.trim());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return { tag, weight: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ tag, weight }) => tag !== '' && weight > 0)
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag);

/** Fills in the `__name__` of a sentence. */
export const fill = (sentence: string, values: Readonly<Record<string, string | number>>): string =>
  sentence.replace(/__(\w+?)__/g, (whole, name: string) => String(values[name] ?? whole));
