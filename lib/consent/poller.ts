import type { Clock } from '../service/clock';
import { endOf as rangeEnd, key, type Store } from '../state/store';
import { adjusted, endTick, tickOf } from './rings';
import { after, type List } from './wait-entries';

/** An entry of a list whose time has come. */
export interface Due {
  readonly list: List;
  readonly key: Buffer;
  readonly prefix: Buffer;
  /** By the reckoning of the list's cursor. */
  readonly at: number;
}

/** A visit whose request has ended. */
export interface Visited {
  /** Until what was found is on record; true when the service gave no answer and the visit is to be repeated. */
  readonly recorded: Promise<boolean>;
}

export interface PollerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Requests at once. */
  readonly concurrency: number;
  readonly occupied: () => Promise<readonly List[]>;
  readonly prefixOf: (list: List) => Buffer;
  readonly visit: (due: Due) => Promise<Visited>;
  /** Polls have begun, or ceased, to be late. */
  readonly changed: () => void;
}

/** So long at most, so that a clock that was set forward is noticed. */
const longestSleep = 60_000;
/** After a fault of the store. */
const pause = 1000;
/** Visits whose request has ended, and which wait for the disk: it may be slow, and is no reason to poll slower. */
const mostUnrecorded = 1000;
const timeLength = 6;
const table = 'wait';

interface Cursor {
  readonly list: List;
  readonly prefix: Buffer;
  readonly tick: number;
  /** Everything due before was taken. */
  time: number;
  /** At `time` itself, everything before this key was taken, too. */
  rest: Buffer | undefined;
  /** The earliest that has come to lie there since the page that is being taken was read. */
  arrived: number;
  /** When something is due, as far as is known: until then it need not be read. */
  next: number;
  readAt: number;
  /** Times of entries that are not on record yet: the cursor does not pass them. */
  readonly barriers: Set<{ readonly due: number }>;
  /** When unanswered last looks are repeated. */
  repeatAt: number;
  /** Whether it was read up to now. */
  isCaughtUp: boolean;
  /** Visits that have not ended. */
  visits: number;
  /** When what is to be taken next was due; undefined when nothing is. */
  waiting: number | undefined;
  /** When the cursor last came to the beginning of its ring, and how much longer than the interval that turn took. */
  turnedAt: number;
  overrun: number;
}

/** Something to be polled out of turn. */
type Task = () => Promise<Visited>;
interface Extra {
  readonly tasks: AsyncIterator<Task>;
  readonly done: () => void;
}

const settled = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => undefined,
    () => undefined,
  );

/**
 * Visits waits when they are due: a cursor for each list, in memory, reads a page at a time; lists take turns. Nothing
 * here grows with the number of waits.
 */
export class Poller {
  private readonly cursors = new Map<string, Cursor>();
  private readonly extras = new Set<Extra>();
  private readonly pageSize: number;
  private running = 0;
  private unrecorded = 0;
  private slotFreed: (() => void) | undefined;
  private wake: (() => void) | undefined;
  private release: (() => void) | undefined;
  private isStopped = true;
  private loop: Promise<void> = Promise.resolve();
  private wasLate = false;
  private observed = 0;
  /** Since when the passing of time was noticed without a gap, such as a machine that slept. */
  awakeSince = 0;

  constructor(private readonly options: PollerOptions) {
    this.pageSize = Math.max(options.concurrency, 16);
  }

  start(): void {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.observed = this.awakeSince = this.options.clock.now();
    // One that was stopped just before may not have noticed yet: it goes on, and there are never two.
    this.loop = this.loop.then(() => this.run());
  }

  stop(): void {
    this.isStopped = true;
    this.poke();
    this.slotFreed?.();
    for (const { done } of this.extras) done();
    this.extras.clear();
  }

  /** How late polls are. */
  get lateBy(): number {
    let late = 0;
    const now = this.options.clock.now();
    for (const cursor of this.cursors.values()) late = Math.max(late, this.lateness(cursor, now));
    return late;
  }

  /** Something will lie in `list`, due at `due` for the first time. Its cursor does not pass that until it is released. */
  holdBack(list: List, due: number): () => void {
    const cursor = this.cursorOf(list);
    const barrier = { due };
    cursor.barriers.add(barrier);
    return () => {
      cursor.barriers.delete(barrier);
      this.expect(list, due);
    };
  }

  /** Something lies in `list` that is due at `due`. */
  expect(list: List, due: number): void {
    const cursor = this.cursorOf(list);
    cursor.next = Math.min(cursor.next, due);
    if (list.kind === 'end') {
      cursor.arrived = Math.min(cursor.arrived, due);
      if (due < cursor.time) {
        cursor.time = due;
        cursor.rest = undefined;
      }
    }
    this.poke();
  }

  /** A last look at something in `list` met no answer: all such looks are repeated, a turn from now at the latest. */
  repeat(list: List): void {
    const cursor = this.cursorOf(list);
    cursor.repeatAt = Math.min(cursor.repeatAt, this.options.clock.now() + list.interval);
    this.poke();
  }

  /** Whether the cursor of `list` has passed a time, so that what is due then comes a turn later. */
  hasPassed(list: List, due: number): boolean {
    return due < this.cursorOf(list).time;
  }

  /** Out of turn, as places become free; resolves when all are done or the poller stops. */
  add(tasks: AsyncIterator<Task>): Promise<void> {
    if (this.isStopped) return Promise.resolve();
    return new Promise((done) => {
      this.extras.add({ tasks, done });
      this.poke();
    });
  }

  private cursorOf(list: List): Cursor {
    const name = `${list.kind}${String(list.interval)}`;
    const known = this.cursors.get(name);
    if (known) return known;
    const isRing = list.kind === 'ring';
    const now = this.options.clock.now();
    const cursor: Cursor = {
      list,
      prefix: this.options.prefixOf(list),
      tick: isRing ? tickOf(list.interval) : endTick,
      time: isRing ? now : 0,
      rest: undefined,
      arrived: Infinity,
      next: Infinity,
      readAt: -Infinity,
      barriers: new Set(),
      repeatAt: Infinity,
      isCaughtUp: true,
      visits: 0,
      waiting: undefined,
      turnedAt: now,
      overrun: 0,
    };
    this.cursors.set(name, cursor);
    return cursor;
  }

  private async run(): Promise<void> {
    this.hold();
    let isKnown = false;
    while (!this.isStopped) {
      try {
        if (!isKnown) {
          for (const list of await this.options.occupied()) this.expect(list, 0);
          isKnown = true;
        }
        if (!(await this.round())) await this.sleep(this.sleepNeeded());
      } catch {
        // The store says by itself what troubles it.
        await this.sleep(pause);
      }
    }
    this.letGo();
  }

  /** A page of each. */
  private async round(): Promise<boolean> {
    let hasWorked = false;
    for (const extra of this.extras) if (await this.serveExtra(extra)) hasWorked = true;
    for (const [name, cursor] of this.cursors) {
      if (this.isStopped) break;
      if (await this.serve(cursor)) hasWorked = true;
      if (this.isIdle(cursor)) this.cursors.delete(name);
    }
    const isLate = this.isLate();
    if (isLate !== this.wasLate) {
      this.wasLate = isLate;
      this.options.changed();
    }
    return hasWorked;
  }

  /** Nothing lies there, nor is anything about to. */
  private isIdle({ next, repeatAt, barriers, visits }: Cursor): boolean {
    return next === Infinity && repeatAt === Infinity && barriers.size === 0 && visits === 0;
  }

  private isLate(): boolean {
    const now = this.options.clock.now();
    return [...this.cursors.values()].some(
      (cursor) => this.lateness(cursor, now) > Math.max(cursor.list.interval / 10, 1000),
    );
  }

  /** Where a turn takes longer than its interval, every poll is late by as much. */
  private lateness({ waiting, overrun }: Cursor, now: number): number {
    return waiting === undefined ? 0 : Math.max(now - waiting, overrun);
  }

  private dueAt({ next, readAt, tick, repeatAt }: Cursor): number {
    return Math.min(Math.max(next + 1, readAt + tick), repeatAt);
  }

  private barrierOf({ barriers }: Cursor): number {
    let first = Infinity;
    for (const { due } of barriers) first = Math.min(first, due);
    return first;
  }

  /** Takes what is due, up to a page; false when nothing was. */
  private async serve(cursor: Cursor): Promise<boolean> {
    const { clock } = this.options;
    const now = clock.now();
    this.observe(now);
    if (cursor.time > now) this.setBack(cursor, now);
    this.skipNothing(cursor, now);
    const { list } = cursor;
    if (list.kind === 'ring') cursor.time = adjusted(cursor.time, now, list.interval);
    if (this.dueAt(cursor) > now) return false;
    if (cursor.repeatAt <= now && cursor.isCaughtUp) {
      cursor.repeatAt = Infinity;
      cursor.time = 0;
      cursor.rest = undefined;
    }
    const limit = Math.min(now, this.barrierOf(cursor));
    if (limit > cursor.time) return this.take(cursor, limit);
    // After a start nothing was read yet: what is due next does not wait a tick.
    if (limit === now) await this.lookAhead(cursor);
    return false;
  }

  /** Nothing lies before what is due next, once all was read: a timer that came late makes nobody miss a turn. */
  private skipNothing(cursor: Cursor, now: number): void {
    if (!cursor.isCaughtUp) return;
    const reached = Math.min(cursor.next, now, this.barrierOf(cursor));
    if (reached > cursor.time) cursor.time = reached;
  }

  /** The clock was. */
  private setBack(cursor: Cursor, now: number): void {
    cursor.time = now;
    cursor.rest = undefined;
    cursor.next = -Infinity;
    cursor.readAt = -Infinity;
    if (cursor.repeatAt < Infinity) cursor.repeatAt = now + cursor.list.interval;
  }

  private async take(cursor: Cursor, limit: number): Promise<boolean> {
    const { store } = this.options;
    const { list, prefix } = cursor;
    const isRing = list.kind === 'ring';
    const place = isRing ? cursor.time % list.interval : cursor.time;
    const span = isRing ? Math.min(limit - cursor.time, list.interval - place) : limit - cursor.time;
    const range = {
      from: cursor.rest ?? key(prefix, place),
      to: key(prefix, place + span),
      limit: this.pageSize,
    };
    const from = cursor.time;
    cursor.arrived = Infinity;
    const page = await store.keys(table, range);
    cursor.isCaughtUp = page.length < this.pageSize && from + span === limit;
    for (const entry of page) {
      const at = from + entry.readUIntBE(prefix.length, timeLength) - place;
      cursor.waiting = at;
      await this.free();
      if (this.isStopped) return false;
      void this.occupy(() => this.options.visit({ list, key: entry, prefix, at }), cursor);
    }
    const last = page.at(-1);
    if (page.length === this.pageSize && last) {
      cursor.time = from + last.readUIntBE(prefix.length, timeLength) - place;
      cursor.rest = after(last);
    } else {
      cursor.time = from + span;
      cursor.rest = undefined;
      if (isRing && place + span === list.interval) this.noteTurn(cursor);
    }
    if (cursor.arrived < cursor.time) {
      cursor.time = cursor.arrived;
      cursor.rest = undefined;
      cursor.isCaughtUp = false;
    }
    if (!cursor.isCaughtUp) return true;
    cursor.waiting = undefined;
    cursor.overrun = 0;
    cursor.readAt = this.options.clock.now();
    await this.lookAhead(cursor);
    return page.length > 0;
  }

  private noteTurn(cursor: Cursor): void {
    const now = this.options.clock.now();
    cursor.overrun = Math.max(now - cursor.turnedAt - cursor.list.interval, 0);
    cursor.turnedAt = now;
  }

  /** When the next entry of a list is due. */
  private async lookAhead(cursor: Cursor): Promise<void> {
    const { list, prefix, time } = cursor;
    cursor.next = Infinity;
    const isRing = list.kind === 'ring';
    const place = isRing ? time % list.interval : time;
    const from = key(prefix, place);
    const first = await this.firstIn(from, rangeEnd(prefix));
    if (first) {
      cursor.next = Math.min(cursor.next, time + first.readUIntBE(prefix.length, timeLength) - place);
      return;
    }
    if (!isRing) return;
    const wrapped = await this.firstIn(prefix, from);
    if (!wrapped) return;
    const turn = time - place + list.interval;
    cursor.next = Math.min(cursor.next, turn + wrapped.readUIntBE(prefix.length, timeLength));
  }

  private async firstIn(from: Buffer, to: Buffer): Promise<Buffer | undefined> {
    const [first] = await this.options.store.keys(table, { from, to, limit: 1 });
    return first;
  }

  private async serveExtra(extra: Extra): Promise<boolean> {
    for (let count = 0; count < this.pageSize; count++) {
      await this.free();
      if (this.isStopped) return false;
      const next = await extra.tasks.next();
      if (next.done === true) {
        this.extras.delete(extra);
        extra.done();
        return true;
      }
      void this.occupy(next.value);
    }
    return true;
  }

  /** Runs a visit in the place that is free. */
  private async occupy(visit: Task, cursor?: Cursor): Promise<void> {
    this.running += 1;
    if (cursor) cursor.visits += 1;
    const release = this.options.clock.hold?.();
    const visiting = visit();
    await settled(visiting);
    this.running -= 1;
    this.unrecorded += 1;
    this.slotFreed?.();
    // What fails is a fault of the store: the wait comes again.
    const isUnanswered = await visiting.then(({ recorded }) => recorded).catch(() => true);
    this.unrecorded -= 1;
    if (cursor) cursor.visits -= 1;
    if (isUnanswered && cursor?.list.kind === 'end' && !this.isStopped) this.repeat(cursor.list);
    this.slotFreed?.();
    release?.();
  }

  private isFull(): boolean {
    return this.running >= this.options.concurrency || this.unrecorded >= mostUnrecorded;
  }

  private async free(): Promise<void> {
    while (this.isFull() && !this.isStopped) {
      this.letGo();
      await new Promise<void>((resolve) => (this.slotFreed = resolve));
      this.slotFreed = undefined;
      this.hold();
    }
  }

  private sleepNeeded(): number {
    if (this.extras.size > 0) return 0;
    let until = Infinity;
    for (const cursor of this.cursors.values()) {
      // Whoever lifts the barrier wakes it.
      if (this.barrierOf(cursor) <= cursor.time) continue;
      until = Math.min(until, this.dueAt(cursor));
    }
    return Math.min(until - this.options.clock.now(), longestSleep);
  }

  private async sleep(ms: number): Promise<void> {
    if (ms <= 0 || this.isStopped) return;
    await new Promise<void>((resolve) => {
      const cancel = this.options.clock.after(ms, () => this.wake?.());
      this.wake = () => {
        this.wake = undefined;
        cancel();
        this.hold();
        resolve();
      };
      this.letGo();
    });
  }

  private poke(): void {
    this.wake?.();
  }

  /** A clock that can be moved stands still while due waits are read. */
  private hold(): void {
    this.release ??= this.options.clock.hold?.();
  }

  private letGo(): void {
    this.release?.();
    this.release = undefined;
  }

  /** Whoever did not look at the time for so long was asleep. */
  private observe(now: number): void {
    if (now - this.observed > 5 * longestSleep) this.awakeSince = now;
    this.awakeSince = Math.min(this.awakeSince, now);
    this.observed = now;
  }
}
