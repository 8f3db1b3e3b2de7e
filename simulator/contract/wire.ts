import type { Habits } from '../profiles';
import type { OperationName } from './declaration';

/** How the contract looks on the wire of a service with certain habits. Everything else speaks the contract's words. */

/** `core.contacts.read` with the prefix of this service; `openid` and the like have none. */
export const scopeOnWire = (scope: string, { corePrefix, textPrefix }: Habits): string =>
  scope.replace(/^core(?=\.)/, () => corePrefix).replace(/^text(?=\.)/, () => textPrefix);

/** The paths of the contract that a path on the wire can stand for. */
export const pathsInContract = (path: string, { corePrefix, textPrefix }: Habits): string[] => {
  const [, segment = '', rest = ''] = /^\/([^/]*)(\/.*)$/.exec(path) ?? [];
  return [
    ...(segment === corePrefix ? [`/core${rest}`] : []),
    ...(segment === textPrefix ? [`/text${rest}`] : []),
  ];
};

const searches: Readonly<Partial<Record<OperationName, string>>> = {
  searchContacts: 'contacts',
  searchGroups: 'groups',
  searchContent: 'content',
};

export const nameOnWire = (operation: OperationName, name: string, { names }: Habits): string => {
  const search = searches[operation];
  return (search === undefined ? undefined : names[`${search}.${name}`]) ?? names[name] ?? name;
};

/** Before six digits of an id: a number beyond 2^53, whose last digits JavaScript would round away. */
const large = '9007199254740992';
const largeId = new RegExp(`(?<!\\d)${large}(\\d{6})(?!\\d)`, 'g');

/** Text with ids as this service gives them, with the simulator's own instead. */
export const ownIds = (text: string, { ids }: Habits): string =>
  ids === 'large' ? text.replaceAll(largeId, (_, digits: string) => String(Number(digits))) : text;

/** JSON cannot be told to write such a number: it is written as a text with this before it, which is taken off again. */
const mark = '\u0000';
const marked = new RegExp(`"\\\\u0000(\\d+)"`, 'g');

const idOnWire = (id: number, { ids }: Habits): number | string => {
  if (ids === 'numbers') return id;
  return ids === 'strings' ? String(id) : `${mark}${large}${String(id).padStart(6, '0')}`;
};

const idFields: ReadonlySet<string> = new Set(['id', 'contactId', 'groupId', 'memberId', 'messageId']);
const dateFields: ReadonlySet<string> = new Set([
  'birthDate',
  'clientAnniversary',
  'dateTimeUnsubscribed',
  'dateTimeCreated',
  'dateTimeModified',
]);

const isoDate = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2})(:\d{2}:\d{2})[.\d]*Z)?$/;

const americanDate = (iso: string): string => {
  const [, year, month = '', day = '', hour, rest = ''] = isoDate.exec(iso) ?? [];
  if (year === undefined) return iso;
  const date = `${month}/${day}/${year}`;
  if (hour === undefined) return date;
  const half = Number(hour) < 12 ? 'AM' : 'PM';
  return `${date} ${String(Number(hour) % 12 || 12).padStart(2, '0')}${rest} ${half}`;
};

/** A date of a contact as it is kept: those that are not in this service's format are kept as they came. */
export const keptDate = (date: string, { dates }: Habits): string => {
  const [, month, day, year] = dates === 'us' ? (/^(\d{2})\/(\d{2})\/(\d{4})$/.exec(date) ?? []) : [];
  return year === undefined ? date : `${year}-${month ?? ''}-${day ?? ''}`;
};

/** Why a recipient was not texted. */
export interface Reason {
  readonly phone: string;
  readonly code: string;
}

const failureDetails = (reasons: readonly Reason[], { failureDetails: shape }: Habits): object => {
  if (shape === 'none' || reasons.length === 0) return {};
  return {
    failureDetails:
      shape === 'codes'
        ? reasons
        : {
            count: reasons.length,
            byPhone: Object.fromEntries(reasons.map(({ phone }) => [phone, ['E-17']])),
          },
  };
};

const writesAsHeld = ({ ids, groupIds, dates, emptyLists, failureDetails: shape }: Habits): boolean =>
  ids === 'numbers' && groupIds === 'given' && dates === 'iso' && emptyLists === 'given' && shape === 'none';

/** The answer to an operation as this service writes it. */
export const answerOnWire = (
  operation: OperationName,
  body: object,
  reasons: readonly Reason[],
  habits: Habits,
): string => {
  if (writesAsHeld(habits)) return JSON.stringify(body);
  const isSend = operation === 'sendMessage';
  const field = (name: string, value: unknown): unknown => {
    if (typeof value === 'number' && idFields.has(name)) return idOnWire(value, habits);
    if (name === 'groupIds')
      return habits.groupIds === 'missing'
        ? undefined
        : (value as number[]).map((id) => idOnWire(id, habits));
    if (habits.dates === 'us' && typeof value === 'string' && dateFields.has(name))
      return americanDate(value);
    const isEmptyList = isSend && Array.isArray(value) && value.length === 0;
    return isEmptyList && habits.emptyLists === 'missing' ? undefined : value;
  };
  const whole = isSend ? { ...body, ...failureDetails(reasons, habits) } : body;
  const text = JSON.stringify(whole, field);
  return habits.ids === 'large' ? text.replaceAll(marked, '$1') : text;
};

/** Retry-After in this service's form (RFC 9110, 10.2.3). A text is sent as it is. */
export const retryAfterOnWire = (
  retryAfter: number | string,
  now: number,
  { retryAfter: form }: Habits,
): number | string =>
  form === 'date' && typeof retryAfter === 'number'
    ? new Date(Math.ceil(now / 1000 + retryAfter) * 1000).toUTCString()
    : retryAfter;
