import type { Values } from './values';

const longest = 20;

/** The beginning of a text, cut where the label would grow too long. */
export const shortened = (text: string): string => {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > longest ? `${line.slice(0, longest - 1).trimEnd()}…` : line;
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

/** Today by its time, another day by its date and time; as the user's language writes them. */
export const momentOf = (time: Date, now: Date): string =>
  time.toDateString() === now.toDateString()
    ? time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : time.toLocaleString([], { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
