import type { Say, Values } from '../../lib/editor/red';
import { isVariable } from '../../lib/editor/values';
import { choiceOf } from '../../lib/editor/words';

export const label = (values: Values, say: Say): string => {
  const service = choiceOf(values, 'service', 'simulator');
  return isVariable(service) ? service : say(`option.service.${service}`);
};
