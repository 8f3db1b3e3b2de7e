import type { Form } from '../../lib/editor/red';

/** Only a wait can be checked, so the hint of a check asks for the id of a wait. */
export const opened = (form: Form): void => {
  const hint = form.row('itemId').find('.advisor-hint').first();
  form.onChange(({ operation }) => {
    hint.text(operation === 'check' ? form.say('hint.itemIdToCheck') : form.say('hint.itemId'));
  });
};
