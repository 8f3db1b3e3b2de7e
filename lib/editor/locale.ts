import { baseOf, isSpoken } from '../languages';
import { isTimeZone } from '../runtime/dates';
import { environmentOf } from './flow';
import type { EditedNode, Say } from './red';
import { momentOf } from './words';

const written = (parts: Parameters<Say>[1]): Parameters<Say>[1] =>
  parts &&
  Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, typeof part === 'number' ? localNumber(part) : part]),
  );

/** The strings of the environment and of all dialogs. */
export const environmentSays: Say = (key, parts) =>
  RED.nodes.getType('advisor-environment')?._(key, written(parts)) ?? key;

/** Own strings, else those of all dialogs: only the environment has these, because each start reads all catalogues. */
export const sayOf =
  (node: EditedNode): Say =>
  (key, parts) => {
    const own = node._(key, written(parts));
    return own === key ? environmentSays(key, parts) : own;
  };

/** The language of our own strings. The editor may lack one of our languages, and we may lack one of its. */
export const language = (): string => environmentSays('language');

/** The locale of numbers and dates: the language of the strings, in the region of the browser. */
export const locale = (): string => {
  const spoken = language();
  return navigator.languages.find((tag) => baseOf(tag) === spoken) ?? spoken;
};

/** Whether the runtime has a language to format times in: statuses and the editor format them alike. */
const isClockNamed = (): boolean => isSpoken(RED.settings.advisorEnvironmentLanguage ?? language());

/** A moment as statuses write it. */
export const localMoment = (time: Date, now: Date, timeZone?: string): string =>
  momentOf(time, now, locale(), timeZone, isClockNamed());

export const localNumber = (value: number): string => new Intl.NumberFormat(locale()).format(value);

/** The time zone of an environment; empty if it has none or an unknown one. */
export const zoneOfEnvironment = (id: unknown): string => {
  const zone = environmentOf(id)?.['timeZone'];
  return typeof zone === 'string' && isTimeZone(zone) ? zone : '';
};
