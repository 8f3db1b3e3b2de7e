import { ownTimeZone, wallTimeIn } from '../runtime/dates';
import { clockFormat } from '../languages';
import type { Values } from '../runtime/settings';

const longest = 20;

/** Splits a text into graphemes, so that none is cut in two; in older browsers into code points. */
const signsOf = (text: string): string[] =>
  'Segmenter' in Intl
    ? Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment)
    : Array.from(text);

/** The start of a text, short enough for a label; cut between words, unless a word is very long. */
export const shortLabel = (text: string): string => {
  const signs = signsOf(text.trim().replace(/\s+/g, ' '));
  if (signs.length <= longest) return signs.join('');
  const room = signs.slice(0, longest);
  const end = room.lastIndexOf(' ');
  const kept = room.slice(0, end > longest / 2 ? end : -1).join('');
  return `${kept.replace(/[\s,;:.–—-]+$/, '')}…`;
};

/** A literal that was typed into the form; undefined when the value comes from elsewhere. */
export const literalOf = (values: Values, field: string): string | undefined => {
  const value = values[field];
  const type = values[`${field}Type`];
  return typeof value === 'string' && value !== '' && (type === 'str' || type === 'num') ? value : undefined;
};

/** The record that was chosen for a field, by its name; else the literal that was typed. */
export const chosenOf = (values: Values, field: string): string | undefined => {
  const name = values[`${field}Name`];
  return typeof name === 'string' && name !== '' ? name : literalOf(values, field);
};

const dayIn = (time: Date, timeZone: string): string => wallTimeIn(time.getTime(), timeZone).slice(0, 10);

/** Whether both are on the same day in a zone, by default that of this browser. */
export const isSameDay = (time: Date, now: Date, timeZone = ownTimeZone()): boolean =>
  dayIn(time, timeZone) === dayIn(now, timeZone);

/** Today's times without a date, others with the date, those of other years with the year; as usual in the language. */
export const momentOf = (
  time: Date,
  now: Date,
  language?: string,
  timeZone = ownTimeZone(),
  isClockNamed = true,
): string => {
  const clock = { ...clockFormat(isClockNamed, language), timeZone };
  if (isSameDay(time, now, timeZone)) return time.toLocaleTimeString(language, clock);
  const date = { day: 'numeric', month: 'short' } as const;
  const isThisYear = dayIn(time, timeZone).slice(0, 4) === dayIn(now, timeZone).slice(0, 4);
  return time.toLocaleString(language, { ...date, ...(!isThisYear && { year: 'numeric' }), ...clock });
};
