import type { Table, Write } from '../state/store';
import type { Book, Wait } from './book';
import type { StoredSubject } from './subjects';
import type { Warn } from './trouble';
import {
  groupOf,
  idIn,
  packKey,
  groupsIn,
  packOf,
  rowsIn,
  waitKey,
  type Group,
  type PackRecord,
  type Row,
  type Stored,
  type WaitRecord,
} from './wait-records';

/** Waits in one sealed record: to open one takes as long as to read fifty in it. */
const together = 100;
const flushDelay = 50;

interface Pack {
  readonly number: number;
  readonly key: string;
  /** The ids of those that were told, and are to be taken out. */
  readonly gone: Set<string>;
  /** What is in it, until it is on disk. */
  unwritten?: ReadonlyMap<string, WaitRecord> | undefined;
}

/** What a node that has closed still writes, by its id: the next node of this id reads after that. */
const leaving = new Map<string, Promise<void>>();

/** A wait, and what is on disk of it. */
export type Entry = readonly [wait: Wait, row: Row];
/** A wait that is on disk is taken up. */
type TakeUp = (group: Group, index: number, subject: StoredSubject) => Wait;

const recordIn = ([, ...record]: Row): WaitRecord => record;
const byId = (rows: readonly Row[]): ReadonlyMap<string, WaitRecord> =>
  new Map(rows.map((row) => [row[0], recordIn(row)]));

/**
 * The records of a node's waits. All of them are read when it starts, so those of a long list, and single ones once
 * there are many, are sealed together.
 */
export class Shelf {
  /** In records of their own, in the order of arrival. */
  private readonly loose = new Map<Wait, WaitRecord>();
  /** Where the others are: the book has the number for each. */
  private readonly packs = new Map<number, Pack>();
  private placed = 0;
  private latest: { readonly pack: Pack; readonly rows: ReadonlyMap<string, WaitRecord> } | undefined;
  /** Packs that waits have left, and what is to be written with that. */
  private readonly thinned = new Set<Pack>();
  private alsoWrite: Write<Stored>[] = [];
  /** So many loose ones are packed. */
  private packFrom = 2 * together;
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();
  /** Keys written while what is on disk is still being read, for they are on disk too; then undefined. */
  private begun: Set<string> | undefined = new Set();
  private isClosed = false;

  constructor(
    private readonly table: Table<Stored>,
    private readonly book: Book,
    private readonly node: string,
    private readonly warn: Warn,
  ) {}

  /** Puts waits in, and writes the rest with them. */
  async add(entries: readonly Entry[], alsoWrite: readonly Write<Stored>[]): Promise<void> {
    if (entries.length < together) {
      const puts = entries.map(([, row]) => ({ put: waitKey(this.node, row[0]), value: recordIn(row) }));
      for (const { put } of puts) this.begun?.add(put);
      await this.table.write([...alsoWrite, ...puts]);
      for (const [wait, row] of entries) this.loose.set(wait, recordIn(row));
      await this.packLoose();
      return;
    }
    const packs: (readonly Entry[])[] = [];
    for (let from = 0; from < entries.length; from += together)
      packs.push(entries.slice(from, from + together));
    await this.table.write([...alsoWrite, ...packs.map((each) => this.packed(each))]);
    for (const each of packs) this.place(this.keyFor(each), each);
  }

  /** Takes up everything on disk; call it once, when the node starts. False when that closed before all was read. */
  async read(takeUp: TakeUp): Promise<boolean> {
    const { begun = new Set<string>() } = this;
    await leaving.get(this.node);
    for await (const [key, stored] of this.table.entries(waitKey(this.node, ''))) {
      if (this.isClosed) return false;
      if (begun.has(key)) continue;
      const record = stored as WaitRecord;
      const group = groupOf(idIn(key), record);
      for (const [index, subject] of group.waits) this.loose.set(takeUp(group, index, subject), record);
      await this.packLoose();
    }
    for await (const [key, stored] of this.table.entries(packKey(this.node, ''))) {
      if (this.isClosed) return false;
      if (begun.has(key)) continue;
      const pack = this.place(key, []);
      for (const group of groupsIn(stored as PackRecord))
        for (const [index, subject] of group.waits)
          this.book.setPack(takeUp(group, index, subject), pack.number);
    }
    this.begun = undefined;
    return true;
  }

  async get(wait: Wait, id: string): Promise<WaitRecord | undefined> {
    const pack = this.packWith(wait);
    return pack ? (await this.rowsOf(pack)).get(id) : this.loose.get(wait);
  }

  /** Takes a wait out some time later, together with the other writes. */
  remove(wait: Wait, id: string, alsoWrite: readonly Write<Stored>[]): void {
    const pack = this.packWith(wait);
    if (!pack) {
      this.loose.delete(wait);
      void this.finish(this.writeSoon([...alsoWrite, { remove: waitKey(this.node, id) }]));
      return;
    }
    pack.gone.add(id);
    this.thinned.add(pack);
    this.alsoWrite.push(...alsoWrite);
    // The last of a node that closes arrive while it does; by the time of a timer its store may be closed.
    if (this.isClosed) void this.flush();
    else this.timer ??= setTimeout(() => void this.flush(), flushDelay).unref();
  }

  /** The node closes: what is taken out from now on is written at once. */
  close(): Promise<void> {
    this.isClosed = true;
    return this.flush();
  }

  /** Writes what was taken out; one after the other, or an earlier state of a pack would be written over a later one. */
  private flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    return this.finish(this.flushing.then(() => this.writeThinned()));
  }

  /** Whoever closes waits for it, and so does the next node of this id. */
  private finish(writing: Promise<unknown>): Promise<void> {
    const written = writing.catch((fault: unknown) => {
      this.warn('notRemoved', fault);
    });
    const flushing = Promise.all([this.flushing, written]).then(() => undefined);
    this.flushing = flushing;
    if (this.isClosed) {
      leaving.set(this.node, flushing);
      void flushing.then(() => leaving.get(this.node) === flushing && leaving.delete(this.node));
    }
    return flushing;
  }

  /** What cannot be written now is written with what is taken out next. */
  private async writeSoon(writes: readonly Write<Stored>[]): Promise<void> {
    try {
      await this.table.writeSoon(writes);
    } catch (fault) {
      this.alsoWrite.push(...writes);
      throw fault;
    }
  }

  private async writeThinned(): Promise<void> {
    const packs = [...this.thinned];
    const { alsoWrite } = this;
    this.thinned.clear();
    this.alsoWrite = [];
    try {
      const writes = [...alsoWrite];
      for (const pack of packs) {
        const rows = [...(await this.rowsOf(pack))].filter(([id]) => !pack.gone.has(id));
        const value = packOf(rows.map(([id, record]): Row => [id, ...record]));
        if (rows.length === 0) this.packs.delete(pack.number);
        writes.push(rows.length > 0 ? { put: pack.key, value } : { remove: pack.key });
      }
      if (writes.length > 0) await this.table.writeSoon(writes);
    } catch (fault) {
      // They are written with what is taken out next.
      for (const pack of packs) this.thinned.add(pack);
      this.alsoWrite = [...alsoWrite, ...this.alsoWrite];
      throw fault;
    }
  }

  private keyFor([first]: readonly Entry[]): string {
    return packKey(this.node, first?.[1][0] ?? '');
  }

  private packed(entries: readonly Entry[]): Write<Stored> {
    const put = this.keyFor(entries);
    this.begun?.add(put);
    return { put, value: packOf(entries.map(([, row]) => row)) };
  }

  private place(key: string, entries: readonly Entry[]): Pack {
    const pack: Pack = { number: this.placed++, key, gone: new Set() };
    this.packs.set(pack.number, pack);
    for (const [wait] of entries) this.book.setPack(wait, pack.number);
    return pack;
  }

  private packWith(wait: Wait): Pack | undefined {
    const number = this.book.packOf(wait);
    return number === undefined ? undefined : this.packs.get(number);
  }

  /** Seals the oldest of the loose ones together, once there are enough and some to spare. */
  private async packLoose(): Promise<void> {
    if (this.isClosed || this.loose.size < this.packFrom) return;
    const entries: Entry[] = [];
    for (const [wait, record] of this.loose)
      if (entries.push([wait, [this.book.idOf(wait), ...record]]) === together) break;
    const removals = entries.map(([, [id]]) => ({ remove: waitKey(this.node, id) }));
    const write = async (): Promise<void> => this.table.write([...removals, this.packed(entries)]);
    const writing = write();
    const pack = this.place(this.keyFor(entries), entries);
    pack.unwritten = byId(entries.map(([, row]) => row));
    for (const [wait] of entries) this.loose.delete(wait);
    const written = writing.then(
      () => {
        pack.unwritten = undefined;
      },
      (fault: unknown) => {
        this.unpack(pack, entries);
        this.warn('notPacked', fault);
      },
    );
    // What leaves it meanwhile is written after it.
    void this.finish(written);
    await written;
  }

  /** It could not be written, so its waits are where they were. */
  private unpack(pack: Pack, entries: readonly Entry[]): void {
    for (const [wait, row] of entries) {
      // One that was told meanwhile has no place in the book any more: another may have it by now.
      if (pack.gone.has(row[0])) this.alsoWrite.push({ remove: waitKey(this.node, row[0]) });
      else {
        this.book.setPack(wait, undefined);
        this.loose.set(wait, recordIn(row));
      }
    }
    this.packs.delete(pack.number);
    this.thinned.delete(pack);
    this.packFrom = this.loose.size + together;
  }

  private async rowsOf(pack: Pack): Promise<ReadonlyMap<string, WaitRecord>> {
    if (pack.unwritten) return pack.unwritten;
    if (this.latest?.pack === pack) return this.latest.rows;
    const stored = (await this.table.get(pack.key)) as PackRecord | undefined;
    const rows = byId(stored ? rowsIn(stored) : []);
    this.latest = { pack, rows };
    return rows;
  }
}
