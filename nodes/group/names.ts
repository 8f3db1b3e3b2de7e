import { minute } from '../../lib/durations';
import type { MessageValue } from '../../lib/service/errors';
import type { Caller } from '../../lib/address-book/operation';
import type { Environment } from '../../lib/runtime/environment';
import { isNothing, wholeId } from '../../lib/kinds';
import { invalidInput } from '../../lib/runtime/errors';
import { largestPage } from '../../lib/contract-values';
import { pagesOf } from '../../lib/address-book/paging';
import { orMake } from '../../lib/process-memory';
import type { Id } from '../../lib/service/endpoints';

/** What all groups together say about a text. */
interface Found {
  /** The groups of this name: more than one where groups share it. */
  readonly named: Id[];
  /** The group with this id: a service may use words as ids. */
  withId?: { readonly id: Id; readonly name: string };
  /** A name that is written nearly as the text. */
  similar?: string;
}

const rememberFor = minute;
/** What was found is remembered, and never all groups: a service may have, or make up, any number of them. */
const mostRemembered = 1000;
/** The most groups of one name that are kept: an error lists them. */
const mostNamed = 20;

interface Lookup {
  readonly at: number;
  readonly found: Promise<Found>;
}

/** The lookups of one advisor in one environment, for all nodes. */
class Lookups {
  private readonly byText = new Map<string, Lookup>();
  /** Texts that the next pass over the groups looks for. */
  private waiting: Map<string, Found> | undefined;
  private pass: Promise<void> | undefined;

  /** What is known about the text; it is looked up when that is older than `rememberFor`, or missing. */
  find(caller: Caller, text: string): Promise<Found> {
    const now = caller.environment.clock.now();
    const known = this.byText.get(text);
    if (known && now - known.at < rememberFor) return known.found;
    const lookup: Lookup = { at: now, found: this.lookUp(caller, text) };
    this.byText.delete(text);
    this.byText.set(text, lookup);
    for (const oldest of this.byText.keys()) {
      if (this.byText.size <= mostRemembered) break;
      this.byText.delete(oldest);
    }
    const forget = (): void => {
      if (this.byText.get(text) === lookup) this.byText.delete(text);
    };
    // Somebody may create the group before the next message.
    lookup.found.then(({ named, withId }) => {
      if (named.length === 0 && withId === undefined) forget();
    }, forget);
    return lookup.found;
  }

  /** All lookups of one tick share a pass over the groups. */
  private async lookUp(caller: Caller, text: string): Promise<Found> {
    const found: Found = { named: [] };
    if (this.waiting === undefined || this.pass === undefined) {
      const waiting = new Map<string, Found>();
      this.waiting = waiting;
      this.pass = Promise.resolve().then(() => {
        this.waiting = undefined;
        return lookThrough(caller, waiting);
      });
    }
    this.waiting.set(text, found);
    await this.pass;
    return found;
  }
}

const lookThrough = async (caller: Caller, wanted: ReadonlyMap<string, Found>): Promise<void> => {
  const pages = pagesOf(
    (page, signal) => caller.call('searchGroups', { query: { page, pageSize: largestPage } }, signal),
    { pageSize: largestPage, idOf: ({ groupId }) => groupId },
  );
  const likeWanted = [...wanted].map(([text, found]) => ({ text, found }));
  for await (const { fresh } of pages) {
    for (const { groupId: id, name: written } of fresh) {
      if (id == null || id === '' || typeof written !== 'string') continue;
      const name = written.trim();
      const { named } = wanted.get(name) ?? {};
      if (named && named.length < mostNamed) named.push(id);
      const same = wanted.get(String(id));
      if (same) same.withId ??= { id, name };
      for (const { text, found } of likeWanted)
        if (found.similar === undefined && isAlike(name, text)) found.similar = name;
    }
  }
};

const lookupsByEnvironment = new WeakMap<Environment, Map<string, Lookups>>();

const find = (caller: Caller, text: string): Promise<Found> => {
  const { environment, advisor } = caller;
  const byAdvisor = orMake(lookupsByEnvironment, environment, () => new Map<string, Lookups>());
  return orMake(byAdvisor, advisor, () => new Lookups()).find(caller, text);
};

/** To be called when a group was, or may have been, created or deleted. */
export const forgetNames = ({ environment, advisor }: Caller): void => {
  lookupsByEnvironment.get(environment)?.delete(advisor);
};

/** The text as an id, if a group of the service has that id. */
export const knownId = async (caller: Caller, text: string): Promise<Id | undefined> => {
  const { withId } = await find(caller, text);
  return withId?.id === text ? text : undefined;
};

const { compare } = new Intl.Collator(undefined, { sensitivity: 'base', ignorePunctuation: true });
const isAlike = (one: string, other: string): boolean => compare(one, other) === 0;

/** Looks among the names first, then among ids: a service may use words as ids. */
const idNamed = async (caller: Caller, name: string): Promise<Id> => {
  const { named, withId, similar } = await find(caller, name);
  const [id = withId?.id, ...others] = named;
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
  if (isNothing(value)) throw invalidInput('group_missing', { where });
  if (typeof value !== 'string' || value.trim() === '') throw invalidInput('group_value', { where });
  return idNamed(caller, value.trim());
};

/** Compares ids as text: a service that writes ids as strings sends `"12"` for the group 12 of a message. */
export const isSame = (one: Id, other: Id): boolean => String(one) === String(other);

/** A string of digits as the service writes this id: a number or a string. If no group has this id, the string is kept. */
export const asServiceWrites = async (caller: Caller, digits: string): Promise<Id> => {
  const text = digits.trim();
  const found = await find(caller, text).catch(() => undefined);
  return found?.withId?.id ?? text;
};

/** A group that exists, and whether its name is unique. Throws `invalid_input`. */
export const groupNamed = async (
  caller: Caller,
  value: unknown,
  where: MessageValue,
): Promise<{ readonly id: Id; readonly name: string; readonly isOnlyOne: boolean }> => {
  const wanted = await groupFrom(caller, value, where);
  const name = typeof value === 'string' ? value.trim() : '';
  const [id] = name === '' ? [] : (await find(caller, name)).named;
  if (id !== undefined && isSame(id, wanted)) return { id, name, isOnlyOne: true };
  const { withId } = await find(caller, String(wanted));
  if (!withId) throw invalidInput('group_unknown', { name: String(wanted) });
  const { named } = await find(caller, withId.name);
  return { ...withId, isOnlyOne: named.length === 1 };
};
