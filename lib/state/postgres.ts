import { hash, randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { CommitQueue, TakenOver, type Batch, type Committer, type Table } from './commit-queue';
import { GatheredReads } from './postgres-reads';
import {
  common,
  leaseIn,
  Leases,
  LeaseWatch,
  prefixLength,
  prefixOf,
  schema,
  ServerTime,
  shareOf,
  type Lease,
  type Leased,
  type LeaseRow,
} from './postgres-leases';
import { pause, PostgresConnection } from './postgres-connection';
import type { KeyHolder, Sealer, Sealing } from './sealing';
import {
  asName,
  endOf,
  isShared,
  keptAfterRemoval,
  key as keyOf,
  NewerFormat,
  OtherSecret,
  pagesUnder,
  reasonOf,
  Store,
  storeClosed,
  StoreClosed,
  type Engine,
  type Peers,
  type Range,
  type Row,
  type StoreCommand,
} from './store';
import { identityKey, type Identity } from './recognition';
import { minute, second } from '../durations';
import { Listeners } from '../listeners';
import { processMemory, share, type Shared } from '../process-memory';

/**
 * PostgreSQL, for several processes that work together. Each process has a slot of its own by a lease, and every commit
 * is made on the condition that the lease still holds. Records that all processes share (authorizations, when numbers
 * were asked) lie outside the slots and change by condition alone. A process that finds a lease that has run out takes
 * over the whole slot, and goes on with the work in it.
 */

export interface PostgresOptions {
  /** The address, as `pg` takes it. */
  readonly url: string;
  /** Processes that run the same flows name the same group: they take over from each other. */
  readonly group: string;
  /** Makes the sealer from the wrapped keys, which lie in the database too. */
  readonly sealer: (keys: KeyHolder) => Promise<Sealer>;
  readonly warn: (text: string) => void;
  /** Milliseconds that a lease lasts without renewal: a process that dies is succeeded after that time. */
  readonly leaseFor?: number;
  /** Milliseconds between two pulses. */
  readonly pulseEvery?: number;
}

const shortestPause = 250;
const longestPause = 2 * second;
/** The prefix of the commands in each slot. */
const commands = keyOf('command');
/** Milliseconds after which nobody waits for an answer any more. */
const answeredWithin = 2 * minute;
/** Milliseconds between two checks whether other processes have carried out a command. */
const lookForAnswers = 200;
const commandsAtOnce = 100;
/** Milliseconds after which no item of a slot counts as the cause of a crash. */
const calmAfter = minute;
/** Milliseconds for which each pulse tries a command that nobody could carry out. */
const tryCommandsFor = minute;
/** Pulses between two searches for slots that were taken over and have no work left. */
const dropEvery = 10;

/** undefined_table and invalid_schema_name lead to it. */
const tablesGone =
  'The tables of this package are gone from the database: nothing is sent. Stop Node-RED, restore a backup, and start it. ' +
  'Without a backup, the next start begins with an empty store, and nobody is texted until you confirm it.';

export const troubleIn = (fault: unknown): string => {
  const { code } = fault as { code?: string };
  const reason = reasonOf(fault);
  // One sentence for all of them: each new one is a line in the log.
  if (/read timeout|connection timeout|timeout exceeded/.test(reason))
    return 'The database does not answer: nothing is sent until it does. Sending then resumes on its own.';
  if (fault instanceof NewerFormat)
    return 'The state in the database was written by a newer version of this package and is not used: nothing is sent. Install that version here too.';
  if (fault instanceof OtherSecret)
    return 'The state in the database is encrypted with another credentialSecret than that of this Node-RED: nothing is sent from here. Set the same credentialSecret in settings.js of all instances.';
  if (code === '42P01' || code === '3F000') return tablesGone;
  if (code === '25006')
    return 'The database is read-only: nothing is sent until it accepts writes. Sending then resumes on its own.';
  if (code === '42501')
    return `The role in the address of the database lacks a permission (${reason}): nothing is sent until it has it. See docs/scaling.md for what it needs.`;
  if (code === '26000' || code === '42P05')
    return 'The address of the database leads to a pool that does not keep a connection for each client: nothing is sent until it does. Use its session mode, or the address of the database itself.';
  if (code === '53100') return 'The disk of the database is full: nothing is sent until there is room.';
  return `The database cannot be used (${reason}): nothing is sent until it can. Sending then resumes on its own.`;
};

/** Carries out a command for a slot; resolves with whether it was carried out. */
export type StoreCommandListener = (slot: Slot, command: StoreCommand) => Promise<boolean>;

const bare = (key: Buffer): Buffer => key.subarray(prefixLength);

/** The records that one lease covers. */
class SlotEngine implements Engine, Leased, Peers {
  readonly durable = true;
  readonly peers = this;
  /** Another process has the slot: nothing may be done that follows from what was read here. */
  isLost = false;
  /** The monotonic time from which on this process knows the slot. */
  readonly since = performance.now();
  readonly processName: string;
  readonly part: string;
  readonly isElsewhere: boolean;
  readonly crashes: number;
  readonly commits: CommitQueue;
  readonly onChange: Engine['onChange'];
  readonly onNews: Peers['onNews'];
  readonly warn: Engine['warn'];

  /** The kind `elsewhere` means that another process has the slot: it is only read here. */
  constructor(
    readonly database: SlotRegister,
    readonly lease: Lease,
    readonly kind: 'own' | 'orphan' | 'elsewhere',
  ) {
    this.processName = database.holder;
    this.part = String(lease.slot);
    this.isElsewhere = kind === 'elsewhere';
    this.crashes = lease.crashes;
    this.commits = database.commits;
    this.onChange = database.onChange;
    this.onNews = database.onNews;
    this.warn = database.options.warn;
  }

  get trouble(): string | undefined {
    if (!this.isLost) return this.database.trouble;
    return 'This instance has lost its place in the database, as after losing contact for longer than its lease: another instance may have taken over its work.';
  }

  get isGone(): boolean {
    return this.database.isGone;
  }

  get sealing(): Sealing {
    return this.database.connection.sealing;
  }

  get fence(): Leased {
    if (this.isElsewhere) throw new Error('it belongs to another process');
    return this;
  }

  isInDoubt(at: number): boolean {
    return at <= this.lease.doubt;
  }

  others(): readonly Slot[] {
    return this.database.slotsBeside(this.lease.slot);
  }

  tellHolder(command: StoreCommand, longest?: number): Promise<void> {
    return this.database.tell({ only: this.lease.slot }, command, longest);
  }

  tellOthers(command: StoreCommand, longest?: number): Promise<void> {
    return this.database.tell({ allBut: this.lease.slot }, command, longest);
  }

  carryOut(isMeant: (command: StoreCommand) => boolean): Promise<void> {
    return this.database.carryOut(this.lease.slot, isMeant);
  }

  readonly now = (): number => this.database.time.now();

  async isAlive(processName: string): Promise<boolean> {
    if (processName === this.database.holder) return true;
    // A holder can write after the end of its lease, until another process takes the slot.
    const select = `select 1 from ${schema}.lease where grp = $1 and holder = $2 limit 1`;
    return (await this.read(select, [this.database.group, processName])).length > 0;
  }

  get(table: Table, key: Buffer): Promise<Buffer | undefined> {
    return this.patiently(() => this.database.reads.value(table, this.fullKey(key)));
  }

  async keys(table: Table, range: Range): Promise<readonly Buffer[]> {
    return (await this.rows(table, 'key', range)).map(({ key }) => key);
  }

  range(table: Table, range: Range): Promise<readonly Row[]> {
    return this.rows(table, 'key, value', range);
  }

  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    const select = `select count(*) from ${schema}.${table} where key >= $1 and key < $2`;
    const [row] = (await this.read(select, this.limits(from, to))) as { count: string }[];
    return Number(row?.count ?? 0);
  }

  /** Whether the slot has waits, or items of a queue. */
  async hasWork(pool: Pool): Promise<boolean> {
    const [items, waits] = [keyOf('item'), keyOf('wait')];
    const { rows } = await pool.query<{ found: boolean }>(
      `select exists (select 1 from ${schema}.work where key >= $1 and key < $2)
           or exists (select 1 from ${schema}.work where key >= $3 and key < $4) as found`,
      [...this.limits(items, endOf(items)), ...this.limits(waits, endOf(waits))],
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

  fullKey(key: Buffer): Buffer {
    const slot = isShared(key) ? common : this.lease.slot;
    return Buffer.concat([prefixOf(this.database.group, slot), key]);
  }

  private limits(from: Buffer, to: Buffer): [Buffer, Buffer] {
    const slot = isShared(from) ? common : this.lease.slot;
    const prefix = prefixOf(this.database.group, slot);
    return [Buffer.concat([prefix, from]), Buffer.concat([prefix, to])];
  }

  private async rows(
    table: Table,
    columns: string,
    { from, to, limit, skip = 0, reverse = false }: Range,
  ): Promise<readonly Row[]> {
    const select =
      `select ${columns} from ${schema}.${table} where key >= $1 and key < $2 ` +
      `order by key ${reverse ? 'desc' : 'asc'} limit $3 offset $4`;
    const rows = (await this.read(select, [...this.limits(from, to), limit, skip])) as Row[];
    return rows.map((row) => ({ ...row, key: bare(row.key) }));
  }

  private read(statement: string, values: unknown[]): Promise<unknown[]> {
    return this.patiently(
      async () => (await this.database.connection.reading.query<object>(statement, values)).rows,
    );
  }

  private patiently<T>(read: () => Promise<T>): Promise<T> {
    return this.database.patiently(read, () => {
      if (this.isLost) throw new TakenOver(false);
    });
  }
}

/** A slot as a store. It closes with the database. */
export class Slot extends Store {
  declare readonly engine: SlotEngine;
  declare readonly peers: Peers;
}

/** The slots of a group in one database, as this process holds and sees them: by the pulse of its leases. */
class SlotRegister implements Committer {
  readonly holder = randomUUID();
  readonly group: Buffer;
  readonly slots = new Map<number, Slot>();
  /** Slots that other processes hold; they can be read here. */
  private elsewhere = new Map<number, Slot>();
  /** What they had written at the last pulse. */
  private written = '';
  /** They have written since `onNews` last called. */
  private hasNews = false;
  readonly commits = new CommitQueue(this);
  readonly reads = new GatheredReads(() => this.connection.reading);
  readonly connection: PostgresConnection;
  private readonly leases: Leases;
  private readonly watch: LeaseWatch;
  private readonly orphans = new Listeners<[slot: Slot]>();
  private readonly commandListeners = new Set<StoreCommandListener>();
  private readonly news = new Listeners();
  /** Calls the listener after a pulse when other processes have written since the last. */
  readonly onNews = this.news.add;
  /** The keys of commands that are being carried out. */
  private readonly handling = new Set<string>();
  /** When new commands were last read, by the store's time. */
  private commandsReadAt = 0;
  /** When all commands were last read, by the monotonic clock. */
  private allCommandsReadAt = -Infinity;
  private readonly listeners = new Listeners();
  readonly onChange = this.listeners.add;
  private readonly changed = this.listeners.call;
  private pulse: NodeJS.Timeout | undefined;
  /** The end of the last change of slots: the pulse and those that open one take turns. */
  private taking: Promise<unknown> = Promise.resolve();
  /** Leases whose last commits the database has lost, until the doubt is saved. */
  private readonly setBack = new Set<LeaseRow>();
  /** Which store it is, as `recognition` has written it. */
  private identity: Identity | undefined;
  private readonly identified = new Listeners<[identity: Identity]>();
  /** Calls the listener with each pulse. */
  readonly onIdentity = this.identified.add;
  readonly time = new ServerTime(() => performance.now());
  private failures = 0;
  private areWritesFailing = false;
  private isClosed = false;
  private pulses = 0;
  /** The number of living processes of the group. */
  processes = 1;
  /** How many of the living processes want more than one request at once. */
  private busy = 0;
  /** This process is busy, and the others know. */
  private isKnownBusy = false;
  private wasBusy = false;
  private readonly loads = new Set<() => number>();
  trouble: string | undefined;
  isGone = false;

  constructor(readonly options: PostgresOptions) {
    this.group = hash('sha256', options.group, 'buffer').subarray(0, 8);
    const { url, sealer, leaseFor = 15 * second } = options;
    this.connection = new PostgresConnection(url, this.group, sealer, leaseFor);
    this.leases = new Leases(() => this.connection.writing, this.group, this.holder, leaseFor);
    this.watch = new LeaseWatch(leaseFor);
  }

  /** A commit under a lease that was lost before is not tried: without an answer it would be in doubt. */
  async ready(batch: Batch): Promise<void> {
    if (batch.attempt === 0 && this.trouble !== undefined) await this.lastMade(batch);
  }

  lastMade(batch: Batch): Promise<number> {
    return this.leases.lastMade(batch, (engine, row) => this.lost(engine as SlotEngine, row));
  }

  apply(batch: Batch): Promise<boolean> {
    return this.leases.apply(batch);
  }

  failed(fault: unknown): Promise<void> {
    this.areWritesFailing = true;
    return this.waitAfter(fault);
  }

  succeeded(): void {
    this.areWritesFailing = false;
    this.setTrouble(undefined);
  }

  /** Calls the listener with each slot of a process that has ended: this process is to go on with its work. */
  onOrphan(listener: (slot: Slot) => void): () => void {
    for (const slot of this.slots.values()) if (slot.engine.kind === 'orphan') listener(slot);
    return this.orphans.add(listener);
  }

  /** Calls the listener with each command that another process has given. */
  onCommand(listener: StoreCommandListener): () => void {
    this.commandListeners.add(listener);
    return () => this.commandListeners.delete(listener);
  }

  /** How many of `most` requests at once this process may make. */
  share(most: number): number {
    return shareOf(most, { processes: this.processes, busy: this.busy, isKnown: this.isKnownBusy });
  }

  /** `load` is asked with each pulse for the most requests at once that were wanted since the last pulse. */
  addLoad(load: () => number): () => void {
    this.loads.add(load);
    return () => this.loads.delete(load);
  }

  slotsBeside(slot: number): readonly Slot[] {
    return [...this.slots.values(), ...this.elsewhere.values()].filter(
      ({ engine }) => engine.lease.slot !== slot,
    );
  }

  async tell(
    to: { readonly only: number } | { readonly allBut: number },
    command: StoreCommand,
    longest = answeredWithin,
  ): Promise<void> {
    const [only, but] = 'only' in to ? [to.only, common] : [null, to.allBut];
    const key = Buffer.concat([commands, keyOf(command.at), randomBytes(6)]);
    const bytes = this.connection.sealing.seal('work', key, command);
    await this.patiently(() =>
      this.connection.writing.query(
        `insert into ${schema}.work select $1::bytea || int4send(slot) || $2::bytea, $3
         from ${schema}.lease where grp = $1 and slot <> all($4::int[]) and ($5::int is null or slot = $5)
         on conflict do nothing`,
        [this.group, key, bytes, [common, but], only],
      ),
    );
    const unanswered = `select 1 from ${schema}.lease l join ${schema}.work w
       on w.key = $1::bytea || int4send(l.slot) || $2::bytea
       where l.grp = $1 and l.until > now() limit 1`;
    for (const end = performance.now() + longest; performance.now() < end;) {
      const { rows } = await this.patiently(() =>
        this.connection.writing.query(unanswered, [this.group, key]),
      );
      if (rows.length === 0) return;
      await pause(lookForAnswers);
    }
  }

  /** Carries out commands that lie in a slot. The pulse goes on with those for which that fails. */
  async carryOut(number: number, isMeant: (command: StoreCommand) => boolean): Promise<void> {
    const slot = this.slots.get(number);
    if (!slot) return;
    for await (const page of pagesUnder<StoreCommand>(slot, 'work', commands, commandsAtOnce))
      for (const { key, value } of page)
        if (isMeant(value)) await this.handleCommand(slot, key, value).catch(() => undefined);
  }

  /** Gives a slot to another living process; false when that one is gone. Nothing may be under way in the slot. */
  handOn(slot: Slot, to: string): Promise<boolean> {
    const { lease } = slot.engine;
    return this.inTurn(async () => {
      if (this.slots.get(lease.slot) !== slot || !(await this.leases.handOn(lease, to))) return false;
      this.slots.delete(lease.slot);
      slot.engine.isLost = true;
      this.commits.rejectLost();
      return true;
    });
  }

  /** Repeats the task while the database is unreachable; `check` throws when it need not be. */
  async patiently<T>(task: () => Promise<T>, check?: () => void): Promise<T> {
    for (;;) {
      if (this.isClosed) throw storeClosed();
      check?.();
      try {
        return await task();
      } catch (fault) {
        await this.waitAfter(fault);
      }
    }
  }

  /** Resolves with a slot of this process, however long that takes: one of `before` if it is still free. */
  async open(before: readonly Lease[]): Promise<Slot> {
    const slot = await this.patiently(() => this.inTurn(() => this.connect(before)));
    this.setTrouble(undefined);
    this.beatLater();
    return slot;
  }

  private async connect(before: readonly Lease[]): Promise<Slot> {
    try {
      await this.connection.open();
      // After an attempt that failed half-way, this process has its slot already.
      const taken = [...this.slots.values()].find(({ engine }) => engine.kind === 'own');
      const own = taken ?? (await this.takeOwn(before));
      // The number of processes must be known before the first request, because limits are divided by it.
      const { time, latest, rows } = await this.leases.beat([own.engine.lease.slot], false);
      this.time.set(Math.max(time, latest + 1));
      this.lookAround(rows);
      this.identity = await this.readIdentity();
      return own;
    } catch (fault) {
      if (this.slots.size === 0) await this.connection.close();
      throw fault;
    }
  }

  setTrouble(trouble: string | undefined): void {
    if (trouble === undefined) this.failures = 0;
    this.isGone = trouble === tablesGone;
    if (trouble === this.trouble) return;
    if (trouble !== undefined) this.options.warn(trouble);
    this.trouble = trouble;
    this.changed();
  }

  /** Shows the trouble; resolves when the task may be repeated, and rejects when the database is closed. */
  private async waitAfter(fault: unknown): Promise<void> {
    if (this.isClosed) throw storeClosed();
    // Between two attempts to connect again there is no connection: the attempts say why they fail.
    if (!(fault instanceof StoreClosed)) this.setTrouble(troubleIn(fault));
    this.failures += 1;
    return pause(Math.min(longestPause, shortestPause * 2 ** (this.failures - 1)));
  }

  /** Gives up the slots of this process, and resolves with their leases. */
  async close(): Promise<readonly Lease[]> {
    await this.commits.close(storeClosed(), () => this.trouble !== undefined || this.slots.size === 0);
    this.isClosed = true;
    clearTimeout(this.pulse);
    await this.taking;
    const leases = Array.from(this.slots.values(), ({ engine }) => engine.lease);
    if (this.connection.isOpen) {
      await this.leases.noteTime(this.time.now()).catch(() => undefined);
      await this.leases.giveUp([...this.slots.keys()]).catch(() => undefined);
    }
    await this.connection.close();
    return leases;
  }

  private inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.taking.then(task);
    this.taking = done.catch(() => undefined);
    return done;
  }

  /**
   * Takes a slot that was given up, else adds one. While other processes live, a slot with work in it is left to be
   * taken over as an orphan: an orphan can be handed on to a process that has the nodes, and an own slot cannot.
   */
  private async takeOwn(before: readonly Lease[]): Promise<Slot> {
    const { rows } = await this.leases.read();
    const isMine = (row: LeaseRow): boolean =>
      before.some(({ slot, token }) => slot === row.slot && token === row.token);
    const isAlone = rows.every(({ holder, isOver }) => holder === '' || holder === this.holder || isOver);
    const free = rows.filter((row) => row.holder === '' && (row.isOver || isMine(row)));
    for (const row of [...free.filter(isMine), ...free.filter((each) => !isMine(each))]) {
      const isLeft = !isAlone && !isMine(row);
      if (isLeft && (await new SlotEngine(this, leaseIn(row), 'elsewhere').hasWork(this.connection.writing)))
        continue;
      const lease = await this.leases.take(row);
      if (lease) return this.have(lease, 'own');
    }
    return this.have(await this.leases.add(), 'own');
  }

  /** Updates what is known of the other processes and their slots. */
  private lookAround(rows: readonly LeaseRow[]): void {
    const before = this.elsewhere;
    const others = rows.filter(({ slot }) => !this.slots.has(slot));
    this.elsewhere = new Map(
      others.map((row) => {
        const known = before.get(row.slot);
        const isKnown = known?.engine.lease.token === row.token;
        return [row.slot, isKnown ? known : new Slot(new SlotEngine(this, leaseIn(row), 'elsewhere'))];
      }),
    );
    const written = JSON.stringify(others.map(({ slot, token, seq }) => [slot, token, seq]));
    this.hasNews ||= written !== this.written;
    this.written = written;
    const living = rows.filter(({ holder, isOver }) => holder !== '' && !isOver);
    const holders = (some: readonly LeaseRow[]): number => new Set(some.map(({ holder }) => holder)).size;
    this.processes = Math.max(1, holders(living));
    this.busy = holders(living.filter(({ isBusy }) => isBusy));
  }

  private have(lease: Lease, kind: 'own' | 'orphan'): Slot {
    const slot = new Slot(new SlotEngine(this, lease, kind));
    this.slots.set(lease.slot, slot);
    this.elsewhere.delete(lease.slot);
    return slot;
  }

  private beatLater(): void {
    clearTimeout(this.pulse);
    if (this.isClosed) return;
    this.pulse = setTimeout(() => {
      void this.inTurn(() => this.beat())
        .catch((fault: unknown) => this.setTrouble(troubleIn(fault)))
        .finally(() => this.beatLater());
    }, this.options.pulseEvery ?? second).unref();
  }

  /** Renews the leases of this process, and takes over those that have run out. */
  private async beat(): Promise<void> {
    // A slot that was lost is being opened again, which says itself why it cannot be.
    if (this.isClosed || !this.connection.isOpen) return;
    const engines = Array.from(this.slots.values(), ({ engine }) => engine);
    const seqs = new Map(engines.map(({ lease }) => [lease, lease.seq]));
    const isBusy = Math.max(0, ...Array.from(this.loads, (load) => load())) > 1;
    const calm = engines.filter(({ since }) => performance.now() - since >= calmAfter);
    const { time, added, rows } = await this.leases.beat(
      [...this.slots.keys()],
      isBusy,
      calm.map(({ lease }) => lease.slot),
    );
    this.isKnownBusy = isBusy && this.wasBusy;
    this.wasBusy = isBusy;
    const identity = await this.readIdentity();
    // Somebody has emptied the tables. A slot that is opened again meets the empty store as a restart does.
    const isReplaced = this.identity !== undefined && identity?.id !== this.identity.id;
    this.identity = identity;
    this.lookAround(rows);
    for (const engine of engines) {
      const { lease } = engine;
      const row = rows.find(({ slot }) => slot === lease.slot);
      const isBehind = row !== undefined && BigInt(row.seq) < (seqs.get(lease) ?? 0n);
      if (isReplaced || row?.token !== lease.token || isBehind) await this.lost(engine, row);
    }
    // A machine that slept has lost its leases, and takes the time over when it opens its slot again.
    const isInStep = engines.length > 0 && engines.every(({ isLost }) => !isLost);
    if (isInStep) await this.followTime(time, added);
    await this.recordDoubts();
    if (!this.areWritesFailing) this.setTrouble(undefined);
    await this.readCommands();
    const others = rows.filter(({ slot }) => !this.slots.has(slot));
    const ended = this.watch.ended(others, performance.now());
    // A slot that another process has handed on to this one is taken at once.
    for (const row of others) if (row.holder === this.holder || ended.includes(row)) await this.adopt(row);
    if (identity) this.identified.call(identity);
    if (this.hasNews) {
      this.hasNews = false;
      this.news.call();
    }
    if (++this.pulses % dropEvery === 0) {
      await this.dropEmpty();
      await this.leases.noteTime(this.time.now());
    }
  }

  private async followTime(time: number, added: string): Promise<void> {
    const change = this.time.observe(time);
    if (change === 0 || !(await this.leases.addToClock(-change, added))) return;
    this.options.warn(
      `The clock of the database was changed by ${Math.round(change / second)} seconds: ages and checks still follow the previous time.`,
    );
  }

  private async readIdentity(): Promise<Identity | undefined> {
    const { rows } = await this.connection.writing.query<{ value: Buffer }>(
      `select value from ${schema}.work where key = $1`,
      [Buffer.concat([prefixOf(this.group, common), identityKey])],
    );
    const found = rows[0] && this.connection.sealing.open('work', identityKey, rows[0].value);
    return found?.value as Identity | undefined;
  }

  /** Commands that nobody could carry out stay until their node comes. They are tried for a minute, then once a minute. */
  private async readCommands(): Promise<void> {
    const [now, elapsed] = [this.time.now(), performance.now()];
    const areAllDue = elapsed - this.allCommandsReadAt >= tryCommandsFor;
    const prefixes: Buffer[] = [];
    const starts = Array.from(this.slots.values(), ({ engine: { lease, since } }) => {
      const prefix = keyOf(prefixOf(this.group, lease.slot), commands);
      prefixes.push(prefix);
      return areAllDue || elapsed - since < tryCommandsFor
        ? prefix
        : keyOf(prefix, this.commandsReadAt - tryCommandsFor);
    });
    const ends = prefixes.map(endOf);
    for (let last: Buffer = Buffer.alloc(0); ;) {
      const { rows } = await this.connection.writing.query<{ key: Buffer; value: Buffer }>(
        `select key, value from unnest($1::bytea[], $2::bytea[]) x(a, b)
         join ${schema}.work on key >= a and key < b and key > $3 order by key limit ${commandsAtOnce}`,
        [starts, ends, last],
      );
      this.handleCommands(rows);
      const final = rows.at(-1);
      if (!final || rows.length < commandsAtOnce) break;
      last = final.key;
    }
    this.commandsReadAt = now;
    if (areAllDue) this.allCommandsReadAt = elapsed;
  }

  private handleCommands(rows: readonly { readonly key: Buffer; readonly value: Buffer }[]): void {
    for (const { key, value } of rows) {
      const slot = this.slots.get(key.readUInt32BE(8));
      const name = asName(key);
      if (!slot || this.handling.has(name)) continue;
      this.handling.add(name);
      const own = bare(key);
      const command = this.connection.sealing.open('work', own, value)?.value as StoreCommand | undefined;
      void this.handleCommand(slot, own, command)
        // The next pulse reads the command again.
        .catch(() => undefined)
        .finally(() => this.handling.delete(name));
    }
  }

  private async handleCommand(slot: Slot, key: Buffer, command: StoreCommand | undefined): Promise<void> {
    // Nobody could carry the command out: its node has left the flow.
    const isOver = !command || this.time.now() - command.at >= keptAfterRemoval;
    const done = isOver ? [] : Array.from(this.commandListeners, (listener) => listener(slot, command));
    const isDone = isOver || (await Promise.all(done)).some(Boolean);
    if (isDone) await slot.write([{ table: 'work', remove: key }]);
  }

  private async adopt(row: LeaseRow): Promise<void> {
    const lease = await this.leases.take(row);
    if (!lease || this.isClosed) return;
    this.orphans.call(this.have(lease, 'orphan'));
  }

  private async lost(engine: SlotEngine, row: LeaseRow | undefined): Promise<void> {
    const { lease } = engine;
    if (this.slots.get(lease.slot)?.engine === engine) this.slots.delete(lease.slot);
    if (engine.isLost) return;
    engine.isLost = true;
    this.commits.rejectLost();
    const isSetBack =
      row !== undefined &&
      (BigInt(row.token) < BigInt(lease.token) || (row.token === lease.token && BigInt(row.seq) < lease.seq));
    if (isSetBack) {
      this.options.warn(
        'The database has lost commits that it had confirmed, as after a failover to a standby that was behind. Work that was in progress leaves as outcome_unknown: check before you try again, and use a synchronous standby.',
      );
      this.setBack.add(row);
    } else if (engine.kind === 'own') this.options.warn(engine.trouble ?? '');
    this.changed();
    await this.recordDoubts();
  }

  /** The next holder of a slot whose last commits were lost then knows that more may have been done than is saved. */
  private async recordDoubts(): Promise<void> {
    for (const row of this.setBack) {
      await this.leases.doubt(row, this.time.now());
      this.setBack.delete(row);
    }
  }

  /** Removes slots that were taken over and have no work left. */
  private async dropEmpty(): Promise<void> {
    for (const [number, slot] of this.slots) {
      if (slot.engine.kind !== 'orphan' || (await slot.engine.hasWork(this.connection.writing))) continue;
      this.slots.delete(number);
      await slot.engine.drop(this.connection.writing);
      this.changed();
    }
  }
}

/** The store of a group of processes, for one of its users in this process. */
export type PostgresHandle = ReturnType<typeof openPostgres>;

/** The store of a handle; it closes with the handle. */
export const storeOf = (slot: Slot, close: () => Promise<void>): Store => new Slot(slot.engine, close);

interface SharedDatabase {
  readonly database: SlotRegister;
  opened: Promise<Slot>;
}

/** What is left are the leases that this process gave up. */
const sharedDatabases = processMemory('stores', new Map<string, Shared<SharedDatabase, readonly Lease[]>>());

/** Opens the database for a group. A process has one for each pair, however many use it; it closes with its last user. */
export const openPostgres = (options: PostgresOptions) => {
  const name = JSON.stringify([options.url, options.group]);
  const open = (before: Promise<readonly Lease[]> = Promise.resolve([])): SharedDatabase => {
    const database = new SlotRegister(options);
    const opened = before.then((leases) => database.open(leases));
    opened.catch(() => undefined);
    return { database, opened };
  };
  const { made, close } = share(sharedDatabases, name, open);
  const { database } = made;
  return {
    database,
    /** Resolves when the database is open. After `isLost`, this is a new promise, for a new slot. */
    get opened(): Promise<Slot> {
      made.opened = made.opened.then((slot) => (slot.peers.isLost ? database.open([]) : slot));
      return made.opened;
    },
    /** Ends the waiting for a database that has not been reached yet. */
    abandon: () => {
      if (database.slots.size > 0 || sharedDatabases.get(name)?.made !== made) return;
      sharedDatabases.delete(name);
      void database.close();
    },
    close: () => close(() => database.close()),
  };
};
