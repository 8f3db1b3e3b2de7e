import type { Say, Values } from '../../lib/editor/red';
import { isVariable } from '../../lib/editor/values';

export const label = (values: Values, say: Say): string => {
  const service = String(values['service'] ?? 'simulator');
  return isVariable(service) ? service : say(`option.service.${service}`);
};
