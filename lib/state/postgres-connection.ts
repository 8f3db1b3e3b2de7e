import type { Pool, PoolClient } from 'pg';
import type { ReasonWord } from '../service/errors';
import { schema } from './postgres-leases';
import { sealingWith, type KeyHolder, type Sealer, type Sealing } from './sealing';
import { NewerFormat, OtherSecret, storeClosed } from './store';
import { second } from '../durations';
import { tried } from '../kinds';

/** `pg` is an optional peer, which may not be installed: it is loaded only when a database is opened. */
const loadPg = () => import('pg');

/** Connects to a database, and resolves with the code of the fault, or undefined when the database answers. */
export const faultInDatabase = async (url: string): Promise<ReasonWord | undefined> => {
  const { Client } = await loadPg();
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: 10 * second,
    query_timeout: 10 * second,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return undefined;
  } catch (fault) {
    // The message may quote the address, and with it the password: only the code is used.
    const { code } = fault as { code?: unknown };
    return typeof code === 'string' ? code : { reason: 'timeout' };
  } finally {
    await client.end().catch(() => undefined);
  }
};

export const isPgInstalled = (): boolean => tried(() => require.resolve('pg')) !== undefined;

/**
 * A database or a role may have another level as its default. Under it, a transaction that has waited for a lock would
 * still see what was there before, and conditions that no longer hold would be met.
 */
const readCommitted = 'set session characteristics as transaction isolation level read committed';
/** With `off`, the server confirms commits that it loses when it crashes; what others choose waits for a standby. */
const durably = `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`;
/** Row-level security would hide records without a fault: the do-not-text list would look empty. */
const nothingHidden = 'set row_security = off';
const longestStatement = 30 * second;

const formatVersion = 1;
const tables = `
  create schema if not exists ${schema};
  create table ${schema}.meta (name text primary key, value text not null);
  insert into ${schema}.meta values ('version', '${formatVersion}');
  create table ${schema}.lease (
    grp bytea not null, slot integer not null, holder text not null, token bigint not null, seq bigint not null,
    until timestamptz not null, busy boolean not null default false, starts integer not null default 0,
    doubt bigint not null default 0, primary key (grp, slot)
  );
  create table ${schema}.wait (key bytea primary key, value bytea not null);
  create table ${schema}.work (key bytea primary key, value bytea not null);
  alter table ${schema}.wait alter column value set storage external;
  alter table ${schema}.work alter column value set storage external;`;
/** unique_violation, duplicate_schema and duplicate_table: another process is making the same tables. */
const madeByAnother = new Set(['23505', '42P06', '42P07']);

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

interface Pools {
  readonly reading: Pool;
  readonly writing: Pool;
}

/** The connections of a process to a database: with its tables, and with the key that seals the records of a group. */
export class PostgresConnection {
  /** Writes have a pool of their own, so that neither a pulse nor a commit waits behind reads. */
  private pools: Pools | undefined;
  private currentSealing: Sealing | undefined;

  constructor(
    private readonly url: string,
    private readonly group: Buffer,
    private readonly sealer: (keys: KeyHolder) => Promise<Sealer>,
    private readonly leaseFor: number,
  ) {}

  get isOpen(): boolean {
    return this.pools !== undefined;
  }

  get sealing(): Sealing {
    if (!this.currentSealing) throw storeClosed();
    return this.currentSealing;
  }

  get reading(): Pool {
    if (!this.pools) throw storeClosed();
    return this.pools.reading;
  }

  get writing(): Pool {
    if (!this.pools) throw storeClosed();
    return this.pools.writing;
  }

  /**
   * Connects, and makes the tables and the data key where there are none. Another process may have made others since the
   * last time, because these were gone.
   */
  async open(): Promise<void> {
    this.pools ??= await this.connect();
    const { writing } = this.pools;
    await this.prepareTables(writing);
    this.currentSealing = sealingWith(await this.readKeys(writing));
  }

  private async connect(): Promise<Pools> {
    const { Pool } = await loadPg();
    // The server frees the locks of a process that hangs in a transaction before its lease ends, so the others can go
    // on. A pooler such as PgBouncer refuses these settings as parameters of the connection.
    const sessionSettings = `${readCommitted}; ${durably}; ${nothingHidden}; set statement_timeout = ${longestStatement};
      set idle_in_transaction_session_timeout = ${Math.round((this.leaseFor * 2) / 3)}`;
    const settings = {
      connectionString: this.url,
      connectionTimeoutMillis: 5 * second,
      idleTimeoutMillis: 30 * second,
      keepAlive: true,
      application_name: 'advisor-texting',
      query_timeout: longestStatement + 5 * second,
      verify: (client: PoolClient, done: (fault?: Error) => void) => {
        client.query(sessionSettings).then(() => {
          done();
        }, done);
      },
    };
    const [reading, writing] = [new Pool({ ...settings, max: 4 }), new Pool({ ...settings, max: 3 })];
    // An `error` event without a listener would end the process. The next query on the connection reports the fault.
    const ignore = (): void => undefined;
    for (const pool of [reading, writing])
      pool.on('error', ignore).on('connect', (client) => client.on('error', ignore));
    return { reading, writing };
  }

  private async prepareTables(pool: Pool): Promise<void> {
    const find = `select to_regclass('${schema}.meta') as there`;
    const isThere = async (): Promise<boolean> =>
      (await pool.query<{ there: string | null }>(find)).rows[0]?.there != null;
    while (!(await isThere())) {
      try {
        await pool.query(tables);
      } catch (fault) {
        if (!madeByAnother.has((fault as { code?: string }).code ?? '')) throw fault;
      }
    }
    const select = `select value from ${schema}.meta where name = 'version'`;
    const { rows } = await pool.query<{ value: string }>(select);
    if (Number(rows[0]?.value) > formatVersion) throw new NewerFormat();
  }

  /** The row of the key is locked while the sealer is made. */
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
      const write = `update ${schema}.meta set value = $2 where name = $1`;
      const sealer = await this.sealer({
        read: () => (found === '' ? undefined : (JSON.parse(found) as unknown)),
        write: (document) =>
          client.query(write, [name, JSON.stringify(document)]).then(
            () => true,
            () => false,
          ),
      });
      if (!sealer.key) throw new OtherSecret();
      // Nothing may be encrypted with keys that other processes could not read.
      if (sealer.isUnsaved) throw new Error('its encryption key could not be saved');
      await client.query('commit');
      return sealer;
    } catch (fault) {
      await client.query('rollback').catch(() => undefined);
      throw fault;
    } finally {
      client.release();
    }
  }

  async close(): Promise<void> {
    const { pools } = this;
    this.pools = undefined;
    const ended = Promise.all([pools?.reading.end(), pools?.writing.end()]).catch(() => undefined);
    // A query that hangs is not waited for.
    await Promise.race([ended, pause(3 * second)]);
  }
}
