import { locale } from './locale';
import type { Form } from './red';

const units = [
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** Seconds in the largest unit that divides them; undefined when that is the second itself. */
const durationOf = (seconds: number): string | undefined => {
  const found = units.find(([, size]) => seconds >= size && seconds % size === 0);
  if (!found) return undefined;
  const [unit, size] = found;
  return new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size);
};

/** Shows the seconds of these fields in a larger unit: 86400 is not easily seen to be a day. */
export const addDurations = (form: Form, names: readonly string[]): void => {
  const notes = names.map((name) => {
    const note = $('<span>', { class: 'advisor-unit' });
    form.row(name).children('.advisor-unit').after(note);
    return { name, note };
  });
  form.onChange((values) => {
    for (const { name, note } of notes) {
      const duration = durationOf(Number(values[name]));
      note.text(duration === undefined ? '' : `= ${duration}`);
    }
  });
};
