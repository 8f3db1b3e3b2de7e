import type { Pool } from 'pg';
import type { Change } from './commit-queue';
import type { Leased } from './fenced-writes';
import type { GatheredReads } from './gathered-reads';
import { common, schema, type Lease } from './leases';
import { someRow, storeOver, type Engine, type RecordChange, type Row } from './engine';
import { recordName, type Sealing } from './sealing';
import {
  endOf,
  isShared,
  nextKey,
  key as keyOf,
  storeClosed,
  TakenOver,
  type Condition,
  type JointWriter,
  type Range,
  type Peers,
  type Store,
  type StoreCommand,
  type Table,
} from './store';
import { second } from '../durations';

/** What a slot needs of its database. */
export interface SlotDatabase {
  readonly group: Buffer;
  /** The name of this process in the leases that it holds. */
  readonly holder: string;
  readonly sealing: Sealing;
  readonly reading: Pool;
  readonly reads: GatheredReads;
  readonly trouble: string | undefined;
  readonly isGone: boolean;
  readonly unwritten: number;
  onChange(listener: () => void): () => void;
  now(): number;
  warn(text: string): void;
  /** Resolves when the task may be repeated, and rejects when the database is closed. */
  failed(fault: unknown): Promise<void>;
  /** Gives a command to the holder of one slot, or to the holders of all others. */
  tell(to: { readonly only: number } | { readonly allBut: number }, command: StoreCommand): Promise<void>;
  /** All slots of the group but this one. */
  slotsBeside(slot: number): readonly Slot[];
  fenced(
    fences: readonly SlotEngine[],
    changes: readonly Change[],
    conditions: readonly Condition[],
  ): Promise<boolean>;
}

/** Milliseconds for which a range that could be read is not read through again. */
const keptFor = 10 * second;
/** The key of a mark in a slot whose last commits the database has lost; its value is the time when that was noticed. */
export const doubtKey = keyOf('doubt');
const prefixLength = 12;

/** The first bytes of all keys of a slot. */
export const prefixOf = (group: Buffer, slot: number): Buffer => {
  const bytes = Buffer.alloc(prefixLength);
  group.copy(bytes);
  bytes.writeUInt32BE(slot, 8);
  return bytes;
};

const bare = (key: Buffer): Buffer => key.subarray(prefixLength);

/** The records that one lease covers. */
export class SlotEngine implements Engine, Leased {
  readonly durable = true;
  /** Another process has the slot: nothing may be done that follows from what was read here. */
  isLost = false;
  private isClosed = false;
  /** The monotonic time from which on this process knows the slot. */
  readonly since = performance.now();
  private newlyDamaged = 0;
  /** When the database was last known to have lost commits of this slot. */
  doubt = -Infinity;
  /** When each range was last searched for damaged records. */
  private readonly searched = new Map<string, { readonly at: number; readonly isDamaged: boolean }>();

  /** The kind `elsewhere` means that another process has the slot: it is only read here. */
  constructor(
    readonly database: SlotDatabase & JointWriter,
    readonly lease: Lease,
    readonly kind: 'own' | 'orphan' | 'elsewhere',
  ) {}

  get trouble(): string | undefined {
    if (!this.isLost) return this.database.trouble;
    return 'This instance lost contact with the database for longer than its lease: another instance has taken over its work.';
  }

  get isGone(): boolean {
    return this.database.isGone;
  }

  get crashes(): number {
    return this.lease.crashes;
  }

  get unwritten(): number {
    return this.database.unwritten;
  }

  get sealing(): Sealing {
    return this.database.sealing;
  }

  onChange(listener: () => void): () => void {
    return this.database.onChange(listener);
  }

  now(): number {
    return this.database.now();
  }

  async isAlive(processName: string): Promise<boolean> {
    if (processName === this.database.holder) return true;
    // A holder can write after the end of its lease, until another process takes the slot.
    const select = `select 1 from ${schema}.lease where grp = $1 and holder = $2 limit 1`;
    return (await this.read(select, [this.database.group, processName])).length > 0;
  }

  get(table: Table, key: Buffer): Promise<Buffer | undefined> {
    return this.patiently(() => this.database.reads.value(table, this.full(table, key)));
  }

  async keys(table: Table, range: Range): Promise<readonly Buffer[]> {
    const { limit, skip = 0, reverse = false } = range;
    if (limit === 1 && skip === 0 && Buffer.compare(range.from, range.to) < 0) {
      const [from, to] = this.limits(table, range.from, range.to);
      const first = await this.patiently(() => this.database.reads.firstKey(table, { from, to }, reverse));
      return first ? [bare(first)] : [];
    }
    return (await this.rows(table, 'key', range)).map(({ key }) => key);
  }

  range(table: Table, range: Range): Promise<readonly Row[]> {
    return this.rows(table, 'key, value', range);
  }

  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    if (Buffer.compare(from, to) >= 0) return 0;
    const select = `select count(*) from ${schema}.${table} where key >= $1 and key < $2`;
    const [row] = (await this.read(select, this.limits(table, from, to))) as { count: string }[];
    return Number(row?.count ?? 0);
  }

  async hasLost(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    // The do-not-text list is checked before every text, so the answer for shared ranges is kept for a while.
    const isOne = nextKey(from).equals(to);
    if (isOne || !isShared(table, from)) return this.findLost(table, from, to);
    const name = recordName(table, from);
    const known = this.searched.get(name);
    if (known && performance.now() - known.at < keptFor) return known.isDamaged;
    const isDamaged = await this.findLost(table, from, to);
    this.searched.set(name, { at: performance.now(), isDamaged });
    return isDamaged;
  }

  async hasLostKeys(): Promise<boolean> {
    return false;
  }

  async write(changes: readonly RecordChange[], conditions: readonly Condition[]): Promise<boolean> {
    if (this.isClosed) throw storeClosed();
    return this.database.fenced([this], this.whole(changes), this.whole(conditions));
  }

  /** Changes or conditions by their keys in the database. */
  whole<T extends { readonly table: Table; readonly key: Buffer }>(each: readonly T[]): T[] {
    return each.map((one) => ({ ...one, key: this.full(one.table, one.key) }));
  }

  /** Reads that wait for the database are rejected. */
  async close(): Promise<void> {
    this.isClosed = true;
  }

  /** Reads whether the last commits of the slot were lost before this process took it. */
  async readDoubt(pool: Pool): Promise<void> {
    const select = `select value from ${schema}.work where key = $1`;
    const { rows } = await pool.query<{ value: Buffer }>(select, [this.full('work', doubtKey)]);
    const [row] = rows;
    if (!row) return;
    // When the mark cannot be read, everything is in doubt.
    const found = this.sealing.open('work', doubtKey, row.value);
    this.doubt = found ? (found.value as number) : Infinity;
  }

  /** Whether the slot has waits, or items of a queue. */
  async hasWork(pool: Pool): Promise<boolean> {
    const [items, waits] = [keyOf('item'), keyOf('wait')];
    const { rows } = await pool.query<{ found: boolean }>(
      `select exists (select 1 from ${schema}.work where key >= $1 and key < $2)
           or exists (select 1 from ${schema}.work where key >= $3 and key < $4) as found`,
      [...this.limits('work', items, endOf(items)), ...this.limits('work', waits, endOf(waits))],
    );
    return rows[0]?.found !== false;
  }

  /** Removes all records of the slot, and its lease. */
  async drop(pool: Pool): Promise<void> {
    this.isLost = true;
    const { group } = this.database;
    const { slot, token } = this.lease;
    await pool.query(
      `with f as (delete from ${schema}.lease where grp = $1 and slot = $2 and token = $3 returning slot),
       w as (delete from ${schema}.wait where key >= $4 and key < $5 and exists (select 1 from f))
       delete from ${schema}.work where key >= $4 and key < $5 and exists (select 1 from f)`,
      [group, slot, token, prefixOf(group, slot), prefixOf(group, slot + 1)],
    );
  }

  private full(table: Table, key: Buffer): Buffer {
    const slot = isShared(table, key) ? common : this.lease.slot;
    return Buffer.concat([prefixOf(this.database.group, slot), key]);
  }

  private limits(table: Table, from: Buffer, to: Buffer): [Buffer, Buffer] {
    const slot = isShared(table, from) ? common : this.lease.slot;
    const prefix = prefixOf(this.database.group, slot);
    return [Buffer.concat([prefix, from]), Buffer.concat([prefix, to])];
  }

  private async rows(
    table: Table,
    columns: string,
    { from, to, limit, skip = 0, reverse = false }: Range,
  ): Promise<readonly Row[]> {
    if (limit <= 0 || Buffer.compare(from, to) >= 0) return [];
    const select =
      `select ${columns} from ${schema}.${table} where key >= $1 and key < $2 ` +
      `order by key ${reverse ? 'desc' : 'asc'} limit $3 offset $4`;
    const rows = (await this.read(select, [...this.limits(table, from, to), limit, skip])) as Row[];
    return rows.map((row) => ({ ...row, key: bare(row.key) }));
  }

  private read(statement: string, values: unknown[]): Promise<unknown[]> {
    return this.patiently(async () => (await this.database.reading.query<object>(statement, values)).rows);
  }

  /** Repeats the read while the database is unreachable. */
  private async patiently<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      if (this.isClosed) throw storeClosed();
      if (this.isLost) throw new TakenOver(false);
      try {
        return await read();
      } catch (fault) {
        await this.database.failed(fault);
      }
    }
  }

  private findLost(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    return someRow(this, table, { from, to }, ({ key, value }) => !this.sealing.open(table, key, value));
  }

  unreadable(): void {
    this.newlyDamaged += 1;
    if (this.newlyDamaged === 1)
      setImmediate(() => {
        this.database.warn(
          `${this.newlyDamaged} record(s) in the database cannot be read. They are kept; everything else continues.`,
        );
      });
  }
}

/** A slot as a store. */
export interface Slot extends Store {
  readonly backing: SlotEngine;
  readonly lease: Lease;
  readonly kind: SlotEngine['kind'];
  readonly peers: SlotPeers;
}

interface SlotPeers extends Peers {
  others(): readonly Slot[];
}

export const slotOver = (engine: SlotEngine, close?: () => Promise<void>): Slot => {
  const { database, lease, kind } = engine;
  const { slot } = lease;
  const peers: SlotPeers = {
    part: String(slot),
    joint: database,
    processName: database.holder,
    get isLost() {
      return engine.isLost;
    },
    isInDoubt: (at) => at <= engine.doubt,
    isAlive: (processName) => engine.isAlive(processName),
    others: () => database.slotsBeside(slot),
    tellHolder: (command) => database.tell({ only: slot }, command),
    tellOthers: (command) => database.tell({ allBut: slot }, command),
  };
  return Object.assign(storeOver(engine, close), { backing: engine, lease, kind, peers });
};
