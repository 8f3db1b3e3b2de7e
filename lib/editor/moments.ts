import { epochInZone, wallTimeIn } from '../runtime/dates';
import { minute } from '../durations';

/** A date and time as `datetime-local` has it, and its zone: a name, or an offset such as `+05:30`. */
export interface Moment {
  readonly wall: string;
  /** Empty for a date that is written without a zone. */
  readonly zone: string;
}

const two = (part: number): string => String(part).padStart(2, '0');

const isOffset = (zone: string): boolean => /^[+-]/.test(zone);

/** `+05:30` */
const offsetText = (milliseconds: number): string => {
  const minutes = Math.round(Math.abs(milliseconds) / minute);
  return `${milliseconds < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
};

/** The date with the offset of its zone at that time, so that it is the same moment wherever the flow runs. */
export const writtenOf = ({ wall, zone }: Moment): string => {
  const shown = Date.parse(`${wall}Z`);
  if (Number.isNaN(shown)) return '';
  if (zone === '') return wall;
  if (isOffset(zone)) return `${wall}:00${zone}`;
  const epoch = epochInZone(shown, zone);
  const clocks = wallTimeIn(epoch, zone);
  return `${clocks}:00${offsetText(Date.parse(`${clocks}Z`) - epoch)}`;
};

const form =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2}(?:[.,]\d+)?)?\s?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/** The written date in the first of these zones that has its offset at that time; undefined if it is not such a date. */
export const momentIn = (written: string, zones: readonly string[]): Moment | undefined => {
  const found = form.exec(written.trim());
  if (!found) return undefined;
  const [, date = '', time = '00:00', given = ''] = found;
  const wall = `${date}T${time}`;
  if (Number.isNaN(Date.parse(`${wall}Z`))) return undefined;
  if (given === '') return { wall, zone: '' };
  const offset =
    given.toUpperCase() === 'Z'
      ? '+00:00'
      : `${given.slice(0, 3)}:${given.slice(3).replace(':', '') || '00'}`;
  const plain = `${wall}:00${offset}`;
  const zone = zones.find((each) => writtenOf({ wall, zone: each }) === plain);
  return { wall, zone: zone ?? (offset === '+00:00' ? 'UTC' : offset) };
};
