import { locale } from './locale';
import type { Form } from './red';
import { durationOf } from './words';

/** Shows the seconds of these fields in a larger unit: 86400 is not easily seen to be a day. */
export const addDurations = (form: Form, names: readonly string[]): void => {
  const notes = names.map((name) => {
    const note = $('<span>', { class: 'advisor-unit' });
    form.row(name).children('.advisor-unit').after(note);
    return { name, note };
  });
  form.onChange((values) => {
    for (const { name, note } of notes) {
      const duration = durationOf(Number(values[name]), locale());
      note.text(duration === undefined ? '' : `= ${duration}`);
    }
  });
};
