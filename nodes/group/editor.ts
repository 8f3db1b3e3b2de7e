import type { Form, Say, Values } from '../../lib/editor/red';
import { chosenOf, literalOf, shortLabel } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string | undefined => {
  const { operation, all } = values;
  const name = operation === 'create' ? literalOf(values, 'group') : undefined;
  if (name !== undefined) return say('sentence.createNamed', { name: shortLabel(name) });
  const members = operation === 'members' ? chosenOf(values, 'groupId') : undefined;
  if (members !== undefined) return say('sentence.membersNamed', { name: shortLabel(members) });
  return operation === 'search' && all === true ? say('sentence.all') : undefined;
};

/** The hint of a delete asks for an id: a name is not enough there. */
export const opened = (form: Form): void => {
  const hint = form.row('groupId').find('.advisor-hint').first();
  form.onChange(({ operation }) => {
    hint.text(operation === 'delete' ? form.say('hint.groupIdToDelete') : form.say('hint.groupId'));
  });
};
