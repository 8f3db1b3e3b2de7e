import type { Database, RootDatabase } from 'lmdb';
import { decode, encode } from './codec';
import { Pending } from './pending';
import type { Table, Write } from './store';

/** Seals records with the runtime's key; the name is bound to the bytes, so that one cannot stand in for another. */
export interface Sealer {
  /** The first bytes name the key. */
  seal(plain: Buffer, name: string): Buffer;
  /** Undefined, or a throw, when the bytes are damaged or of another key. */
  open(sealed: Buffer, name: string): Buffer | undefined;
  hash(text: string): string;
}

type Raw = Database<Buffer, string>;

/** A version and the id of the key. */
const keyNameLength = 9;
const keyNameOf = (sealed: Buffer): string => sealed.toString('latin1', 0, keyNameLength);

interface Page {
  readonly page: readonly { readonly key: string; readonly value: Buffer }[];
  /** Where the next one begins. */
  readonly next: string | undefined;
}

/** Returns as soon as it is committed; flushing to the medium is done by `flush`. */
const synchronous = 2;
const flushDelay = 250;
/** Every soon-write waits for at least one and at most two of these. */
const soonDelay = 50;
/** Entries read at once: so many, or as few as have these bytes. More would pile up before Node clears them away. */
const pageOfEntries = 256;
const pageOfBytes = 256 * 1024;

/**
 * Commits without waiting for the medium (16 µs instead of 190): a killed process loses nothing, because the system has
 * the pages. Against a power failure everything is flushed a quarter of a second later, off the main thread.
 */
export class EmbeddedDatabase {
  private readonly raw = new Map<string, Raw>();
  private readonly damaged: Raw;
  private readonly pending = new Map<string, Pending>();
  private soonTimer: NodeJS.Timeout | undefined;
  private flushTimer: NodeJS.Timeout | undefined;
  private flushing = false;
  private unreadable = 0;
  private readonly keysAtHand = new Set<string>();
  /** Records found sealed with a key that is not at hand, as after a start with another secret: it may come back. */
  private readonly locked = new Set<string>();
  private isFailing = false;
  private closed = false;

  constructor(
    private readonly root: RootDatabase<Buffer, string>,
    private readonly sealer: Sealer,
    private readonly warn: (text: string) => void,
  ) {
    this.damaged = this.open('damaged');
  }

  table<T>(name: string): Table<T> {
    const raw = this.open(name);
    const pending = this.pending.get(name) ?? new Pending();
    this.pending.set(name, pending);
    const full = (key: string): string => `${name}/${key}`;
    const prepare = (each: Write<T>): (() => void) => {
      if ('remove' in each) return () => void raw.remove(each.remove);
      const sealed = this.sealer.seal(encode(each.value), full(each.put));
      return () => {
        if (this.locked.size > 0) this.keepLocked(raw, full(each.put), each.put);
        void raw.put(each.put, sealed);
      };
    };
    const read = (key: string, sealed: Buffer): T | undefined => {
      try {
        const plain = this.sealer.open(sealed, full(key));
        if (plain) {
          this.keysAtHand.add(keyNameOf(sealed));
          if (this.locked.size > 0) this.locked.delete(full(key));
          return decode(plain) as T;
        }
      } catch {
        // Falls through to being passed over or set aside.
      }
      if (this.isLocked(sealed)) this.passOver(full(key));
      else this.setAside(raw, name, key, sealed);
      return undefined;
    };
    const keyOf = (each: Write<T>): string => ('put' in each ? each.put : each.remove);

    return {
      get: (key) => {
        if (pending.has(key)) this.writeAllSoon();
        const sealed = raw.get(key);
        return Promise.resolve(sealed && read(key, sealed));
      },
      write: (writes) => {
        const tasks = writes.map(prepare);
        for (const each of writes) pending.drop(keyOf(each));
        this.commit(tasks);
        return Promise.resolve();
      },
      writeSoon: (writes) => {
        for (const each of writes) pending.add(keyOf(each), prepare(each));
        this.armSoon();
        return Promise.resolve();
      },
      keyFrom: (start) => {
        this.writeAllSoon();
        const [first] = raw.getKeys({ start, limit: 1 });
        return Promise.resolve(first);
      },
      hasLost: (prefix) => {
        const start = full(prefix);
        const [aside] = this.damaged.getKeys({ start, limit: 1 });
        const found = aside === undefined ? this.locked : [aside, ...this.locked];
        for (const key of found) if (key.startsWith(start)) return Promise.resolve(true);
        return Promise.resolve(false);
      },
      entries: (prefix = '') => this.entries(raw, prefix, read),
    };
  }

  async close(): Promise<void> {
    this.writeAllSoon();
    this.closed = true;
    clearTimeout(this.soonTimer);
    clearTimeout(this.flushTimer);
    await this.sync();
    await this.root.close();
  }

  private open(name: string): Raw {
    const found = this.raw.get(name) ?? this.root.openDB<Buffer, string>(name, { encoding: 'binary' });
    this.raw.set(name, found);
    return found;
  }

  private commit(tasks: Iterable<() => void>): void {
    const transact: (work: () => void, flags: number) => void = this.root.transactionSync.bind(this.root);
    transact(() => {
      for (const task of tasks) task();
    }, synchronous);
    this.armFlush();
  }

  private armFlush(): void {
    if (this.closed) return;
    this.flushTimer ??= setTimeout(() => {
      this.flushTimer = undefined;
      // What was committed while one is under way may have come too late for it.
      if (this.flushing) this.armFlush();
      else void this.sync();
    }, flushDelay).unref();
  }

  private sync(): Promise<void> {
    this.flushing = true;
    return new Promise((resolve) => {
      // In lmdb, and left out of its type declarations.
      (this.root as unknown as { sync(done: (fault?: Error) => void): void }).sync((fault) => {
        this.flushing = false;
        if (fault) this.warn(`The state could not be flushed to disk: ${fault.message}`);
        resolve();
      });
    });
  }

  private armSoon(): void {
    if (this.closed) return;
    this.soonTimer ??= setTimeout(() => {
      this.soonTimer = undefined;
      this.writeOld();
      if (this.hasPending()) this.armSoon();
    }, soonDelay).unref();
  }

  /** What cannot be written now is tried again with the next: nobody is there to be told of it by a throw. */
  private writeOld(): void {
    const tables = [...this.pending.values()];
    const due = tables.flatMap((each) => each.old);
    try {
      if (due.length > 0) this.commit(due);
      for (const each of tables) each.age();
      this.isFailing = false;
    } catch (fault) {
      if (!this.isFailing) this.warn(`The state could not be written and is tried again: ${String(fault)}`);
      this.isFailing = true;
    }
  }

  private hasPending(): boolean {
    for (const each of this.pending.values()) if (each.size > 0) return true;
    return false;
  }

  private writeAllSoon(): void {
    if (!this.hasPending()) return;
    const tables = [...this.pending.values()];
    this.commit(tables.flatMap((each) => each.all));
    for (const each of tables) each.clear();
  }

  /** Page by page, so that no snapshot is held while others write. */
  private async *entries<T>(
    raw: Raw,
    prefix: string,
    read: (key: string, sealed: Buffer) => T | undefined,
  ): AsyncIterable<readonly [string, T]> {
    this.writeAllSoon();
    for (let start: string | undefined = prefix; start !== undefined;) {
      const { page, next } = this.pageFrom(raw, prefix, start);
      for (const { key, value: sealed } of page) {
        const value = read(key, sealed);
        if (value !== undefined) yield [key, value];
      }
      if (next !== undefined) await new Promise((resolve) => setImmediate(resolve));
      start = next;
    }
  }

  private pageFrom(raw: Raw, prefix: string, start: string): Page {
    const page: { readonly key: string; readonly value: Buffer }[] = [];
    let bytes = 0;
    for (const entry of raw.getRange({ start })) {
      if (!entry.key.startsWith(prefix)) break;
      bytes += entry.value.length;
      const isFull = page.length === pageOfEntries || bytes > pageOfBytes;
      if (isFull && page.length > 0) return { page, next: entry.key };
      page.push(entry);
    }
    return { page, next: undefined };
  }

  private isLocked(sealed: Buffer): boolean {
    if (sealed.length < keyNameLength || this.keysAtHand.has(keyNameOf(sealed))) return false;
    this.keysAtHand.add(keyNameOf(this.sealer.seal(Buffer.alloc(0), '')));
    return !this.keysAtHand.has(keyNameOf(sealed));
  }

  private passOver(key: string): void {
    if (this.locked.size === 0)
      this.warn(
        'Stored records are sealed with a key that is not to be had, as after a start with another credential secret. ' +
          'They stay where they are, and are read again once it is back. Everything else goes on.',
      );
    this.locked.add(key);
  }

  /** Something new takes its place. */
  private keepLocked(raw: Raw, name: string, key: string): void {
    const sealed = this.locked.has(name) ? raw.get(key) : undefined;
    if (sealed && this.isLocked(sealed)) void this.damaged.put(name, sealed);
  }

  private setAside(raw: Raw, table: string, key: string, sealed: Buffer): void {
    this.commit([() => void this.damaged.put(`${table}/${key}`, sealed), () => void raw.remove(key)]);
    this.unreadable += 1;
    if (this.unreadable > 1) return;
    setImmediate(() => {
      this.warn(
        `${String(this.unreadable)} stored record(s) were damaged and have been set aside in the table "damaged". ` +
          'Everything else goes on.',
      );
      this.unreadable = 0;
    });
  }
}
