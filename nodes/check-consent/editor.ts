import { icon } from '../../lib/editor/dom';
import { addDurations } from '../../lib/editor/durations';
import type { Form, Say, Values } from '../../lib/editor/red';
import { literalOf } from '../../lib/editor/words';
import { withDefaults } from '../../lib/runtime/settings';

const names = ['pollEvery', 'pollFor', 'thenEvery', 'giveUpAfter'];

export const label = (values: Values, say: Say): string => {
  const isWait = values['mode'] === 'wait';
  const phone = values['by'] === 'memberId' ? undefined : literalOf(values, 'phone');
  if (phone === undefined) return isWait ? say('sentence.wait') : say('sentence.check');
  return isWait ? say('sentence.waitNumber', { phone }) : say('sentence.checkNumber', { phone });
};

/** Most people do not want four numbers: one choice stands for them until *custom* is chosen. */
export const opened = (form: Form): void => {
  const { say } = form;
  // The defaults are the pace that the service recommends (contract, *Limits*).
  const recommended = withDefaults(form.spec.fields, {});
  const id = 'node-input-pace';
  const pace = $('<select>', { id }).append(
    $('<option>', { value: 'recommended', text: say('option.pace.recommended') }),
    $('<option>', { value: 'custom', text: say('option.pace.custom') }),
  );
  const row = $('<div>', { class: 'form-row' }).append(
    $('<label>', { for: id }).append(icon('refresh'), $('<span>', { text: say('label.pace') })),
    pace,
  );
  form.row('pollEvery').before(row);
  const values = form.values();
  const isRecommended = names.every((name) => values[name] === recommended[name]);
  pace.val(isRecommended ? 'recommended' : 'custom');
  pace.on('change', () => {
    if (pace.val() !== 'recommended') return;
    for (const name of names) form.set(name, String(recommended[name]));
  });
  form.onChange((values) => {
    const waiting = values['mode'] === 'wait';
    row.toggle(waiting);
    form.row('mode').children('.advisor-hint').toggle(waiting);
    for (const name of names) form.row(name).toggle(waiting && pace.val() === 'custom');
  });
  addDurations(form, names);
};
