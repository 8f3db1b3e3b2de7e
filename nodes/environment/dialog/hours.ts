import { minute } from '../../../lib/durations';
import { icon, valueIn } from '../../../lib/editor/dom';
import type { Form, Values } from '../../../lib/editor/red';
import { minutesOf } from '../../../lib/runtime/dates';

/** The choices, each with its two times. */
const presets: Readonly<Record<string, readonly [from: string, until: string]>> = {
  any: ['', ''],
  federal: ['08:00', '21:00'],
  strictest: ['08:00', '20:00'],
};

const presetOf = ({ textFrom, textUntil }: Values): string =>
  Object.keys(presets).find((name) => presets[name]?.[0] === textFrom && presets[name]?.[1] === textUntil) ??
  'custom';

/** `9` as `09:00`; any other text as it is. */
const asTime = (text: string): string => {
  const minutes = minutesOf(text);
  return minutes === undefined ? text : new Date(minutes * minute).toISOString().slice(11, 16);
};

/** Most people do not want to fill in two times: one choice stands for them until *custom* is chosen. */
export const addHours = (form: Form): void => {
  const { say } = form;
  const id = 'node-config-input-textHours';
  const choice = $('<select>', { id }).append(
    $('<option>', { value: 'any', text: say('hours.any') }),
    $('<option>', { value: 'federal', text: say('hours.federal') }),
    $('<option>', { value: 'strictest', text: say('hours.strictest') }),
    $('<option>', { value: 'custom', text: say('hours.custom') }),
  );
  const note = $('<span>', { class: 'advisor-hint' });
  const notes: Readonly<Record<string, string>> = {
    any: say('hours.note.any'),
    federal: say('hours.note.federal'),
    strictest: say('hours.note.strictest'),
    custom: say('hours.note.custom'),
    both: say('hours.note.both'),
  };
  const isHalf = ({ textFrom, textUntil }: Values): boolean =>
    textFrom === '' || textUntil === '' || textFrom === textUntil;
  const row = $('<div>', { class: 'form-row' }).append(
    $('<label>', { for: id }).append(icon('clock-o'), $('<span>', { text: say('label.textHours') })),
    choice,
    note,
  );
  form.row('textFrom').before(row);
  choice.val(presetOf(form.values()));
  choice.on('change', () => {
    const [from, until] = presets[String(choice.val())] ?? [];
    if (from === undefined || until === undefined) return;
    form.set('textFrom', from);
    form.set('textUntil', until);
  });
  for (const name of ['textFrom', 'textUntil']) {
    const input = form.input(name);
    input.on('change', () => input.val(asTime(valueIn(input))));
  }
  form.onChange(() => {
    const chosen = String(choice.val());
    note.text(notes[chosen === 'custom' && isHalf(form.values()) ? 'both' : chosen] ?? '');
    for (const name of ['textFrom', 'textUntil']) form.row(name).toggle(chosen === 'custom');
    form.row('outsideHours').toggle(chosen !== 'any');
  });
};
