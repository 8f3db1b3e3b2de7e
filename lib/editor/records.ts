import type { TypedField } from '../runtime/spec';
import type { Say, Values } from './red';

export type RecordKind = NonNullable<TypedField['lookup']>;

export interface Choice {
  /** The value that is written into the field. */
  readonly value: string;
  readonly title: string;
  readonly detail: string;
}

/** Any field of the service's records may be missing or null. */
const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';

const firstOf = (...values: unknown[]): string => values.map(text).find((value) => value !== '') ?? '';

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');

const recordChoice: Readonly<Record<RecordKind, (record: Values, say: Say) => Choice>> = {
  contacts: (contact, say) => {
    const value = text(contact['contactId']);
    const name = `${text(contact['firstName'])} ${text(contact['lastName'])}`;
    const title = firstOf(contact['fullName'], name, contact['email'], contact['identifier'], value);
    return { value, title, detail: joined(text(contact['email']), say('picker.id', { id: value })) };
  },
  groups: (group, say) => {
    const value = text(group['groupId']);
    const count = text(group['contactCount']);
    const members = count === '' ? '' : say('picker.members', { members: Number(count) });
    return {
      value,
      title: firstOf(group['name'], value),
      detail: joined(members, say('picker.id', { id: value })),
    };
  },
  content: (item) => {
    const title = firstOf(item['title'], item['url']);
    return { value: title, title, detail: text(item['url']) };
  },
};

interface RecordPage {
  readonly data: readonly Values[];
  readonly pageInfo?: { readonly pageSize?: unknown; readonly totalRecord?: unknown };
}

/** The choices on a page of the lookup route. `before` is the number of records on earlier pages. */
export const foundIn = (what: RecordKind, page: unknown, before: number, say: Say) => {
  const { data, pageInfo } = page as RecordPage;
  const size = typeof pageInfo?.pageSize === 'number' ? pageInfo.pageSize : Infinity;
  const total = typeof pageInfo?.totalRecord === 'number' ? pageInfo.totalRecord : null;
  return {
    choices: data.map((record) => recordChoice[what](record, say)).filter(({ value }) => value !== ''),
    total,
    hasMore: data.length > 0 && (total === null ? data.length >= size : before + data.length < total),
  };
};

export const idsIn = (value: unknown, type: unknown): number[] => {
  if (type !== 'json' && type !== 'num') return [];
  try {
    const parsed: unknown = JSON.parse(text(value));
    return [parsed].flat().filter((id): id is number => Number.isInteger(id));
  } catch {
    return [];
  }
};

export const toggled = (ids: readonly number[], id: number): number[] =>
  ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id];
