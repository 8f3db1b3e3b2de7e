import { tried } from '../kinds';
import { calculated, processMemory } from '../process-memory';
import { day, hour, minute, second } from '../durations';

/**
 * Dates as a flow gives them. Nodes read messages with these functions, and forms check typed values with them. The
 * editor loads this file too, so it imports nothing that the editor cannot load.
 */

const formats = processMemory('calculated', new Map<string, Intl.DateTimeFormat>());

/** Throws RangeError when the zone does not exist. An empty one is that of this process. */
const formatOf = (timeZone: string): Intl.DateTimeFormat =>
  calculated(
    formats,
    timeZone,
    () =>
      new Intl.DateTimeFormat('en-US', {
        ...(timeZone !== '' && { timeZone }),
        hourCycle: 'h23',
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      }),
  );

/** `HH:MM`, or an hour alone, as minutes of the day; undefined for any other text. */
export const minutesOf = (time: string): number | undefined => {
  const [, hours = '', minutes = '0'] = /^([01]?\d|2[0-3])(?::([0-5]\d))?$/.exec(time.trim()) ?? [];
  return hours === '' ? undefined : Number(hours) * 60 + Number(minutes);
};

/**
 * Newer runtimes accept an offset as a zone. All accept abbreviations, but `EST` has no daylight saving for them, `AST`
 * is Alaska and `BST` Bangladesh.
 */
const notMeant = /^([+-]|$|(?!utc|gmt)[a-z]{3}$)/i;

/** Whether the name is in the IANA time zone database, such as `America/New_York`. */
export const isTimeZone = (name: string): boolean =>
  !notMeant.test(name) && tried(() => formatOf(name)) !== undefined;

/** The zone of this process, or of this browser; empty if it has no name, as with `TZ=:/etc/localtime` or an empty `TZ`. */
export const ownTimeZone = (): string => {
  const { timeZone = '' } = new Intl.DateTimeFormat().resolvedOptions() as { timeZone?: string };
  return isTimeZone(timeZone) ? timeZone : '';
};

/** The offset of a zone from UTC at a moment, in milliseconds. */
export const offsetAt = (timeZone: string, epoch: number): number => {
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(epoch)) parts[type] = Number(value);
  const {
    year = 0,
    month = 1,
    day: date = 1,
    hour: hours = 0,
    minute: minutes = 0,
    second: seconds = 0,
  } = parts;
  return Date.UTC(year, month - 1, date, hours, minutes, seconds) - Math.floor(epoch / second) * second;
};

/** The wall time of a zone at a moment, to the minute: `2030-01-31T09:00`. */
export const wallTimeIn = (epoch: number, timeZone: string): string =>
  new Date(epoch + offsetAt(timeZone, epoch)).toISOString().slice(0, 16);

/**
 * The moment of a wall time in a zone; `wall` is the wall time as if it were UTC. A wall time that daylight saving
 * skips is the later of its two possible moments, a doubled one the earlier: this is `compatible` of `Temporal`.
 */
export const epochInZone = (wall: number, timeZone: string): number => {
  // No zone changes its clocks twice within two days, so these are the offsets before and after a change.
  const offsets = [offsetAt(timeZone, wall - day), offsetAt(timeZone, wall + day)];
  const moments = offsets.map((offset) => wall - offset);
  const shown = moments.filter((moment, at) => offsetAt(timeZone, moment) === offsets[at]);
  return shown.length > 0 ? Math.min(...shown) : Math.max(...moments);
};

const iso =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(?:(Z)|([+-])(\d{2})(?::?(\d{2}))?)?)?$/i;

/** The offset from UTC with which an ISO date was written, in milliseconds; undefined where it has none. */
export const writtenOffset = (value: unknown): number | undefined => {
  const [sign, hours, minutes] = (typeof value === 'string' ? iso.exec(value.trim()) : null)?.slice(9) ?? [];
  if (sign === undefined) return undefined;
  return Number(`${sign}1`) * (Number(hours) * hour + Number(minutes ?? 0) * minute);
};

/** Such as `UTC-6` or `UTC+5:30`. */
export const offsetName = (offset: number): string => {
  if (offset === 0) return 'UTC';
  const minutes = Math.abs(offset) / minute;
  const rest = minutes % 60 === 0 ? '' : `:${String(minutes % 60).padStart(2, '0')}`;
  return `UTC${offset < 0 ? '-' : '+'}${String(Math.floor(minutes / 60))}${rest}`;
};

/** Reads an ISO 8601 date, with or without a time and a zone; NaN for anything else. */
const epochOfIso = (text: string, timeZone: string): number => {
  const found = iso.exec(text);
  if (!found) return NaN;
  const part = (at: number): number => Number(found[at] ?? 0);
  const wall = new Date(0);
  wall.setUTCFullYear(part(1), part(2) - 1, part(3));
  const isInCalendar = wall.getUTCMonth() === part(2) - 1 && wall.getUTCDate() === part(3);
  if (!isInCalendar || part(4) > 23 || part(5) > 59 || part(6) > 59 || part(10) > 23 || part(11) > 59)
    return NaN;
  const milliseconds = Number((found[7] ?? '').padEnd(3, '0').slice(0, 3));
  const shown = wall.getTime() + part(4) * hour + part(5) * minute + part(6) * second + milliseconds;
  const sign = found[9];
  if (sign !== undefined) return shown - Number(`${sign}1`) * (part(10) * hour + part(11) * minute);
  return found[8] === undefined ? epochInZone(shown, timeZone) : shown;
};

/** A Date of another realm, such as a function node's, counts too. */
const isDate = (value: unknown): value is Date => Object.prototype.toString.call(value) === '[object Date]';

/** The latest moment that a Date can hold (ECMA-262, Time Values and Time Range). */
const latest = 8.64e15;

/**
 * Epoch milliseconds from a number, an ISO string or a Date; NaN for anything else. A string without a zone is read in
 * `timeZone`, or in the zone of this process when that is empty.
 */
export const epochOf = (value: unknown, timeZone = ''): number => {
  const read = (): number => {
    if (isDate(value)) return value.getTime();
    if (typeof value === 'number') return value;
    const text = typeof value === 'string' ? value.trim() : '';
    return /^\d+$/.test(text) ? Number(text) : epochOfIso(text, timeZone === '' ? ownTimeZone() : timeZone);
  };
  const epoch = read();
  return Number.isInteger(epoch) && Math.abs(epoch) <= latest ? epoch : NaN;
};
