import type { Pool, PoolClient } from 'pg';
import { schema, common, type Lease, type LeaseRow } from './leases';
import { recordName, versionOf } from './sealing';
import { largestCommit, TakenOver, tables, type Table, type Version } from './store';

/** What one lease covers. Every commit that touches it is made on the condition that the lease still holds. */
export interface Fence {
  readonly lease: Lease;
  readonly isLost: boolean;
}

/** A put of a record, by its key in the database; without `bytes`, a removal. */
export interface RecordChange {
  readonly table: Table;
  readonly key: Buffer;
  readonly bytes?: Buffer;
}

export interface FencedCondition {
  readonly table: Table;
  readonly key: Buffer;
  readonly version?: Version;
}

export interface FencedWrite {
  readonly fences: readonly Fence[];
  readonly changes: readonly RecordChange[];
  readonly conditions: readonly FencedCondition[];
  /** The write touches records that all processes share. */
  readonly isShared: boolean;
}

interface Pending extends FencedWrite {
  readonly bytes: number;
  readonly settle: (holds: boolean) => void;
  readonly reject: (fault: Error) => void;
}

/** A commit whose answer may not come. Its numbers, compared with those in the lease rows, tell later whether it was made. */
interface UnansweredCommit {
  readonly numbers: ReadonlyMap<Fence, bigint>;
  readonly holds: ReadonlyMap<Pending, boolean>;
}

export interface FencedWritesOptions {
  readonly pool: () => Pool;
  readonly group: Buffer;
  readonly leaseFor: number;
  readonly rowOf: (slot: number) => Promise<LeaseRow | undefined>;
  /** Called when another process has the lease, or when the database has lost commits. */
  readonly lost: (fence: Fence, row: LeaseRow | undefined) => Promise<void>;
  readonly failed: (fault: unknown) => Promise<void>;
  readonly succeeded: () => void;
}

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
const arraysOf = (changes: Iterable<RecordChange>): Buffer[][] => {
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

/**
 * The commits of one process, one after the other. All writes of one turn of the event loop are one commit, made on the
 * condition that every lease it touches still holds. A commit without an answer is looked up before it is repeated.
 */
export class FencedWrites {
  private queue: Pending[] = [];
  private isScheduled = false;
  private committing: Promise<void> | undefined;
  private ended: Error | undefined;
  unwritten = 0;

  constructor(private readonly options: FencedWritesOptions) {}

  add(write: FencedWrite): Promise<boolean> {
    if (this.ended) throw this.ended;
    const bytes = write.changes.reduce(
      (sum, { key, bytes: value }) => sum + key.length + (value?.length ?? 0),
      0,
    );
    this.unwritten += bytes;
    return new Promise((settle, reject) => {
      this.queue.push({ ...write, bytes, settle, reject });
      this.schedule();
    });
  }

  /** Makes the commits that can be made, until `isTroubled` says that the database is away. */
  async close(fault: Error, isTroubled: () => boolean): Promise<void> {
    while (!isTroubled() && (this.committing || this.queue.length > 0)) {
      this.commitNext();
      // The database may go away while a commit waits for its answer, so `isTroubled` is asked again.
      await Promise.race([this.committing, new Promise((resolve) => setTimeout(resolve, 50).unref())]);
    }
    this.ended = fault;
    this.reject(this.queue.splice(0), fault);
  }

  /** Rejects the writes in the queue whose lease was lost. */
  rejectLost(): void {
    const isLost = ({ fences }: Pending): boolean => fences.some((fence) => fence.isLost);
    const lost = this.queue.filter(isLost);
    if (lost.length === 0) return;
    this.queue = this.queue.filter((each) => !isLost(each));
    this.reject(lost, new TakenOver(false));
  }

  private reject(pending: readonly Pending[], fault: Error): void {
    for (const { bytes, reject } of pending) {
      this.unwritten -= bytes;
      reject(fault);
    }
  }

  private schedule(): void {
    if (this.isScheduled || this.committing || this.queue.length === 0) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.commitNext();
    });
  }

  private commitNext(): void {
    if (this.committing || this.queue.length === 0) return;
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
    const attempts: UnansweredCommit[] = [];
    let left = batch;
    for (;;) {
      try {
        const made = attempts.length > 0 ? await this.lookUp(left, attempts) : undefined;
        const holds = made ?? (await this.attempt((left = this.withoutLost(left, attempts)), attempts));
        if (holds) {
          for (const each of left) {
            this.unwritten -= each.bytes;
            each.settle(holds.get(each) ?? false);
          }
          this.options.succeeded();
          return;
        }
      } catch (fault) {
        if (this.ended) break;
        await this.options.failed(fault);
      }
      if (this.ended) break;
    }
    this.reject(left, this.ended);
  }

  /**
   * Rejects the writes whose lease another process has by now: whether an earlier attempt was made can no longer be
   * known.
   */
  private withoutLost(
    pending: readonly Pending[],
    attempts: readonly UnansweredCommit[],
  ): readonly Pending[] {
    const isLost = ({ fences }: Pending): boolean => fences.some((fence) => fence.isLost);
    if (!pending.some(isLost)) return pending;
    this.reject(pending.filter(isLost), new TakenOver(attempts.length > 0));
    return pending.filter((each) => !isLost(each));
  }

  /** The result of an earlier attempt, if one of them was made after all. */
  private async lookUp(
    pending: readonly Pending[],
    attempts: readonly UnansweredCommit[],
  ): Promise<UnansweredCommit['holds'] | undefined> {
    for (const fence of fencesOf(pending)) {
      if (fence.isLost) continue;
      const { lease } = fence;
      const row = await this.options.rowOf(lease.slot);
      if (row?.token === lease.token) {
        const seq = BigInt(row.seq);
        if (seq === lease.seq) continue;
        const made = attempts.find(({ numbers }) => numbers.get(fence) === seq);
        if (made) {
          for (const [each, number] of made.numbers) each.lease.seq = number;
          return made.holds;
        }
      }
      await this.options.lost(fence, row);
    }
    return undefined;
  }

  /** Undefined when a lease no longer holds. */
  private async attempt(
    pending: readonly Pending[],
    attempts: UnansweredCommit[],
  ): Promise<UnansweredCommit['holds'] | undefined> {
    if (pending.length === 0) return new Map();
    const attempt = await this.attemptAlone(pending, attempts);
    for (const [{ lease }, number] of attempt?.numbers ?? []) lease.seq = number;
    return attempt?.holds;
  }

  /** Uses a transaction where one statement is not enough. */
  private async attemptAlone(
    pending: readonly Pending[],
    attempts: UnansweredCommit[],
  ): Promise<UnansweredCommit | undefined> {
    const isShared = pending.some((each) => each.isShared);
    if (!isShared && fencesOf(pending).length === 1)
      return this.attemptOn(this.options.pool(), pending, attempts);
    const client = await this.options.pool().connect();
    try {
      await client.query('begin');
      // Shared records are changed by one process at a time, so a condition that was read still holds at the commit.
      const lock = `select 1 from ${schema}.lease where grp = $1 and slot = ${common} for update`;
      if (isShared) await client.query(lock, [this.options.group]);
      const attempt = await this.attemptOn(client, pending, attempts);
      await client.query(attempt ? 'commit' : 'rollback');
      client.release();
      return attempt;
    } catch (fault) {
      client.release(true);
      throw fault;
    }
  }

  private async attemptOn(
    on: Pool | PoolClient,
    pending: readonly Pending[],
    attempts: UnansweredCommit[],
  ): Promise<UnansweredCommit | undefined> {
    const versions = await this.versions(on, pending);
    const changes = new Map<string, RecordChange>();
    const holds = new Map<Pending, boolean>();
    for (const each of pending) {
      const doesHold = each.conditions.every(
        ({ table, key, version }) => versions.get(recordName(table, key)) === version,
      );
      holds.set(each, doesHold);
      if (!doesHold) continue;
      for (const change of each.changes) {
        const name = recordName(change.table, change.key);
        changes.set(name, change);
        versions.set(name, change.bytes && versionOf(change.bytes));
      }
    }
    if (changes.size === 0) return { numbers: new Map(), holds };
    const numbers = new Map(
      fencesOf(pending).map((fence) => [fence, fence.lease.seq + BigInt(attempts.length + 1)]),
    );
    const attempt = { numbers, holds };
    attempts.push(attempt);
    let arrays = arraysOf(changes.values());
    for (const [{ lease }, number] of numbers) {
      const { slot, token, seq } = lease;
      const { group, leaseFor } = this.options;
      const values = [group, slot, token, ...arrays, String(seq), String(number), leaseFor];
      const { rows } = await on.query({ name: 'advisor_texting_write', text: writeStatement, values });
      if (rows.length === 0) return undefined;
      arrays = nothing;
    }
    return attempt;
  }

  private async versions(
    on: Pool | PoolClient,
    pending: readonly Pending[],
  ): Promise<Map<string, Version | undefined>> {
    const versions = new Map<string, Version | undefined>();
    const conditions = pending.flatMap((each) => each.conditions);
    for (const table of tables) {
      const asked = conditions.filter((each) => each.table === table);
      if (asked.length === 0) continue;
      const { rows } = await on.query<{ key: Buffer; head: Buffer }>(
        `select key, substr(value, 1, 21) as head from ${schema}.${table} where key = any($1::bytea[])`,
        [asked.map(({ key }) => key)],
      );
      for (const { key, head } of rows) versions.set(recordName(table, key), versionOf(head));
    }
    return versions;
  }
}

/** The fences of all writes. Every process touches them in the order of their slots, so that no two commits deadlock. */
const fencesOf = (pending: readonly Pending[]): Fence[] =>
  [...new Set(pending.flatMap(({ fences }) => fences))].sort((a, b) => a.lease.slot - b.lease.slot);
