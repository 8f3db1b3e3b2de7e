import type * as Lmdb from 'lmdb';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import {
  claimKey,
  CommitFailed,
  DatabaseFile,
  format,
  NewerFormat,
  type Ownership,
  type Place,
  type RawOperation,
} from './database-file';
import { compactFile, forgetStarts, isDamage, prepareFile } from './recovery';
import { createMemoryStore, type MemoryStore } from './memory';
import { bootId, forget, lifeOf, livingOwner, showLife, type SignOfLife } from './owner';
import { Sealing, versionOf, type Sealer } from './sealing';
import {
  checkSize,
  checkWrite,
  type Condition,
  type Entry,
  type Operation,
  type Range,
  type Store,
  type Table,
  type Version,
} from './store';

export interface EmbeddedOptions {
  readonly directory: string;
  readonly sealer: Sealer;
  readonly warn: (text: string) => void;
  /** Without `monotonic`, `now` never runs back. */
  readonly clock?: { now(): number; monotonic?(): number };
  /** Names this run of the system. */
  readonly boot?: string | undefined;
}

const fileName = 'store.mdb';
const largestCommit = 4 * 1024 * 1024;
/** Milliseconds between two looks at who owns the file. */
const lookEvery = 2000;
/** An owner that shows no sign of life has this long to answer a claim. */
const claimFor = 6000;
/** A start that lived this long went well. */
const calmAfter = 60_000;
const shortestPause = 250;
const longestPause = 5000;

const systemClock = { now: () => Date.now(), monotonic: () => performance.now() };

interface Pending {
  readonly operations: readonly RawOperation[];
  readonly conditions: readonly Condition[];
  readonly bytes: number;
  settle(done: boolean): void;
  reject(fault: Error): void;
}

interface Batch {
  readonly commit: number;
  readonly bytes: number;
  readonly operations: readonly RawOperation[];
  readonly entries: readonly { readonly pending: Pending; readonly holds: boolean }[];
}

const reasonOf = (fault: unknown): string => (fault instanceof Error ? fault.message : String(fault));

/** Files of an earlier version that were mentioned. */
const named = new Set<string>();

const closed = (): Error => new Error('the store is closed');

/** The store in one directory for the whole process. */
class Embedded implements Store {
  readonly durable = true;
  readonly #directory: string;
  readonly #path: string;
  readonly #lmdb: typeof Lmdb;
  readonly #sealing: Sealing;
  readonly #warn: (text: string) => void;
  readonly #clock: { now(): number; monotonic(): number };
  readonly #boot: string | undefined;
  readonly #holder = randomBytes(16).toString('hex');
  readonly #listeners = new Set<() => void>();

  #file: DatabaseFile | undefined;
  #life: SignOfLife | undefined;
  /** The version of the owner's record while this process is the owner. */
  #owned: number | undefined;
  #commit = 0;
  #claimed: { readonly version: number; readonly at: number } | undefined;

  #queue: Pending[] = [];
  #unwritten = 0;
  #scheduled = false;
  #committing: Promise<void> | undefined;
  /** A commit of which nobody knows whether it came about. */
  #unsure: Batch | undefined;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;

  #trouble: string | undefined = 'The stored state is being opened.';
  #waiting: { resolve(): void; reject(fault: Error): void }[] = [];
  #isDamaged = false;
  #calm: NodeJS.Timeout | undefined;
  #isStarted = false;
  #isClosed = false;
  #look: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  /** The store's time when it was taken over, less the monotonic clock at that moment. */
  #epoch: number;
  #sawLocked = false;
  #movingAside = new Set<string>();
  #damaged = 0;

  constructor(
    lmdb: typeof Lmdb,
    { directory, sealer, warn, clock = systemClock, boot = bootId() }: EmbeddedOptions,
  ) {
    this.#lmdb = lmdb;
    this.#directory = directory;
    this.#path = join(directory, fileName);
    this.#sealing = new Sealing(sealer);
    this.#warn = warn;
    this.#boot = boot;
    const { monotonic } = clock;
    this.#clock = {
      now: () => clock.now(),
      monotonic: monotonic ? () => monotonic.call(clock) : neverBack(() => clock.now()),
    };
    this.#epoch = this.#clock.now() - this.#clock.monotonic();
  }

  /** Resolves when the store can be used, or when it is clear that this takes longer. */
  async start(): Promise<void> {
    await this.#lookNow();
    this.#isStarted = true;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  get unwritten(): number {
    return this.#unwritten;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  now(): number {
    return Math.floor(this.#epoch + this.#clock.monotonic());
  }

  hash(text: string): Buffer {
    return this.#sealing.hash(text);
  }

  // Reading

  async get<T>(table: Table, key: Buffer): Promise<Entry<T> | undefined> {
    const sealed = await this.#read((file) => file.get(table, key));
    return sealed && this.#open<T>(table, key, sealed);
  }

  async page<T>(table: Table, range: Range): Promise<readonly Entry<T>[]> {
    const found = await this.#read((file) => file.range(table, range));
    return found.flatMap(({ key, value }) => this.#open<T>(table, key, value) ?? []);
  }

  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    return this.#read((file) => file.count(table, from, to));
  }

  async hasLost(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    const aside = await this.#read((file) =>
      file.count('damaged', asideKey(table, from), asideKey(table, to)),
    );
    let start = from;
    while (aside === 0 && this.#sawLocked) {
      const range = { from: start, to, limit: 1000 };
      const page = await this.#read((file) => file.range(table, range));
      if (page.some(({ value }) => this.#sealing.isLocked(value))) return true;
      const last = page.at(-1);
      if (!last) return false;
      start = Buffer.concat([last.key, Buffer.alloc(1)]);
    }
    return aside > 0;
  }

  #open<T>(table: Table, key: Buffer, sealed: Buffer): Entry<T> | undefined {
    const opened = this.#sealing.open(table, key, sealed);
    if (opened) return { key, value: opened.value as T, version: versionOf(sealed) };
    if (this.#sealing.isLocked(sealed)) this.#passOver();
    else this.#setAside(table, key, sealed);
    return undefined;
  }

  #passOver(): void {
    if (!this.#sawLocked)
      this.#warn(
        'Stored records are sealed with a key that is not to be had, as after a start with another credential secret. ' +
          'They stay where they are, and are read again once it is back. Everything else goes on.',
      );
    this.#sawLocked = true;
  }

  #setAside(table: Table, key: Buffer, sealed: Buffer): void {
    const aside = asideKey(table, key);
    const name = aside.toString('latin1');
    if (this.#movingAside.has(name)) return;
    this.#movingAside.add(name);
    void this.#enqueue(
      [
        { place: 'damaged', key: aside, bytes: sealed },
        { place: table, key, bytes: undefined },
      ],
      [{ table, key, version: versionOf(sealed) }],
    )
      .catch(() => false)
      .finally(() => this.#movingAside.delete(name));
    this.#damaged += 1;
    if (this.#damaged > 1) return;
    setImmediate(() => {
      this.#warn(
        `${this.#damaged} stored record(s) were damaged and have been set aside in the table "damaged". ` +
          'Everything else goes on.',
      );
      this.#damaged = 0;
    });
  }

  /** Waits until this process owns the file. */
  async #read<T>(use: (file: DatabaseFile) => T): Promise<T> {
    for (;;) {
      if (this.#isClosed) throw closed();
      if (this.#file && this.#owned !== undefined) {
        try {
          return use(this.#file);
        } catch (fault) {
          if (!isDamage(fault)) throw fault;
          this.#giveUpDamaged(fault);
        }
      }
      await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    }
  }

  // Writing

  async write(operations: readonly Operation[], conditions: readonly Condition[] = []): Promise<boolean> {
    checkWrite(operations, conditions);
    const raw = operations.map((each) =>
      'put' in each
        ? { place: each.table, key: each.put, bytes: this.#sealing.seal(each.table, each.put, each.value) }
        : { place: each.table, key: each.remove, bytes: undefined },
    );
    return this.#enqueue(raw, conditions);
  }

  #enqueue(operations: readonly RawOperation[], conditions: readonly Condition[]): Promise<boolean> {
    if (this.#isClosed) throw closed();
    const bytes = operations.reduce(
      (sum, { key, bytes: value }) => sum + key.length + (value?.length ?? 0),
      0,
    );
    checkSize(bytes);
    this.#unwritten += bytes;
    return new Promise<boolean>((resolve, reject) => {
      const finish = (): void => {
        this.#unwritten -= bytes;
      };
      this.#queue.push({
        operations,
        conditions,
        bytes,
        settle: (done) => {
          finish();
          resolve(done);
        },
        reject: (fault) => {
          finish();
          reject(fault);
        },
      });
      this.#schedule();
    });
  }

  /** At the end of this turn of the event loop, so that all that it writes is one commit. */
  #schedule(): void {
    if (this.#scheduled || this.#committing || this.#retry) return;
    if (this.#queue.length === 0 || this.#owned === undefined) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#commitNext();
    });
  }

  #commitNext(): void {
    const [file, owned] = [this.#file, this.#owned];
    if (!file || owned === undefined || this.#committing || this.#queue.length === 0) return;
    const batch = this.#gather(file);
    this.#committing = this.#commitBatch(file, owned, batch).finally(() => {
      this.#committing = undefined;
      this.#schedule();
    });
  }

  async #commitBatch(file: DatabaseFile, owned: number, batch: Batch): Promise<void> {
    try {
      if (
        batch.operations.length > 0 &&
        !(await file.commit(owned, this.#ownership(batch.commit), batch.operations))
      ) {
        this.#putBack(batch);
        if (this.#owned === owned) this.#lose();
        return;
      }
    } catch (fault) {
      if (isDamage(fault)) {
        this.#putBack(batch);
        this.#giveUpDamaged(fault);
        return;
      }
      if (!(fault instanceof CommitFailed)) throw fault;
      this.#unsure = batch;
      this.#fail(fault);
      return;
    }
    this.#finish(batch);
  }

  #finish(batch: Batch): void {
    this.#commit = batch.commit;
    this.#failures = 0;
    this.#setTrouble(undefined);
    for (const { pending, holds } of batch.entries) pending.settle(holds);
  }

  #putBack(batch: Batch): void {
    this.#queue = [...batch.entries.map(({ pending }) => pending), ...this.#queue];
  }

  /** Only the owner writes, one commit at a time: what holds now holds when this batch is committed, or nothing is. */
  #gather(file: DatabaseFile): Batch {
    file.refresh();
    let [count, bytes] = [0, 0];
    for (const { bytes: more } of this.#queue) {
      if (count > 0 && bytes + more > largestCommit) break;
      bytes += more;
      count += 1;
    }
    const taken = this.#queue.splice(0, count);
    const versions = taken.some(({ conditions }) => conditions.length > 0)
      ? new Map<string, Version | undefined>()
      : undefined;
    const operations: RawOperation[] = [];
    const entries = taken.map((pending) => {
      const holds = pending.conditions.every(({ table, key, version }) => {
        const name = asideKey(table, key).toString('latin1');
        const current = versions?.has(name) ? versions.get(name) : this.#versionIn(file, table, key);
        return current === version;
      });
      if (holds)
        for (const operation of pending.operations) {
          const { place, key, bytes: sealed } = operation;
          if (sealed && this.#sawLocked) this.#keepLocked(file, place, key, operations);
          operations.push(operation);
          versions?.set(asideKey(place, key).toString('latin1'), sealed && versionOf(sealed));
        }
      return { pending, holds };
    });
    return { commit: this.#commit + 1, bytes, operations, entries };
  }

  /** A record that nobody can read counts as absent, or nothing could ever take its place. */
  #versionIn(file: DatabaseFile, table: Table, key: Buffer): Version | undefined {
    const sealed = file.peek(table, key);
    if (!sealed) return undefined;
    const version = versionOf(sealed);
    return this.#sealing.isLocked(sealed) ? undefined : version;
  }

  /** Something new takes the place of a record whose key may come back. */
  #keepLocked(file: DatabaseFile, place: Place, key: Buffer, operations: RawOperation[]): void {
    if (place === 'damaged' || place === 'meta') return;
    const sealed = file.get(place, key);
    const aside = asideKey(place, key);
    if (!sealed || !this.#sealing.isLocked(sealed) || file.peek('damaged', aside)) return;
    operations.push({ place: 'damaged', key: aside, bytes: sealed });
  }

  #ownership(commit: number): Ownership {
    return {
      holder: this.#holder,
      address: this.#life?.address,
      pid: process.pid,
      boot: this.#boot,
      commit,
      time: this.now(),
    };
  }

  #fail(fault: unknown): void {
    const pause = Math.min(longestPause, shortestPause * 2 ** this.#failures);
    this.#failures += 1;
    this.#setTrouble(
      `The state in ${this.#directory} cannot be written (${reasonOf(fault instanceof CommitFailed ? fault.cause : fault)}): ` +
        'nothing is sent until it can be. Free some space, or make the directory writable; it then goes on by itself.',
    );
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#tryAgain(), pause).unref();
  }

  /**
   * The file is opened anew: after an error of the disk lmdb may take no more commits, and only the file itself can tell
   * whether the last one came about.
   */
  async #tryAgain(): Promise<void> {
    try {
      await this.#file?.close();
      this.#file = undefined;
      if (this.#isClosed) return;
      const file = this.#openFile();
      this.#file = file;
      const owner = file.meta('owner');
      if (owner?.version !== this.#owned) this.#lose();
      this.#settleUnsure(owner?.value);
      this.#retry = undefined;
      this.#wake();
      this.#schedule();
    } catch (fault) {
      this.#retry = undefined;
      this.#fail(fault);
    }
  }

  #settleUnsure(owner: Ownership | undefined): void {
    const batch = this.#unsure;
    this.#unsure = undefined;
    if (!batch) return;
    if (owner?.holder === this.#holder && owner.commit === batch.commit) this.#finish(batch);
    else this.#putBack(batch);
  }

  // Owning

  #lookLater(): void {
    if (this.#isClosed) return;
    // Those who gave way to each other must not do so for ever.
    this.#look = setTimeout(() => void this.#lookNow(), lookEvery * (0.5 + Math.random() / 2)).unref();
  }

  async #lookNow(): Promise<void> {
    clearTimeout(this.#look);
    this.#looking = this.#lookOnce()
      .catch((fault: unknown) => {
        if (fault instanceof NewerFormat && !this.#isStarted) throw fault;
        this.#setTrouble(
          `The state in ${this.#directory} cannot be opened (${reasonOf(fault)}): nothing is sent until it can be. ` +
            'Make the directory writable, or free some space; it then goes on by itself.',
        );
      })
      .finally(() => this.#lookLater());
    await this.#looking;
  }

  async #lookOnce(): Promise<void> {
    // Between two attempts to write the file is closed for a moment.
    if (this.#retry || this.#isClosed) return;
    if (this.#owned !== undefined) {
      this.#checkOwnership(this.#owned);
      return;
    }
    await this.#dropFile();
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const living = await livingOwner(this.#directory);
    if (living !== undefined) {
      this.#setTrouble(this.#ownedBy(living));
      return;
    }
    this.#life = await showLife(this.#directory);
    try {
      // Of two that show life at the same time at least one sees the other: never do both go on.
      if ((await livingOwner(this.#directory, this.#life.address)) === undefined) await this.#tryToOwn();
      if (this.#owned !== undefined) this.#begin();
    } finally {
      if (this.#owned === undefined) {
        await this.#dropFile();
        await this.#hideLife();
      }
    }
  }

  /** No other process whose life can be seen has the file open. */
  async #tryToOwn(): Promise<void> {
    const { isMostlyFree } = await prepareFile(this.#lmdb, this.#path, this.#warn, this.#isDamaged);
    this.#isDamaged = false;
    const file = (this.#file = this.#openFile());
    const owner = file.meta('owner');
    if ((file.meta('format')?.value.version ?? 0) > format.version) throw new NewerFormat();
    if (owner?.value.holder !== undefined && !(await this.#isGone(file, owner))) {
      this.#setTrouble(this.#ownedBy(owner.value.pid));
      return;
    }
    if (!(await this.#takeOver(file, owner)) || !isMostlyFree) return;
    // Whoever still had the old file open has lost it by now.
    this.#owned = undefined;
    await this.#dropFile();
    await compactFile(this.#lmdb, this.#path, this.#warn);
    const compact = (this.#file = this.#openFile());
    await this.#takeOver(compact, compact.meta('owner'));
  }

  async #dropFile(): Promise<void> {
    await this.#committing;
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #ownedBy(pid: number | undefined): string {
    return (
      `Another process (${pid ?? 'unknown'}) works with the state in ${this.#directory}: nothing is sent from here ` +
      'until it ends. Then this one takes over. If both are to work, give each Node-RED its own user directory.'
    );
  }

  #checkOwnership(owned: number): void {
    this.#file?.refresh();
    if (this.#file?.meta('owner')?.version !== owned) this.#lose();
    else if (this.#file.meta('claim')) this.#answerClaim();
  }

  async #isGone(
    file: DatabaseFile,
    { value, version }: { readonly value: Ownership; readonly version: number },
  ): Promise<boolean> {
    if (value.boot !== undefined && this.#boot !== undefined && value.boot !== this.#boot) return true;
    const life = await lifeOf(this.#directory, value.address);
    if (life !== 'unknown') {
      this.#claimed = undefined;
      return life === 'dead';
    }
    const at = performance.now();
    if (this.#claimed?.version !== version || !file.meta('claim')) {
      this.#claimed = { version, at };
      await file.claim(this.#holder);
      return false;
    }
    return at - this.#claimed.at >= claimFor;
  }

  #answerClaim(): void {
    this.#enqueue([{ place: 'meta', key: claimKey, bytes: undefined }], []).catch(() => undefined);
  }

  async #takeOver(
    file: DatabaseFile,
    before: { readonly value: Ownership; readonly version: number } | undefined,
  ): Promise<boolean> {
    const time = Math.max(this.#clock.now(), before?.value.time ?? 0, this.now());
    const commit = (before?.value.commit ?? 0) + 1;
    const epoch = time - this.#clock.monotonic();
    if (!(await file.hand(before?.version, { ...this.#ownership(commit), time }))) return false;
    this.#epoch = epoch;
    this.#owned = (before?.version ?? 0) + 1;
    this.#commit = commit;
    this.#claimed = undefined;
    if (before?.value.address !== undefined) forget(this.#directory, before.value.address);
    return true;
  }

  #begin(): void {
    this.#nameOldFile();
    this.#calm = setTimeout(() => forgetStarts(this.#path), calmAfter).unref();
    this.#setTrouble(undefined);
    this.#wake();
    this.#schedule();
  }

  /** The engine says that the file is damaged: it is given up, and the next look carries over what can be read. */
  #giveUpDamaged(fault: unknown): void {
    if (this.#owned === undefined) return;
    this.#isDamaged = true;
    this.#owned = undefined;
    this.#setTrouble(
      `The state in ${this.#directory} is damaged (${reasonOf(fault)}): what can be read is carried over into a new file.`,
    );
    void this.#hideLife();
    clearTimeout(this.#look);
    this.#look = setTimeout(() => void this.#lookNow(), 0);
  }

  #lose(): void {
    if (this.#owned === undefined) return;
    this.#owned = undefined;
    this.#setTrouble(
      `Another process has taken over the state in ${this.#directory}: nothing is sent from here until it ends. ` +
        'Give each Node-RED its own user directory.',
    );
    void this.#hideLife();
  }

  /** Only an owner shows life, or those who wait would wait for each other. */
  async #hideLife(): Promise<void> {
    const life = this.#life;
    this.#life = undefined;
    await life?.close();
  }

  #wake(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #openFile(): DatabaseFile {
    return new DatabaseFile(this.#lmdb, this.#path);
  }

  #nameOldFile(): void {
    const old = join(this.#directory, 'state.mdb');
    if (named.has(old) || !existsSync(old)) return;
    named.add(old);
    this.#warn(
      `${old} was written by a version before the first release and is not used. It can be deleted.`,
    );
  }

  #setTrouble(trouble: string | undefined): void {
    if (trouble === this.#trouble) return;
    if (trouble !== undefined) this.#warn(trouble);
    this.#trouble = trouble;
    for (const listener of [...this.#listeners]) listener();
  }

  async close(): Promise<void> {
    clearTimeout(this.#look);
    await this.#looking.catch(() => undefined);
    if (this.#retry) {
      clearTimeout(this.#retry);
      await this.#tryAgain();
    }
    while ((this.#queue.length > 0 || this.#committing) && this.#owned !== undefined && !this.#retry) {
      this.#commitNext();
      await this.#committing;
    }
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#calm);
    const fault = closed();
    const unsure = this.#unsure?.entries.map(({ pending }) => pending) ?? [];
    for (const { reject } of [...unsure, ...this.#queue.splice(0), ...this.#waiting.splice(0)]) reject(fault);
    if (this.#file && this.#owned !== undefined) {
      await this.#release(this.#file, this.#owned);
      forgetStarts(this.#path);
    }
    await this.#file?.close();
    await this.#hideLife();
  }

  async #release(file: DatabaseFile, owned: number): Promise<void> {
    const given = { commit: this.#commit, time: this.now() };
    await file.hand(owned, given).catch(() => false);
  }
}

const neverBack = (now: () => number): (() => number) => {
  let latest = now();
  return () => (latest = Math.max(latest, now()));
};

/** A record's name among those of both tables. */
const asideKey = (table: Place, key: Buffer): Buffer => Buffer.concat([Buffer.from(`${table}/`), key]);

// One for each directory in a process, whoever asks

interface Shared {
  users: number;
  readonly opening: Promise<Store>;
}

const shared = new Map<string, Shared>();
const closing = new Map<string, Promise<void>>();
/** A deploy closes and opens again: what is in memory alone stays there for the life of the process. */
const inMemory = new Map<string, MemoryStore>();

const openOnce = async (options: EmbeddedOptions): Promise<Store> => {
  const { directory, warn, clock } = options;
  const kept = inMemory.get(directory);
  if (kept) return kept;
  const inMemoryBecause = (reason: string): Store => {
    warn(`${reason}: texts and waits live in memory and are lost when this process ends.`);
    const store = createMemoryStore(clock && { clock });
    inMemory.set(directory, store);
    return store;
  };
  let lmdb: typeof Lmdb;
  try {
    lmdb = await import('lmdb');
  } catch (fault) {
    return inMemoryBecause(`The database lmdb cannot be loaded on this machine (${reasonOf(fault)})`);
  }
  const store = new Embedded(lmdb, options);
  try {
    await store.start();
    return store;
  } catch (fault) {
    await store.close();
    if (!(fault instanceof NewerFormat)) throw fault;
    return inMemoryBecause(
      `The state in ${directory} was written by a newer version of this package and is left alone. Install that version again to go on with it`,
    );
  }
};

/** Two names of one directory are one store. */
const realPathOf = (directory: string): string => {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    return realpathSync(directory);
  } catch {
    // Opening it will say why.
    return directory;
  }
};

/** The store in a directory: one in a process, whoever asks; it closes with its last user. */
export const openEmbedded = async (options: EmbeddedOptions): Promise<Store> => {
  const directory = realPathOf(options.directory);
  let entry = shared.get(directory);
  if (!entry) {
    const before = closing.get(directory) ?? Promise.resolve();
    entry = { users: 0, opening: before.then(() => openOnce({ ...options, directory })) };
    shared.set(directory, entry);
  }
  entry.users += 1;
  const mine = entry;
  const store = await mine.opening;
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    mine.users -= 1;
    if (mine.users > 0) return;
    shared.delete(directory);
    if (!store.durable) return;
    const ending = store.close();
    closing.set(directory, ending);
    await ending;
    if (closing.get(directory) === ending) closing.delete(directory);
  };
  return handleOf(store, close);
};

const handleOf = (store: Store, close: () => Promise<void>): Store => ({
  durable: store.durable,
  get trouble() {
    return store.trouble;
  },
  get unwritten() {
    return store.unwritten;
  },
  onChange: (listener) => store.onChange(listener),
  now: () => store.now(),
  hash: (text) => store.hash(text),
  get: (table, key) => store.get(table, key),
  page: (table, range) => store.page(table, range),
  count: (table, from, to) => store.count(table, from, to),
  hasLost: (table, from, to) => store.hasLost(table, from, to),
  write: (operations, conditions) => store.write(operations, conditions),
  close,
});
