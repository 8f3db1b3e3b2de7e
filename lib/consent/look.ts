import { minute } from '../durations';
import { Held, type AcceptedItem, type ItemTurn } from '../outbox/queue';
import type { OutboxItem } from '../outbox/message-items';
import { indexedIn, indexOf, keysOf, records, timetable, type Seen, type Subject } from '../outbox/records';
import type { Client } from '../service/client';
import type { Clock } from '../service/clock';
import { abortOf, wokenBy } from '../service/concurrency';
import type { Problem } from '../service/errors';
import { asName, endOf, key, nextKey, type Store } from '../state/store';
import {
  cancelled,
  consentStatusOf,
  nothingKnown,
  outageIn,
  outcomeAfter,
  resultOf,
  resultOfFault,
  type ConsentStatus,
  type LookResult,
  type WaitOutcome,
} from './consent-status';
import { endTimeOf, intervalAt, nextLook, recommended, type Pace, type Timing } from './pace';

/** A wait for consent, as stored in the queue. */
export interface WaitItem extends OutboxItem {
  readonly name?: string;
}

/** Data that all waits of a message share. */
export interface WaitShared {
  readonly advisor: string;
  readonly start?: number;
  readonly pace?: Pace;
}

export interface Wait {
  readonly advisor: string;
  readonly subject: Subject;
  readonly start: number;
  readonly pace: Pace;
  readonly seen: ConsentStatus | undefined;
  /** The person's name, from the message. */
  readonly name: string | undefined;
}

export const subjectOf = ({ phone, memberId = 0 }: WaitItem): Subject =>
  phone === undefined ? { memberId } : { phone };

export const waitOf = ({
  item,
  shared,
  seen,
}: Pick<AcceptedItem<WaitItem, WaitShared>, 'item' | 'shared' | 'seen'>): Wait => ({
  advisor: item.advisor ?? shared.advisor,
  subject: subjectOf(item),
  start: shared.start ?? 0,
  pace: shared.pace ?? recommended,
  seen,
  name: item.name,
});

export interface LookOptions {
  readonly store: Store;
  readonly space: string;
  readonly clock: Clock;
  readonly client: () => Client | Promise<Client>;
  readonly isBlocked: (phone: string) => Promise<boolean>;
  /** Whether a node runs: only then do its waits look. */
  readonly isRunning: (node: string) => boolean;
  /** Ends all waits for somebody who has accepted, and gives their outcome. */
  readonly accepted: (advisor: string, subject: Subject, status: ConsentStatus) => Promise<WaitOutcome>;
  /** Ends those waits of a group for which `decide` gives an outcome. */
  readonly endAll: (group: Buffer, decide: (wait: Wait) => WaitOutcome | undefined) => Promise<void>;
  /** Called when `outage` has changed. */
  readonly changed: () => void;
}

/** An answer, and its effect on the waits for the same number. */
interface Answer {
  readonly result: LookResult;
  readonly began: number;
  /** The outcome of all waits if the number has accepted. */
  readonly outcome?: WaitOutcome;
}

interface Flight {
  readonly began: number;
  readonly answer: Promise<Answer>;
}

/** The most numbers with several waits of which it is known when they were last asked about. */
const mostShared = 10_000;
/** Milliseconds between two readings of the clock; a longer gap means that the machine slept. */
const observedEvery = minute;
const longestGap = 5 * minute;

const isSameStatus = (one: ConsentStatus | undefined, other: ConsentStatus): boolean =>
  one?.memberId === other.memberId && one.state === other.state && one.lastChanged === other.lastChanged;

/** Checks the consent of everybody whom an environment waits for. */
export class Looks {
  /** Why the latest look of any wait was not answered. */
  outage: Problem | undefined;
  /** Requests under way, by group: those who wait for one number share them. */
  private readonly flights = new Map<string, Flight>();
  /** When the latest request for a group began, for groups of several waits. */
  private readonly shared = new Map<string, number>();
  /** The time since which every node is notified of new numbers on the do-not-text list. */
  private listeningSince = -Infinity;
  /** The time since which the clock was observed without a gap. */
  private awakeSince = -Infinity;
  private observed = -Infinity;
  private forgetTimer: (() => void) | undefined;

  constructor(private readonly options: LookOptions) {}

  /** A node has started: numbers that were blocked before are found at their next looks. */
  started(): void {
    this.listeningSince = this.options.clock.now();
    if (!this.forgetTimer) this.observe();
  }

  stop(): void {
    this.forgetTimer?.();
    this.forgetTimer = undefined;
    this.observed = -Infinity;
  }

  /** When a wait looks next, without regard to other waits for the same number. */
  next({ advisor, subject, ...wait }: Wait): number {
    const { store, space, clock } = this.options;
    return nextLook(this.timingOf(wait, indexOf(store, 'number', space, subject, advisor)), clock.now());
  }

  /**
   * * The work of a wait: one look. Gives its outcome, or throws `Held` with the time of the next look; undefined when
   * a close interrupted it.
   */
  async look(turn: ItemTurn<WaitItem, WaitShared>, node: string): Promise<WaitOutcome | undefined> {
    const { clock, store, space } = this.options;
    const wait = waitOf(turn);
    const group = indexOf(store, 'number', space, wait.subject, wait.advisor);
    const timing = this.timingOf(wait, group);
    this.notice();
    try {
      const isLast = clock.now() >= endTimeOf(wait);
      if (this.mayBeBlocked(wait, turn, isLast) && (await this.isBlocked(wait.subject)))
        return cancelled(await this.seenOf(wait));
      if (!isLast && (await this.isLeftToOther(turn, wait, key(group, turn.arrival, turn.item.index, node))))
        throw new Held(nextLook(timing, clock.now()));
      const isAborted = (): boolean => turn.signal.aborted;
      if (isAborted()) return undefined;
      const asking = this.ask(wait, group);
      // A close does not wait for the answer: the next start looks again.
      await wokenBy(abortOf(turn.signal), (wake) => {
        asking.then(wake, wake);
        return () => undefined;
      });
      if (isAborted()) return undefined;
      const answer = await asking;
      const outcome = answer.outcome ?? (await this.outcomeOf(wait, answer));
      if (outcome) return outcome;
      const { result } = answer;
      const isNews = result.kind === 'pending' && !isSameStatus(wait.seen, result.status);
      throw new Held(nextLook(timing, clock.now()), undefined, isNews ? result.status : undefined);
    } catch (thrown) {
      if (thrown instanceof Held) throw thrown;
      // Only the store can fail here, and it reports its own problems.
      throw new Held(nextLook(timing, clock.now()));
    }
  }

  /** The last known status of a number: it is saved with the waits that have looked. */
  async seenOf({
    seen,
    subject,
    advisor,
  }: Pick<Wait, 'seen' | 'subject' | 'advisor'>): Promise<ConsentStatus> {
    if (seen) return seen;
    const { store, space } = this.options;
    const from = indexOf(store, 'number', space, subject, advisor);
    for (const reverse of [true, false]) {
      const [found] = await store.keys(timetable, { from, to: endOf(from), limit: 1, reverse });
      if (!found) break;
      const { node, arrival, index } = indexedIn(found);
      const record = await store.get<{ readonly seen?: Seen }>(records, keysOf(node).wait(arrival, index));
      if (record?.value.seen) return record.value.seen;
    }
    return nothingKnown;
  }

  private timingOf({ start, pace }: Pick<Wait, 'start' | 'pace'>, group: Buffer): Timing {
    // The hash of the subject comes before that of the advisor.
    return { start, pace, jitter: group.readUInt32BE(group.length - 24) / 2 ** 32 };
  }

  private async isBlocked(subject: Subject): Promise<boolean> {
    // An acceptance is checked against the list itself: a list that cannot be read is asked again then.
    return 'phone' in subject && (await this.options.isBlocked(subject.phone).catch(() => false));
  }

  /**
   * Nodes listen for new blocks, also of other processes. So the list is read only where a block may have been missed: as
   * a wait starts and ends, and for two intervals after a node has started.
   */
  private mayBeBlocked({ start, pace }: Wait, { dueAt }: { dueAt: number }, isLast: boolean): boolean {
    const now = this.options.clock.now();
    return isLast || dueAt === 0 || now - this.listeningSince < 2 * intervalAt(pace, now - start);
  }

  /**
   * Waits for one number share requests. A first look is left to an older wait; any other to a younger one, unless nobody
   * has asked since its own previous turn: waits that keep joining would each leave it to the next.
   */
  private async isLeftToOther(
    { dueAt, isOutOfTurn }: ItemTurn<WaitItem, WaitShared>,
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
      const found = await this.options.store.keys(timetable, { ...range, limit: 16 });
      if (found.some((each) => this.options.isRunning(indexedIn(each).node))) return true;
      const next = found.at(-1);
      if (!next || found.length < 16) return false;
      last = next;
    }
  }

  private note(name: string, asked: number): void {
    this.shared.delete(name);
    this.shared.set(name, asked);
    for (const oldest of this.shared.size > mostShared ? this.shared.keys() : []) {
      this.shared.delete(oldest);
      break;
    }
  }

  /** Makes a request, or joins one in progress. Only a request that began after the end of a wait decides it. */
  private async ask(wait: Wait, group: Buffer): Promise<Answer> {
    const name = asName(group);
    const end = endTimeOf(wait);
    const isLast = this.options.clock.now() >= end;
    for (let flight = this.flights.get(name); flight; flight = this.flights.get(name)) {
      const answer = await flight.answer;
      if (!isLast || flight.began >= end) return answer;
    }
    const began = this.options.clock.now();
    if (this.shared.has(name)) this.note(name, began);
    const answer = this.request(wait, group, began).finally(() => this.flights.delete(name));
    this.flights.set(name, { began, answer });
    return answer;
  }

  private async request(wait: Wait, group: Buffer, began: number): Promise<Answer> {
    const { client, accepted, endAll } = this.options;
    const { advisor, subject } = wait;
    let result: LookResult;
    try {
      const service = await client();
      const options = { advisor, lane: 'polls', priority: 'poll' } as const;
      const { data } = await service.call('getConsent', { query: subject }, options);
      result = resultOf(consentStatusOf(data));
    } catch (fault) {
      result = resultOfFault(fault);
    }
    this.noteOutage(outageIn(result));
    if (result.kind === 'accepted')
      return { result, began, outcome: await accepted(advisor, subject, result.status) };
    const answer = { result, began };
    const isDecided =
      result.kind === 'unknown_number' || result.kind === 'refused' || began >= endTimeOf(wait);
    if (isDecided) {
      const seen = await this.seenOf(wait);
      await endAll(group, (each) => this.outcomeAt({ ...each, seen: each.seen ?? seen }, answer));
    }
    return answer;
  }

  private async outcomeOf(wait: Wait, answer: Answer): Promise<WaitOutcome | undefined> {
    const outcome = this.outcomeAt(wait, answer);
    if (!outcome || wait.seen) return outcome;
    return this.outcomeAt({ ...wait, seen: await this.seenOf(wait) }, answer);
  }

  private outcomeAt(wait: Wait, { result, began }: Answer): WaitOutcome | undefined {
    const end = endTimeOf(wait);
    // Right after a start or a sleep, the network may not be there yet.
    const overdue = began < end ? began - end : Math.max(0, began - Math.max(end, this.awakeSince));
    return outcomeAfter(result, { age: began - wait.start, overdue, seen: wait.seen ?? nothingKnown });
  }

  private noteOutage(outage: Problem | undefined): void {
    const isNews = outage?.code !== this.outage?.code;
    this.outage = outage;
    if (isNews) this.options.changed();
  }

  /** Notices a sleep of the machine. */
  private notice(): void {
    const now = this.options.clock.now();
    if (now - this.observed > longestGap || now < this.observed) this.awakeSince = now;
    this.observed = now;
  }

  private observe(): void {
    this.notice();
    this.forgetTimer = this.options.clock.after(observedEvery, () => {
      this.observe();
    });
  }
}
