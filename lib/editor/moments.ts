import { epochInZone, epochOf, wallTimeIn, writtenOffset } from '../runtime/dates';
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

/** The written date in the first of these zones that has its offset at that time; undefined if it is not such a date. */
export const momentIn = (written: string, zones: readonly string[]): Moment | undefined => {
  const text = written.trim();
  // For a node, milliseconds are a date too.
  if (!text.includes('-') || Number.isNaN(epochOf(text, 'UTC'))) return undefined;
  const wall = `${text.slice(0, 10)}T${text.slice(11, 16) || '00:00'}`;
  const offset = /z$/i.test(text) ? 0 : writtenOffset(text);
  if (offset === undefined) return { wall, zone: '' };
  const plain = `${wall}:00${offsetText(offset)}`;
  const zone = zones.find((each) => writtenOf({ wall, zone: each }) === plain);
  return { wall, zone: zone ?? (offset === 0 ? 'UTC' : offsetText(offset)) };
};
