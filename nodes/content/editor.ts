import type { Say, Values } from '../../lib/editor/red';
import { literalOf, shortLabel } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const text = literalOf(values, 'search');
  return text === undefined ? say('sentence.search') : say('sentence.searchFor', { text: shortLabel(text) });
};
