import { splitScopes } from '../../lib/auth/token-endpoint';
import { isRecord } from '../../lib/kinds';
import { patternOf } from '../../lib/service/prefixes';
import { spec } from './spec';

type Values = Readonly<Record<string, unknown>>;

export type VariableValue = (variable: string) => unknown;

/** Without a brace in the name, so that no text takes time in the square of its length. */
const anywhere = /\$\{([^{}]+)\}/g;

/** Replaces `${VARIABLE}` anywhere in a text. A variable that is not set stays as written, so that an error can name it. */
const resolveText = (value: string, variableValue: VariableValue): unknown => {
  const whole = /^\$\{([^}]+)\}$/.exec(value)?.[1];
  if (whole !== undefined) return variableValue(whole) ?? value;
  return value.replaceAll(anywhere, (written, variable: string) => {
    const found = variableValue(variable);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : written;
  });
};

export const resolve = (value: unknown, variableValue: VariableValue): unknown => {
  if (typeof value === 'string') return resolveText(value, variableValue);
  if (Array.isArray(value)) return value.map((item) => resolve(item, variableValue));
  return isRecord(value) ? resolveValues(value, variableValue) : value;
};

/** Node-RED does this only for values that are nothing but a variable: neither for `https://${HOST}/v1` nor for a form. */
export const resolveValues = (values: Values, variableValue: VariableValue): Values =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, resolve(value, variableValue)]));

/** The names of the variables in a setting as it is written. */
export const variablesIn = (value: unknown): string[] => {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(variablesIn);
  return typeof value === 'string' ? [...value.matchAll(anywhere)].map(([, name = '']) => name) : [];
};

/** Our own words and the contract's: they reveal nothing, even as the value of a variable. */
const publicWords = new Set<unknown>([
  ...spec.fields.flatMap((field) => ('options' in field ? field.options : [])),
  'openid',
  'core',
  'text',
]);

const inQuery = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

/** The ways in which a value may stand in an answer: whole, encoded, as part of an address, as one scope of several. */
const spellingsOf = (setting: string, value: string): string[] => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const parts = url ? [url.href, url.origin, url.host, url.hostname, url.pathname, url.search] : [];
  const scopes = setting === 'scopes' ? splitScopes(value) : [];
  // When the value itself looks like a variable, an error names that as not set.
  const spellings = [value, ...parts, ...scopes, ...variablesIn(value)];
  return spellings
    .map((spelling) => spelling.trim())
    .filter((spelling) => /[^/]/.test(spelling) && !publicWords.has(spelling))
    .flatMap((spelling) => [spelling, inQuery(spelling), inQuery(spelling).replaceAll('+', '%20')]);
};

/** Shorter values are hidden only as whole words: `US` must not be replaced in `USING`. */
const shortest = 4;

/**
 * Replaces in a text the values of all variables in these settings by `${VARIABLE}`. Spellings that `isKnown` accepts
 * stay.
 */
export const hiderOf = (
  written: Values,
  variableValue: VariableValue,
  isKnown: (spelling: string) => boolean,
): ((text: string) => string) => {
  const names = new Map<string, string>();
  for (const [setting, value] of Object.entries(written)) {
    for (const variable of new Set(variablesIn(value))) {
      const found = variableValue(variable);
      if (typeof found !== 'string' && typeof found !== 'number') continue;
      for (const spelling of spellingsOf(setting, String(found)))
        if (!isKnown(spelling)) names.set(spelling.toLowerCase(), `\${${variable}}`);
    }
  }
  if (names.size === 0) return (text) => text;
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  const sought = longestFirst.map((spelling) =>
    spelling.length < shortest
      ? String.raw`(?<![\p{L}\p{N}])${patternOf(spelling)}(?![\p{L}\p{N}])`
      : patternOf(spelling),
  );
  // Case is ignored: the host of an address is in lower case, even if the variable is not (RFC 3986, section 6.2.2.1).
  const pattern = new RegExp(sought.join('|'), 'giu');
  return (text) => text.replaceAll(pattern, (found) => names.get(found.toLowerCase()) ?? '');
};
