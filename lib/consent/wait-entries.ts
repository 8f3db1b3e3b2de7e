import type { Movable } from '../state/moving';
import { endOf as rangeEnd, key, nextKey, type StoreEntry, type Operation, type Store } from '../state/store';
import type { ConsentStatus } from './consent-status';
import { lastInterval, lastPollOf, placeOn, type Pace, type Place, type Timing } from './rings';

/** The number or the member whose consent a wait is for. */
export type Subject = { readonly phone: string } | { readonly memberId: number | string };

export interface Wait {
  /** Unique, and sorts by arrival. */
  readonly item: Buffer;
  readonly advisor: string;
  readonly subject: Subject;
  readonly start: number;
  readonly pace: Pace;
  /** The person's name, from the message. */
  readonly name?: string | undefined;
}

/** The record of a wait; its key is the hash of advisor and subject, and the item. */
interface WaitRecord {
  readonly advisor: string;
  readonly subject: Subject;
  readonly start: number;
  readonly pace: Pace;
  readonly at: Place;
  readonly name?: string;
  readonly seen?: ConsentStatus;
}

/** A wait as it was read. */
export interface FoundWait {
  readonly wait: Wait;
  /** The group of the wait: all waits for the same advisor and number or member. */
  readonly group: Buffer;
  readonly at: Place;
  readonly seen: ConsentStatus | undefined;
  readonly entry: StoreEntry<WaitRecord>;
}

/** Where a wait lies: all waits of a list are visited by one cursor. */
export interface EntryList {
  readonly kind: 'new' | 'ring' | 'end';
  readonly interval: number;
}

const subjectLength = 16;
/** Bytes of a hash: enough to tell the advisors of one number apart. */
const advisorLength = 8;
const groupLength = subjectLength + advisorLength;
/** Bytes of a time in a key. */
export const timeLength = 6;
/** The value of entries whose key says everything. */
const nothing = 0;
const table = 'wait';

const isSameStatus = (one: ConsentStatus | undefined, other: ConsentStatus): boolean =>
  one?.memberId === other.memberId && one.state === other.state && one.lastChanged === other.lastChanged;

/**
 * The records by which waits are polled. Each wait has a record, which is found by its number; an entry in a list,
 * which a cursor reads when it is due; and, once the member id of its number is known, an entry by member.
 */
export class WaitEntries {
  private readonly records: Buffer;
  private readonly lists: Readonly<Record<EntryList['kind'], Buffer>>;
  private readonly members: Buffer;

  constructor(
    private readonly store: Store,
    space: Buffer,
  ) {
    this.records = key(space, 'wait');
    this.lists = { new: key(space, 'new'), ring: key(space, 'ring'), end: key(space, 'end') };
    this.members = key(space, 'member');
  }

  /** The subject comes first, so that the waits for a number can be found for all advisors. */
  groupOf(advisor: string, subject: Subject): Buffer {
    const whose = this.store.hash(`advisor\n${advisor}`).subarray(0, advisorLength);
    return Buffer.concat([this.subjectHash(subject), whose]);
  }

  timingOf({ advisor, subject, start, pace }: Wait, group = this.groupOf(advisor, subject)): Timing {
    return { start, pace, share: group.readUInt32BE(0) / 2 ** 32 };
  }

  /** Operations that put a wait among the new ones. */
  additions(wait: Wait, group: Buffer): Operation[] {
    const { advisor, subject, start, pace, name } = wait;
    const value: WaitRecord = {
      advisor,
      subject,
      start,
      pace,
      at: 'new',
      ...(name !== undefined && { name }),
    };
    return [
      { table, put: this.recordKey(group, wait.item), value },
      { table, put: this.listKey('new', wait, group), value: nothing },
    ];
  }

  /** Operations that copy a wait from another store. */
  copies(entry: StoreEntry<WaitRecord>): Operation[] {
    const { advisor, subject } = entry.value;
    const group = this.groupOf(advisor, subject);
    const { wait, at, seen } = this.found(entry, group);
    const memberKey = this.memberKey(wait, group, seen);
    return [
      { table, put: this.recordKey(group, wait.item), value: entry.value },
      { table, put: this.listKey(at, wait, group), value: nothing },
      ...(memberKey ? [{ table, put: memberKey, value: nothing } as const] : []),
    ];
  }

  removals({ wait, group, at, seen, entry }: FoundWait): Operation[] {
    const memberKey = this.memberKey(wait, group, seen);
    return [
      { table, remove: entry.key },
      { table, remove: this.listKey(at, wait, group) },
      ...(memberKey ? [{ table, remove: memberKey } as const] : []),
    ];
  }

  /** Operations for a wait that moves or whose status is new; empty when nothing changes. */
  changes(found: FoundWait, to: Place, seen: ConsentStatus | undefined): Operation[] {
    const { wait, group, at, entry } = found;
    const isMoved = to !== at;
    const isNews = seen !== undefined && !isSameStatus(found.seen, seen);
    if (!isMoved && !isNews) return [];
    const operations: Operation[] = [
      { table, put: entry.key, value: { ...entry.value, at: to, ...(isNews && { seen }) } },
    ];
    if (isMoved) {
      operations.push(
        { table, remove: this.listKey(at, wait, group) },
        { table, put: this.listKey(to, wait, group), value: nothing },
      );
    }
    if (isNews) {
      const before = this.memberKey(wait, group, found.seen);
      const now = this.memberKey(wait, group, seen);
      const isSame = before && now ? before.equals(now) : before === now;
      if (before && !isSame) operations.push({ table, remove: before });
      if (now && !isSame) operations.push({ table, put: now, value: nothing });
    }
    return operations;
  }

  async find(group: Buffer, item: Buffer): Promise<FoundWait | undefined> {
    const entry = await this.store.get<WaitRecord>(table, this.recordKey(group, item));
    return entry && this.found(entry, group);
  }

  /** Whether there is a record, readable or not. */
  exists(group: Buffer, item: Buffer): Promise<boolean> {
    return this.has(this.recordKey(group, item));
  }

  /** Whether any of the entries, or of the records for one number, may have been lost. */
  async hasLost(phone?: string): Promise<boolean> {
    const all = [this.records, ...Object.values(this.lists)];
    for (const prefix of phone === undefined ? all : [this.listPrefix(phone)])
      if (await this.store.hasLost(table, prefix, rangeEnd(prefix))) return true;
    return false;
  }

  /** Whether a wait has both its record and its entry in a list. */
  async isIntact({ advisor, subject, item }: Wait): Promise<boolean> {
    const group = this.groupOf(advisor, subject);
    const found = await this.find(group, item);
    return found ? this.has(this.listKey(found.at, found.wait, group)) : this.exists(group, item);
  }

  /**
   * Whether there is a wait for one of these subjects, or for a number that is known to belong to one of these members.
   */
  async hasAny(advisor: string, subjects: readonly Subject[]): Promise<boolean> {
    const groups = subjects.map((subject) => this.groupOf(advisor, subject));
    const prefixes = groups.flatMap((group) => [key(this.records, group), key(this.members, group)]);
    const found = await Promise.all(
      prefixes.map((from) => this.store.keys(table, { from, to: rangeEnd(from), limit: 1 })),
    );
    return found.some(({ length }) => length > 0);
  }

  private async has(whole: Buffer): Promise<boolean> {
    const keys = await this.store.keys(table, { from: whole, to: nextKey(whole), limit: 1 });
    return keys.length > 0;
  }

  /** The item of a group that came just before or after another. */
  async neighbour(group: Buffer, item: Buffer, direction: 'older' | 'younger'): Promise<Buffer | undefined> {
    const prefix = key(this.records, group);
    const own = key(prefix, item);
    const range =
      direction === 'older'
        ? { from: prefix, to: own, reverse: true }
        : { from: nextKey(own), to: rangeEnd(prefix) };
    const [next] = await this.store.keys(table, { ...range, limit: 1 });
    return next?.subarray(prefix.length);
  }

  /** Waits of a group in order of arrival. */
  async page(
    group: Buffer,
    limit: number,
    { from, to, reverse = false }: { from?: Buffer; to?: Buffer; reverse?: boolean } = {},
  ): Promise<FoundWait[]> {
    const prefix = key(this.records, group);
    const range = { from: from ?? prefix, to: to ?? rangeEnd(prefix), limit, reverse };
    const entries = await this.store.page<WaitRecord>(table, range);
    return entries.map((entry) => this.found(entry, group));
  }

  /** All waits, or those for one number, in the order of their keys; the first `skip` from `from` on are left out. */
  async list(
    limit: number,
    { phone, from, skip = 0 }: { phone?: string | undefined; from?: Buffer | undefined; skip?: number } = {},
  ): Promise<FoundWait[]> {
    const prefix = this.listPrefix(phone);
    const range = { from: from ?? prefix, to: rangeEnd(prefix), limit, skip };
    const entries = await this.store.page<WaitRecord>(table, range);
    const at = this.records.length;
    return entries.map((entry) => this.found(entry, entry.key.subarray(at, at + groupLength)));
  }

  count(phone?: string): Promise<number> {
    const prefix = this.listPrefix(phone);
    return this.store.count(table, prefix, rangeEnd(prefix));
  }

  /** The groups of numbers that are known to belong to a member, from `from` on; at most `limit`. */
  async groupsOfMember(member: Buffer, from: Buffer | undefined, limit: number): Promise<Buffer[]> {
    const prefix = key(this.members, member);
    const groups: Buffer[] = [];
    let next = from ? rangeEnd(key(prefix, from)) : prefix;
    while (groups.length < limit) {
      const [entry] = await this.store.keys(table, { from: next, to: rangeEnd(prefix), limit: 1 });
      if (!entry) break;
      const group = entry.subarray(prefix.length, prefix.length + groupLength);
      groups.push(group);
      next = rangeEnd(key(prefix, group));
    }
    return groups;
  }

  prefixOf({ kind, interval }: EntryList): Buffer {
    return key(this.lists[kind], interval);
  }

  /** The time or place, the group and the item of an entry in a list. */
  parse(entry: Buffer, { length }: Buffer): { time: number; group: Buffer; item: Buffer } {
    const afterTime = length + timeLength;
    return {
      time: entry.readUIntBE(length, timeLength),
      group: entry.subarray(afterTime, afterTime + groupLength),
      item: entry.subarray(afterTime + groupLength),
    };
  }

  /** Whether a wait lies where an entry of `list` says. */
  isIn({ at, wait: { pace } }: FoundWait, { kind, interval }: EntryList): boolean {
    if (at === 'end') return kind === 'end' && interval === lastInterval(pace);
    if (at === 'new') return kind === 'new' && interval === pace.pollEvery;
    return kind === 'ring' && interval === (at === 'first' ? pace.pollEvery : pace.thenEvery);
  }

  listOf(at: Place, { pace }: Wait): EntryList {
    if (at === 'end') return { kind: 'end', interval: lastInterval(pace) };
    if (at === 'new') return { kind: 'new', interval: pace.pollEvery };
    return { kind: 'ring', interval: at === 'first' ? pace.pollEvery : pace.thenEvery };
  }

  /** All lists in which something lies. */
  async occupied(): Promise<EntryList[]> {
    const lists: EntryList[] = [];
    for (const kind of ['new', 'ring', 'end'] as const) {
      const prefix = this.lists[kind];
      let from = prefix;
      for (;;) {
        const [entry] = await this.store.keys(table, { from, to: rangeEnd(prefix), limit: 1 });
        if (!entry) break;
        const interval = entry.readUIntBE(prefix.length, timeLength);
        lists.push({ kind, interval });
        from = rangeEnd(key(prefix, interval));
      }
    }
    return lists;
  }

  private subjectHash(subject: Subject): Buffer {
    return this.store.hash('phone' in subject ? `phone\n${subject.phone}` : `member\n${subject.memberId}`);
  }

  private listPrefix(phone: string | undefined): Buffer {
    return phone === undefined ? this.records : key(this.records, this.subjectHash({ phone }));
  }

  private found(entry: StoreEntry<WaitRecord>, group: Buffer): FoundWait {
    const { advisor, subject, start, pace, name, at, seen } = entry.value;
    const item = entry.key.subarray(this.records.length + groupLength);
    return { wait: { item, advisor, subject, start, pace, name }, group, at, seen, entry };
  }

  private recordKey(group: Buffer, item: Buffer): Buffer {
    return key(this.records, group, item);
  }

  listKey(at: Place, wait: Wait, group: Buffer): Buffer {
    const list = this.listOf(at, wait);
    return key(this.prefixOf(list), this.timeIn(at, wait, group), group, wait.item);
  }

  private timeIn(at: Place, wait: Wait, group: Buffer): number {
    if (at === 'new') return wait.start;
    const timing = this.timingOf(wait, group);
    return at === 'end' ? lastPollOf(timing) : placeOn(this.listOf(at, wait).interval, timing);
  }

  /** Undefined where the member id is not known, or is itself the subject of the wait. */
  private memberKey(
    { advisor, subject, item }: Wait,
    group: Buffer,
    seen: ConsentStatus | undefined,
  ): Buffer | undefined {
    if (seen?.memberId == null || !('phone' in subject)) return undefined;
    return key(this.members, this.groupOf(advisor, { memberId: seen.memberId }), group, item);
  }
}

/** The waits of a space, to be copied to another store: the entries in lists follow from their records. */
export const movableWaits = (space: string): Movable[] => {
  const records: Movable<WaitRecord> = {
    table,
    prefix: key(space, 'wait'),
    copy: (entry, to) => new WaitEntries(to, key(space)).copies(entry),
  };
  const lists = ['new', 'ring', 'end', 'member'].map((kind): Movable => ({
    table,
    prefix: key(space, kind),
    copy: () => [],
  }));
  return [records as Movable, ...lists];
};
