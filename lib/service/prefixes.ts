/**
 * The contract's `core` and `text` are stand-ins for words that each maker of the service chooses: the first segment of
 * every path and the first word of every scope (contract, *Conventions*). All code uses the contract's words; only
 * requests use the maker's. The editor loads this file too, so it imports nothing.
 */
export interface Prefixes {
  readonly core: string;
  readonly text: string;
}

export const usualPrefixes: Prefixes = { core: 'core', text: 'text' };

/** One segment of a path (RFC 3986, section 3.3), without the dot that divides a scope. */
export const prefixPattern = /^[\w~!$&'()*+,;=:@-]+$/;

type PrefixName = keyof Prefixes;

const isPart = (word: string): word is PrefixName => word === 'core' || word === 'text';

/** `/core/contact/contacts` as it is on the wire. */
export const wirePath = (path: string, prefixes: Prefixes): string =>
  path.replace(/^\/(\w+)/, (whole, part: string) => (isPart(part) ? `/${prefixes[part]}` : whole));

/** `core.contacts.read` as it is on the wire; other scopes are sent unchanged. */
export const wireScope = (scope: string, prefixes: Prefixes): string =>
  scope.replace(/^(\w+)(?=\.)/, (whole, part: string) => (isPart(part) ? prefixes[part] : whole));

/** A scope on the wire in the contract's words. */
export const contractScope = (scope: string, prefixes: Prefixes): string => {
  const at = scope.indexOf('.');
  const first = scope.slice(0, Math.max(at, 0));
  const isText =
    first === prefixes.text && (first !== prefixes.core || scope.startsWith(`${first}.messaging`));
  if (first === '' || (!isText && first !== prefixes.core)) return scope;
  return (isText ? 'text' : 'core') + scope.slice(at);
};

/** A regular expression for exactly this text. */
export const patternOf = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Finds the names of scopes, in the service's words. */
export const scopeNames = ({ core, text }: Prefixes): RegExp =>
  new RegExp(
    `(?<![\\w.])(?:${patternOf(core)}|${patternOf(text)})(?:\\.[a-z]+)+\\b|\\boffline_access\\b|\\bopenid\\b`,
  );
