import { invalid } from './messages';

/** A whole number of 0 or more, or a string of digits; undefined for anything else. */
export const wholeId = (value: unknown): number | undefined => {
  const isDigits = typeof value === 'string' && /^\d+$/.test(value.trim());
  const id = isDigits ? Number(value) : value;
  return typeof id === 'number' && Number.isSafeInteger(id) && id >= 0 ? id : undefined;
};

const isNothing = (value: unknown): boolean => value === undefined || value === null || value === '';

/** The id, or an error that says where it should have been. */
export const idFrom = (value: unknown, where: string): number => {
  const id = wholeId(value);
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
  return { list: true, items: value };
};
