import type { Pool } from 'pg';

/**
 * The leases of the processes that work together: a row for each slot, with who has it, a token that changes with its
 * holder, the number of the last commit, and until when it is had. A holder renews it with its pulse and with every commit.
 */

export const schema = 'advisor_texting';
/** The slot of what belongs to all, which nobody holds. */
export const common = 0;

export interface Lease {
  readonly slot: number;
  readonly token: string;
  /** Of the last commit that was confirmed. */
  seq: bigint;
}

/** As it was read. */
export interface LeaseRow {
  readonly slot: number;
  /** Empty when its holder has given it up. */
  readonly holder: string;
  readonly token: string;
  readonly seq: string;
  readonly until: string;
  readonly isOver: boolean;
  /** Its holder wants more than one request at once. */
  readonly isBusy: boolean;
}

export const leaseIn = ({ slot, token, seq }: LeaseRow): Lease => ({ slot, token, seq: BigInt(seq) });

export interface Beat {
  /** Of the server, in epoch milliseconds. */
  readonly time: number;
  readonly rows: readonly LeaseRow[];
}

/** A holder that gave its slots up may want them back at once, as when flows are deployed: so long others leave them. */
const backWithin = 500;

/** In place of a holder: work is being moved into the slot, and nobody has it yet. */
const movingHolder = (id: string): string => `moving ${id}`;
const isMoving = `holder like 'moving %'`;

const rowOf = 'slot, holder, token, seq, until::text as until, until < now() as "isOver", busy as "isBusy"';

export class Leases {
  constructor(
    private readonly pool: () => Pool,
    private readonly group: Buffer,
    private readonly holder: string,
    private readonly leaseFor: number,
  ) {}

  /** Renews what this process has, and gives all that there are. */
  async beat(slots: readonly number[], isBusy: boolean): Promise<Beat> {
    await this.pool().query(
      `update ${schema}.lease set until = now() + $3::int * interval '1 ms', busy = $5 where grp = $1 and slot in
         (select slot from ${schema}.lease where grp = $1 and holder = $2 and slot = any($4::int[])
          order by slot for update)`,
      [this.group, this.holder, this.leaseFor, slots, isBusy],
    );
    const { rows } = await this.pool().query<LeaseRow & { readonly time: string }>(
      `select ${rowOf}, extract(epoch from clock_timestamp()) * 1000 as time
       from ${schema}.lease where grp = $1 and not ${isMoving} order by slot`,
      [this.group],
    );
    return { time: Number(rows[0]?.time), rows: rows.filter(({ slot }) => slot !== common) };
  }

  async row(slot: number): Promise<LeaseRow | undefined> {
    const select = `select ${rowOf} from ${schema}.lease where grp = $1 and slot = $2`;
    return (await this.pool().query<LeaseRow>(select, [this.group, slot])).rows[0];
  }

  /** What this process itself gave up just before, and what others gave up; `isAlone` when nobody else lives. */
  async free(before: readonly Lease[]): Promise<{
    readonly mine: readonly LeaseRow[];
    readonly others: readonly LeaseRow[];
    readonly isAlone: boolean;
  }> {
    const { rows } = await this.pool().query<LeaseRow>(
      `select ${rowOf} from ${schema}.lease where grp = $1 and slot <> ${common} and not ${isMoving} order by slot`,
      [this.group],
    );
    const isMine = (row: LeaseRow): boolean =>
      before.some(({ slot, token }) => slot === row.slot && token === row.token);
    const free = rows.filter(({ holder }) => holder === '');
    return {
      mine: free.filter(isMine),
      others: free.filter((row) => row.isOver && !isMine(row)),
      isAlone: rows.every(({ holder, isOver }) => holder === '' || holder === this.holder || isOver),
    };
  }

  /** Undefined when it has changed since it was read. */
  async take({ slot, token, until }: LeaseRow): Promise<Lease | undefined> {
    const { rows } = await this.pool().query<{ token: string; seq: string }>(
      `update ${schema}.lease set holder = $3, token = token + 1, until = now() + $4::int * interval '1 ms', busy = false
       where grp = $1 and slot = $2 and token = $5 and until::text = $6 returning token, seq`,
      [this.group, slot, this.holder, this.leaseFor, token, until],
    );
    return rows[0] && { slot, token: rows[0].token, seq: BigInt(rows[0].seq) };
  }

  /** A new slot of this process. */
  add(): Promise<Lease> {
    return this.insert(this.holder, `now() + ${this.leaseFor} * interval '1 ms'`);
  }

  /** The slot that work is moved into, which nobody takes until `release`. */
  async moving(id: string): Promise<Lease> {
    const { rows } = await this.pool().query<{ slot: number; token: string; seq: string }>(
      `select slot, token, seq from ${schema}.lease where grp = $1 and holder = $2`,
      [this.group, movingHolder(id)],
    );
    const [row] = rows;
    return row ? { ...row, seq: BigInt(row.seq) } : this.insert(movingHolder(id), `'infinity'`);
  }

  async release(id: string): Promise<void> {
    await this.pool().query(
      `update ${schema}.lease set holder = '', until = now() where grp = $1 and holder = $2`,
      [this.group, movingHolder(id)],
    );
  }

  /** Its first token is the time, so that no later lease of the same number has an earlier one's. */
  private async insert(holder: string, until: string): Promise<Lease> {
    await this.pool().query(
      `insert into ${schema}.lease values ($1, ${common}, '', 0, 0, 'infinity') on conflict do nothing`,
      [this.group],
    );
    for (;;) {
      const { rows } = await this.pool().query<{ slot: number; token: string; seq: string }>(
        `insert into ${schema}.lease
         select $1, max(slot) + 1, $2, (extract(epoch from now()) * 1000)::bigint, 0, ${until}
         from ${schema}.lease where grp = $1
         on conflict do nothing returning slot, token, seq`,
        [this.group, holder],
      );
      const [row] = rows;
      if (row) return { ...row, seq: BigInt(row.seq) };
    }
  }

  /** False when it is not this process's any more, or when the other one is gone. */
  async handOn({ slot, token }: Lease, to: string): Promise<boolean> {
    const { rowCount } = await this.pool().query(
      `update ${schema}.lease set holder = $4, token = token + 1, until = now() + $5::int * interval '1 ms', busy = false
       where grp = $1 and slot = $2 and token = $3
         and exists (select 1 from ${schema}.lease where grp = $1 and holder = $4 and until > now())`,
      [this.group, slot, token, to, this.leaseFor],
    );
    return rowCount === 1;
  }

  /** The others need not wait until they have run out. */
  async giveUp(slots: readonly number[]): Promise<void> {
    await this.pool().query(
      `update ${schema}.lease set holder = '', until = now() + ${backWithin} * interval '1 ms'
       where grp = $1 and holder = $2 and slot = any($3::int[])`,
      [this.group, this.holder, slots],
    );
  }
}

/**
 * Which leases have run out, as far as this process can tell. Whoever lives has renewed its own while this process looked
 * on: after the database was away, or its clock was changed, all are given the time to do so.
 */
export class LeaseWatch {
  private readonly seen = new Map<number, { readonly mark: string; readonly since: number }>();
  private lastLook = -Infinity;

  constructor(private readonly leaseFor: number) {}

  /** `now` is monotonic. */
  ended(rows: readonly LeaseRow[], now: number): LeaseRow[] {
    if (now - this.lastLook > this.leaseFor / 3) this.seen.clear();
    this.lastLook = now;
    const patience = (2 * this.leaseFor) / 3;
    return rows.filter(({ slot, holder, token, until, isOver }) => {
      const mark = `${token} ${until}`;
      const known = this.seen.get(slot);
      const since = known?.mark === mark ? known.since : now;
      this.seen.set(slot, { mark, since });
      if (holder === '') return isOver;
      return now - since >= (isOver ? patience : this.leaseFor + patience);
    });
  }
}

/**
 * How many of `most` requests at once are those of one of several processes. Those that want more than one share what the
 * others leave, which have one each. A process that has just come to want more has one, too, until the others have heard:
 * together they never make more than `most`, unless there are more processes.
 */
export const shareOf = (
  most: number,
  { processes, busy, isKnown }: { processes: number; busy: number; isKnown: boolean },
): number => {
  if (processes <= 1) return most;
  return isKnown ? Math.max(1, Math.floor((most - (processes - busy)) / Math.max(busy, 1))) : 1;
};

/** A clock of the server that differs by more milliseconds was changed: ages go on as they were. */
const clockChange = 60_000;
/** Milliseconds by which a clock that is a little ahead is set back with a pulse. */
const slew = 10;

/** The server's time, as it is known here. It never runs back nor stands still, and follows no change of the clock. */
export class ServerTime {
  private offset = 0;
  private latest = 0;
  private hasChanged = false;

  constructor(
    private readonly monotonic: () => number,
    private readonly changed: (bySeconds: number) => void,
  ) {}

  now(): number {
    return (this.latest = Math.max(this.latest, Math.floor(this.monotonic() + this.offset)));
  }

  /** At a start, or after this process was out of touch. */
  set(time: number): void {
    this.offset = Math.max(time, this.latest) - this.monotonic();
  }

  /** With each pulse. */
  hear(time: number): void {
    const ahead = time - (this.monotonic() + this.offset);
    if (Math.abs(ahead) < clockChange) this.offset += Math.max(ahead, -slew);
    else if (!this.hasChanged) {
      this.hasChanged = true;
      this.changed(Math.round(ahead / 1000));
    }
  }
}
