import type { Habits } from '../profiles';
import { second } from '../../lib/durations';

/** The contract on the wire of a service with certain habits. All other files use the contract's words. */

/** Such as `core.contacts.read` with the prefix of this service; `openid` and the like have no prefix. */
export const scopeOnWire = (scope: string, { corePrefix, textPrefix }: Habits): string =>
  scope.replace(/^core(?=\.)/, () => corePrefix).replace(/^text(?=\.)/, () => textPrefix);

/** The paths of the contract that a path on the wire may stand for. */
export const pathsInContract = (path: string, { corePrefix, textPrefix }: Habits): string[] => {
  const [, segment = '', rest = ''] = /^\/([^/]*)(\/.*)$/.exec(path) ?? [];
  return [
    ...(segment === corePrefix ? [`/core${rest}`] : []),
    ...(segment === textPrefix ? [`/text${rest}`] : []),
  ];
};

/** The name of a query parameter: one search may have its own name for it. */
export const nameOnWire = (
  search: string | undefined,
  name: string,
  { names }: Pick<Habits, 'names'>,
): string => (search === undefined ? undefined : names[`${search}.${name}`]) ?? names[name] ?? name;

/** The first digits of an id beyond 2^53, before six more: JavaScript would round the last digits. */
const large = '9007199254740992';
const largeId = new RegExp(`(?<!\\d)${large}(\\d{6})(?!\\d)`, 'g');

/** Replaces the ids of this service in a text by the simulator's own. */
export const ownIds = (text: string, { ids }: Habits): string =>
  ids === 'large' ? text.replaceAll(largeId, (_, digits: string) => String(Number(digits))) : text;

/**
 * `JSON.stringify` cannot write such a number: it is written as a string with this mark, and the quotes are removed
 * afterwards.
 */
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

/** A contact's date as it is stored; a date that is not in this service's format is stored unchanged. */
export const keptDate = (date: string, { dates }: Habits): string => {
  const [, month, day, year] = dates === 'us' ? (/^(\d{2})\/(\d{2})\/(\d{4})$/.exec(date) ?? []) : [];
  return year === undefined ? date : `${year}-${month ?? ''}-${day ?? ''}`;
};

/** The reason why a recipient was not texted. */
export interface FailureReason {
  readonly phone: string;
  readonly code: string;
}

const failureDetails = (reasons: readonly FailureReason[], { failureDetails: shape }: Habits): object => {
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

/** A number of North America without its country code. */
const nationalPhone = (phone: string): string => phone.replace(/^\+1(\d{3})(\d{3})(\d{4})$/, '($1) $2-$3');

/** The fields of contacts and groups that may be absent and are not texts. */
const absentNumbers: ReadonlySet<string> = new Set(['gender', 'maritalStatus']);

const absent = (name: string, { absentTexts }: Habits): unknown => {
  if (absentTexts === 'null') return null;
  return absentTexts === 'empty' && !absentNumbers.has(name) ? '' : undefined;
};

const writesAsHeld = (habits: Habits): boolean =>
  habits.ids === 'numbers' &&
  habits.groupIds === 'given' &&
  habits.dates === 'iso' &&
  habits.emptyLists === 'given' &&
  habits.absentTexts === 'missing' &&
  habits.phones === 'e164' &&
  habits.failureDetails === 'none';

/** An answer as this service writes it; only the answer to a send has `reasons`. */
export const answerOnWire = (
  body: object,
  reasons: readonly FailureReason[] | undefined,
  habits: Habits,
): string => {
  if (writesAsHeld(habits)) return JSON.stringify(body);
  const field = (name: string, value: unknown): unknown => {
    if (value === undefined) return absent(name, habits);
    if (
      name === 'phone' &&
      habits.phones === 'national' &&
      typeof value === 'string' &&
      reasons === undefined
    )
      return nationalPhone(value);
    if (typeof value === 'number' && idFields.has(name)) return idOnWire(value, habits);
    if (name === 'groupIds')
      return habits.groupIds === 'missing'
        ? undefined
        : (value as number[]).map((id) => idOnWire(id, habits));
    if (habits.dates === 'us' && typeof value === 'string' && dateFields.has(name))
      return americanDate(value);
    const isEmptyList = reasons !== undefined && Array.isArray(value) && value.length === 0;
    return isEmptyList && habits.emptyLists === 'missing' ? undefined : value;
  };
  const whole = reasons === undefined ? body : { ...body, ...failureDetails(reasons, habits) };
  const text = JSON.stringify(whole, field);
  return habits.ids === 'large' ? text.replaceAll(marked, '$1') : text;
};

/** The *Retry-After* header in this service's form (RFC 9110, section 10.2.3). A text is sent unchanged. */
export const retryAfterOnWire = (
  retryAfter: number | string,
  now: number,
  { retryAfter: form }: Habits,
): number | string =>
  form === 'date' && typeof retryAfter === 'number'
    ? new Date(Math.ceil(now / second + retryAfter) * second).toUTCString()
    : retryAfter;
