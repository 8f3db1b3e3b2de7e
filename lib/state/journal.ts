import { arrivalId } from './ids';
import { FoundEnds, type Shared } from './journal-ends';
import { Entry, type JournalEntry } from './journal-entry';
import * as records from './journal-records';
import type { JournalRecord, MessageRecord, Todo } from './journal-records';
import { liveMessages, storable } from './messages';
import type { Store, Table, Write } from './store';

export type { JournalEntry } from './journal-entry';
export type { Todo } from './journal-records';

/** One input message of a send node. */
export interface JournalJob<R> {
  readonly message: Record<string, unknown>;
  readonly recipients: readonly R[];
  /** What the node needs besides, to go on after a restart. */
  readonly context?: unknown;
}

export interface Resumed<R, O> {
  readonly entry: JournalEntry<O>;
  readonly message: Record<string, unknown>;
  /** Parts of the message could not be kept (`req`, functions) and are gone. */
  readonly dropped: boolean;
  readonly context: unknown;
  /** Of the whole job, told ones included: the `count` of its sequence. */
  readonly count: number;
  /** What is still to be done, in list order. */
  readonly open: readonly Todo<R, O>[];
}

type Read<R, O> = readonly [key: string, record: MessageRecord<R, O>];

const toldDelay = 50;

/**
 * What a send node has taken on, has begun and has told. Each step is on disk before the next is taken:
 * accepted, begun (before the request leaves), outcome (before it is told), told (some time after, with others).
 * So after a kill a recipient not begun may be sent, one begun without outcome is unknown, and an outcome not marked
 * as told is told again and says so. Steps of one turn of the event loop share one commit, and the outcomes of messages
 * with one recipient one record.
 */
export class Journal<R, O> {
  private readonly table: Table<JournalRecord<R, O>>;
  private readonly changed = new Set<Entry<R, O>>();
  private readonly toBeMarked = new Set<Entry<R, O>>();
  private ends: (readonly [Entry<R, O>, O])[] = [];
  /** To be written with the next turn: recipients of long lists, and what could not be written before. */
  private waiting: Write<JournalRecord<R, O>>[] = [];
  private hasUnwritten = false;
  private turn: Promise<void> | undefined;
  /** Ends when everything written ahead is on disk, or is to be tried again. */
  private ahead = Promise.resolve();
  private toldTimer: NodeJS.Timeout | undefined;

  constructor(
    store: Store,
    private readonly node: string,
    private readonly now: () => number,
  ) {
    this.table = store.table('journal');
  }

  /**
   * On disk before the next message is accepted, and at the latest after this turn of the event loop: a recipient that
   * begins in the same turn costs no write of its own.
   */
  accept(job: JournalJob<R>): JournalEntry<O> {
    if (this.hasUnwritten) this.writeAhead();
    const at = this.now();
    const key = `${this.node}/${arrivalId(at)}`;
    const { copy: message, dropped } = storable(job.message);
    if (dropped) liveMessages.keep(key, job.message);
    const { recipients, context } = job;
    const count = recipients.length;
    const size = records.recipientsPerRecord;
    const entry = new Entry<R, O>(
      this,
      { key, count, open: count, logs: 0, tolds: 0, shared: [] },
      { at, message, dropped, count, recipients: recipients.slice(0, size), begun: [], context },
    );
    for (let from = size; from < count; from += size) {
      const value = { from, recipients: recipients.slice(from, from + size) };
      this.waiting.push({ put: records.recipientsKey(key, from), value });
    }
    this.hasUnwritten = true;
    this.onDisk(entry).catch(() => undefined);
    return entry;
  }

  /** What an earlier node of this id left undone, oldest first. Call it once, when the node starts. */
  async resume(resumeWithin: number): Promise<Resumed<R, O>[]> {
    const { jobs, ends } = await this.read();
    const resumed: Resumed<R, O>[] = [];
    const gone: string[] = [];
    for (const [key, found] of jobs) {
      const isLogLost = await this.table.hasLost(records.logsPrefix(key));
      const replayed = records.replay(found, ends.of(key), this.now() - resumeWithin, isLogLost);
      // Of a job that cannot be read for want of its key, nothing is removed: it may be read again.
      if (!replayed && (await this.table.hasLost(records.jobKey(key)))) continue;
      if (!replayed || replayed.todos.length === 0) {
        for (const [each] of found) gone.push(each);
        continue;
      }
      const { job, todos, logs, tolds } = replayed;
      const alive = liveMessages.get(key);
      const shared = ends.hold(key);
      resumed.push({
        entry: new Entry<R, O>(this, { key, count: job.count, open: todos.length, logs, tolds, shared }),
        message: alive ?? job.message,
        dropped: job.dropped && !alive,
        context: job.context,
        count: job.count,
        open: todos,
      });
    }
    // The end of a job that cannot be read now stays with it.
    for (const key of ends.unheld) if (await this.table.hasLost(records.jobKey(key))) ends.hold(key);
    for (const each of ends.orphaned) gone.push(each);
    if (gone.length > 0) void this.table.writeSoon(gone.map((remove) => ({ remove })));
    return resumed;
  }

  /** Writes what is still gathered; before the node closes. */
  async settle(): Promise<void> {
    try {
      await this.writeAll();
    } finally {
      this.markTold();
    }
  }

  /** For its entries. */
  onDisk(entry: Entry<R, O>): Promise<void> {
    this.changed.add(entry);
    return this.endOfTurn();
  }

  /** For its entries. */
  share(entry: Entry<R, O>, outcome: O): Promise<void> {
    this.ends.push([entry, outcome]);
    return this.endOfTurn();
  }

  /** For its entries. */
  told(entry: Entry<R, O>): void {
    if (entry.isOver) {
      this.remove(entry);
      return;
    }
    this.toBeMarked.add(entry);
    this.toldTimer ??= setTimeout(() => {
      this.markTold();
    }, toldDelay).unref();
  }

  private async read(): Promise<{ readonly jobs: Map<string, Read<R, O>[]>; readonly ends: FoundEnds<O> }> {
    const jobs = new Map<string, Read<R, O>[]>();
    const ends = new FoundEnds<O>();
    for await (const [key, record] of this.table.entries(`${this.node}/`)) {
      if ('ends' in record) {
        ends.add(this.node, key, record);
        continue;
      }
      const job = key.slice(0, key.lastIndexOf('/'));
      const found = jobs.get(job);
      if (found) found.push([key, record]);
      else jobs.set(job, [[key, record]]);
    }
    return { jobs, ends };
  }

  private endOfTurn(): Promise<void> {
    this.turn ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.turn = undefined;
      return this.writeAll();
    });
    return this.turn;
  }

  /** Amid a turn. What could not be written is tried again at its end, and whoever relies on it is told then. */
  private writeAhead(): void {
    const written = this.write().catch(() => undefined);
    this.ahead = this.ahead.then(() => written);
  }

  private async writeAll(): Promise<void> {
    await this.ahead;
    await this.write();
  }

  private async write(): Promise<void> {
    if (this.changed.size + this.ends.length + this.waiting.length === 0) return;
    const writes = this.waiting;
    this.waiting = [];
    if (this.ends.length > 0) writes.push(this.takeEnds());
    for (const entry of this.changed) entry.takeSteps(writes);
    this.changed.clear();
    this.hasUnwritten = false;
    try {
      await this.table.write(writes);
    } catch (fault) {
      this.waiting = [...writes, ...this.waiting];
      throw fault;
    }
  }

  private takeEnds(): Write<JournalRecord<R, O>> {
    const { ends } = this;
    this.ends = [];
    const shared: Shared = { key: records.endsKey(this.node, arrivalId(this.now())), holders: new Set() };
    for (const [entry] of ends) {
      shared.holders.add(entry.key);
      entry.shared = [...entry.shared, shared];
    }
    const value = { ends: ends.map(([{ key }, outcome]) => [records.idIn(key), outcome] as const) };
    return { put: shared.key, value };
  }

  private markTold(): void {
    clearTimeout(this.toldTimer);
    this.toldTimer = undefined;
    const writes = [...this.toBeMarked].map((entry) => entry.takeTold());
    this.toBeMarked.clear();
    if (writes.length > 0) void this.table.writeSoon(writes);
  }

  private remove(entry: Entry<R, O>): void {
    this.changed.delete(entry);
    if (this.ends.length > 0) this.ends = this.ends.filter(([each]) => each !== entry);
    this.toBeMarked.delete(entry);
    liveMessages.forget(entry.key);
    const gone = entry.keys;
    for (const shared of entry.shared) {
      shared.holders.delete(entry.key);
      if (shared.holders.size === 0) gone.push(shared.key);
    }
    if (this.waiting.length > 0) {
      const keys = new Set(gone);
      this.waiting = this.waiting.filter((each) => !('put' in each && keys.has(each.put)));
    }
    void this.table.writeSoon(gone.map((remove) => ({ remove })));
  }
}
