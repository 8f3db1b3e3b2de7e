import type { Say, Values } from '../../lib/editor/red';
import { literalOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const phone = literalOf(values, 'phone');
  return phone === undefined ? say('sentence.ask') : say('sentence.askNumber', { phone });
};
