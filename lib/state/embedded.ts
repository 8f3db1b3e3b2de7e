import { minute, second } from '../durations';
import { tried } from '../kinds';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { elapsedBy, systemClock, type Clock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import { CommitQueue, type Batch, type Committer, type Table } from './commit-queue';
import { DatabaseFile, isWithoutBinary, loadLmdb, type Ownership } from './database-file';
import { MemoryEngine } from './memory';
import { forget, lifeOf, livingOwner, showLife } from './sign-of-life';
import { forgetStarts, isDamage, prepareFile, replaceFile } from './recovery';
import { sealingWith, type Sealer, type Sealing } from './sealing';
import {
  NewerFormat,
  OtherSecret,
  reasonOf,
  storeClosed,
  Store,
  type Engine,
  type Range,
  type Row,
} from './store';
import { Listeners } from '../listeners';
import { processMemory, share, type Shared } from '../process-memory';

export interface EmbeddedOptions {
  readonly directory: string;
  readonly sealer: Sealer;
  readonly warn: (text: string) => void;
  readonly clock?: Pick<Clock, 'now' | 'elapsed'>;
  /**
   * A wall clock that shows an earlier time is wrong, as on a machine without a battery whose time has not arrived yet. A
   * store is not started then: everything in it would be decades old at the next start.
   */
  readonly earliest?: number;
}

const fileName = 'store.mdb';
/** The most milliseconds between two checks of who owns the file. */
const lookEvery = 2 * second;
/** Milliseconds that an owner without a sign of life has to answer a claim. */
const claimFor = 6 * second;
/** A process that has run for this many milliseconds counts as started. */
const calmAfter = minute;
const shortestPause = 250;
const longestPause = 5 * second;
const mostRebuilds = 3;
/** Bytes that must fit on the disk before a failed commit is repeated. */
const roomNeeded = 1024 * 1024;

type FoundOwner = NonNullable<ReturnType<typeof ownerIn>>;
const ownerIn = (file: DatabaseFile): { readonly value: Ownership; readonly version: number } | undefined =>
  file.meta('owner');

/** The file in one directory: one for the whole process. */
class EmbeddedEngine implements Engine, Committer {
  readonly durable = true;
  private readonly directory: string;
  private readonly path: string;
  private readonly sealer: Sealer;
  readonly sealing: Sealing;
  readonly warn: (text: string) => void;
  private readonly clock: NonNullable<EmbeddedOptions['clock']>;
  private readonly earliest: number;
  /** The store's time was taken from the record, because the wall clock was wrong at the start. */
  private isTimeOld = false;
  private readonly holder = randomBytes(16).toString('hex');
  readonly commits = new CommitQueue(this);
  private readonly listeners = new Listeners();
  readonly onChange = this.listeners.add;
  trouble: string | undefined = 'The saved data is being opened.';
  /** Wakes reads and commits that wait until this process owns the file. */
  private readonly woken = new Listeners();
  /** The difference between the store's time and the monotonic clock. */
  private epoch: number;

  private file: DatabaseFile | undefined;
  private life: Awaited<ReturnType<typeof showLife>> | undefined;
  /** The version of the owner's record; undefined while another process owns the file. */
  private owned: number | undefined;
  /** What is written until another process takes the file over. */
  fence = { isLost: false };
  private lastCommit = 0;
  private applying: Promise<unknown> | undefined;
  private claimed:
    { readonly from: string; readonly at: number; readonly made: bigint | undefined } | undefined;
  private inode: number | undefined;
  isGone = false;
  losses = 0;
  crashes = 0;
  private hasLooked = false;
  private isDamaged = false;
  private timesDamaged = 0;
  private isClosed = false;
  private look: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();
  private calm: NodeJS.Timeout | undefined;
  private failures = 0;
  /** A commit has failed: the file is opened again before the next. */
  private hasFailed = false;
  hasLostKeys = false;

  constructor({ directory, sealer, warn, clock = systemClock, earliest = 0 }: EmbeddedOptions) {
    this.directory = directory;
    this.path = join(directory, fileName);
    this.sealer = sealer;
    this.sealing = sealingWith(sealer);
    this.warn = warn;
    this.earliest = earliest;
    this.clock = clock;
    this.epoch = clock.now() - elapsedBy(clock);
  }

  readonly now = (): number => Math.floor(this.epoch + elapsedBy(this.clock));

  private get isWritable(): boolean {
    return this.file !== undefined && this.owned !== undefined && !this.isGone && !this.hasFailed;
  }

  // Committing

  async ready(): Promise<void> {
    const { fence } = this;
    while (!this.isWritable && !fence.isLost) await this.nextChange();
  }

  /**
   * Only the owner of the file writes, so conditions are checked before the commit: either they still hold when it is
   * made, or this process is no longer the owner and nothing is written.
   */
  async apply(batch: Batch): Promise<boolean> {
    const { file, owned, fence } = this;
    if (!this.isWritable || !file || owned === undefined) return false;
    file.refresh();
    const changes = batch.begin((table, key) => file.get(table, key));
    if (changes.length === 0) return true;
    const commit = this.lastCommit + batch.attempt;
    const committing = file.commit(owned, this.ownership(commit), changes);
    this.applying = committing.catch(() => undefined);
    const isMade = await committing;
    if (isMade) this.lastCommit = commit;
    else if (!fence.isLost) this.lose();
    return isMade;
  }

  async lastMade(batch: Batch): Promise<number> {
    const owner = this.file && ownerIn(this.file)?.value;
    const attempt = owner?.holder === this.holder ? owner.commit - this.lastCommit : 0;
    if (attempt < 1 || attempt > batch.attempt) return 0;
    this.lastCommit += attempt;
    return attempt;
  }

  succeeded(): void {
    this.failures = 0;
    if (this.owned !== undefined && !this.isGone) this.setTrouble(undefined);
  }

  // Reading

  get(table: Table, key: Buffer): Buffer | undefined | Promise<Buffer | undefined> {
    return this.read((file) => file.get(table, key));
  }

  range(table: Table, range: Range): readonly Row[] | Promise<readonly Row[]> {
    return this.read((file) => file.range(table, range));
  }

  keys(table: Table, range: Range): readonly Buffer[] | Promise<readonly Buffer[]> {
    return this.read((file) => file.keys(table, range));
  }

  count(table: Table, from: Buffer, to: Buffer): number | Promise<number> {
    return this.read((file) => file.count(table, from, to));
  }

  /** Reads at once while this process owns the file: a promise costs more than most reads. */
  private read<T>(use: (file: DatabaseFile) => T): T | Promise<T> {
    const file = this.file;
    if (this.isClosed || !file || this.owned === undefined) return this.readLater(use);
    try {
      return use(file);
    } catch {
      return this.readLater(use);
    }
  }

  /** Reads as soon as this process owns the file. */
  private async readLater<T>(use: (file: DatabaseFile) => T): Promise<T> {
    for (;;) {
      if (!this.isClosed && this.file && this.owned !== undefined) {
        try {
          return use(this.file);
        } catch (fault) {
          // A file that was just rebuilt is not damaged by chance: to rebuild it again would not help.
          if (!isDamage(fault) || this.timesDamaged >= mostRebuilds) throw fault;
          this.giveUpDamaged(fault);
        }
      }
      await this.nextChange();
    }
  }

  private async nextChange(): Promise<void> {
    if (this.isClosed) throw storeClosed();
    await wokenBy(this.woken.add);
  }

  // Owning

  private lookLater(isAtOnce = false): void {
    if (this.isClosed) return;
    clearTimeout(this.look);
    // The random pause keeps two processes from giving way to each other forever.
    const pause = this.hasFailed
      ? Math.min(longestPause, shortestPause * 2 ** (this.failures - 1))
      : lookEvery * (0.5 + Math.random() / 2);
    this.look = setTimeout(() => void this.lookNow(), isAtOnce ? 0 : pause).unref();
  }

  /** Resolves when the store can be used, or when this process has to wait for the file. */
  async lookNow(): Promise<void> {
    clearTimeout(this.look);
    this.looking = this.lookOnce()
      .catch((fault: unknown) => {
        this.setTrouble(this.openingTrouble(fault));
      })
      .finally(() => this.lookLater());
    await this.looking;
  }

  private openingTrouble(fault: unknown): string {
    const state = `The state in ${this.directory}`;
    if (fault instanceof NewerFormat)
      return `${state} was written by a newer version of this package and is not used: nothing is sent. Install that version again.`;
    if (fault instanceof OtherSecret)
      return `${state} is encrypted with another credentialSecret than that of this Node-RED, or its key is gone: nothing is sent. Set the same credentialSecret again, or start once with the previous one in the environment variable ADVISOR_TEXTING_PREVIOUS_SECRET, or restore wrapped-key.json in that directory from a backup. If the key is lost, move that directory away.`;
    const cure = isWithoutBinary(fault)
      ? 'Install the package again on this machine, then restart Node-RED.'
      : 'Make the directory writable, or free some space; sending then resumes on its own.';
    return `${state} cannot be opened (${reasonOf(fault)}): nothing is sent until this is fixed. ${cure}`;
  }

  private async lookOnce(): Promise<void> {
    if (this.isClosed) return;
    if (this.hasFailed) {
      await this.openAgain();
      return;
    }
    if (this.owned !== undefined) {
      if (this.isInPlace()) this.checkOwnership(this.owned);
      else this.noteGone();
      return;
    }
    if (this.isClockWrong && !existsSync(this.path)) {
      this.setTrouble(
        `The clock of this machine shows ${new Date(this.clock.now()).toISOString()}, which cannot be right: nothing is accepted ` +
          'until it is set. Work then resumes on its own.',
      );
      return;
    }
    await this.dropFile();
    mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    const living = await livingOwner(this.directory);
    if (living !== undefined) {
      this.leaveTo(living);
      return;
    }
    this.life = await showLife(this.directory);
    try {
      // Of two processes that show life at the same time, at least one sees the other, so that both never go on.
      if ((await livingOwner(this.directory, this.life.address)) === undefined) await this.tryToOwn();
    } finally {
      if (!this.begin()) {
        await this.dropFile();
        await this.hideLife();
      }
    }
  }

  /** A file that was deleted can be read and written on, but nobody will ever find it again. */
  private isInPlace(): boolean {
    try {
      const found = statSync(this.path, { throwIfNoEntry: false });
      return found !== undefined && found.ino === this.inode;
    } catch {
      // A directory may no longer be entered: the file is still open, and commits show whether it can be written.
      return true;
    }
  }

  private noteGone(): void {
    this.isGone = true;
    this.setTrouble(
      `The state in ${this.directory} was deleted or replaced while it was in use: nothing is sent. Put it back, ` +
        'or stop Node-RED, restore a backup, and start it. Without a backup, the next start begins with an empty store, and ' +
        'nobody is texted until you confirm it.',
    );
  }

  private get isClockWrong(): boolean {
    return this.clock.now() < this.earliest;
  }

  private checkOwnership(owned: number): void {
    if (this.isTimeOld && !this.isClockWrong) {
      this.isTimeOld = false;
      this.epoch = Math.max(this.epoch, this.clock.now() - elapsedBy(this.clock));
    }
    if (this.isGone) this.begin();
    this.file?.refresh();
    if (this.file?.meta('owner')?.version !== owned) this.lose();
    else void this.removeClaim();
  }

  /** Called while no other process shows life. */
  private async tryToOwn(): Promise<void> {
    if (this.sealer.isUnsaved) throw new Error('its encryption key could not be saved');
    const {
      isMostlyFree,
      crashes,
      owner: seen,
    } = await prepareFile(this.path, this.warn, {
      isDamaged: this.isDamaged,
      isFirst: !this.hasLooked,
    });
    if (!this.hasLooked) this.crashes = crashes;
    this.hasLooked = true;
    this.isDamaged = false;
    // lmdb is not asked while another process may have the file open: if that has the same process id, as in another
    // container, lmdb blocks this one for seconds.
    if (seen?.holder !== undefined && !(await this.hasEnded(seen.holder, seen.address))) {
      this.leaveTo(seen.pid);
      return;
    }
    const file = (this.file = new DatabaseFile(this.path));
    const ours = this.sealer.key?.id;
    const { keyId = ours } = file.meta('format')?.value ?? {};
    if (keyId === undefined || keyId !== ours) {
      forgetStarts(this.path);
      throw new OtherSecret();
    }
    const owner = ownerIn(file);
    if (owner?.value.holder !== seen?.holder) return;
    if (!(await this.takeOver(file, owner)) || !isMostlyFree) return;
    // The change of owner has fenced any process that still has the old file open.
    this.owned = undefined;
    await this.dropFile();
    await replaceFile(this.path, this.warn);
    const compact = (this.file = new DatabaseFile(this.path));
    await this.takeOver(compact, ownerIn(compact));
  }

  private async hasEnded(holder: string, address: string | undefined): Promise<boolean> {
    const life = await lifeOf(this.directory, address);
    if (life !== 'unknown') {
      this.claimed = undefined;
      return life === 'dead';
    }
    const at = performance.now();
    const { claimed } = this;
    const made = this.claimMade();
    if (made !== undefined && claimed?.from === holder && claimed.made === made)
      return at - claimed.at >= claimFor;
    if (made === undefined) await writeFile(this.claimPath, '', { mode: 0o600 });
    this.claimed = { from: holder, at, made: this.claimMade() };
    return false;
  }

  /** When the claim was made that is there: one that the owner has removed may have been replaced by another process. */
  private claimMade(): bigint | undefined {
    return statSync(this.claimPath, { bigint: true, throwIfNoEntry: false })?.ctimeNs;
  }

  /** Made by a process that cannot see whether the owner lives. An owner that lives removes it. */
  private get claimPath(): string {
    return `${this.path}-claim`;
  }

  private async removeClaim(): Promise<void> {
    await rm(this.claimPath, { force: true }).catch(() => undefined);
  }

  private async takeOver(file: DatabaseFile, before: FoundOwner | undefined): Promise<boolean> {
    // What is accepted now sorts after everything saved before.
    const time = Math.max(this.clock.now(), (before?.value.time ?? 0) + 1, this.now());
    const epoch = time - elapsedBy(this.clock);
    const commit = (before?.value.commit ?? 0) + 1;
    const format = { ...file.meta('format')?.value, keyId: this.sealer.key?.id };
    if (!(await file.hand(before?.version, { ...this.ownership(commit), time }, format))) return false;
    this.epoch = epoch;
    this.isTimeOld = this.isClockWrong;
    this.owned = (before?.version ?? 0) + 1;
    this.lastCommit = commit;
    this.claimed = undefined;
    await this.removeClaim();
    if (before?.value.address !== undefined) forget(this.directory, before.value.address);
    return true;
  }

  private ownership(commit: number): Ownership {
    return {
      holder: this.holder,
      address: this.life?.address,
      pid: process.pid,
      commit,
      time: this.now(),
    };
  }

  /** Returns false when this process does not own the file. */
  private begin(): boolean {
    const { file } = this;
    if (!file || this.owned === undefined) return false;
    this.hasLostKeys = file.meta('format')?.value.hasLostKeys === true;
    this.inode = statSync(this.path, { throwIfNoEntry: false })?.ino;
    this.isGone = false;
    clearTimeout(this.calm);
    this.calm = setTimeout(() => forgetStarts(this.path), calmAfter).unref();
    this.setTrouble(undefined);
    this.woken.call();
    return true;
  }

  private leaveTo(pid: number | undefined): void {
    this.setTrouble(
      `Another process (${pid ?? 'unknown'}) is using the state in ${this.directory}: nothing is sent from here ` +
        'until it ends. Then this process takes over. To run both, give each Node-RED its own user directory.',
    );
  }

  /**
   * Another process has wrongly taken this one for dead. Writes in the queue follow from earlier reads, and the new
   * owner may have made the same ones: they are dropped.
   */
  private lose(): void {
    this.owned = undefined;
    this.losses += 1;
    this.fence.isLost = true;
    this.fence = { isLost: false };
    this.commits.rejectLost();
    this.woken.call();
    this.setTrouble(
      `Another process has taken over the state in ${this.directory}: nothing is sent from here until it ends. ` +
        'Give each Node-RED its own user directory.',
    );
    void this.hideLife();
  }

  /** Only the owner shows life: waiting processes that did would wait for each other. */
  private async hideLife(): Promise<void> {
    const life = this.life;
    this.life = undefined;
    await life?.close();
  }

  private async dropFile(): Promise<void> {
    const { file } = this;
    this.file = undefined;
    await this.applying;
    await file?.close();
  }

  // Trouble

  private setTrouble(trouble: string | undefined): void {
    if (trouble === this.trouble) return;
    if (trouble !== undefined) this.warn(trouble);
    this.trouble = trouble;
    this.listeners.call();
  }

  failed(fault: unknown): void {
    if (isDamage(fault) && this.timesDamaged < mostRebuilds) this.giveUpDamaged(fault);
    else this.fail(fault);
  }

  private fail(fault: unknown): void {
    this.failures += 1;
    this.hasFailed = true;
    if (this.isInPlace())
      this.setTrouble(
        `The state in ${this.directory} cannot be written (${reasonOf(fault)}): ` +
          'nothing is sent until this is fixed. Free some space, or make the directory writable; sending then resumes on its own.',
      );
    else this.noteGone();
    this.lookLater();
  }

  /** After an error of the disk, lmdb may refuse all commits, and only the file tells whether the last one was made. */
  private async openAgain(): Promise<void> {
    try {
      // Opening would make a new file, and nobody would know of the loss.
      if (!this.isInPlace()) throw new Error('it was deleted');
      await this.checkRoom();
      await this.dropFile();
      const file = (this.file = new DatabaseFile(this.path));
      const owner = ownerIn(file);
      this.hasFailed = false;
      if (owner?.value.holder !== this.holder) this.lose();
      else this.begin();
    } catch (fault) {
      if (!this.isClosed) this.fail(fault);
    }
  }

  /**
   * lmdb writes to the console about each failed commit, so a commit is tried only when a file of some size can be
   * written.
   */
  private async checkRoom(): Promise<void> {
    const scratch = `${this.path}.room`;
    try {
      await writeFile(scratch, Buffer.alloc(roomNeeded), { flush: true, mode: 0o600 });
    } finally {
      await rm(scratch, { force: true }).catch(() => undefined);
    }
  }

  /** lmdb reports damage: the next attempt to own the file carries over what can be read. */
  private giveUpDamaged(fault: unknown): void {
    if (this.owned === undefined) return;
    this.isDamaged = true;
    this.timesDamaged += 1;
    this.owned = undefined;
    this.setTrouble(
      `The state in ${this.directory} is damaged (${reasonOf(fault)}): readable records are copied to a new file.`,
    );
    void this.hideLife();
    this.lookLater(true);
  }

  async close(): Promise<void> {
    clearTimeout(this.look);
    await this.looking.catch(() => undefined);
    if (this.hasFailed) await this.lookNow();
    await this.commits.close(storeClosed(), () => !this.isWritable);
    this.isClosed = true;
    for (const timer of [this.look, this.calm]) clearTimeout(timer);
    this.woken.call();
    if (this.file && this.owned !== undefined) {
      const given = { commit: this.lastCommit, time: this.now() };
      await this.file.hand(this.owned, given).catch(() => false);
      forgetStarts(this.path);
    }
    await this.dropFile();
    await this.hideLife();
  }
}

const openOnce = async (options: EmbeddedOptions): Promise<EmbeddedEngine | MemoryEngine> => {
  try {
    loadLmdb();
  } catch (fault) {
    // Memory in the place of a saved do-not-text list would text people who are on it. Other faults may pass.
    if (isWithoutBinary(fault) && !existsSync(join(options.directory, fileName))) {
      options.warn(
        `The database lmdb cannot be loaded on this machine (${reasonOf(fault)}): texts, waits and authorizations are kept in memory and are lost when this process ends.`,
      );
      return new MemoryEngine(options.clock);
    }
  }
  const engine = new EmbeddedEngine(options);
  await engine.lookNow();
  return engine;
};

const sharedFiles = processMemory('stores', new Map<string, Shared<ReturnType<typeof openOnce>, void>>());

/** Two paths to one directory must lead to one store. */
const realPathOf = (directory: string): string =>
  tried(() => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    return realpathSync(directory);
    // Else opening the directory fails too, and says why.
  }) ?? directory;

/**
 * Opens the store in a directory. A process has one for each directory, however many use it; it closes with its last
 * user.
 */
export const openEmbedded = async (options: EmbeddedOptions): Promise<Store> => {
  const directory = realPathOf(options.directory);
  const open = (closed?: Promise<void>) =>
    Promise.resolve(closed).then(() => openOnce({ ...options, directory }));
  const { made, close } = share(sharedFiles, directory, open);
  const engine = await made;
  // A deploy closes and opens stores. One in memory is kept, or a deploy would lose what is in it.
  return new Store(engine, () => close(() => (engine.durable ? engine.close() : undefined)));
};
