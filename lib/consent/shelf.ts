import type { Table, Write } from '../state/store';
import type { Warn } from './trouble';
import {
  idIn,
  indexIn,
  messageIdOf,
  packKey,
  packOf,
  rowsIn,
  waitId,
  waitKey,
  type PackRecord,
  type Row,
  type Stored,
  type WaitRecord,
} from './wait-records';

/** Waits in one sealed record: to open one takes as long as to read fifty in it. */
const together = 100;
const flushDelay = 50;

interface Pack {
  readonly key: string;
  /** The first id of its hundred, when it is part of a long list. */
  readonly hundred: string | undefined;
  /** Told, and to be taken out. */
  readonly gone: Set<string>;
  /** What is in it, until it is on disk. */
  unwritten?: ReadonlyMap<string, WaitRecord> | undefined;
}

/** What a node that has closed still writes, by its id: the next node of this id reads after that. */
const leaving = new Map<string, Promise<void>>();

const firstOfHundred = (id: string): string => {
  const index = indexIn(id);
  return waitId(messageIdOf(id), index - (index % together));
};

const recordIn = ([, ...record]: Row): WaitRecord => record;
const byId = (rows: readonly Row[]): ReadonlyMap<string, WaitRecord> =>
  new Map(rows.map((row) => [row[0], recordIn(row)]));

/**
 * The records of a node's waits. All of them are read when it starts, so those of a long list, and single ones once
 * there are many, are sealed together.
 */
export class Shelf {
  /** In records of their own, in the order of arrival. */
  private readonly loose = new Map<string, WaitRecord>();
  /** Where the others are: by id, and for long lists by the first id of each hundred. */
  private readonly packs = new Map<string, Pack>();
  private latest: { readonly pack: Pack; readonly rows: ReadonlyMap<string, WaitRecord> } | undefined;
  /** Packs that waits have left, and what is to be written with that. */
  private readonly thinned = new Set<Pack>();
  private alsoWrite: Write<Stored>[] = [];
  /** So many loose ones are packed. */
  private packFrom = 2 * together;
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();
  /** Ids put in while those on disk are still being read, for they are on disk too; then undefined. */
  private begun: Set<string> | undefined = new Set();
  private isClosed = false;

  constructor(
    private readonly table: Table<Stored>,
    private readonly node: string,
    private readonly warn: Warn,
  ) {}

  /** Puts waits in, and writes the rest with them. */
  async add(rows: readonly Row[], alsoWrite: readonly Write<Stored>[]): Promise<void> {
    for (const [id] of rows) this.begun?.add(id);
    if (rows.length < together) {
      const puts = rows.map((row) => ({ put: waitKey(this.node, row[0]), value: recordIn(row) }));
      await this.table.write([...alsoWrite, ...puts]);
      for (const row of rows) this.loose.set(row[0], recordIn(row));
      await this.packLoose();
      return;
    }
    const packs: (readonly Row[])[] = [];
    for (let from = 0; from < rows.length; from += together) packs.push(rows.slice(from, from + together));
    await this.table.write([...alsoWrite, ...packs.map((each) => this.packed(each))]);
    for (const each of packs) this.place(this.keyFor(each), each);
  }

  /** Everything on disk, some at a time. Call it once, when the node starts. */
  async *all(): AsyncGenerator<readonly Row[], void, undefined> {
    const { begun = new Set<string>() } = this;
    await leaving.get(this.node);
    for await (const [key, stored] of this.table.entries(waitKey(this.node, ''))) {
      const id = idIn(key);
      if (begun.has(id)) continue;
      const record = stored as WaitRecord;
      this.loose.set(id, record);
      yield [[id, ...record]];
      await this.packLoose();
    }
    for await (const [key, stored] of this.table.entries(packKey(this.node, ''))) {
      const rows = rowsIn(stored as PackRecord).filter(([id]) => !begun.has(id) && !this.packs.has(id));
      this.place(key, rows);
      yield rows;
    }
    this.begun = undefined;
  }

  async get(id: string): Promise<WaitRecord | undefined> {
    const pack = this.packWith(id);
    return pack ? (await this.rowsOf(pack)).get(id) : this.loose.get(id);
  }

  /** Takes a wait out some time later, together with the other writes. */
  remove(id: string, alsoWrite: readonly Write<Stored>[]): void {
    const pack = this.packWith(id);
    if (!pack) {
      this.loose.delete(id);
      void this.finish(this.writeSoon([...alsoWrite, { remove: waitKey(this.node, id) }]));
      return;
    }
    pack.gone.add(id);
    if (pack.hundred === undefined) this.packs.delete(id);
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
        if (rows.length === 0 && pack.hundred !== undefined) this.packs.delete(pack.hundred);
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

  private keyFor(rows: readonly Row[]): string {
    return packKey(this.node, rows[0]?.[0] ?? '');
  }

  private packed(rows: readonly Row[]): Write<Stored> {
    return { put: this.keyFor(rows), value: packOf(rows) };
  }

  private place(key: string, rows: readonly Row[]): Pack {
    const [first] = rows;
    // A long list is packed by itself, a hundred after the other.
    const hundred = first && first[4] >= together ? firstOfHundred(first[0]) : undefined;
    const pack: Pack = { key, hundred, gone: new Set() };
    if (hundred !== undefined) this.packs.set(hundred, pack);
    else for (const [id] of rows) this.packs.set(id, pack);
    return pack;
  }

  private packWith(id: string): Pack | undefined {
    return this.packs.get(id) ?? this.packs.get(firstOfHundred(id));
  }

  /** Seals the oldest of the loose ones together, once there are enough and some to spare. */
  private async packLoose(): Promise<void> {
    if (this.isClosed || this.loose.size < this.packFrom) return;
    const rows: Row[] = [];
    for (const [id, record] of this.loose) if (rows.push([id, ...record]) === together) break;
    const removals = rows.map(([id]) => ({ remove: waitKey(this.node, id) }));
    const write = async (): Promise<void> => this.table.write([...removals, this.packed(rows)]);
    const writing = write();
    const pack = this.place(this.keyFor(rows), rows);
    pack.unwritten = byId(rows);
    for (const [id] of rows) this.loose.delete(id);
    const written = writing.then(
      () => {
        pack.unwritten = undefined;
      },
      (fault: unknown) => {
        this.unpack(pack, rows);
        this.warn('notPacked', fault);
      },
    );
    // What leaves it meanwhile is written after it.
    void this.finish(written);
    await written;
  }

  /** It could not be written, so its waits are where they were. */
  private unpack(pack: Pack, rows: readonly Row[]): void {
    for (const [id, ...record] of rows) {
      if (this.packs.delete(id)) this.loose.set(id, record);
      else this.alsoWrite.push({ remove: waitKey(this.node, id) });
    }
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
