import type { Form, Say, Values } from '../../lib/editor/red';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const operation = choiceOf(values, 'operation', 'search');
  return operation === 'search' && values['all'] === true
    ? say('sentence.all')
    : say(`sentence.${operation}`);
};

/** A direction means little when no sort field is chosen, so it is hidden. Where one was saved, it is sent, and shown. */
export const opened = (form: Form): void => {
  form.onChange(({ operation, sortBy, sortDirection }) => {
    form.row('sortDirection').toggle(operation === 'search' && (sortBy !== '' || sortDirection !== ''));
  });
};
