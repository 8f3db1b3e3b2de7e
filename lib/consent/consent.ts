import type { Client } from '../service/client';
import type { Clock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import type { Problem } from '../service/errors';
import { minute, second } from '../durations';
import type { Item } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import { Later, type Queue } from '../outbox/queue';
import {
  indexedIn,
  indexedUnder,
  indexOf,
  keysOf,
  records,
  timetable,
  type Indexed,
  type ItemData,
  type ItemRecord,
  type Shared,
  type SharedRecord,
  type Subject,
} from '../outbox/records';
import { orMake } from '../process-memory';
import {
  ageClock,
  asName,
  endOf,
  key,
  keysUnder,
  nextKey,
  under,
  type Store,
  type StoreCommand,
} from '../state/store';
import {
  cancelled,
  consentStatusOf,
  nothingKnown,
  outageIn,
  outcomeAfter,
  resultOfFault,
  type ConsentStatus,
  type LookResult,
  type WaitOutcome,
} from './consent-status';
import { endTimeOf, intervalAt, nextLook, recommended, type Pace, type Timing } from './pace';
import { RequestHistory } from './request-history';

/** A wait for consent, as stored in the queue. */
export type WaitItem = ItemData;

/** What all waits of a message share: how often they look, and from when. */
export interface WaitShared extends Shared {
  readonly start?: number;
  readonly pace?: Pace;
}

export type Wait = ReturnType<typeof waitOf>;

export const subjectOf = ({ phone, memberId = 0 }: WaitItem): Subject =>
  phone === undefined ? { memberId } : { phone };

export const waitOf = ({
  data,
  shared,
  seen,
}: Pick<Item<WaitItem, WaitShared>, 'data' | 'shared' | 'seen'>) => ({
  advisor: data.advisor ?? shared.advisor,
  subject: subjectOf(data),
  start: shared.start ?? 0,
  pace: shared.pace ?? recommended,
  seen,
  name: data.name,
});

interface ConsentEnvironment {
  readonly service: string;
  readonly space: string;
  readonly clock: Clock;
  client(): Pick<Client, 'call'> | Promise<Pick<Client, 'call'>>;
  store(): Store | Promise<Store>;
  isBlocked(phone: string, isOwnEnough?: boolean): Promise<boolean>;
}

/** `since` is when the node of the wait has started. */
type Decide = (wait: Wait, since: number) => WaitOutcome | undefined;

/** A node whose waits look, and can be ended. */
interface Waiter {
  readonly since: number;
  readonly queue: Pick<Queue<WaitItem, WaitShared>, 'lateBy' | 'whenSaved' | 'endWaits'>;
  outcomeOf(outcome: WaitOutcome, subject: Subject): Outcome;
  changed(): void;
}

export interface ListedWait extends Wait {
  /** When it looks next, if its node runs. */
  readonly next: number;
  readonly item: Indexed;
}

/** Tells other processes of an acceptance that this one has seen. */
export interface AcceptedCommand extends StoreCommand {
  readonly kind: 'accepted';
  readonly advisor: string;
  readonly subject: Subject;
  readonly status: ConsentStatus;
}

type WaitRecord = ItemRecord<WaitItem, WaitShared>;

/** The number of waits that end in one commit. */
const batch = 100;

/** An answer, and its effect on the waits for the same number. */
interface Answer {
  readonly result: LookResult;
  readonly began: number;
  /** The outcome of all waits if the number has accepted. */
  readonly outcome?: WaitOutcome;
}

/** The most numbers with several waits of which it is known when they were last asked about. */
const mostShared = 10_000;
/** Milliseconds between two readings of the clock; a longer gap means that the machine slept. */
const observedEvery = minute;
const longestGap = 5 * minute;

const isSameStatus = (one: ConsentStatus | undefined, other: ConsentStatus): boolean =>
  one?.memberId === other.memberId && one.state === other.state && one.lastChanged === other.lastChanged;

/** The waits of an environment in one store, for all its nodes: an acceptance ends all waits for the same number. */
export class Consent {
  readonly history: RequestHistory;
  readonly clock: Clock;
  private readonly waiters = new Map<string, Waiter>();
  /** Why the latest look of any wait was not answered. */
  outage: Problem | undefined;
  /** Requests under way, by group: those who wait for one number share them. */
  private readonly flights = new Map<string, Promise<Answer>>();
  /** When the latest request for a group began, for groups of several waits. */
  private readonly shared = new Map<string, number>();
  /** Since when every node is notified of new blocks: those made while a node was away are found at the next looks. */
  private listeningSince = -Infinity;
  /** The time since which the clock was observed without a gap. */
  private awakeSince = -Infinity;
  private observed = -Infinity;
  private forgetTimer: (() => void) | undefined;

  constructor(
    private readonly environment: ConsentEnvironment,
    readonly store: Store,
  ) {
    this.clock = ageClock(environment, store);
    this.history = new RequestHistory(store, environment.space, this.clock, () => environment.clock.now());
  }

  /** The waits of a node can be ended from now on; the result ends that. */
  attach(node: string, waits: Omit<Waiter, 'since'>): () => void {
    const waiter = { ...waits, since: this.clock.now() };
    this.waiters.set(node, waiter);
    this.listeningSince = waiter.since;
    if (!this.forgetTimer) this.observe();
    return () => {
      // A node that closes late has a successor by then.
      if (this.waiters.get(node) === waiter) this.waiters.delete(node);
      if (this.waiters.size > 0) return;
      this.forgetTimer?.();
      this.forgetTimer = undefined;
    };
  }

  isRunning(node: string): boolean {
    return this.waiters.has(node);
  }

  /** How late looks are, in milliseconds. */
  get lateBy(): number {
    return Math.max(0, ...Array.from(this.waiters.values(), ({ queue }) => queue.lateBy));
  }

  /** Ends all waits for a number or member that has accepted, in this process or another; returns their outcome. */
  async accepted(
    advisor: string,
    subject: Subject,
    status: ConsentStatus,
    isFromElsewhere = false,
  ): Promise<WaitOutcome> {
    const command: AcceptedCommand = { kind: 'accepted', at: this.store.now(), advisor, subject, status };
    // A process that misses this sees the acceptance with its next look.
    if (!isFromElsewhere) this.store.peers?.tellOthers(command, 0).catch(() => undefined);
    const isBlocked = 'phone' in subject && (await this.environment.isBlocked(subject.phone));
    const outcome: WaitOutcome = isBlocked ? cancelled(status) : { kind: 'accepted', status };
    const endAllFor = (whom: Subject): Promise<void> =>
      this.endAll(this.groupOf(whom, advisor), () => outcome);
    await endAllFor(subject);
    if ('phone' in subject) {
      await this.history.accepted(advisor, subject.phone, status.memberId);
      if (status.memberId !== null) await endAllFor({ memberId: status.memberId });
    } else await this.acceptedNumbers(advisor, subject, status);
    return outcome;
  }

  /** A time of a wait as the wall clock has it: the store's time may be ahead of it. */
  wallTime(at: number): number {
    const ahead = this.clock.now() - this.environment.clock.now();
    return Math.abs(ahead) < second ? at : at - ahead;
  }

  /** When a wait looks next, without regard to other waits for the same number. */
  next({ advisor, subject, ...wait }: Wait): number {
    return nextLook(this.timingOf(wait, this.groupOf(subject, advisor)), this.clock.now());
  }

  /** The work of a wait: one look. Gives its outcome, or throws `Later`; undefined when a close interrupted it. */
  async look(item: Item<WaitItem, WaitShared>, node: string): Promise<WaitOutcome | undefined> {
    const { clock } = this;
    const wait = waitOf(item);
    const group = this.groupOf(wait.subject, wait.advisor);
    const timing = this.timingOf(wait, group);
    this.notice();
    try {
      const isLast = clock.now() >= endTimeOf(wait);
      if (this.mayBeBlocked(wait, item, isLast) && (await this.isBlocked(wait.subject)))
        return cancelled(await this.seenOf(wait));
      if (!isLast && (await this.isLeftToOther(item, wait, key(group, item.arrival, item.data.index, node))))
        throw new Later(nextLook(timing, clock.now()));
      const isAborted = (): boolean => item.signal.aborted;
      if (isAborted()) return undefined;
      const asking = this.ask(wait, group);
      // A close does not wait for the answer: the next start looks again.
      await wokenBy(item.signal, asking);
      if (isAborted()) return undefined;
      const answer = await asking;
      const outcome =
        answer.outcome ?? (await this.outcomeOf(wait, answer, this.waiters.get(node)?.since ?? 0));
      if (outcome) return outcome;
      const { result } = answer;
      const isNews = result.kind === 'pending' && !isSameStatus(wait.seen, result.status);
      throw new Later(nextLook(timing, clock.now()), undefined, isNews ? result.status : undefined);
    } catch (thrown) {
      if (thrown instanceof Later) throw thrown;
      // Only the store can fail here, and it reports its own problems.
      throw new Later(nextLook(timing, clock.now()));
    }
  }

  /** The last known status of a number: it is saved with the waits that have looked. */
  async seenOf({ seen, subject, advisor }: Wait): Promise<ConsentStatus> {
    if (seen) return seen;
    const range = { ...under(this.groupOf(subject, advisor)), limit: 1 };
    for (const reverse of [true, false]) {
      const [found] = await this.store.keys(timetable, { ...range, reverse });
      if (!found) break;
      const record = await this.recordOf(indexedIn(found));
      if (record?.seen) return record.seen;
    }
    return nothingKnown;
  }

  /** The first bytes of the index entries of all who wait for a number or member. */
  private groupOf(subject: Subject, advisor: string): Buffer {
    return indexOf(this.store, 'number', this.environment.space, subject, advisor);
  }

  private timingOf({ start, pace }: Pick<Wait, 'start' | 'pace'>, group: Buffer): Timing {
    // The hash of the subject comes before that of the advisor.
    return { start, pace, jitter: group.readUInt32BE(group.length - 24) / 2 ** 32 };
  }

  private async isBlocked(subject: Subject): Promise<boolean> {
    // An acceptance is checked against the whole list: a look waits for no other store.
    return 'phone' in subject && (await this.environment.isBlocked(subject.phone, true).catch(() => false));
  }

  /**
   * Nodes listen for new blocks, also of other processes. So the list is read only where a block may have been missed: as
   * a wait starts and ends, and for two intervals after a node has started.
   */
  private mayBeBlocked({ start, pace }: Wait, { dueAt }: { dueAt: number }, isLast: boolean): boolean {
    const now = this.clock.now();
    return isLast || dueAt === 0 || now - this.listeningSince < 2 * intervalAt(pace, now - start);
  }

  /**
   * Waits for one number share requests. A first look is left to an older wait; any other to a younger one, unless nobody
   * has asked since its own previous turn: waits that keep joining would each leave it to the next.
   */
  private async isLeftToOther(
    { dueAt, isOutOfTurn }: Item<WaitItem, WaitShared>,
    { start, pace }: Wait,
    own: Buffer,
  ): Promise<boolean> {
    if (isOutOfTurn || !(await this.hasOther(own, dueAt === 0))) return false;
    const name = asName(indexedIn(own).group);
    const asked = this.shared.get(name) ?? -Infinity;
    this.note(name, asked);
    return dueAt === 0 || asked >= dueAt - intervalAt(pace, dueAt - start);
  }

  /** Whether an older wait for the same number, or a younger one, belongs to a node that runs. */
  private async hasOther(own: Buffer, isOlder: boolean): Promise<boolean> {
    const { group } = indexedIn(own);
    for (let last = own; ;) {
      const range = isOlder
        ? { from: group, to: last, reverse: true }
        : { from: nextKey(last), to: endOf(group) };
      const found = await this.store.keys(timetable, { ...range, limit: 16 });
      if (found.some((each) => this.isRunning(indexedIn(each).node))) return true;
      const next = found.at(-1);
      if (!next || found.length < 16) return false;
      last = next;
    }
  }

  private note(name: string, asked: number): void {
    this.shared.delete(name);
    this.shared.set(name, asked);
    const [oldest = ''] = this.shared.keys();
    if (this.shared.size > mostShared) this.shared.delete(oldest);
  }

  /** Makes a request, or joins one in progress. Only a request that began after the end of a wait decides it. */
  private async ask(wait: Wait, group: Buffer): Promise<Answer> {
    const name = asName(group);
    const end = endTimeOf(wait);
    const isLast = this.clock.now() >= end;
    for (let flight = this.flights.get(name); flight; flight = this.flights.get(name)) {
      const answer = await flight;
      if (!isLast || answer.began >= end) return answer;
    }
    const began = this.clock.now();
    if (this.shared.has(name)) this.note(name, began);
    const answer = this.request(wait, group, began).finally(() => this.flights.delete(name));
    this.flights.set(name, answer);
    return answer;
  }

  private async request(wait: Wait, group: Buffer, began: number): Promise<Answer> {
    const { advisor, subject } = wait;
    let result: LookResult;
    try {
      const service = await this.environment.client();
      const options = { advisor, lane: 'polls', priority: 'poll' } as const;
      const { data } = await service.call('getConsent', { query: subject }, options);
      const status = consentStatusOf(data);
      result = { kind: status.state === 'accepted' ? 'accepted' : 'pending', status };
    } catch (fault) {
      result = resultOfFault(fault);
    }
    this.noteOutage(outageIn(result));
    if (result.kind === 'accepted')
      return { result, began, outcome: await this.accepted(advisor, subject, result.status) };
    const answer = { result, began };
    const isDecided =
      result.kind === 'unknown_number' || result.kind === 'refused' || began >= endTimeOf(wait);
    if (isDecided) {
      const seen = await this.seenOf(wait);
      await this.endAll(group, (each, since) =>
        this.outcomeAt({ ...each, seen: each.seen ?? seen }, answer, since),
      );
    }
    return answer;
  }

  private async outcomeOf(wait: Wait, answer: Answer, since: number): Promise<WaitOutcome | undefined> {
    const outcome = this.outcomeAt(wait, answer, since);
    if (!outcome || wait.seen) return outcome;
    return this.outcomeAt({ ...wait, seen: await this.seenOf(wait) }, answer, since);
  }

  private outcomeAt(wait: Wait, { result, began }: Answer, since: number): WaitOutcome | undefined {
    const end = endTimeOf(wait);
    // Right after a start or a sleep, the network may not be there yet.
    const overdue = began < end ? began - end : Math.max(0, began - Math.max(end, since, this.awakeSince));
    return outcomeAfter(result, { age: began - wait.start, overdue, seen: wait.seen ?? nothingKnown });
  }

  private noteOutage(outage: Problem | undefined): void {
    const isNews = outage?.code !== this.outage?.code;
    this.outage = outage;
    if (isNews) for (const waiter of this.waiters.values()) waiter.changed();
  }

  /** Notices a sleep of the machine. */
  private notice(): void {
    const now = this.clock.now();
    if (now - this.observed > longestGap || now < this.observed) this.awakeSince = now;
    this.observed = now;
  }

  private observe(): void {
    this.notice();
    this.forgetTimer = this.clock.after(observedEvery, () => this.observe());
  }

  /** The waits that there are, or those for one number, to be shown; without the first few. */
  async *list(phone?: string, skip = 0): AsyncGenerator<ListedWait> {
    for await (const page of keysUnder(this.store, timetable, this.prefixOf(phone), batch, skip))
      // Those that have ended meanwhile are left out.
      for (const found of await Promise.all(page.map((each) => this.read(each)))) if (found) yield found;
  }

  /** How many wait, or wait for one number: also those whose node has left the flow. */
  count(phone?: string): Promise<number> {
    const prefix = this.prefixOf(phone);
    return this.store.count(timetable, prefix, endOf(prefix));
  }

  private prefixOf(phone: string | undefined): Buffer {
    return indexOf(this.store, 'number', this.environment.space, phone === undefined ? undefined : { phone });
  }

  /** Undefined when the wait has ended meanwhile, or cannot be read. */
  private async read(at: Buffer): Promise<ListedWait | undefined> {
    const item = indexedIn(at);
    const record = await this.recordOf(item);
    if (!record) return undefined;
    const { item: data, single, seen } = record;
    const list = keysOf(item.node).list(item.arrival);
    const shared = single ?? (await this.store.get<SharedRecord<WaitShared>>(records, list))?.value;
    if (!shared) return undefined;
    const found = waitOf({ data, shared: shared.shared, seen });
    return { ...found, next: this.next(found), item };
  }

  private async recordOf({ node, arrival, index }: Indexed): Promise<WaitRecord | undefined> {
    return (await this.store.get<WaitRecord>(records, keysOf(node).item(arrival, index, true)))?.value;
  }

  /** An answer about a member does not name its numbers: those are known from earlier answers about the numbers. */
  private async acceptedNumbers(advisor: string, member: Subject, status: ConsentStatus): Promise<void> {
    const prefix = indexOf(this.store, 'member', this.environment.space, member, advisor);
    for await (const found of indexedUnder(this.store, prefix, batch))
      for (const each of found) {
        const phone = (await this.recordOf(each))?.item.phone;
        if (phone !== undefined && this.isRunning(each.node))
          await this.accepted(advisor, { phone }, status, true);
      }
  }

  /** Ends the waits of a group for which `decide` gives an outcome, in order of arrival. */
  private async endAll(group: Buffer, decide: Decide): Promise<void> {
    await Promise.all(Array.from(this.waiters.values(), ({ queue }) => queue.whenSaved()));
    for await (const found of indexedUnder(this.store, group, batch))
      for (let first = found[0]; first; first = found[0]) {
        const { node } = first;
        const next = found.findIndex((each) => each.node !== node);
        const run = found.splice(0, next < 0 ? Infinity : next);
        const waiter = this.waiters.get(node);
        await waiter?.queue.endWaits(run, (item) => {
          const wait = waitOf(item);
          const outcome = decide(wait, waiter.since);
          return outcome && waiter.outcomeOf(outcome, wait.subject);
        });
      }
  }
}

const consents = new WeakMap<ConsentEnvironment, WeakMap<Store, Consent>>();

/** Throws `not_configured`. */
export const consentIn = (environment: ConsentEnvironment, store: Store): Consent => {
  const stores = orMake(consents, environment, () => new WeakMap<Store, Consent>());
  return orMake(stores, store, () => new Consent(environment, store));
};

/** The consent for an item, in the store that this is saved in; without one, that in the environment's own store. */
export const consentOf = async (environment: ConsentEnvironment, item?: Item): Promise<Consent> =>
  consentIn(environment, await (item?.savedIn(environment) ?? environment.store()));
