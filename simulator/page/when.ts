import { day, hour, minute, second } from '../../lib/durations';
import { amount, dateFormat, listed, inOneAmount } from './words';

const time = dateFormat({ timeStyle: 'short' });
const timeWithSeconds = dateFormat({ timeStyle: 'medium' });
const dayFormat = dateFormat({ weekday: 'short', day: 'numeric', month: 'short' });
const longDay = dateFormat({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });

/**
 * Limits a moment to the range of a Date (ECMA-262, Time Values and Time Range): formatting others throws, and a client
 * may schedule a text for any number.
 */
const valid = (at: number): number => Math.min(Math.max(at, -8.64e15), 8.64e15);

export const clockTime = (at: number): string => time.format(valid(at));
export const clockSeconds = (at: number): string => timeWithSeconds.format(valid(at));
export const fullDay = (at: number): string => longDay.format(valid(at));
export const shortDay = (at: number): string => dayFormat.format(valid(at));
export const isoTime = (at: number): string => new Date(valid(at)).toISOString();

export const sameDay = (one: number, other: number): boolean => fullDay(one) === fullDay(other);

/** `2:05 PM` today, `Tue, Jun 3, 2:05 PM` on any other day. */
export const moment = (at: number, now: number): string =>
  sameDay(at, now) ? clockTime(at) : dayAndTime(at);
export const dayAndTime = (at: number): string => listed(shortDay(at), clockTime(at));

const units = [
  ['day', day],
  ['hour', hour],
  ['minute', minute],
  ['second', second],
] as const;

/** The two largest units of a span: `1 day 2 hours`. */
export const span = (ms: number): string => {
  let left = Math.max(0, ms);
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0 && parts.length < 2) parts.push(amount(count, unit));
  }
  return inOneAmount(parts);
};
