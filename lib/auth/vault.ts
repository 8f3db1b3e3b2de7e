import type { Clock } from '../service/clock';
import { keyIdOf, keyedHash, newDataKey, seal, unseal, unwrap, wrap, type DataKey } from './cipher';
import { mergeDocuments, readDocument, writeDocument, type KeptRecord, type VaultDocument } from './document';
import type { KeyFile } from './key-file';
import { previousSecretVariable, type Secrets } from './secrets';
import type { Shelf } from './shelf';

/** Seals what others keep: the embedded store uses it for waits and journal. */
export interface Sealer {
  seal(plain: Buffer, name: string): Buffer;
  /** Undefined when damaged, or sealed with a key that is not to be had. */
  open(sealed: Buffer, name: string): Buffer | undefined;
  /** A fixed-length stand-in for a personal key. */
  hash(value: string): string;
}

export interface VaultOptions {
  readonly shelf: Shelf;
  readonly secrets: () => Secrets;
  /** Absent where the runtime has no user directory. */
  readonly keyFile?: KeyFile | undefined;
  readonly clock: Pick<Clock, 'now'>;
  readonly warn: (message: string) => void;
}

/** A removed record is remembered this long, so that a second process does not bring it back. */
const remembered = 8 * 24 * 60 * 60 * 1000;

/** Records under authenticated encryption, kept through the runtime's settings storage. */
export class Vault implements Sealer {
  readonly #options: VaultOptions;
  readonly #keys = new Map<string, DataKey>();
  readonly #warned = new Set<string>();
  #document: VaultDocument;
  #saving: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;

  constructor(options: VaultOptions) {
    this.#options = options;
    this.#document = readDocument(options.shelf.read());
    this.#unlock();
    if (this.#document.keys.size > 0) this.#rewrap();
  }

  /** The value of a record; undefined when there is none, or none that can be opened. */
  read(name: string): unknown {
    const record = this.#document.records.get(name);
    if (!record?.sealed) return undefined;
    const plain = this.open(Buffer.from(record.sealed, 'base64'), name);
    if (plain) return JSON.parse(plain.toString()) as unknown;
    this.#reportUnopened(name, record.sealed);
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
    const stored = await this.#options.shelf.reread();
    if (stored === undefined) return;
    this.#document = mergeDocuments(this.#document, readDocument(stored));
    this.#unlock();
  }

  seal(plain: Buffer, name: string): Buffer {
    return seal(this.#activeKey(), plain, name);
  }

  open(sealed: Buffer, name: string): Buffer | undefined {
    const key = this.#keys.get(keyIdOf(sealed) ?? '');
    return key && unseal(key, sealed, name);
  }

  hash(value: string): string {
    return keyedHash(this.#activeKey(), value);
  }

  /** Waits until the data key is on disk: nothing may be kept elsewhere under a key that a crash would lose. */
  async ready(): Promise<void> {
    this.#activeKey();
    await this.#save();
  }

  #put(name: string, sealed: string | null): void {
    const records = new Map(this.#document.records);
    const before = records.get(name);
    const lost = before?.sealed && !this.open(Buffer.from(before.sealed, 'base64'), name);
    const aside = lost
      ? [...this.#document.aside, { name, at: before.at, sealed: before.sealed ?? '' }]
      : this.#document.aside;
    // Never older than what it replaces, whatever the clock did, or a merge would bring the old one back.
    const record: KeptRecord = { at: Math.max(this.#options.clock.now(), (before?.at ?? 0) + 1), sealed };
    records.set(name, record);
    this.#document = { ...this.#document, records, aside };
  }

  #activeKey(): DataKey {
    const active = this.#keys.get(this.#document.active?.key ?? '');
    if (active) return active;
    const key = newDataKey();
    const at = this.#options.clock.now();
    this.#keys.set(key.id, key);
    this.#document = { ...this.#document, active: { at, key: key.id } };
    this.#keep(key);
    return key;
  }

  /** Wraps a key with the current secret, or puts it into the key file where there is none. */
  #keep(key: DataKey): void {
    const { current } = this.#options.secrets();
    const before = this.#document.keys.get(key.id);
    const at = Math.max(this.#options.clock.now(), (before?.at ?? 0) + 1);
    if (current === undefined && this.#options.keyFile) {
      const { path } = this.#options.keyFile;
      if (this.#options.keyFile.add(key)) {
        this.#warnOnce(
          `This Node-RED has no credential secret, so the key to stored authorizations lies in ${path}, readable only by its owner. Set credentialSecret in settings.js to protect it.`,
        );
      } else {
        this.#warnOnce(
          `The key to stored authorizations could not be written to ${path}. Authorizations will be lost when Node-RED stops: make the user directory writable.`,
        );
      }
    }
    const wrapped = current === undefined ? null : wrap(key, current);
    this.#document = { ...this.#document, keys: new Map(this.#document.keys).set(key.id, { at, wrapped }) };
  }

  #unlock(): void {
    const { candidates } = this.#options.secrets();
    for (const [id, { wrapped }] of this.#document.keys) {
      if (this.#keys.has(id)) continue;
      const key = wrapped
        ? candidates.map((secret) => unwrap(id, wrapped, secret)).find((found) => found !== undefined)
        : this.#options.keyFile?.read(id);
      if (key) this.#keys.set(id, key);
      else if (this.#isNeeded(id)) {
        this.#warnOnce(
          `Stored authorizations cannot be opened, because the credential secret has changed. They are kept. Start Node-RED once with the previous secret in the environment variable ${previousSecretVariable} to get them back, or authorize again.`,
        );
      }
    }
    this.#restore();
  }

  #isNeeded(id: string): boolean {
    return [...this.#document.records.values()].some(
      ({ sealed }) => sealed !== null && keyIdOf(Buffer.from(sealed, 'base64')) === id,
    );
  }

  /** What was set aside while its key was missing, and has not been replaced since. */
  #restore(): void {
    const records = new Map(this.#document.records);
    for (const { name, at, sealed } of this.#document.aside) {
      if (this.open(Buffer.from(sealed, 'base64'), name) === undefined) continue;
      const present = records.get(name);
      if (!present || (present.sealed && !this.open(Buffer.from(present.sealed, 'base64'), name))) {
        records.set(name, { at, sealed });
      }
    }
    this.#document = { ...this.#document, records };
  }

  /** Follows a credential secret that was set or changed. */
  #rewrap(): void {
    const { current } = this.#options.secrets();
    let moved = false;
    for (const key of this.#keys.values()) {
      const kept = this.#document.keys.get(key.id);
      const inPlace = kept?.wrapped
        ? current !== undefined && unwrap(key.id, kept.wrapped, current) !== undefined
        : current === undefined;
      if (inPlace) continue;
      this.#keep(key);
      moved = true;
    }
    if (!moved) return;
    void this.#save().then(() => {
      // Only once the new wrapping is on disk may the open copy go.
      if (current === undefined) return;
      for (const id of this.#keys.keys()) this.#options.keyFile?.remove(id);
    });
  }

  #reportUnopened(name: string, sealed: string): void {
    if (!this.#keys.has(keyIdOf(Buffer.from(sealed, 'base64')) ?? '')) return;
    this.#warnOnce(
      `A stored record (${name}) is damaged. It has been set aside; if it was an authorization, authorize again.`,
    );
    this.#put(name, null);
    void this.#save();
  }

  #warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#options.warn(message);
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

  async #saveNow(): Promise<void> {
    await this.reread();
    const now = this.#options.clock.now();
    const records = [...this.#document.records].filter(
      ([, { at, sealed }]) => sealed !== null || at > now - remembered,
    );
    this.#document = { ...this.#document, records: new Map(records) };
    const durable = await this.#options.shelf.write(writeDocument(this.#document));
    if (!durable) {
      this.#warnOnce(
        'Authorizations cannot be written to disk and will be lost when Node-RED stops. Make the user directory writable, and unset readOnly in settings.js.',
      );
    }
  }
}
