import { isTimeZone } from '../runtime/dates';
import type { EditedNode, Say } from './red';

const baseOf = (tag: string): string => tag.split('-')[0] ?? '';

export const environmentSays = (...said: Parameters<Say>): string | undefined =>
  RED.nodes.getType('advisor-environment')?._(...said);

/**
 * A node's own words, else those of all dialogs, which only the environment has: Node-RED reads the catalogue of every
 * node at each start.
 */
export const sayOf =
  (node: EditedNode): Say =>
  (key, parts) => {
    const own = node._(key, parts);
    return own === key ? (environmentSays(key, parts) ?? key) : own;
  };

/** That of our own words: the editor may have none for a language of ours, and we none for one of its. */
export const language = (): string => environmentSays('language') ?? '';

/** How to write numbers and dates: in the language of the words, of whose regions the browser knows the right one. */
export const locale = (): string => {
  const spoken = language();
  return navigator.languages.find((tag) => baseOf(tag) === spoken) ?? spoken;
};

export const numberOf = (value: number): string => new Intl.NumberFormat(locale()).format(value);

/** The time zone of an environment; empty where it has none, or there is no such environment. */
export const zoneOfEnvironment = (id: unknown): string => {
  const zone = typeof id === 'string' && id !== '' ? RED.nodes.node(id)?.['timeZone'] : undefined;
  return typeof zone === 'string' && isTimeZone(zone) ? zone : '';
};
