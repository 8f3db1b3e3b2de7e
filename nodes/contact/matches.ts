import { largestPage } from '../../lib/contract-values';
import { minute } from '../../lib/durations';
import { orMake } from '../../lib/process-memory';
import type { Caller } from '../../lib/address-book/operation';
import { pagesOf, totalOf } from '../../lib/address-book/paging';
import type { Environment } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { isGone, serviceError } from '../../lib/service/errors';
import type { Id, ResponseOf } from '../../lib/service/endpoints';
import { fieldsGiven } from '../../lib/address-book/record-fields';
import { isRecord, tried } from '../../lib/kinds';
import type { ContactBody } from './input';
import { contactFieldKinds } from './spec';

/** The field of a search result by which a save finds the contact. */
export type MatchBy = 'email' | 'fullName';

type Summary = ResponseOf<'searchContacts'>['data'][number];
type Match = Pick<Summary, 'fullName' | 'email'> & { readonly contactId: Id };

/** Ignores case and extra spaces, but not accents: José and Jose may be two people. */
const comparable = (text: string): string =>
  text.normalize('NFC').trim().replaceAll(/\s+/g, ' ').toLowerCase();

const named = ({ firstName, lastName }: { firstName?: unknown; lastName?: unknown }): string =>
  [firstName, lastName].filter((name) => typeof name === 'string').join(' ');

/** The names that the service may use for the contact: it may write `fullName` in another order. */
const valuesOf = (summary: Summary, matchBy: MatchBy): string[] => {
  const values = matchBy === 'email' ? [summary.email] : [summary.fullName, named(summary)];
  return values.flatMap((value) => (typeof value === 'string' ? comparable(value) || [] : []));
};

/** The value by which a contact is matched. */
const valueOf = (contact: Readonly<Record<string, unknown>>, matchBy: MatchBy): string => {
  const { emailAddress } = contact;
  if (matchBy === 'fullName') return comparable(named(contact));
  return typeof emailAddress === 'string' ? comparable(emailAddress) : '';
};

/** The same for a contact to save. Throws `invalid_input` if it has no such value. */
export const matchValueOf = (contact: ContactBody, matchBy: MatchBy): string => {
  const value = valueOf(contact, matchBy);
  if (value === '') throw invalidInput(matchBy === 'email' ? 'match_no_email' : 'match_no_name');
  return value;
};

/** The values of all contacts of a list; those without one fail by themselves. */
export const matchValuesOf = (contacts: readonly unknown[], matchBy: MatchBy): ReadonlySet<string> =>
  new Set(
    contacts.map((contact) => {
      if (!isRecord(contact)) return '';
      return tried(() => valueOf(fieldsGiven(contact, contactFieldKinds), matchBy)) ?? '';
    }),
  );

type Matches = Map<string, Match[]>;

/** The most contacts with one value that are kept: an error lists them. */
const mostMatches = 20;

/** Readings of an address book from which contacts are deleted meanwhile: that moves others to pages already read. */
const mostReadings = 3;

/**
 * The contacts of the advisor that have one of these values, by value. All others are not kept: a service may have, or
 * make up, any number of them.
 */
export const readMatches = async (
  caller: Caller,
  matchBy: MatchBy,
  wanted: ReadonlySet<string>,
  readings = mostReadings,
): Promise<Matches> => {
  const matches: Matches = new Map();
  let [isAny, isGiven, isShrinking, total] = [false, false, false, 0];
  const pages = pagesOf((page) => caller.call('searchContacts', { query: { page, pageSize: largestPage } }), {
    pageSize: largestPage,
    idOf: ({ contactId }) => contactId ?? undefined,
  });
  for await (const { page, fresh } of pages) {
    const before = total;
    total = totalOf(page) ?? total;
    // The contract does not say what the total counts: it may be the records of this page alone.
    isShrinking ||= total < before && total > page.data.length;
    for (const summary of fresh) {
      const { contactId, fullName, email } = summary;
      if (contactId == null || contactId === '') continue;
      isAny = true;
      for (const value of new Set(valuesOf(summary, matchBy))) {
        isGiven = true;
        if (!wanted.has(value)) continue;
        const same = orMake(matches, value, () => []);
        if (same.length < mostMatches) same.push({ contactId, fullName, email });
      }
    }
  }
  if (isShrinking && readings > 1) return readMatches(caller, matchBy, wanted, readings - 1);
  // Contacts without that value would all be created again.
  if (isAny && !isGiven) throw serviceError('invalid_response', 'match_unclear', { field: matchBy });
  return matches;
};

/** For how long a search may not show a contact that was created, and how long a read may not find it. */
const rememberFor = 10 * minute;
const lagFor = minute;

/** The contacts that saves have created lately, oldest first. */
const createdBy = new WeakMap<Environment, Map<string, { readonly id: Id; readonly at: number }>>();

export const matchKey = ({ environment, advisor }: Caller, matchBy: MatchBy, value: string): string =>
  JSON.stringify([environment.id, advisor, matchBy, value]);

const rememberCreated = (caller: Caller, key: string, id: Id): void => {
  const { environment } = caller;
  const now = environment.clock.now();
  const created = orMake(createdBy, environment, () => new Map<string, { id: Id; at: number }>());
  created.delete(key);
  created.set(key, { id, at: now });
  for (const [other, { at }] of created) {
    if (now - at < rememberFor) break;
    created.delete(other);
  }
};

/** To be called when a contact was, or may have been, deleted. */
export const forgetCreated = ({ environment }: Caller, id: Id): void => {
  const created = createdBy.get(environment);
  for (const [key, each] of created ?? []) if (String(each.id) === String(id)) created?.delete(key);
};

/** The contact that a save created lately, if it still has the value. */
const lately = async (caller: Caller, matchBy: MatchBy, value: string): Promise<Match[]> => {
  const created = createdBy.get(caller.environment);
  const key = matchKey(caller, matchBy, value);
  const found = created?.get(key);
  if (!found || caller.environment.clock.now() - found.at >= rememberFor) return [];
  try {
    const contact = await caller.call('getContact', { params: { contactId: found.id } });
    if (valueOf(contact, matchBy) === value) return [{ contactId: found.id }];
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
    if (caller.environment.clock.now() - found.at < lagFor)
      throw serviceError('not_found', 'created_unseen', { id: String(found.id) }, { status: 404 });
  }
  created?.delete(key);
  return [];
};

/** Finds contacts by one field. All contacts of a list share one reading of the address book. */
export class Matcher {
  /** Values whose contact may have been created since the address book was read. */
  private readonly uncertain = new Set<string>();

  /** Without `matches`, the address book is read for each value. */
  constructor(
    private readonly matchBy: MatchBy,
    private readonly matches?: Matches,
  ) {}

  /** The only contact with this value; undefined when there is none. Throws `invalid_input` when there are several. */
  async find(caller: Caller, value: string): Promise<Id | undefined> {
    const { matchBy } = this;
    const known = this.uncertain.has(value) ? undefined : this.matches;
    const found = (known ?? (await readMatches(caller, matchBy, new Set([value])))).get(value) ?? [];
    const [match, ...others] = found.length > 0 ? found : await lately(caller, matchBy, value);
    if (others.length === 0) return match?.contactId;
    const ids = found.map(({ contactId }) => contactId).join(', ');
    const key = matchBy === 'email' ? 'match_several_email' : 'match_several_name';
    throw serviceError('invalid_input', key, { ids }, { details: found });
  }

  /** Runs `create` for the contact with this value, and returns its result. */
  async creating<T extends { readonly id?: Id | null | undefined }>(
    caller: Caller,
    value: string,
    create: () => Promise<T>,
  ): Promise<T> {
    this.uncertain.add(value);
    const result = await create();
    if (result.id == null) return result;
    rememberCreated(caller, matchKey(caller, this.matchBy, value), result.id);
    this.matches?.set(value, [{ contactId: result.id }]);
    if (this.matches) this.uncertain.delete(value);
    return result;
  }
}
