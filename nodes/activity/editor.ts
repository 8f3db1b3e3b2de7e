import type { Form, Say, Values } from '../../lib/editor/red';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string =>
  say(`sentence.${choiceOf(values, 'operation', 'waits')}`);

/** Only a wait can be checked, so the hint of a check asks for the id of a wait. */
export const opened = (form: Form): void => {
  const hint = form.row('itemId').find('.advisor-hint').first();
  form.onChange(({ operation }) => {
    hint.text(operation === 'check' ? form.say('hint.itemIdToCheck') : form.say('hint.itemId'));
  });
};
