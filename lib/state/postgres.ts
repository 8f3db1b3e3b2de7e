import { createHash, randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { Sealing, versionOf, type Sealer } from './sealing';
import {
  checkSize,
  checkWrite,
  isShared,
  tables,
  type Condition,
  type Entry,
  type Operation,
  type Range,
  type Store,
  type Table,
  type Version,
} from './store';

/**
 * PostgreSQL, for several processes that work together. Each process writes to a slot of its own, which it has by a lease:
 * every commit is made on the condition that the lease still holds. What belongs to all (authorizations, when numbers were
 * asked) lies outside the slots and is changed by condition alone. Whoever finds that a lease has run out takes the slot
 * over, whole, and goes on with what is in it.
 */

/** Loaded when first needed; an optional peer, which may not be there. */
const loadPg = () => import('pg');

/** Whether `pg` is there to be loaded. */
export const isPgInstalled = (): boolean => {
  try {
    require.resolve('pg');
    return true;
  } catch {
    return false;
  }
};

export interface PostgresOptions {
  /** As `pg` takes it. */
  readonly url: string;
  /** Those that run the same flows name the same group, and succeed each other. */
  readonly group: string;
  /** Made once the keys can be read, which lie in the database too. */
  readonly sealer: (keys: KeyRow) => Promise<Sealer>;
  readonly warn: (text: string) => void;
  /** Milliseconds that a lease lasts unless it is renewed; a process that dies is succeeded after as long. */
  readonly leaseFor?: number;
  /** Milliseconds between two pulses. */
  readonly pulseEvery?: number;
}

/** The wrapped keys of a group, locked while this is in use. */
export interface KeyRow {
  read(): unknown;
  reread(): Promise<unknown>;
  write(document: object): Promise<'stored' | 'failed'>;
}

const schema = 'advisor_texting';
const formatVersion = 1;
const largestCommit = 4 * 1024 * 1024;
const shortestPause = 250;
const longestPause = 5000;
/** Milliseconds for which a range that could be read is not looked through again. */
const soundFor = 10_000;
/** The slot of what belongs to all. */
const common = 0;

const setUp = `
create schema if not exists ${schema};
create table if not exists ${schema}.meta (name text primary key, value text not null);
create table if not exists ${schema}.lease (
  grp bytea not null, slot integer not null, holder text not null, token bigint not null, seq bigint not null,
  until timestamptz not null, primary key (grp, slot)
);
create table if not exists ${schema}.wait (key bytea primary key, value bytea not null);
create table if not exists ${schema}.work (key bytea primary key, value bytea not null);
alter table ${schema}.wait alter column value set storage external;
alter table ${schema}.work alter column value set storage external;
insert into ${schema}.meta values ('version', '${formatVersion}') on conflict do nothing;
`;

/** With the number of the commit in its condition, an attempt that was given up cannot come late and undo a later one. */
const writeStatement = `
with f as (update ${schema}.lease set seq = seq + 1
           where grp = $1 and slot = $2 and token = $3 and seq = $10 returning seq),
dw as (delete from ${schema}.wait using unnest($4::bytea[]) x(k) where key = k and exists (select 1 from f)),
dk as (delete from ${schema}.work using unnest($5::bytea[]) x(k) where key = k and exists (select 1 from f)),
pw as (insert into ${schema}.wait select k, v from unnest($6::bytea[], $7::bytea[]) x(k, v)
       where exists (select 1 from f) on conflict (key) do update set value = excluded.value),
pk as (insert into ${schema}.work select k, v from unnest($8::bytea[], $9::bytea[]) x(k, v)
       where exists (select 1 from f) on conflict (key) do update set value = excluded.value)
select seq from f`;

const takeStatement = `
update ${schema}.lease set holder = $3, token = token + 1, until = now() + $4::int * interval '1 ms'
where grp = $1 and slot = $2 and until < now() returning token, seq`;

/** The first token is the time, so that no later lease of the same number has an earlier one's. */
const addStatement = `
insert into ${schema}.lease
select $1, coalesce(max(slot), 0) + 1, $2, (extract(epoch from now()) * 1000)::bigint, 0, now() + $3::int * interval '1 ms'
from ${schema}.lease where grp = $1
on conflict do nothing returning slot, token, seq`;

const reasonOf = (fault: unknown): string => (fault instanceof Error && fault.message) || String(fault);
const closed = (): Error => new Error('the store is closed');
const taken = (): Error => new Error('another process has taken over the store');

/** It answered, and refused: the statement was certainly not carried out (SQLSTATE has five characters). */
const isRefusal = (fault: unknown): boolean =>
  typeof (fault as { code?: unknown }).code === 'string' && (fault as { code: string }).code.length === 5;

class NewerFormat extends Error {}
/** The data key in the database cannot be opened with this process's credential secret. */
export class OtherSecret extends Error {}

interface Lease {
  readonly slot: number;
  readonly token: string;
  seq: bigint;
}

/** A database, for one group in this process: its connections, its pulse, and the slots this process has. */
class Database {
  readonly holder = randomUUID();
  readonly group: Buffer;
  readonly leaseFor: number;
  readonly slots = new Map<number, Slot>();
  private readonly orphanListeners = new Set<(store: Slot) => void>();
  private readonly listeners = new Set<() => void>();
  private currentPool: Pool | undefined;
  private currentSealing: Sealing | undefined;
  private pulse: NodeJS.Timeout | undefined;
  private pulsing: Promise<void> = Promise.resolve();
  private timeOffset = 0;
  private latest = 0;
  private failures = 0;
  private isClosed = false;
  private pulses = 0;
  /** Of the whole group. */
  processes = 1;
  trouble: string | undefined;

  constructor(readonly options: PostgresOptions) {
    this.group = createHash('sha256').update(options.group).digest().subarray(0, 8);
    this.leaseFor = options.leaseFor ?? 15_000;
  }

  get sealing(): Sealing {
    if (!this.currentSealing) throw closed();
    return this.currentSealing;
  }

  get pool(): Pool {
    if (!this.currentPool) throw closed();
    return this.currentPool;
  }

  now(): number {
    return (this.latest = Math.max(this.latest, Math.floor(performance.now() + this.timeOffset)));
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Called with what a process that ended has left, now and from now on. */
  onOrphan(listener: (store: Slot) => void): () => void {
    this.orphanListeners.add(listener);
    for (const slot of this.slots.values()) if (slot.isOrphan) listener(slot);
    return () => this.orphanListeners.delete(listener);
  }

  /** Resolves with the slot of this process, however long that takes. */
  async open(): Promise<Slot> {
    for (;;) {
      if (this.isClosed) throw closed();
      try {
        await this.connect();
        const slot = await this.takeFirst();
        this.setTrouble(undefined);
        this.beatLater();
        return slot;
      } catch (fault) {
        await this.disconnect();
        this.failed(fault);
        await pause(Math.min(2000, this.pauseAfterFailure()));
      }
    }
  }

  /** A new slot in place of one that was lost. */
  openAgain(): Promise<Slot> {
    return this.takeFirst();
  }

  setTrouble(trouble: string | undefined): void {
    if (trouble === undefined) this.failures = 0;
    if (trouble === this.trouble) return;
    if (trouble !== undefined) this.options.warn(trouble);
    this.trouble = trouble;
    this.tell();
  }

  tell(): void {
    for (const listener of [...this.listeners]) listener();
  }

  failed(fault: unknown): void {
    const { code } = fault as { code?: string };
    const reason = reasonOf(fault);
    if (fault instanceof NewerFormat)
      this.setTrouble(
        'The state in the database was written by a newer version of this package and is left alone: nothing is sent. Install that version here too.',
      );
    else if (fault instanceof OtherSecret)
      this.setTrouble(
        'The state in the database is sealed with another credentialSecret than the one of this Node-RED: nothing is sent from here. Set the same credentialSecret in settings.js of all instances.',
      );
    else if (code === '25006')
      this.setTrouble(
        'The database takes no writes (read-only): nothing is sent until it does. It then goes on by itself.',
      );
    else if (code === '53100')
      this.setTrouble('The disk of the database is full: nothing is sent until there is room.');
    else
      this.setTrouble(
        `The database cannot be used (${reason}): nothing is sent until it can be. It then goes on by itself.`,
      );
  }

  pauseAfterFailure(): number {
    this.failures += 1;
    return Math.min(longestPause, shortestPause * 2 ** (this.failures - 1));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.pulse);
    await this.pulsing;
    if (this.currentPool) {
      // The others need not wait until the leases have run out.
      const release = `update ${schema}.lease set until = now() - interval '1 s' where grp = $1 and holder = $2`;
      await this.currentPool.query(release, [this.group, this.holder]).catch(() => undefined);
    }
    await this.disconnect();
  }

  private async connect(): Promise<void> {
    if (this.currentPool) return;
    const { Pool } = await loadPg();
    const pool = new Pool({
      connectionString: this.options.url,
      max: 6,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      application_name: 'advisor-texting',
      statement_timeout: 30_000,
      query_timeout: 35_000,
    });
    pool.on('error', () => undefined);
    this.currentPool = pool;
    await this.prepareTables(pool);
    this.currentSealing ??= new Sealing(await this.readKeys(pool));
    await this.readTime(pool);
  }

  private async prepareTables(pool: Pool): Promise<void> {
    const found = await pool.query<{ there: string | null }>(`select to_regclass($1) as there`, [
      `${schema}.meta`,
    ]);
    if (!found.rows[0]?.there)
      // Of several that start at once all but one may fail: the next attempt finds the tables.
      await pool.query(setUp);
    const { rows } = await pool.query<{ value: string }>(
      `select value from ${schema}.meta where name = 'version'`,
    );
    if (Number(rows[0]?.value ?? 0) > formatVersion) throw new NewerFormat();
  }

  private async readKeys(pool: Pool): Promise<Sealer> {
    const name = `keys ${this.group.toString('hex')}`;
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query(`insert into ${schema}.meta values ($1, '') on conflict do nothing`, [name]);
      const { rows } = await client.query<{ value: string }>(
        `select value from ${schema}.meta where name = $1 for update`,
        [name],
      );
      const found = rows[0]?.value ?? '';
      let isUnderWay = true;
      const write = `update ${schema}.meta set value = $2 where name = $1`;
      const sealer = await this.options.sealer({
        read: () => (found === '' ? undefined : (JSON.parse(found) as unknown)),
        reread: () => Promise.resolve(undefined),
        write: async (document) => {
          try {
            await (isUnderWay ? client : this.pool).query(write, [name, JSON.stringify(document)]);
            return 'stored';
          } catch {
            return 'failed';
          }
        },
      });
      await client.query('commit');
      isUnderWay = false;
      return sealer;
    } catch (fault) {
      await client.query('rollback').catch(() => undefined);
      throw fault;
    } finally {
      client.release();
    }
  }

  private async readTime(pool: Pool): Promise<void> {
    const { rows } = await pool.query<{ time: string }>(`select extract(epoch from now()) * 1000 as time`);
    this.timeOffset = Number(rows[0]?.time) - performance.now();
  }

  private async disconnect(): Promise<void> {
    const pool = this.currentPool;
    this.currentPool = undefined;
    await pool?.end().catch(() => undefined);
  }

  /** What a process left that ended, else a slot of its own. */
  private async takeFirst(): Promise<Slot> {
    await this.pool.query(
      `insert into ${schema}.lease values ($1, ${common}, '', 0, 0, 'infinity') on conflict do nothing`,
      [this.group],
    );
    const { rows } = await this.pool.query<{ slot: number }>(
      `select slot from ${schema}.lease where grp = $1 and until < now() order by slot`,
      [this.group],
    );
    for (const { slot } of rows) {
      const lease = await this.take(slot);
      if (lease) return this.have(lease, false);
    }
    for (;;) {
      const added = await this.pool.query<{ slot: number; token: string; seq: string }>(addStatement, [
        this.group,
        this.holder,
        this.leaseFor,
      ]);
      const [row] = added.rows;
      if (row) return this.have({ ...row, seq: BigInt(row.seq) }, false);
    }
  }

  private async take(slot: number): Promise<Lease | undefined> {
    const { rows } = await this.pool.query<{ token: string; seq: string }>(takeStatement, [
      this.group,
      slot,
      this.holder,
      this.leaseFor,
    ]);
    return rows[0] && { slot, token: rows[0].token, seq: BigInt(rows[0].seq) };
  }

  private have(lease: Lease, isOrphan: boolean): Slot {
    const slot = new Slot(this, lease, isOrphan);
    this.slots.set(lease.slot, slot);
    return slot;
  }

  private beatLater(): void {
    if (this.isClosed) return;
    this.pulse = setTimeout(() => {
      this.pulsing = this.beat()
        .catch((fault: unknown) => {
          this.failed(fault);
        })
        .finally(() => {
          this.beatLater();
        });
    }, this.options.pulseEvery ?? 1000).unref();
  }

  /** Renews the leases of this process, and looks for those that have run out. */
  private async beat(): Promise<void> {
    const { rows } = await this.pool.query<{
      slot: number;
      holder: string;
      token: string;
      over: boolean;
      time: string;
    }>(
      `with mine as (update ${schema}.lease set until = now() + $3::int * interval '1 ms'
         where grp = $1 and holder = $2 returning slot)
       select slot, holder, token, until < now() as over, extract(epoch from now()) * 1000 as time
       from ${schema}.lease where grp = $1`,
      [this.group, this.holder, this.leaseFor],
    );
    const [first] = rows;
    if (first) this.timeOffset = Number(first.time) - performance.now();
    const living = rows.filter(({ slot, over }) => slot !== common && !over);
    this.processes = Math.max(1, new Set(living.map(({ holder }) => holder)).size);
    for (const [number, slot] of this.slots) {
      const row = rows.find((each) => each.slot === number);
      if (row?.token !== slot.lease.token) {
        this.slots.delete(number);
        slot.lose();
      }
    }
    if (this.trouble !== undefined) this.setTrouble(undefined);
    for (const { slot, over } of rows)
      if (over && slot !== common && !this.slots.has(slot)) await this.adopt(slot);
    if (this.pulses++ % 10 === 9) await this.dropEmpty();
  }

  private async adopt(number: number): Promise<void> {
    const lease = await this.take(number);
    if (!lease || this.isClosed) return;
    const slot = this.have(lease, true);
    for (const listener of [...this.orphanListeners]) listener(slot);
  }

  /** Slots that were taken over and hold no work any more. */
  private async dropEmpty(): Promise<void> {
    for (const [number, slot] of this.slots) {
      if (!slot.isOrphan || (await slot.hasJobs())) continue;
      this.slots.delete(number);
      await slot.drop();
    }
  }
}

interface Pending {
  readonly operations: readonly { readonly table: Table; readonly key: Buffer; readonly bytes?: Buffer }[];
  readonly conditions: readonly Condition[];
  readonly bytes: number;
  readonly settle: (holds: boolean) => void;
  readonly reject: (fault: Error) => void;
}

interface Change {
  readonly table: Table;
  readonly key: Buffer;
  readonly bytes: Buffer | undefined;
}

/** What one lease covers, as a store. */
class Slot implements Store {
  readonly durable = true;
  readonly isShared = true;
  private readonly database: Database;
  private queue: Pending[] = [];
  private isScheduled = false;
  private committing: Promise<void> | undefined;
  private isLeaseLost = false;
  private isClosed = false;
  private newlyDamaged = 0;
  /** Ranges in which every record could be read, and when. */
  private readonly sound = new Map<string, number>();
  unwritten = 0;

  constructor(
    database: Database,
    readonly lease: Lease,
    readonly isOrphan: boolean,
  ) {
    this.database = database;
  }

  get trouble(): string | undefined {
    if (!this.isLeaseLost) return this.database.trouble;
    return 'This instance was out of touch with the database for longer than its lease: another has taken over what it had.';
  }

  /** Another process has it; nothing that follows from what was read here may be done any more. */
  get isLost(): boolean {
    return this.isLeaseLost;
  }

  onChange(listener: () => void): () => void {
    return this.database.onChange(listener);
  }

  now(): number {
    return this.database.now();
  }

  hash(text: string): Buffer {
    return this.database.sealing.hash(text);
  }

  async get<T>(table: Table, key: Buffer): Promise<Entry<T> | undefined> {
    const select = `select value from ${schema}.${table} where key = $1`;
    const [row] = (await this.read(select, [this.full(table, key)])) as { value: Buffer }[];
    return row && this.opened<T>(table, key, row.value);
  }

  async page<T>(table: Table, range: Range): Promise<readonly Entry<T>[]> {
    const rows = await this.range(true, table, range);
    return rows.flatMap(({ key, value }) => this.opened<T>(table, this.bare(key), value) ?? []);
  }

  async keys(table: Table, range: Range): Promise<readonly Buffer[]> {
    const rows = await this.range(false, table, range);
    return rows.map(({ key }) => this.bare(key));
  }

  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    if (Buffer.compare(from, to) >= 0) return 0;
    const select = `select count(*) from ${schema}.${table} where key >= $1 and key < $2`;
    const [row] = (await this.read(select, this.limits(table, from, to))) as { count: string }[];
    return Number(row?.count ?? 0);
  }

  async hasLost(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    // The do-not-text list is asked about before every text.
    if (!isShared(table, from)) return this.findLost(table, from, to);
    const name = nameOf(table, from);
    const known = this.sound.get(name);
    if (known !== undefined && performance.now() - known < soundFor) return false;
    const isLost = await this.findLost(table, from, to);
    if (isLost) this.sound.delete(name);
    else this.sound.set(name, performance.now());
    return isLost;
  }

  private async findLost(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    for (let start = from; ;) {
      const range = { from: start, to, limit: 1000 };
      const rows = await this.range(true, table, range);
      const { sealing } = this.database;
      if (rows.some(({ key, value }) => !sealing.open(table, this.bare(key), value))) return true;
      const last = rows.at(-1);
      if (!last || rows.length < range.limit) return false;
      start = Buffer.concat([this.bare(last.key), Buffer.alloc(1)]);
    }
  }

  async write(operations: readonly Operation[], conditions: readonly Condition[] = []): Promise<boolean> {
    if (this.isClosed) throw closed();
    if (this.isLeaseLost) throw taken();
    checkWrite(operations, conditions);
    const raw = operations.map((each) =>
      'put' in each
        ? {
            table: each.table,
            key: each.put,
            bytes: this.database.sealing.seal(each.table, each.put, each.value),
          }
        : { table: each.table, key: each.remove },
    );
    const bytes = raw.reduce((sum, each) => sum + each.key.length + (each.bytes?.length ?? 0), 0);
    checkSize(bytes);
    this.unwritten += bytes;
    return new Promise((settle, reject) => {
      this.queue.push({ operations: raw, conditions, bytes, settle, reject });
      this.schedule();
    });
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    while (
      !this.isLeaseLost &&
      this.database.trouble === undefined &&
      (this.committing || this.queue.length > 0)
    ) {
      this.commitNext();
      await this.committing;
    }
    this.isClosed = true;
    this.rejectAll(closed());
  }

  lose(): void {
    if (this.isLeaseLost) return;
    this.isLeaseLost = true;
    this.rejectAll(taken());
    if (!this.isOrphan) this.database.options.warn(this.trouble ?? '');
    this.database.tell();
  }

  async hasJobs(): Promise<boolean> {
    const from = Buffer.from('job\0');
    const to = Buffer.from('job\x01');
    for (const table of tables) if ((await this.keys(table, { from, to, limit: 1 })).length > 0) return true;
    return false;
  }

  /** Removes what is left, and the lease. */
  async drop(): Promise<void> {
    this.isLeaseLost = true;
    const { pool, group } = this.database;
    const { slot, token } = this.lease;
    const [from, to] = this.limits('work', Buffer.alloc(0), Buffer.alloc(0));
    await pool.query(
      `with f as (delete from ${schema}.lease where grp = $1 and slot = $2 and token = $3 returning slot),
       w as (delete from ${schema}.wait where key >= $4 and key < $5 and exists (select 1 from f))
       delete from ${schema}.work where key >= $4 and key < $5 and exists (select 1 from f)`,
      [group, slot, token, from, nextOf(to)],
    );
    this.rejectAll(closed());
  }

  // Keys

  private prefix(slot: number): Buffer {
    const bytes = Buffer.alloc(12);
    this.database.group.copy(bytes);
    bytes.writeUInt32BE(slot, 8);
    return bytes;
  }

  private full(table: Table, key: Buffer): Buffer {
    return Buffer.concat([this.prefix(isShared(table, key) ? common : this.lease.slot), key]);
  }

  private bare(key: Buffer): Buffer {
    return key.subarray(12);
  }

  private limits(table: Table, from: Buffer, to: Buffer): [Buffer, Buffer] {
    const prefix = this.prefix(isShared(table, from) ? common : this.lease.slot);
    return [Buffer.concat([prefix, from]), Buffer.concat([prefix, to])];
  }

  // Reading

  /** Without `isWhole`, keys alone. */
  private async range(
    isWhole: boolean,
    table: Table,
    { from, to, limit, skip = 0, reverse = false }: Range,
  ): Promise<readonly { readonly key: Buffer; readonly value: Buffer }[]> {
    if (limit <= 0 || Buffer.compare(from, to) >= 0) return [];
    const select =
      `select key${isWhole ? ', value' : ''} from ${schema}.${table} where key >= $1 and key < $2 ` +
      `order by key ${reverse ? 'desc' : 'asc'} limit $3 offset $4`;
    const rows = await this.read(select, [...this.limits(table, from, to), limit, skip]);
    return rows as { key: Buffer; value: Buffer }[];
  }

  /** While the database is away, it waits. */
  private async read(statement: string, values: unknown[]): Promise<unknown[]> {
    for (;;) {
      if (this.isClosed) throw closed();
      if (this.isLeaseLost) throw taken();
      try {
        return (await this.database.pool.query<object>(statement, values)).rows;
      } catch (fault) {
        this.database.failed(fault);
        await pause(this.database.pauseAfterFailure());
      }
    }
  }

  private opened<T>(table: Table, key: Buffer, sealed: Buffer): Entry<T> | undefined {
    const opened = this.database.sealing.open(table, key, sealed);
    if (opened) return { key, value: opened.value as T, version: versionOf(sealed) };
    this.newlyDamaged += 1;
    if (this.newlyDamaged === 1)
      setImmediate(() => {
        this.database.options.warn(
          `${this.newlyDamaged} record(s) in the database cannot be read. They stay where they are; everything else goes on.`,
        );
      });
    return undefined;
  }

  // Writing

  private schedule(): void {
    if (this.isScheduled || this.committing || this.queue.length === 0) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.commitNext();
    });
  }

  private commitNext(): void {
    if (this.committing || this.queue.length === 0 || this.isLeaseLost || this.isClosed) return;
    let [count, bytes] = [0, 0];
    for (const { bytes: more } of this.queue) {
      if (count > 0 && bytes + more > largestCommit) break;
      bytes += more;
      count += 1;
    }
    const batch = this.queue.splice(0, count);
    this.committing = this.commit(batch).finally(() => {
      this.committing = undefined;
      this.schedule();
    });
  }

  private async commit(batch: readonly Pending[]): Promise<void> {
    let unsure: { readonly seq: bigint; readonly holds: readonly boolean[] } | undefined;
    for (;;) {
      try {
        const before = unsure && (await this.settle(unsure));
        const tried = before ?? (await this.try(batch, (attempt) => (unsure = attempt)));
        // An earlier attempt may have come late; else the lease is another's.
        const holds = tried ?? (unsure && (await this.settle(unsure)));
        if (!holds) {
          this.lose();
          break;
        }
        for (const [at, { bytes, settle }] of batch.entries()) {
          this.unwritten -= bytes;
          settle(holds[at] ?? false);
        }
        if (this.database.trouble !== undefined) this.database.setTrouble(undefined);
        return;
      } catch (fault) {
        if (isRefusal(fault)) unsure = undefined;
        this.database.failed(fault);
        await pause(this.database.pauseAfterFailure());
      }
      if (this.isLeaseLost || this.isClosed) break;
    }
    for (const { bytes, reject } of batch) {
      this.unwritten -= bytes;
      reject(this.isLeaseLost ? taken() : closed());
    }
  }

  /** Whether an attempt whose answer did not come was carried out: undefined when it was not. */
  private async settle({
    seq,
    holds,
  }: {
    readonly seq: bigint;
    readonly holds: readonly boolean[];
  }): Promise<readonly boolean[] | undefined> {
    const { rows } = await this.database.pool.query<{ seq: string }>(
      `select seq from ${schema}.lease where grp = $1 and slot = $2 and token = $3`,
      [this.database.group, this.lease.slot, this.lease.token],
    );
    const [row] = rows;
    if (!row) {
      this.lose();
      throw taken();
    }
    const found = BigInt(row.seq);
    if (found < this.lease.seq)
      this.database.options.warn(
        'The database has lost commits that it had confirmed, as after a failover to a standby that was behind. Texts of the last seconds may be sent twice: use a synchronous standby.',
      );
    if (found !== seq) return undefined;
    this.lease.seq = seq;
    return holds;
  }

  /** Undefined when the lease is another's. */
  private async try(
    batch: readonly Pending[],
    attempting: (attempt: { seq: bigint; holds: readonly boolean[] }) => void,
  ): Promise<readonly boolean[] | undefined> {
    const conditions = batch.flatMap((each) => each.conditions);
    const { pool } = this.database;
    if (!conditions.some(({ table, key }) => isShared(table, key)))
      return this.tryOn(pool, batch, conditions, attempting);
    const client = await pool.connect();
    try {
      await client.query('begin');
      // What belongs to all is changed by one at a time, so that what a condition saw still holds when it commits.
      const lock = `select 1 from ${schema}.lease where grp = $1 and slot = ${common} for update`;
      await client.query(lock, [this.database.group]);
      const holds = await this.tryOn(client, batch, conditions, attempting);
      await client.query('commit');
      client.release();
      return holds;
    } catch (fault) {
      client.release(true);
      throw fault;
    }
  }

  private async tryOn(
    on: Pool | PoolClient,
    batch: readonly Pending[],
    conditions: readonly Condition[],
    attempting: (attempt: { seq: bigint; holds: readonly boolean[] }) => void,
  ): Promise<readonly boolean[] | undefined> {
    const versions = await this.versions(on, conditions);
    const changes = new Map<string, Change>();
    const holds = batch.map((each) => {
      const doesHold = each.conditions.every(
        ({ table, key, version }) => versions.get(nameOf(table, key)) === version,
      );
      if (!doesHold) return false;
      for (const { table, key, bytes } of each.operations) {
        const name = nameOf(table, key);
        changes.set(name, { table, key, bytes });
        versions.set(name, bytes && versionOf(bytes));
      }
      return true;
    });
    if (changes.size === 0) return holds;
    const seq = this.lease.seq + 1n;
    attempting({ seq, holds });
    const { rows } = await on.query<{ seq: string }>({
      name: 'advisor_texting_write',
      text: writeStatement,
      values: [
        this.database.group,
        this.lease.slot,
        this.lease.token,
        ...this.arrays([...changes.values()]),
        String(this.lease.seq),
      ],
    });
    const [row] = rows;
    if (!row) return undefined;
    this.lease.seq = BigInt(row.seq);
    return holds;
  }

  private async versions(
    on: Pool | PoolClient,
    conditions: readonly Condition[],
  ): Promise<Map<string, Version | undefined>> {
    const versions = new Map<string, Version | undefined>();
    for (const table of tables) {
      const asked = conditions.filter((each) => each.table === table);
      if (asked.length === 0) continue;
      const { rows } = await on.query<{ key: Buffer; head: Buffer }>(
        `select key, substr(value, 1, 21) as head from ${schema}.${table} where key = any($1::bytea[])`,
        [asked.map(({ key }) => this.full(table, key))],
      );
      for (const { key, head } of rows) versions.set(nameOf(table, this.bare(key)), versionOf(head));
    }
    return versions;
  }

  /** Removals and puts of both tables, as the statement takes them. */
  private arrays(changes: readonly Change[]): Buffer[][] {
    const of = (table: Table, isPut: boolean): readonly Change[] =>
      changes.filter((each) => each.table === table && (each.bytes !== undefined) === isPut);
    const keysOf = (some: readonly Change[]): Buffer[] => some.map(({ table, key }) => this.full(table, key));
    const bytesOf = (some: readonly Change[]): Buffer[] => some.flatMap(({ bytes }) => bytes ?? []);
    const [putWait, putWork] = [of('wait', true), of('work', true)];
    return [
      keysOf(of('wait', false)),
      keysOf(of('work', false)),
      keysOf(putWait),
      bytesOf(putWait),
      keysOf(putWork),
      bytesOf(putWork),
    ];
  }

  private rejectAll(fault: Error): void {
    for (const { bytes, reject } of this.queue.splice(0)) {
      this.unwritten -= bytes;
      reject(fault);
    }
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
const nameOf = (table: Table, key: Buffer): string => `${table}/${key.toString('latin1')}`;

/** The end of all keys that begin with these twelve bytes. */
const nextOf = (prefix: Buffer): Buffer => {
  const next = Buffer.from(prefix);
  next.writeUInt32BE(next.readUInt32BE(8) + 1, 8);
  return next;
};

/** The store of a group of processes, as one of them has it. */
export interface PostgresHandle {
  /** Resolves when the database could be reached; another one after `isLost`. */
  readonly opened: Promise<PostgresStore>;
  readonly trouble: string | undefined;
  readonly processes: number;
  onChange(listener: () => void): () => void;
  /** Called with what a process that ended has left: this one is to go on with it. */
  onOrphan(listener: (store: PostgresStore) => void): () => void;
  /** Whoever waits for a database that has not been reached yet waits no longer. */
  abandon(): void;
  close(): Promise<void>;
}

export interface PostgresStore extends Store {
  readonly isLost: boolean;
}

/** The store of a handle, which closes with it. */
export const storeOf = (slot: PostgresStore, close: () => Promise<void>): PostgresStore => ({
  durable: slot.durable,
  isShared: true,
  get isLost() {
    return slot.isLost;
  },
  get trouble() {
    return slot.trouble;
  },
  get unwritten() {
    return slot.unwritten;
  },
  onChange: (listener) => slot.onChange(listener),
  now: () => slot.now(),
  hash: (text) => slot.hash(text),
  get: (table, of) => slot.get(table, of),
  page: (table, range) => slot.page(table, range),
  keys: (table, range) => slot.keys(table, range),
  count: (table, from, to) => slot.count(table, from, to),
  hasLost: (table, from, to) => slot.hasLost(table, from, to),
  write: (operations, conditions) => slot.write(operations, conditions),
  close,
});

interface SharedDatabase {
  users: number;
  readonly database: Database;
  opened: Promise<Slot>;
}

const shared = new Map<string, SharedDatabase>();
const closing = new Map<string, Promise<void>>();

/** One in a process for each database and group, whoever asks; it closes with its last user. */
export const openPostgres = (options: PostgresOptions): PostgresHandle => {
  const name = JSON.stringify([options.url, options.group]);
  let entry = shared.get(name);
  if (!entry) {
    const database = new Database(options);
    const before = closing.get(name) ?? Promise.resolve();
    entry = { users: 0, database, opened: before.then(() => database.open()) };
    entry.opened.catch(() => undefined);
    shared.set(name, entry);
  }
  const mine = entry;
  mine.users += 1;
  const { database } = mine;
  let isOpen = true;
  return {
    get opened() {
      mine.opened = mine.opened.then((slot) => (slot.isLost ? database.openAgain() : slot));
      return mine.opened;
    },
    get trouble() {
      return database.trouble;
    },
    get processes() {
      return database.processes;
    },
    onChange: (listener) => database.onChange(listener),
    onOrphan: (listener) => database.onOrphan(listener),
    abandon: () => {
      if (database.slots.size > 0 || shared.get(name) !== mine) return;
      shared.delete(name);
      void database.close();
    },
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      mine.users -= 1;
      if (mine.users > 0) return;
      if (shared.get(name) === mine) shared.delete(name);
      const ending = (async () => {
        await Promise.all(Array.from(database.slots.values(), (slot) => slot.close()));
        await database.close();
      })();
      closing.set(name, ending);
      await ending;
      if (closing.get(name) === ending) closing.delete(name);
    },
  };
};
