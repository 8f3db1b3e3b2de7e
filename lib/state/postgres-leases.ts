import { minute } from '../durations';
import type { Pool, PoolClient } from 'pg';
import type { Batch, Change, Fence } from './commit-queue';
import { recordName } from './sealing';
import { tables } from './store';

/**
 * The leases of a group of processes. Each slot has a row with its holder, a token that changes with the holder, the
 * number of the last commit, and the end of the lease. The holder renews the lease with each pulse and each commit.
 */

export const schema = 'advisor_texting';
/** The slot of the records that all processes share. Nobody holds it. */
export const common = 0;

export const prefixLength = 12;
export const prefixOf = (group: Buffer, slot: number): Buffer => {
  const bytes = Buffer.alloc(prefixLength);
  group.copy(bytes);
  bytes.writeUInt32BE(slot, 8);
  return bytes;
};

export interface Lease {
  readonly slot: number;
  readonly token: string;
  /** The number of the last commit that was confirmed. */
  seq: bigint;
  /** How many holders before this one have crashed in a row, each within a minute. */
  readonly crashes: number;
  /** The time at which the database was last known to have lost commits of the slot. */
  readonly doubt: number;
}

/** What one lease covers. Every commit that touches it is made on the condition that the lease still holds. */
export interface Leased extends Fence {
  readonly lease: Lease;
}

export interface LeaseRow {
  readonly slot: number;
  /** Empty when the last holder has given the slot up. */
  readonly holder: string;
  readonly token: string;
  readonly seq: string;
  /** How many holders in a row, this one included, have not given the slot up or kept it for a minute. */
  readonly starts: number;
  readonly doubt: string;
  readonly until: string;
  readonly isOver: boolean;
  /** The holder wants more than one request at once. */
  readonly isBusy: boolean;
}

export const leaseIn = ({ slot, token, seq, starts, doubt }: LeaseRow): Lease => ({
  slot,
  token,
  seq: BigInt(seq),
  crashes: Math.max(0, starts - 1),
  doubt: Number(doubt),
});

/**
 * Milliseconds for which other processes do not take a slot that was given up: after a deploy, its holder takes it
 * back.
 */
const backWithin = 500;

const rowOf =
  'slot, holder, token, seq, starts, doubt, until::text as until, until < now() as "isOver", busy as "isBusy"';

/**
 * The condition holds the number of the last commit, so an attempt that was given up cannot arrive late and undo a
 * later one.
 */
const writeStatement = `
with f as (update ${schema}.lease set seq = $11, until = greatest(until, now() + $12::int * interval '1 ms')
           where grp = $1 and slot = $2 and token = $3 and seq = $10 returning seq),
dw as (delete from ${schema}.wait using unnest($4::bytea[]) x(k) where key = k and exists (select 1 from f)),
dk as (delete from ${schema}.work using unnest($5::bytea[]) x(k) where key = k and exists (select 1 from f)),
pw as (insert into ${schema}.wait select k, v from unnest($6::bytea[], $7::bytea[]) x(k, v)
       where exists (select 1 from f) on conflict (key) do update set value = excluded.value),
pk as (insert into ${schema}.work select k, v from unnest($8::bytea[], $9::bytea[]) x(k, v)
       where exists (select 1 from f) on conflict (key) do update set value = excluded.value)
select seq from f`;

/** Removals and puts of both tables, in the order of the statement's parameters. */
const arraysOf = (changes: readonly Change[]): Buffer[][] => {
  const arrays: Buffer[][] = [[], [], [], [], [], []];
  for (const { table, key, bytes } of changes) {
    const at = table === 'wait' ? 0 : 1;
    if (!bytes) arrays[at]?.push(key);
    else {
      arrays[2 + 2 * at]?.push(key);
      arrays[3 + 2 * at]?.push(bytes);
    }
  }
  return arrays;
};
const nothing = arraysOf([]);

/** Whether a key in the database is that of a record that all processes share. */
const isOfAll = ({ key }: { readonly key: Buffer }): boolean => key.readUInt32BE(8) === common;

/** The fences of a commit. Every process touches them in the order of their slots, so that no two commits deadlock. */
const fencesOf = (batch: Batch): Leased[] =>
  [...(batch.fences as readonly Leased[])].sort((a, b) => a.lease.slot - b.lease.slot);

/** The number of an attempt in each lease: a row that has it tells that the attempt was made. */
const numberOf = ({ seq }: Lease, attempt: number): bigint => seq + BigInt(attempt);

const confirm = (batch: Batch, attempt: number): number => {
  for (const { lease } of fencesOf(batch)) lease.seq = numberOf(lease, attempt);
  return attempt;
};

export class Leases {
  constructor(
    private readonly pool: () => Pool,
    private readonly group: Buffer,
    private readonly holder: string,
    private readonly leaseFor: number,
  ) {}

  /** Renews the leases of this process, and reads those of the whole group. It has had the slots in `calm` for a minute. */
  async beat(slots: readonly number[], isBusy: boolean, calm: readonly number[] = []) {
    await this.pool().query(
      `update ${schema}.lease set until = now() + $3::int * interval '1 ms', busy = $5,
         starts = case when slot = any($6::int[]) then 0 else starts end
       where grp = $1 and slot in
         (select slot from ${schema}.lease where grp = $1 and holder = $2 and slot = any($4::int[])
          order by slot for update)`,
      [this.group, this.holder, this.leaseFor, slots, isBusy, calm],
    );
    return this.read();
  }

  /** In the common row, `doubt` is what the group adds to the server's clock, and `seq` its highest time saved. */
  async read() {
    const { rows } = await this.pool().query<LeaseRow & { readonly time: string }>(
      `select ${rowOf}, extract(epoch from clock_timestamp()) * 1000 as time
       from ${schema}.lease where grp = $1 order by slot`,
      [this.group],
    );
    const ofAll = rows.find(({ slot }) => slot === common);
    const added = ofAll?.doubt ?? '0';
    return {
      time: Number(rows[0]?.time) + Number(added),
      added,
      latest: Number(ofAll?.seq ?? 0),
      rows: rows.filter(({ slot }) => slot !== common) as readonly LeaseRow[],
    };
  }

  /** The server's clock was changed: the time of the group goes on. False where another process was quicker. */
  async addToClock(by: number, before: string): Promise<boolean> {
    const { rowCount } = await this.pool().query(
      `update ${schema}.lease set doubt = doubt + $2 where grp = $1 and slot = ${common} and doubt = $3`,
      [this.group, Math.round(by), before],
    );
    return rowCount === 1;
  }

  /** Saves the time, unless the record is in use. */
  async noteTime(now: number): Promise<void> {
    await this.pool().query(
      `update ${schema}.lease set seq = greatest(seq, $2) where grp = $1 and slot =
         (select slot from ${schema}.lease where grp = $1 and slot = ${common} for update skip locked)`,
      [this.group, now],
    );
  }

  /** Undefined when the lease has changed since it was read. */
  async take({ slot, token, until }: LeaseRow): Promise<Lease | undefined> {
    const { rows } = await this.pool().query<LeaseRow>(
      `update ${schema}.lease set holder = $3, token = token + 1, until = now() + $4::int * interval '1 ms', busy = false,
         starts = starts + 1
       where grp = $1 and slot = $2 and token = $5 and until::text = $6 returning ${rowOf}`,
      [this.group, slot, this.holder, this.leaseFor, token, until],
    );
    return rows[0] && leaseIn(rows[0]);
  }

  /**
   * Adds a slot for this process. Its first token is the time, so that a slot whose number is used again never has an
   * earlier slot's token.
   */
  async add(): Promise<Lease> {
    await this.pool().query(
      `insert into ${schema}.lease values ($1, ${common}, '', 0, 0, 'infinity') on conflict do nothing`,
      [this.group],
    );
    for (;;) {
      const { rows } = await this.pool().query<LeaseRow>(
        `insert into ${schema}.lease
         select $1, max(slot) + 1, $2, (extract(epoch from now()) * 1000)::bigint, 0,
           now() + ${this.leaseFor} * interval '1 ms'
         from ${schema}.lease where grp = $1
         on conflict do nothing returning ${rowOf}`,
        [this.group, this.holder],
      );
      if (rows[0]) return leaseIn(rows[0]);
    }
  }

  /**
   * Ends a lease whose last commits the database has lost, and notes for all slots when that was: commits of holders that
   * have ended since are lost too.
   */
  async doubt({ slot, token, seq }: LeaseRow, now: number): Promise<void> {
    await this.pool().query(
      `update ${schema}.lease set doubt = greatest(doubt, $2) where grp = $1 and slot in
         (select slot from ${schema}.lease where grp = $1 and slot <> ${common} order by slot for update)`,
      [this.group, now],
    );
    await this.pool().query(
      `update ${schema}.lease set token = token + 1, seq = seq + 1000, holder = '', until = now()
       where grp = $1 and slot = $2 and token = $3 and seq = $4`,
      [this.group, slot, token, seq],
    );
  }

  /** False when this process no longer has the lease, or when the process `to` is gone. */
  async handOn({ slot, token }: Lease, to: string): Promise<boolean> {
    const { rowCount } = await this.pool().query(
      `update ${schema}.lease set holder = $4, token = token + 1, until = now() + $5::int * interval '1 ms', busy = false,
         starts = 0
       where grp = $1 and slot = $2 and token = $3
         and exists (select 1 from ${schema}.lease where grp = $1 and holder = $4 and until > now())`,
      [this.group, slot, token, to, this.leaseFor],
    );
    return rowCount === 1;
  }

  /** Other processes then need not wait for the end of the leases. */
  async giveUp(slots: readonly number[]): Promise<void> {
    await this.pool().query(
      `update ${schema}.lease set holder = '', until = now() + ${backWithin} * interval '1 ms', starts = 0
       where grp = $1 and holder = $2 and slot = any($3::int[])`,
      [this.group, this.holder, slots],
    );
  }

  /**
   * Looks up a commit whose answer is missing; calls `lost` for a lease that another process has, or that the database
   * has set back.
   */
  async lastMade(
    batch: Batch,
    lost: (fence: Leased, row: LeaseRow | undefined) => Promise<void>,
  ): Promise<number> {
    const { rows } = await this.read();
    for (const fence of fencesOf(batch)) {
      if (fence.isLost) continue;
      const { lease } = fence;
      const row = rows.find(({ slot }) => slot === lease.slot);
      if (row?.token === lease.token) {
        const made = Number(BigInt(row.seq) - lease.seq);
        if (made === 0) continue;
        if (made > 0 && made <= batch.attempt) return confirm(batch, made);
      }
      await lost(fence, row);
    }
    return 0;
  }

  /** Makes a commit on the condition that every lease that it touches still holds. */
  async apply(batch: Batch): Promise<boolean> {
    const isMade = await this.applyAlone(batch);
    if (isMade) confirm(batch, batch.attempt);
    return isMade;
  }

  /** Uses a transaction where one statement is not enough. */
  private async applyAlone(batch: Batch): Promise<boolean> {
    const isShared = batch.writes.some(
      ({ changes, conditions }) => changes.some(isOfAll) || conditions.some(isOfAll),
    );
    if (!isShared && batch.fences.length === 1) return this.applyOn(this.pool(), batch);
    const client = await this.pool().connect();
    try {
      await client.query('begin');
      // Shared records are changed by one process at a time, so a condition that was read still holds at the commit.
      const lock = `select 1 from ${schema}.lease where grp = $1 and slot = ${common} for update`;
      if (isShared) await client.query(lock, [this.group]);
      const isMade = await this.applyOn(client, batch);
      await client.query(isMade ? 'commit' : 'rollback');
      client.release();
      return isMade;
    } catch (fault) {
      client.release(true);
      throw fault;
    }
  }

  private async applyOn(on: Pool | PoolClient, batch: Batch): Promise<boolean> {
    const heads = await this.heads(on, batch);
    let arrays = arraysOf(batch.begin((table, key) => heads.get(recordName(table, key))));
    for (const { lease } of fencesOf(batch)) {
      const { slot, token, seq } = lease;
      const number = numberOf(lease, batch.attempt);
      const values = [this.group, slot, token, ...arrays, String(seq), String(number), this.leaseFor];
      const { rows } = await on.query({ name: 'advisor_texting_write', text: writeStatement, values });
      if (rows.length === 0) return false;
      arrays = nothing;
    }
    return true;
  }

  /** The first bytes of the records in conditions, which have their versions. */
  private async heads(on: Pool | PoolClient, batch: Batch): Promise<ReadonlyMap<string, Buffer>> {
    const heads = new Map<string, Buffer>();
    const conditions = batch.writes.flatMap((each) => each.conditions);
    for (const table of tables) {
      const asked = conditions.filter((each) => each.table === table);
      if (asked.length === 0) continue;
      const { rows } = await on.query<{ key: Buffer; head: Buffer }>(
        `select key, substr(value, 1, 21) as head from ${schema}.${table} where key = any($1::bytea[])`,
        [asked.map(({ key }) => key)],
      );
      for (const { key, head } of rows) heads.set(recordName(table, key), head);
    }
    return heads;
  }
}

/**
 * Tells which leases have run out. A living process renews its lease while this one watches: after the database was
 * unreachable or its clock was changed, every process first gets the time to do so.
 */
export class LeaseWatch {
  private readonly marks = new Map<number, { readonly mark: string; readonly since: number }>();
  private lastLook = -Infinity;

  constructor(private readonly leaseFor: number) {}

  /** `now` is a monotonic time. */
  ended(rows: readonly LeaseRow[], now: number): LeaseRow[] {
    if (now - this.lastLook > this.leaseFor / 3) this.marks.clear();
    this.lastLook = now;
    const patience = (2 * this.leaseFor) / 3;
    return rows.filter(({ slot, holder, token, until, isOver }) => {
      const mark = `${token} ${until}`;
      const known = this.marks.get(slot);
      const since = known?.mark === mark ? known.since : now;
      this.marks.set(slot, { mark, since });
      if (holder === '') return isOver;
      return now - since >= (isOver ? patience : this.leaseFor + patience);
    });
  }
}

/**
 * How many of `most` requests at once one of several processes may make. Processes that want one request at once get
 * one each, and busy ones share the rest. A process that has just become busy gets one until the others know of it. So
 * together they never make more than `most`, unless there are more processes than that.
 */
export const shareOf = (
  most: number,
  { processes, busy, isKnown }: { processes: number; busy: number; isKnown: boolean },
): number => {
  if (processes <= 1) return most;
  return isKnown ? Math.max(1, Math.floor((most - (processes - busy)) / Math.max(busy, 1))) : 1;
};

/** Milliseconds. A larger difference since the last pulse means that the server's clock was changed. */
const clockChange = minute;
/** Milliseconds by which the time here is set back with each pulse while it is ahead of the group's. */
const slew = 10;

/** The time of the group as this process knows it. It never runs back or stands still, and does not follow a changed clock. */
export class ServerTime {
  private offset = 0;
  private latest = 0;
  /** By how much the group's time was ahead at the last pulse. */
  private ahead = 0;

  constructor(private readonly monotonic: () => number) {}

  now(): number {
    return (this.latest = Math.max(this.latest, Math.floor(this.monotonic() + this.offset)));
  }

  /** Called at a start, and after the database was unreachable. */
  set(time: number): void {
    this.offset = Math.max(time, this.latest) - this.monotonic();
    this.ahead = 0;
  }

  /**
   * Called with each pulse; the time is NaN where the leases are gone. Returns the milliseconds by which the server's clock
   * was changed.
   */
  observe(time: number): number {
    const ahead = time - (this.monotonic() + this.offset);
    if (Number.isNaN(ahead)) return 0;
    const isChanged = Math.abs(ahead - this.ahead) >= clockChange;
    this.ahead = isChanged ? 0 : Math.min(0, ahead);
    if (isChanged) return ahead;
    this.offset += Math.max(ahead, -slew);
    return 0;
  }
}
