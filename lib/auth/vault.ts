import type { Clock } from '../service/clock';
import { keyIdOf, keyedHash, seal, unseal, type DataKey } from './cipher';
import { mergeDocuments, readDocument, writeDocument, type VaultDocument } from './document';
import { Keyring, type KeyringOptions } from './keyring';
import { noLease, type Lease } from './lease';
import { previousSecretVariable } from './secrets';
import type { Shelf } from './shelf';

export interface VaultOptions extends KeyringOptions {
  readonly shelf: Shelf;
  readonly clock: Pick<Clock, 'now'>;
  readonly lease?: Lease;
  /** Milliseconds until a write that failed is tried again. */
  readonly retryAfter?: number;
}

/** A removed record is remembered this long, so that a second process does not bring it back. */
const remembered = 8 * 24 * 60 * 60 * 1000;

const bytesOf = (sealed: string): Buffer => Buffer.from(sealed, 'base64');

/** Milliseconds that a write may take before another process goes ahead. */
const longestWrite = 10_000;

/**
 * Records under authenticated encryption, kept through the runtime's settings storage. Also seals what others keep
 * elsewhere, under the same data key.
 */
export class Vault {
  readonly #shelf: Shelf;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #lease: Lease;
  readonly #retryAfter: number;
  readonly #keyring: Keyring;
  readonly #warn: (message: string) => void;
  #document: VaultDocument;
  /** The key file still holds keys that are wrapped now. */
  #isFileStale = false;
  #saving: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: VaultOptions) {
    const { shelf, clock, secrets, keyFile, warn, lease = noLease, retryAfter = 60_000 } = options;
    const warned = new Set<string>();
    this.#warn = (message) => {
      if (!warned.has(message)) warn(message);
      warned.add(message);
    };
    this.#shelf = shelf;
    this.#clock = clock;
    this.#lease = lease;
    this.#retryAfter = retryAfter;
    this.#keyring = new Keyring({ secrets, keyFile, warn: this.#warn });
    this.#document = readDocument(shelf.read());
    if (this.#document.damaged > 0) {
      this.#warn('A part of the stored authorizations is damaged and was set aside. The rest is in use.');
      void this.#save();
    }
    this.#unlock();
    this.#rewrap();
  }

  /** The value of a record; undefined when there is none, or none that can be opened. */
  read(name: string): unknown {
    const sealed = this.#document.records.get(name)?.sealed;
    if (!sealed) return undefined;
    const plain = this.open(bytesOf(sealed), name);
    if (plain) return JSON.parse(plain.toString()) as unknown;
    if (
      this.#keyring.get(keyIdOf(bytesOf(sealed))) ||
      !this.#document.keys.has(keyIdOf(bytesOf(sealed)) ?? '')
    ) {
      this.#warn(
        `A stored record (${name}) is damaged and was set aside. If it was an authorization, authorize again.`,
      );
      this.#put(name, null);
      void this.#save();
    }
    return undefined;
  }

  names(prefix: string): string[] {
    return [...this.#document.records].flatMap(([name, { sealed }]) =>
      sealed !== null && name.startsWith(prefix) ? [name] : [],
    );
  }

  /** On disk when the promise resolves, where there is a disk. */
  async write(name: string, value: unknown): Promise<void> {
    this.#put(name, this.seal(Buffer.from(JSON.stringify(value)), name).toString('base64'));
    await this.#save();
  }

  async remove(name: string): Promise<void> {
    if (!this.#document.records.get(name)?.sealed) return;
    this.#put(name, null);
    await this.#save();
  }

  /** Takes up what another process has written. */
  async reread(): Promise<void> {
    const stored = await this.#shelf.reread();
    if (stored === undefined) return;
    this.#document = mergeDocuments(this.#document, readDocument(stored));
    this.#unlock();
  }

  seal(plain: Buffer, name: string): Buffer {
    return seal(this.#activeKey(), plain, name);
  }

  /** Undefined when damaged, or sealed with a key that is not to be had. */
  open(sealed: Buffer, name: string): Buffer | undefined {
    const key = this.#keyring.get(keyIdOf(sealed));
    return key && unseal(key, sealed, name);
  }

  /** A fixed-length stand-in for a personal key, such as a phone number. */
  hash(value: string): string {
    return keyedHash(this.#activeKey(), value);
  }

  /** Resolves when the data key is on disk: nothing may be kept elsewhere under a key that a crash would lose. */
  async ready(): Promise<void> {
    this.#activeKey();
    await this.#save();
  }

  #put(name: string, sealed: string | null): void {
    const records = new Map(this.#document.records);
    const { at = 0, sealed: before = null } = records.get(name) ?? {};
    const isUnreadable = before !== null && this.open(bytesOf(before), name) === undefined;
    const aside = isUnreadable
      ? [...this.#document.aside, { name, at, sealed: before }]
      : this.#document.aside;
    records.set(name, { at: this.#later(at), sealed });
    this.#document = { ...this.#document, records, aside };
  }

  /** Never older than what it replaces, whatever the clock did, or a merge would bring the old one back. */
  #later(than = 0): number {
    return Math.max(this.#clock.now(), than + 1);
  }

  #activeKey(): DataKey {
    const active = this.#keyring.get(this.#document.active?.key);
    if (active) return active;
    // An earlier one, if there is: what was hashed with it is found again when its secret comes back.
    const [earlier] = [...this.#document.keys.keys()].flatMap((id) => this.#keyring.get(id) ?? []);
    const key = earlier ?? this.#keyring.create();
    this.#document = {
      ...this.#document,
      active: { at: this.#later(this.#document.active?.at), key: key.id },
    };
    this.#keep(key);
    return key;
  }

  #keep(key: DataKey): void {
    const before = this.#document.keys.get(key.id);
    const kept = this.#keyring.keep(key, this.#later(before?.at), before);
    this.#document = { ...this.#document, keys: new Map(this.#document.keys).set(key.id, kept) };
  }

  #unlock(): void {
    const locked = new Set(this.#keyring.unlock(this.#document.keys));
    const records = new Map(this.#document.records);
    const isReadable = (name: string, sealed: string): boolean =>
      this.open(bytesOf(sealed), name) !== undefined;
    // What was set aside while its key was missing comes back, unless something newer took its place.
    for (const { name, at, sealed } of this.#document.aside) {
      const present = records.get(name);
      const isFree = !present || (present.sealed !== null && !isReadable(name, present.sealed));
      if (isFree && isReadable(name, sealed)) records.set(name, { at, sealed });
    }
    this.#document = { ...this.#document, records };
    if ([...records.values()].some(({ sealed }) => sealed && locked.has(keyIdOf(bytesOf(sealed)) ?? ''))) {
      this.#warn(
        `Stored authorizations cannot be opened, because the credential secret has changed. They are kept. Start Node-RED once with the previous secret in the environment variable ${previousSecretVariable} to get them back, or authorize again.`,
      );
    }
  }

  /** Follows a credential secret that was set or changed. */
  #rewrap(): void {
    const misplaced = this.#keyring.misplaced(this.#document.keys);
    if (misplaced.length === 0) return;
    for (const key of misplaced) this.#keep(key);
    this.#isFileStale = true;
    void this.#save();
  }

  /** One write at a time; those that ask while one waits share it. */
  #save(): Promise<void> {
    this.#queued ??= this.#saving.then(() => {
      this.#queued = undefined;
      this.#saving = this.#saveNow();
      return this.#saving;
    });
    return this.#queued;
  }

  /** Under a lease: another process must not write between our reading and our writing. */
  #saveNow(): Promise<void> {
    return this.#lease('vault', () => this.#rereadAndWrite(), longestWrite).catch(() => {
      this.#warnOfLoss();
    });
  }

  async #rereadAndWrite(): Promise<void> {
    await this.reread();
    const oldest = this.#clock.now() - remembered;
    const records = [...this.#document.records].filter(
      ([, { at, sealed }]) => sealed !== null || at > oldest,
    );
    this.#document = { ...this.#document, records: new Map(records) };
    const { keys } = this.#document;
    const written = await this.#shelf.write(writeDocument(this.#document));
    if (written === 'failed') this.#saveLater();
    if (written !== 'stored') {
      this.#warnOfLoss();
    } else if (this.#isFileStale) {
      this.#isFileStale = false;
      this.#keyring.clearFile(keys);
    }
  }

  #warnOfLoss(): void {
    this.#warn(
      'Authorizations cannot be written to disk and will be lost when Node-RED stops. Make the user directory writable, and unset readOnly in settings.js.',
    );
  }

  /** A disk may be writable again before the next change comes. */
  #saveLater(): void {
    if (this.#retry) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#save();
    }, this.#retryAfter).unref();
  }
}
