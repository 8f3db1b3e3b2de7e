import type { Form, Say, Values } from '../../lib/editor/red';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const operation = choiceOf(values, 'operation', 'create');
  return operation === 'search' && values['all'] === true
    ? say('sentence.all')
    : say(`sentence.${operation}`);
};

/** The direction of an order that nobody has chosen is hardly ever meant; where it was chosen, it is sent and shown. */
export const opened = (form: Form): void => {
  form.onChange(({ operation, sortBy, sortDirection }) => {
    form.row('sortDirection').toggle(operation === 'search' && (sortBy !== '' || sortDirection !== ''));
  });
};
