import { environmentSays as say } from '../../../lib/editor/locale';
import { minute } from '../../../lib/durations';
import { icon, valueIn } from '../../../lib/editor/dom';
import type { Form, Values } from '../../../lib/editor/red';
import { minutesOf } from '../../../lib/runtime/dates';

type Times = readonly [from: string, until: string];

/** With these, *custom* begins: left empty, it would mean any time. */
const usual: Times = ['08:00', '21:00'];

/** The choices, each with its two times. */
const presets: Readonly<Record<string, Times>> = {
  any: ['', ''],
  federal: usual,
  strictest: ['08:00', '20:00'],
};

const custom = 'custom';

const presetOf = ({ textFrom, textUntil }: Values): string =>
  Object.keys(presets).find((name) => presets[name]?.[0] === textFrom && presets[name]?.[1] === textUntil) ??
  custom;

/** `9` as `09:00`; any other text as it is. */
const asTime = (text: string): string => {
  const minutes = minutesOf(text);
  return minutes === undefined ? text : new Date(minutes * minute).toISOString().slice(11, 16);
};

/** Most people do not want to fill in two times: one choice stands for them until *custom* is chosen. */
export const addHours = (form: Form): void => {
  const id = 'node-config-input-textHours';
  const choices = [...Object.keys(presets), custom];
  const choice = $('<select>', { id }).append(
    ...choices.map((value) => $('<option>', { value, text: say(`hours.${value}`) })),
  );
  const note = $('<span>', { class: 'advisor-hint' });
  const row = $('<div>', { class: 'form-row' }).append(
    $('<label>', { for: id }).append(icon('clock-o'), $('<span>', { text: say('label.textHours') })),
    choice,
    note,
  );
  form.row('textFrom').before(row);
  choice.val(presetOf(form.values()));
  choice.on('change', () => {
    const wasOpen = presetOf(form.values()) === 'any';
    const [from, until] = presets[String(choice.val())] ?? (wasOpen ? usual : []);
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
    note.text(say(`hours.note.${presetOf(form.values()) === 'any' ? 'any' : chosen}`));
    for (const name of ['textFrom', 'textUntil']) form.row(name).toggle(chosen === custom);
    form.row('outsideHours').toggle(chosen !== 'any');
  });
};
