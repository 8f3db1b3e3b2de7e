import { setImmediate as nextTurn } from 'node:timers/promises';
import { minute, second } from '../durations';
import type { Clock } from '../service/clock';
import { settled } from '../service/concurrency';
import { asName, endOf as rangeEnd, key, nextKey, type Store } from '../state/store';
import { adjusted, listTick, tickOf } from './rings';
import { timeLength, type EntryList } from './wait-entries';

/** An entry of a list whose time has come. */
export interface Due {
  readonly list: EntryList;
  readonly key: Buffer;
  readonly prefix: Buffer;
  /** The time on the list at which the cursor met the entry. */
  readonly at: number;
}

/** A visit whose request has ended. */
export interface Visited {
  /** Resolves when what was found is on record; true when the service did not answer and the visit is to be repeated. */
  readonly recorded: Promise<boolean>;
}

export interface PollerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** The most requests at once. */
  readonly concurrency: number;
  readonly occupied: () => Promise<readonly EntryList[]>;
  readonly prefixOf: (list: EntryList) => Buffer;
  readonly visit: (due: Due) => Promise<Visited>;
  /** Called when polls have begun, or ceased, to be late. */
  readonly changed: () => void;
}

/** The most milliseconds that the poller sleeps, so that it notices a clock that was set forward. */
const longestSleep = minute;
/** Milliseconds that the poller rests after a fault of the store. */
const pause = second;
/**
 * The most visits that wait for the disk after their request has ended: fewer would let a slow disk slow polls down.
 */
const mostUnrecorded = 300;
const table = 'wait';

interface Cursor {
  readonly list: EntryList;
  readonly prefix: Buffer;
  readonly tick: number;
  /** Every entry due before this time was visited. */
  time: number;
  /** Of the entries due at `time` itself, those before this key were visited too. */
  rest: Buffer | undefined;
  /** The earliest time of an entry that was added since the current page was read. */
  arrived: number;
  /** When the next entry is due, as far as is known: until then the list need not be read. */
  next: number;
  readAt: number;
  /** When entries that were not dealt with are visited again. */
  repeatAt: number;
  /** Whether the list was read up to now. */
  isCaughtUp: boolean;
  /** The entries whose visits have not ended: a cursor that goes back passes over them. */
  readonly visiting: Set<string>;
  /** When the next entry to be visited was due; undefined when none is. */
  waiting: number | undefined;
  /** When the cursor last began a turn of its ring; `overrun` is by how much that turn exceeded the interval. */
  turnedAt: number;
  overrun: number;
}

/** A poll out of turn. */
type Task = () => Promise<Visited>;
interface Extra {
  readonly tasks: AsyncIterator<Task>;
  readonly done: () => void;
  /** The next task, while it is being read and until it is taken. */
  reading?: Promise<void> | undefined;
  next?: IteratorResult<Task> | undefined;
}

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
  /** The time since which the clock was observed without a gap; a machine that sleeps makes a gap. */
  awakeSince = 0;

  constructor(private readonly options: PollerOptions) {
    this.pageSize = Math.max(options.concurrency, 16);
  }

  start(): void {
    if (!this.isStopped) return;
    this.isStopped = false;
    this.observed = this.awakeSince = this.options.clock.now();
    // A loop that was just stopped may still be ending: there are never two at once.
    this.loop = this.loop.then(() => this.run());
  }

  stop(): void {
    this.isStopped = true;
    this.poke();
    this.slotFreed?.();
    for (const { done } of this.extras) done();
    this.extras.clear();
  }

  /** How late polls are, in milliseconds. */
  get lateBy(): number {
    let late = 0;
    const now = this.options.clock.now();
    for (const cursor of this.cursors.values()) late = Math.max(late, this.lateness(cursor, now));
    return late;
  }

  /** An entry due at `due` was written to `list`. */
  expect(list: EntryList, due: number): void {
    const cursor = this.cursorOf(list);
    cursor.next = Math.min(cursor.next, due);
    if (list.kind !== 'ring') {
      cursor.arrived = Math.min(cursor.arrived, due);
      // Of the entries at the very time of the cursor, some were visited: the new one may lie before those.
      if (due <= cursor.time) {
        cursor.time = due;
        cursor.rest = undefined;
      }
    }
    this.poke();
  }

  /** An entry in `list`, which is no ring, was not dealt with: all that are left are visited again, an interval from now at the latest. */
  repeat(list: EntryList): void {
    const cursor = this.cursorOf(list);
    cursor.repeatAt = Math.min(cursor.repeatAt, this.options.clock.now() + list.interval);
    this.poke();
  }

  /** Does tasks out of turn, as there is room; resolves when all are done or the poller stops. */
  add(tasks: AsyncIterator<Task>): Promise<void> {
    if (this.isStopped) return Promise.resolve();
    return new Promise((done) => {
      this.extras.add({ tasks, done });
      this.poke();
    });
  }

  private cursorOf(list: EntryList): Cursor {
    const name = `${list.kind}${String(list.interval)}`;
    const known = this.cursors.get(name);
    if (known) return known;
    const isRing = list.kind === 'ring';
    const now = this.options.clock.now();
    const cursor: Cursor = {
      list,
      prefix: this.options.prefixOf(list),
      tick: isRing ? tickOf(list.interval) : listTick,
      time: isRing ? now : 0,
      rest: undefined,
      arrived: Infinity,
      next: Infinity,
      readAt: -Infinity,
      repeatAt: Infinity,
      isCaughtUp: true,
      visiting: new Set(),
      waiting: undefined,
      turnedAt: now,
      overrun: 0,
    };
    this.cursors.set(name, cursor);
    return cursor;
  }

  private async run(): Promise<void> {
    this.keepClockStill();
    let isKnown = false;
    while (!this.isStopped) {
      try {
        if (!isKnown) {
          for (const list of await this.options.occupied()) this.expect(list, 0);
          isKnown = true;
        }
        if (!(await this.round())) await this.sleep(this.sleepNeeded());
      } catch {
        // The store itself tells the user what troubles it.
        await this.sleep(pause);
      }
    }
    this.letGo();
  }

  /** Serves a page of each list; false when nothing was due. */
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

  /** The list is empty. */
  private isIdle({ next, repeatAt, visiting }: Cursor): boolean {
    return next === Infinity && repeatAt === Infinity && visiting.size === 0;
  }

  private isLate(): boolean {
    const now = this.options.clock.now();
    return [...this.cursors.values()].some(
      (cursor) => this.lateness(cursor, now) > Math.max(cursor.list.interval / 10, second),
    );
  }

  /** Where a turn takes longer than its interval, every poll is late by as much. */
  private lateness({ waiting, overrun }: Cursor, now: number): number {
    return waiting === undefined ? 0 : Math.max(now - waiting, overrun);
  }

  private dueAt({ next, readAt, tick, repeatAt }: Cursor): number {
    return Math.min(Math.max(next + 1, readAt + tick), repeatAt);
  }

  /** Visits the entries that are due, up to a page; false when there were none. */
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
      // The entries may fill more than a page: the rest is due, too.
      cursor.next = 0;
    }
    if (now > cursor.time) return this.take(cursor, now);
    // Nothing was read since the start: the next entry is looked up at once, and not a tick later.
    await this.lookAhead(cursor);
    return false;
  }

  /**
   * Moves a cursor that has read everything to the next entry: behind it there is nothing to visit, and a late timer
   * must not look like a cursor that is a turn behind.
   */
  private skipNothing(cursor: Cursor, now: number): void {
    if (!cursor.isCaughtUp) return;
    const reached = Math.min(cursor.next, now);
    if (reached > cursor.time) cursor.time = reached;
  }

  /** Moves a cursor to `now`: the clock was set back. */
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
      const name = asName(entry);
      if (cursor.visiting.has(name)) continue;
      void this.occupy(() => this.options.visit({ list, key: entry, prefix, at }), { cursor, name });
    }
    const last = page.at(-1);
    if (page.length === this.pageSize && last) {
      cursor.time = from + last.readUIntBE(prefix.length, timeLength) - place;
      cursor.rest = nextKey(last);
    } else {
      cursor.time = from + span;
      cursor.rest = undefined;
      if (isRing && place + span === list.interval) this.noteTurn(cursor);
    }
    if (cursor.arrived <= cursor.time) {
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
      const next = await this.nextOf(extra);
      if (!next) return count > 0;
      if (next.done === true) {
        this.extras.delete(extra);
        extra.done();
        return true;
      }
      void this.occupy(next.value);
    }
    return true;
  }

  /**
   * Undefined while the next task is being read: finding it among many waits may take long, and lists do not wait for
   * it.
   */
  private async nextOf(extra: Extra): Promise<IteratorResult<Task> | undefined> {
    extra.reading ??= this.read(extra);
    if (!extra.next) await Promise.race([extra.reading, nextTurn()]);
    const { next } = extra;
    if (next) extra.next = extra.reading = undefined;
    return next;
  }

  private async read(extra: Extra): Promise<void> {
    try {
      extra.next = await extra.tasks.next();
    } catch {
      // The store itself tells the user what troubles it. There are no further tasks after a fault.
      extra.next = { done: true, value: undefined };
    }
    this.poke();
  }

  /** Starts a visit where there is room for one. */
  private async occupy(visit: Task, of?: { readonly cursor: Cursor; readonly name: string }): Promise<void> {
    this.running += 1;
    of?.cursor.visiting.add(of.name);
    const release = this.options.clock.keepStill?.();
    const visiting = visit();
    await settled(visiting);
    this.running -= 1;
    this.unrecorded += 1;
    this.slotFreed?.();
    // Only the store can fail here: the wait is visited again.
    const isUnanswered = await visiting.then(({ recorded }) => recorded).catch(() => true);
    this.unrecorded -= 1;
    of?.cursor.visiting.delete(of.name);
    if (isUnanswered && of && of.cursor.list.kind !== 'ring' && !this.isStopped) this.repeat(of.cursor.list);
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
      this.keepClockStill();
    }
  }

  private sleepNeeded(): number {
    for (const { reading, next } of this.extras) if (!reading || next) return 0;
    let until = Infinity;
    for (const cursor of this.cursors.values()) {
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
        this.keepClockStill();
        resolve();
      };
      this.letGo();
    });
  }

  private poke(): void {
    this.wake?.();
  }

  /** A clock that can be moved stands still while due waits are read. */
  private keepClockStill(): void {
    this.release ??= this.options.clock.keepStill?.();
  }

  private letGo(): void {
    this.release?.();
    this.release = undefined;
  }

  /** Notices a sleep of the machine: no time was observed for longer than the loop ever sleeps. */
  private observe(now: number): void {
    if (now - this.observed > 5 * longestSleep) this.awakeSince = now;
    this.awakeSince = Math.min(this.awakeSince, now);
    this.observed = now;
  }
}
