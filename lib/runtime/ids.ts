import type { Id } from '../service/endpoints';
import { anyId, isNothing } from './kinds';
import { invalid } from './messages';

export { anyId, wholeId } from './kinds';

/** The id, or an error that says where it should have been. */
export const idFrom = (value: unknown, where: string): Id => {
  const id = anyId(value);
  if (id !== undefined) return id;
  throw invalid(isNothing(value) ? 'id_missing' : 'id_kind', { where });
};

/** One value, or a list of them; an empty list is a mistake. */
export const oneOrList = (
  value: unknown,
  where: string,
): { readonly list: boolean; readonly items: readonly unknown[] } => {
  if (!Array.isArray(value)) return { list: false, items: [value] };
  if (value.length === 0) throw invalid('list_empty', { where });
  // The holes of a sparse array become entries with nothing in them.
  return { list: true, items: Array.from(value as readonly unknown[]) };
};
