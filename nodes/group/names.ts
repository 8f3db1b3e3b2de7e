import { minute } from '../../lib/durations';
import type { MessageValue } from '../../lib/service/errors';
import type { Caller } from '../../lib/address-book/operation';
import type { Environment } from '../../lib/runtime/environment';
import { wholeId } from '../../lib/runtime/inputs';
import { invalidInput } from '../../lib/runtime/errors';
import { largestPage } from '../../lib/contract-values';
import { pagesOf } from '../../lib/address-book/paging';
import type { Id } from '../../lib/service/endpoints';

/** Ids by name: several where groups have the same name. */
type Names = ReadonlyMap<string, readonly Id[]>;

interface RememberedNames {
  readonly at: number;
  readonly names: Promise<Names>;
}

const rememberFor = minute;

/** All nodes of an environment share the names, by advisor. */
const namesByEnvironment = new WeakMap<Environment, Map<string, RememberedNames>>();

const readNames = async (caller: Caller): Promise<Names> => {
  const names = new Map<string, Id[]>();
  const pages = pagesOf(
    (page, signal) => caller.call('searchGroups', { query: { page, pageSize: largestPage } }, signal),
    largestPage,
  );
  for await (const { data } of pages) {
    for (const { groupId, name } of data) {
      if (groupId == null || groupId === '' || typeof name !== 'string') continue;
      const ids = names.get(name.trim()) ?? [];
      if (!ids.includes(groupId)) names.set(name.trim(), [...ids, groupId]);
    }
  }
  return names;
};

const rememberedNames = (caller: Caller, olderThan: number): RememberedNames => {
  const { environment, advisor } = caller;
  const now = environment.clock.now();
  const byAdvisor = namesByEnvironment.get(environment) ?? new Map<string, RememberedNames>();
  namesByEnvironment.set(environment, byAdvisor);
  const known = byAdvisor.get(advisor);
  if (known && now - known.at < olderThan) return known;
  const fresh: RememberedNames = { at: now, names: readNames(caller) };
  byAdvisor.set(advisor, fresh);
  fresh.names.catch(() => {
    if (byAdvisor.get(advisor) === fresh) byAdvisor.delete(advisor);
  });
  return fresh;
};

/** To be called when a group was, or may have been, created or deleted. */
export const forgetNames = ({ environment, advisor }: Caller): void => {
  namesByEnvironment.get(environment)?.delete(advisor);
};

/** The result of `find` on the groups. When it finds nothing among the remembered groups, they are read again. */
const found = async <T>(caller: Caller, find: (names: Names) => T | undefined): Promise<T | undefined> => {
  const remembered = namesByEnvironment.get(caller.environment)?.get(caller.advisor);
  const current = rememberedNames(caller, rememberFor);
  const known = find(await current.names);
  // Somebody else may have created the group since.
  return known === undefined && current === remembered ? find(await rememberedNames(caller, 0).names) : known;
};

const withId = (names: Names, text: string): Id | undefined =>
  [...names.values()].flat().find((id) => id === text);

/** The text as an id, if a group of the service has that id. */
export const knownId = (caller: Caller, text: string): Promise<Id | undefined> =>
  found(caller, (names) => withId(names, text));

const isAlike = (one: string, other: string): boolean =>
  one.localeCompare(other, undefined, { sensitivity: 'base', ignorePunctuation: true }) === 0;

/** Looks among the names first, then among ids: a service may use words as ids. */
const idNamed = async (caller: Caller, name: string): Promise<Id> => {
  let similar: string | undefined;
  const ids = await found(caller, (names) => {
    similar = [...names.keys()].find((each) => isAlike(each, name));
    const id = withId(names, name);
    return names.get(name) ?? (id === undefined ? undefined : [id]);
  });
  const [id, ...others] = ids ?? [];
  if (id === undefined)
    throw similar === undefined
      ? invalidInput('group_unknown', { name })
      : invalidInput('group_similar', { name, similar });
  if (others.length > 0) throw invalidInput('group_ambiguous', { name, ids: [id, ...others].join(', ') });
  return id;
};

/** An integer or a string of digits is an id. Any other string is a name, or else an id of a service whose ids are words. */
export const groupFrom = async (caller: Caller, value: unknown, where: MessageValue): Promise<Id> => {
  const id = wholeId(value);
  if (id !== undefined) return id;
  if (value === undefined || value === null || value === '') throw invalidInput('group_missing', { where });
  if (typeof value !== 'string' || value.trim() === '') throw invalidInput('group_value', { where });
  return idNamed(caller, value.trim());
};

/** Compares ids as text: a service that writes ids as strings sends `"12"` for the group 12 of a message. */
export const isSame = (one: Id, other: Id): boolean => String(one) === String(other);

/** A string of digits as the service writes this id: a number or a string. If no group has this id, the string is kept. */
export const asServiceWrites = async (caller: Caller, digits: string): Promise<Id> => {
  const text = digits.trim();
  const same = found(caller, (names) => [...names.values()].flat().find((id) => isSame(id, text)));
  return (await same.catch(() => undefined)) ?? text;
};

/** A group that exists, and whether its name is unique. Throws `invalid_input`. */
export const groupNamed = async (
  caller: Caller,
  value: unknown,
  where: MessageValue,
): Promise<{ readonly id: Id; readonly name: string; readonly isOnlyOne: boolean }> => {
  const wanted = await groupFrom(caller, value, where);
  for (const olderThan of [rememberFor, 0]) {
    for (const [name, ids] of await rememberedNames(caller, olderThan).names) {
      const id = ids.find((each) => isSame(each, wanted));
      if (id !== undefined) return { id, name, isOnlyOne: ids.length === 1 };
    }
  }
  throw invalidInput('group_unknown', { name: String(wanted) });
};
