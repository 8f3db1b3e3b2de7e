import type { Clock } from '../service/clock';
import type { Problem } from '../service/errors';
import type { Client } from '../service/client';
import { asName, keptAfterRemoval, nextKey, type Operation, type Store } from '../state/store';
import {
  cancelled,
  resultOfFault,
  resultOf,
  nothingKnown,
  outageIn,
  outcomeAfter,
  consentStatusOf,
  type ConsentStatus,
  type PollResult,
  type WaitOutcome,
} from './consent-status';
import { Poller, type Due, type Visited } from './poller';
import { decidePoll, needsOlder, type DueWait, type PollDecision } from './poll-decision';
import { endTimeOf, lastPollOf, nextPoll, type Place } from './rings';
import { WaitEntries, type FoundWait, type Subject, type Wait } from './wait-entries';
import { day } from '../durations';

export type { Subject, Wait } from './wait-entries';

export interface WaitsOptions {
  readonly store: Store;
  /** The prefix of all keys of this environment at this service. */
  readonly space: Buffer;
  /** The simulator's, or one that tells the store's time. */
  readonly clock: Clock;
  readonly client: () => Client | Promise<Client>;
  /** The most polls in flight at once. */
  readonly concurrency: number;
  /**
   * Called when a wait has ended: its outcome is written in one commit with `removals`, and then told. Resolves when
   * that is on record. Calls come in the order in which outcomes are told. A wait whose item has ended in another way
   * is only removed.
   */
  readonly ended: (wait: Wait, outcome: WaitOutcome, removals: readonly Operation[]) => Promise<void>;
  /** Called when a wait is in a list and has no record, as after damage. It may also have ended just now. */
  readonly missing?: (item: Buffer) => Promise<void>;
  /** Whether a number is on the do-not-text list: waits for it end. */
  readonly isBlocked?: (phone: string) => Promise<boolean>;
  /**
   * Whether a wait is polled and may end. False for a wait of a node that left the flow, which is kept unchanged for a
   * while.
   */
  readonly isWanted?: (item: Buffer) => boolean;
  /** Called when this process is the first to see an acceptance. */
  readonly acceptedHere?: (advisor: string, subject: Subject, status: ConsentStatus) => void;
  /** Called when `outage` has changed, or when polls have begun or ceased to be late. */
  readonly changed: () => void;
}

interface Polled {
  readonly result: PollResult;
  /** When the poll began: for waits that had expired by then it was the last. */
  readonly began: number;
}

interface Recorded {
  /** Waits whose end is before this time are decided. */
  readonly decidedUntil: number;
  readonly isUnanswered: boolean;
}

type PollCourse = Omit<PollDecision, 'isPolled'>;

/** The number of waits that end in one commit. */
const batch = 100;
const table = 'wait';
/** Milliseconds after its end when an unwanted wait is removed: the data of its node has been removed by then. */
const forgottenAfter = keptAfterRemoval + day;

/** The waits of one environment: polls them at their pace, and says when and how each ends. */
export class Waits {
  private readonly entries: WaitEntries;
  private readonly poller: Poller;
  /** By group, the poll under way, until what it found is on record: one at a time. */
  private readonly polls = new Map<string, Promise<Recorded>>();
  /** Items whose end is being written: nothing else is written about them. */
  private readonly ending = new Set<string>();
  /** By item, what else is being written about it. */
  private readonly changing = new Map<string, Promise<unknown>>();
  private isStopped = true;
  /** The time since which every node is told of numbers that are added to the do-not-text list. */
  private listeningSince = -Infinity;
  /** Why the latest poll of any wait was not answered. */
  outage: Problem | undefined;

  constructor(private readonly options: WaitsOptions) {
    const { store, space, clock, concurrency, changed } = options;
    const entries = new WaitEntries(store, space);
    this.entries = entries;
    this.poller = new Poller({
      store,
      clock,
      concurrency,
      changed,
      occupied: () => entries.occupied(),
      prefixOf: (list) => entries.prefixOf(list),
      visit: (due) => this.visit(due),
    });
  }

  start(): void {
    this.isStopped = false;
    this.poller.start();
  }

  /** A node was added: numbers that were blocked while it was away are found at their next poll. */
  lookForBlocked(): void {
    this.listeningSince = this.options.clock.now();
  }

  /** Stops polling. What polls in flight find is left to the next start. */
  stop(): void {
    this.isStopped = true;
    this.poller.stop();
  }

  /** How late polls are, in milliseconds. */
  get lateBy(): number {
    return this.poller.lateBy;
  }

  /**
   * The operations that put new waits into their list, to be written in one commit with the acceptance of their items.
   * The caller calls `committed` after the commit, also if it failed.
   */
  begin(waits: readonly Wait[]): {
    readonly operations: readonly Operation[];
    readonly committed: () => void;
  } {
    const { entries, poller } = this;
    const earliest = new Map<number, number>();
    const operations = waits.flatMap((wait) => {
      const { interval } = entries.listOf('new', wait);
      earliest.set(interval, Math.min(earliest.get(interval) ?? Infinity, wait.start));
      return entries.additions(wait, entries.groupOf(wait.advisor, wait.subject));
    });
    return {
      operations,
      committed: () => {
        for (const [interval, due] of earliest) poller.expect({ kind: 'new', interval }, due);
      },
    };
  }

  hasLost(phone?: string): Promise<boolean> {
    return this.entries.hasLost(phone);
  }

  /** All waits for a number, of whichever node. */
  async *waitsFor(phone: string): AsyncGenerator<Wait> {
    for (let last: Buffer | undefined; ;) {
      const found = await this.list(batch, { phone, last });
      for (const { wait } of found) yield wait;
      last = found.at(-1)?.key;
      if (!last) return;
    }
  }

  isIntact(wait: Wait): Promise<boolean> {
    return this.entries.isIntact(wait);
  }

  /**
   * The operations that remove the entries of a wait; `seen` tells its last known status. The caller calls `committed`
   * after the commit, also if it failed: until then nothing else is written of the wait.
   */
  async removals(wait: Wait): Promise<{
    readonly operations: readonly Operation[];
    readonly seen: () => Promise<ConsentStatus>;
    readonly committed: () => void;
  }> {
    const name = asName(wait.item);
    this.ending.add(name);
    const committed = (): void => void this.ending.delete(name);
    try {
      const found = await this.latest(this.entries.groupOf(wait.advisor, wait.subject), wait.item);
      if (!found) return { operations: [], seen: () => Promise.resolve(nothingKnown), committed };
      return { operations: this.entries.removals(found), seen: () => this.seenOf(found), committed };
    } catch (fault) {
      committed();
      throw fault;
    }
  }

  /** Ends all waits for a number or member that has accepted, whichever process has seen the acceptance. */
  async accepted(
    advisor: string,
    subject: Subject,
    status: ConsentStatus,
    isFromElsewhere = false,
  ): Promise<void> {
    const { entries } = this;
    if (!isFromElsewhere) this.options.acceptedHere?.(advisor, subject, status);
    const isBlocked = await this.isBlocked(subject);
    const accept = (): WaitOutcome => (isBlocked ? cancelled(status) : { kind: 'accepted', status });
    const own = entries.groupOf(advisor, subject);
    if ('phone' in subject) {
      const { memberId } = status;
      const groups = memberId === null ? [own] : [own, entries.groupOf(advisor, { memberId })];
      await this.endAll(groups, accept);
      return;
    }
    // An answer about a member does not name its numbers: those are known from earlier answers about the numbers.
    let numbers = await entries.groupsOfMember(own, undefined, batch);
    await this.endAll([own, ...numbers], accept);
    while (numbers.length === batch) {
      numbers = await entries.groupsOfMember(own, numbers.at(-1), batch);
      await this.endAll(numbers, accept);
    }
  }

  /** Polls these waits now, as there is room; resolves when all are polled, or when polling stops. */
  flush(waits: Iterable<Wait> | AsyncIterable<Wait>): Promise<void> {
    return this.poller.add(this.tasks(waits, (wait) => this.pollNow(wait)));
  }

  /** Some of the waits that there are, to be shown; `last` is the key of one that was listed before. */
  async list(
    limit: number,
    { phone, last, skip }: { phone?: string | undefined; last?: Buffer | undefined; skip?: number } = {},
  ): Promise<{ readonly key: Buffer; readonly wait: Wait }[]> {
    const from = last && nextKey(last);
    const found = await this.entries.list(limit, { phone, from, ...(skip !== undefined && { skip }) });
    return found.map(({ entry, wait }) => ({ key: entry.key, wait }));
  }

  /** How many wait, or wait for one number: also those whose node has left the flow. */
  count(phone?: string): Promise<number> {
    return this.entries.count(phone);
  }

  /** When a wait is polled next, without regard to other waits for the same number. */
  next(wait: Wait): number {
    return nextPoll(this.entries.timingOf(wait), this.options.clock.now());
  }

  private async *tasks<T>(
    items: Iterable<T> | AsyncIterable<T>,
    task: (item: T) => Promise<Visited>,
  ): AsyncGenerator<() => Promise<Visited>, undefined> {
    for await (const item of items) yield () => task(item);
    return undefined;
  }

  /** The cursor of a list has come to an entry. */
  private async visit(due: Due): Promise<Visited> {
    const { entries, options } = this;
    const { group, item } = entries.parse(due.key, due.prefix);
    const [found, younger] = await this.steady(
      Promise.all([entries.find(group, item), this.nextWanted(group, item, 'younger')]),
    );
    if (!found || !entries.isIn(found, due.list)) {
      if (!found && (await this.steady(entries.exists(group, item)))) {
        // The record cannot be read: its data key may come back, or it is about to be set aside.
        return { recorded: Promise.resolve(true) };
      }
      // The wait has ended, was moved to another list, or was damaged.
      const dropped = options.store.write([{ table, remove: due.key }]);
      const restored = found ? dropped : dropped.then(() => options.missing?.(item));
      return { recorded: restored.then(() => false) };
    }
    const timing = entries.timingOf(found.wait, found.group);
    const now = options.clock.now();
    if (options.isWanted?.(item) === false) {
      // Only a ring comes back to a wait whose node may return.
      if (found.at === 'new') return this.pass(found, { isLast: false, to: 'first' });
      const isForgotten = now - endTimeOf(timing) >= forgottenAfter;
      const removed = isForgotten ? options.store.write(entries.removals(found)) : Promise.resolve(false);
      return { recorded: removed.then(() => false) };
    }
    const { start, pace, share } = timing;
    const visit: DueWait = {
      start,
      pace,
      share,
      place: found.at,
      due: due.at,
      now,
      isYoungest: younger === undefined,
    };
    const olderStart = needsOlder(visit) ? await this.steady(this.olderStart(group, item)) : undefined;
    const decision = decidePoll(olderStart === undefined ? visit : { ...visit, olderStart });
    return decision.isPolled ? this.pollFor(found, decision) : this.pass(found, decision);
  }

  /** A poll out of turn, whatever other waits there are for the number. */
  private async pollNow(wait: Wait): Promise<Visited> {
    const group = this.entries.groupOf(wait.advisor, wait.subject);
    const found = await this.steady(this.entries.find(group, wait.item));
    if (!found) return { recorded: Promise.resolve(false) };
    const isLast = this.options.clock.now() >= endTimeOf(this.entries.timingOf(found.wait, found.group));
    return this.pollFor(found, { isLast, to: found.at });
  }

  private pass(found: FoundWait, { to }: PollCourse): Visited {
    return { recorded: this.steady(this.change(found, to)).then(() => false) };
  }

  private async isBlocked(subject: Subject): Promise<boolean> {
    return 'phone' in subject && (await this.options.isBlocked?.(subject.phone)) === true;
  }

  /**
   * Nodes listen for new blocks, also of other processes, and an acceptance is judged by the list itself. So the list is
   * read only where a block may have been missed: as a wait begins and ends, and for two turns after a node has started.
   */
  private mayBeBlocked({ at, wait: { start, pace } }: FoundWait, { isLast }: PollCourse): boolean {
    const now = this.options.clock.now();
    const interval = at === 'first' ? pace.pollEvery : pace.thenEvery;
    return isLast || now - start < pace.pollEvery || now - this.listeningSince < 2 * interval;
  }

  private async pollFor(found: FoundWait, course: PollCourse): Promise<Visited> {
    const { wait, group } = found;
    if (this.mayBeBlocked(found, course) && (await this.steady(this.isBlocked(wait.subject)))) {
      const ending = this.endAll([group], ({ seen }) => cancelled(seen));
      return { recorded: this.steady(ending).then(() => false) };
    }
    const name = asName(group);
    for (let other = this.polls.get(name); other; other = this.polls.get(name)) {
      if (!course.isLast) return this.pass(found, course);
      const { decidedUntil, isUnanswered } = await other;
      if (decidedUntil >= endTimeOf(wait)) return { recorded: Promise.resolve(isUnanswered) };
    }
    const request = this.poll(wait);
    const whole = this.recorded(found, course, request).finally(() => this.polls.delete(name));
    this.polls.set(name, whole);
    await request;
    return { recorded: whole.then(({ isUnanswered }) => isUnanswered) };
  }

  private async recorded(found: FoundWait, course: PollCourse, request: Promise<Polled>): Promise<Recorded> {
    const polled = await request;
    const isUnanswered = await this.steady(this.apply(found, course, polled));
    return { decidedUntil: course.isLast ? polled.began : -Infinity, isUnanswered };
  }

  private async poll({ advisor, subject }: Wait): Promise<Polled> {
    const { clock, client } = this.options;
    const began = clock.now();
    try {
      const service = await client();
      const options = { advisor, lane: 'polls', priority: 'poll' } as const;
      const answer = await service.call('getConsent', { query: subject }, options);
      return { began, result: resultOf(consentStatusOf(answer.data)) };
    } catch (fault) {
      return { began, result: resultOfFault(fault) };
    }
  }

  private async apply(found: FoundWait, { isLast, to }: PollCourse, polled: Polled): Promise<boolean> {
    const { wait, group } = found;
    const { result } = polled;
    if (this.isStopped) return false;
    this.hear(outageIn(result));
    if (result.kind === 'accepted') {
      await this.accepted(wait.advisor, wait.subject, result.status);
      return false;
    }
    const seen = result.kind === 'unanswered' && isLast ? await this.seenOf(found) : nothingKnown;
    const outcomeFor = (each: FoundWait): WaitOutcome | undefined => this.outcomeOf(each, polled, seen);
    const isWord = result.kind === 'unknown_number' || result.kind === 'refused';
    if (isWord || isLast) await this.endAll([group], outcomeFor);
    if (outcomeFor(found)) return false;
    const seenNow = result.kind === 'pending' ? result.status : undefined;
    await this.change(found, to, seenNow, isLast && to === 'end');
    return result.kind === 'unanswered';
  }

  private outcomeOf(
    { wait, seen }: FoundWait,
    { result, began }: Polled,
    seenOfOthers: ConsentStatus,
  ): WaitOutcome | undefined {
    const end = endTimeOf(wait);
    // Right after a start or a sleep, the network may not be there yet.
    const overdue = began < end ? began - end : Math.max(0, began - Math.max(end, this.poller.awakeSince));
    return outcomeAfter(result, { age: began - wait.start, overdue, seen: seen ?? seenOfOthers });
  }

  private hear(outage: Problem | undefined): void {
    const isNews = outage?.code !== this.outage?.code;
    this.outage = outage;
    if (isNews) this.options.changed();
  }

  /** Nothing is written for a wait that has ended meanwhile. */
  private async change(found: FoundWait, to: Place, seen?: ConsentStatus, hasLooked = false): Promise<void> {
    const { entries, options, poller } = this;
    const operations = entries.changes(found, to, seen);
    if (operations.length === 0) return;
    const name = asName(found.wait.item);
    if (this.ending.has(name)) return;
    const { key, version } = found.entry;
    const writing = options.store.write(operations, [{ table, key, version }]);
    this.changing.set(name, writing);
    const isWritten = await writing.finally(() => {
      if (this.changing.get(name) === writing) this.changing.delete(name);
    });
    if (!isWritten || to === found.at) return;
    const list = entries.listOf(to, found.wait);
    // The end of the wait has passed: a cursor that went back to it would visit all waits again that ended later.
    if (hasLooked) {
      poller.repeat(list);
      return;
    }
    const timing = entries.timingOf(found.wait, found.group);
    const due = to === 'end' ? lastPollOf(timing) : nextPoll(timing, options.clock.now());
    poller.expect(list, due);
  }

  /** The record of an item, once nothing is being written about it. */
  private async latest(group: Buffer, item: Buffer): Promise<FoundWait | undefined> {
    await this.changing.get(asName(item))?.catch(() => undefined);
    return this.entries.find(group, item);
  }

  private async olderStart(group: Buffer, item: Buffer): Promise<number | undefined> {
    const older = await this.nextWanted(group, item, 'older');
    return older && (await this.entries.find(group, older))?.wait.start;
  }

  /** The next item for the same number, without those that are not polled: they have no say in when the others are. */
  private async nextWanted(
    group: Buffer,
    item: Buffer,
    direction: 'older' | 'younger',
  ): Promise<Buffer | undefined> {
    const { entries, options } = this;
    for (let from = item; ;) {
      const next = await entries.neighbour(group, from, direction);
      if (!next || options.isWanted?.(next) !== false) return next;
      from = next;
    }
  }

  /** The last known status of a number; it is on record with the wait that was polled for it. */
  private async seenOf({ group, seen }: FoundWait): Promise<ConsentStatus> {
    if (seen) return seen;
    const { entries } = this;
    const [[oldest], [youngest]] = await Promise.all([
      entries.page(group, 1),
      entries.page(group, 1, { reverse: true }),
    ]);
    return youngest?.seen ?? oldest?.seen ?? nothingKnown;
  }

  /** Ends the waits of these groups that have an outcome, in order of arrival and a page at a time. */
  private async endAll(
    groups: readonly Buffer[],
    outcomeFor: (found: FoundWait) => WaitOutcome | undefined,
  ): Promise<void> {
    const readers = groups.map((group) => new GroupReader(this.entries, group));
    for (;;) {
      const ends: Promise<void>[] = [];
      while (ends.length < batch) {
        let first: GroupReader | undefined;
        for (const reader of readers) {
          const head = reader.isRead ? reader.head : await reader.read();
          if (!head) continue;
          if (!first?.head || head.wait.item.compare(first.head.wait.item) < 0) first = reader;
        }
        const found = first?.take();
        if (!found) break;
        const outcome = outcomeFor(found);
        if (!outcome) continue;
        const ending = this.end(found, outcome);
        // `Promise.all` below meets a fault, perhaps only after more reads: until then the rejection must not count as
        // unhandled.
        ending.catch(() => undefined);
        ends.push(ending);
      }
      await Promise.all(ends);
      if (ends.length < batch) return;
    }
  }

  private async end(found: FoundWait, outcome: WaitOutcome): Promise<void> {
    const { ended, isWanted } = this.options;
    const name = asName(found.wait.item);
    if (this.ending.has(name) || isWanted?.(found.wait.item) === false) return;
    this.ending.add(name);
    try {
      const latest = await this.latest(found.group, found.wait.item);
      if (latest) await ended(latest.wait, outcome, this.entries.removals(latest));
    } finally {
      this.ending.delete(name);
    }
  }

  /** A clock that can be moved stands still while the store works. */
  private steady<T>(work: Promise<T>): Promise<T> {
    const release = this.options.clock.keepStill?.();
    return release ? work.finally(release) : work;
  }
}

/** Reads the waits of a group a page at a time. */
class GroupReader {
  private page: FoundWait[] = [];
  private at = 0;
  private from: Buffer | undefined;
  private isEnd = false;

  constructor(
    private readonly entries: WaitEntries,
    private readonly group: Buffer,
  ) {}

  /** Whether `head` is in memory. */
  get isRead(): boolean {
    return this.isEnd || this.at < this.page.length;
  }

  get head(): FoundWait | undefined {
    return this.page[this.at];
  }

  take(): FoundWait | undefined {
    return this.page[this.at++];
  }

  async read(): Promise<FoundWait | undefined> {
    this.page = await this.entries.page(this.group, batch, this.from ? { from: this.from } : {});
    this.at = 0;
    const last = this.page.at(-1);
    if (last) this.from = nextKey(last.entry.key);
    this.isEnd = this.page.length < batch;
    return this.head;
  }
}
