import type { Say, Values } from '../../lib/editor/red';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string =>
  say(`sentence.${choiceOf(values, 'operation', 'block')}`);
