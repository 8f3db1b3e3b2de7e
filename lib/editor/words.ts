import type { Values } from './values';

const longest = 20;

/** The beginning of a text, cut where the label would grow too long: between words, unless one is very long. */
export const shortened = (text: string): string => {
  const line = text.trim().replace(/\s+/g, ' ');
  if (line.length <= longest) return line;
  const room = line.slice(0, longest);
  const end = room.lastIndexOf(' ');
  const kept = end > longest / 2 ? room.slice(0, end) : room.slice(0, -1);
  return `${kept.replace(/[\s,;:.–—-]+$/, '')}…`;
};

/** A choice as saved, or its default where an older flow has none. */
export const choiceOf = (values: Values, field: string, fallback: string): string => {
  const value = values[field];
  return typeof value === 'string' && value !== '' ? value : fallback;
};

/** A literal that was typed into the form, or undefined when the value comes from elsewhere. */
export const literalOf = (values: Values, field: string): string | undefined => {
  const value = values[field];
  const type = values[`${field}Type`];
  return typeof value === 'string' && value !== '' && (type === 'str' || type === 'num') ? value : undefined;
};

/** Today by its time, another day by its date and time; as the language writes them. */
export const momentOf = (time: Date, now: Date, language?: string): string =>
  time.toDateString() === now.toDateString()
    ? time.toLocaleTimeString(language, { hour: '2-digit', minute: '2-digit' })
    : time.toLocaleString(language, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

const units = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** Seconds in the largest unit that they fill without a remainder, or undefined if that is seconds. */
export const durationOf = (seconds: number, language?: string): string | undefined => {
  const found = units.find(([, size]) => seconds >= size && seconds % size === 0);
  if (!found) return undefined;
  const [unit, size] = found;
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size);
};
