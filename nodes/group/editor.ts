import type { Say, Values } from '../../lib/editor/red';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const operation = choiceOf(values, 'operation', 'create');
  return operation === 'search' && values['all'] === true
    ? say('sentence.all')
    : say(`sentence.${operation}`);
};
