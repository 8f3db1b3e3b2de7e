import type { Pool, PoolClient } from 'pg';
import type { Batch, Change, Committer, Fence, Version } from './commit-queue';
import { schema, common, type Lease, type LeaseRow, type Leases } from './leases';
import { recordName, versionOf } from './sealing';
import { tables } from './store';

/** What one lease covers. Every commit that touches it is made on the condition that the lease still holds. */
export interface Leased extends Fence {
  readonly lease: Lease;
}

interface FencedCommitsOptions {
  /** Called when another process has the lease, or when the database has lost commits. */
  readonly lost: (fence: Leased, row: LeaseRow | undefined) => Promise<void>;
  readonly failed: (fault: unknown) => Promise<void>;
  readonly succeeded: () => void;
  /** Whether the database could not be used a moment ago: a lease may have been lost unnoticed. */
  readonly isInTrouble: () => boolean;
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

/** Makes commits on the condition that every lease that they touch still holds. */
export class FencedCommits implements Committer {
  readonly failed: (fault: unknown) => Promise<void>;
  readonly succeeded: () => void;

  constructor(
    private readonly leases: Leases,
    private readonly options: FencedCommitsOptions,
  ) {
    ({ failed: this.failed, succeeded: this.succeeded } = options);
  }

  /** A commit under a lease that was lost before is not tried: without an answer it would be in doubt. */
  async ready(batch: Batch): Promise<void> {
    if (batch.attempt === 0 && this.options.isInTrouble()) await this.lastMade(batch);
  }

  async lastMade(batch: Batch): Promise<number> {
    for (const fence of fencesOf(batch)) {
      if (fence.isLost) continue;
      const { lease } = fence;
      const row = await this.leases.row(lease.slot);
      if (row?.token === lease.token) {
        const made = Number(BigInt(row.seq) - lease.seq);
        if (made === 0) continue;
        if (made > 0 && made <= batch.attempt) return confirm(batch, made);
      }
      await this.options.lost(fence, row);
    }
    return 0;
  }

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
    if (!isShared && batch.fences.length === 1) return this.applyOn(this.leases.pool(), batch);
    const client = await this.leases.pool().connect();
    try {
      await client.query('begin');
      // Shared records are changed by one process at a time, so a condition that was read still holds at the commit.
      const lock = `select 1 from ${schema}.lease where grp = $1 and slot = ${common} for update`;
      if (isShared) await client.query(lock, [this.leases.group]);
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
    const versions = await this.versions(on, batch);
    let arrays = arraysOf(batch.begin((table, key) => versions.get(recordName(table, key))));
    for (const { lease } of fencesOf(batch)) {
      const { slot, token, seq } = lease;
      const { group, leaseFor } = this.leases;
      const number = numberOf(lease, batch.attempt);
      const values = [group, slot, token, ...arrays, String(seq), String(number), leaseFor];
      const { rows } = await on.query({ name: 'advisor_texting_write', text: writeStatement, values });
      if (rows.length === 0) return false;
      arrays = nothing;
    }
    return true;
  }

  private async versions(on: Pool | PoolClient, batch: Batch): Promise<ReadonlyMap<string, Version>> {
    const versions = new Map<string, Version>();
    const conditions = batch.writes.flatMap((each) => each.conditions);
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
