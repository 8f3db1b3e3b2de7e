import type { Form, Say, Values } from '../../lib/editor/red';

export const label = ({ operation, all }: Values, say: Say): string | undefined =>
  operation === 'search' && all === true ? say('sentence.all') : undefined;

/** A direction means little when no sort field is chosen, so it is hidden. Where one was saved, it is sent, and shown. */
export const opened = (form: Form): void => {
  form.onChange(({ operation, sortBy, sortDirection }) => {
    form.row('sortDirection').toggle(operation === 'search' && (sortBy !== '' || sortDirection !== ''));
  });
};
