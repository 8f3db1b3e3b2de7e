import type { Say, Values } from '../../lib/editor/red';

export const label = (values: Values, say: Say): string => {
  const operation = String(values['operation'] ?? 'create');
  return operation === 'search' && values['all'] === true
    ? say('sentence.all')
    : say(`sentence.${operation}`);
};
