import { minute } from '../durations';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  keyIdOf,
  keyedHash,
  newDataKey,
  seal,
  unseal,
  unwrap,
  wrap,
  type DataKey,
  type Wrapped,
} from './cipher';
import { isRecord } from '../is-record';

/** The part of the runtime's settings that is needed here. In a test runtime, `get` and `set` throw. */
export interface RuntimeSettings {
  get(property: string): unknown;
  set(property: string, value: unknown): Promise<unknown>;
  readonly userDir?: string | undefined;
  readonly readOnly?: boolean | undefined;
}

/** The secrets a data key may be wrapped with. */
export interface Secrets {
  /** The secret to wrap with; undefined where the runtime has none, and keys go to a file. */
  readonly current: string | undefined;
  /** All secrets that may open an older wrapping, the likeliest first. */
  readonly candidates: readonly string[];
}

export const previousSecretVariable = 'ADVISOR_TEXTING_PREVIOUS_SECRET';
const property = 'advisorTextingKeys';

const settingOf = (settings: RuntimeSettings, name: string): unknown => {
  try {
    return settings.get(name);
  } catch {
    return undefined;
  }
};

/** Whether anything was ever stored: the database is not opened only to find that it is empty. */
export const isStateKept = (userDir: string | undefined): boolean =>
  userDir !== undefined && existsSync(join(userDir, 'advisor-texting', 'store.mdb'));

/** Whether a data key was ever stored in the settings. */
export const areKeysKept = (settings: RuntimeSettings): boolean => settingOf(settings, property) != null;

const isSecret = (value: unknown): value is string => typeof value === 'string' && value !== '';

/**
 * `_credentialSecret` is the secret that the runtime has generated. It is still there when our nodes are registered,
 * even if the user has just set `credentialSecret`: this is when data keys are wrapped again.
 */
export const readSecrets = (settings: RuntimeSettings, variables: NodeJS.ProcessEnv): Secrets => {
  const chosen = settingOf(settings, 'credentialSecret');
  const generated = settingOf(settings, '_credentialSecret');
  const own = settingOf(settings, 'advisorTexting');
  const previous = isRecord(own) ? own['previousCredentialSecret'] : undefined;
  return {
    current: chosen === false ? undefined : [chosen, generated].find(isSecret),
    candidates: [chosen, generated, variables[previousSecretVariable], previous].filter(isSecret),
  };
};

/** `failed`: another attempt may succeed. `unkept`: the keys live only as long as the process. */
export type Written = 'stored' | 'failed' | 'unkept';

/** The place of the wrapped keys. */
export interface KeyHolder {
  /** The document as this process knows it. */
  read(): unknown;
  /** The saved document, which another process may have written; undefined when it cannot be read. */
  reread(): Promise<unknown>;
  write(document: object): Promise<Written>;
}

/** Keeps the keys in the runtime's settings, and in memory while those cannot be used. */
export const keysInSettings = (settings: RuntimeSettings): KeyHolder => {
  let inMemory: unknown;
  let failures = 0;
  return {
    read: () => settingOf(settings, property) ?? inMemory,
    async reread() {
      if (!settings.userDir) return undefined;
      try {
        // The default storage module keeps its settings in this file; other storage modules have no such file.
        const text = await readFile(join(settings.userDir, '.config.runtime.json'), 'utf8');
        return (JSON.parse(text) as Record<string, unknown>)[property];
      } catch {
        return undefined;
      }
    },
    async write(document) {
      inMemory = document;
      try {
        // The runtime writes only changes against its memory, which also holds a document that failed to reach the
        // disk: a counter makes the next one differ.
        await settings.set(property, failures === 0 ? document : { ...document, failures });
        return settings.readOnly === true ? 'unkept' : 'stored';
      } catch {
        failures += 1;
        return 'failed';
      }
    },
  };
};

/** For a runtime without settings, as in tests: the keys live as long as the process. */
export const keysInMemory = (): KeyHolder => ({
  read: () => undefined,
  reread: () => Promise.resolve(undefined),
  write: () => Promise.resolve('stored'),
});

/** Data keys in plain, in a file that only its owner can read: for a runtime that has no secret to wrap them with. */
class KeyFile {
  readonly path: string;

  constructor(userDir: string) {
    this.path = join(userDir, 'advisor-texting', 'data-key.json');
  }

  get(id: string): DataKey | undefined {
    const bytes = Buffer.from(this.readAll().get(id) ?? '', 'base64');
    return bytes.length === 32 ? { id, bytes } : undefined;
  }

  /** False when the file cannot be written. */
  add(key: DataKey): boolean {
    return this.writeAll(this.readAll().set(key.id, key.bytes.toString('base64')));
  }

  /** False when the key is still in the file. */
  remove(id: string): boolean {
    const keys = this.readAll();
    if (!keys.delete(id)) return true;
    if (keys.size > 0) return this.writeAll(keys);
    try {
      rmSync(this.path, { force: true });
      return true;
    } catch {
      return false;
    }
  }

  private readAll(): Map<string, string> {
    try {
      const stored = JSON.parse(readFileSync(this.path, 'utf8')) as Record<string, unknown>;
      return new Map(
        Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      );
    } catch {
      return new Map();
    }
  }

  private writeAll(keys: ReadonlyMap<string, string>): boolean {
    const next = `${this.path}.next`;
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
      writeFileSync(next, JSON.stringify(Object.fromEntries(keys)), { mode: 0o600, flush: true });
      renameSync(next, this.path);
      return true;
    } catch {
      return false;
    }
  }
}

/** A key wrapped by a secret of the runtime, or null for a key in the key file. */
type KeptKey = Wrapped | null;

interface KeyDocument {
  /** The id of the key that seals new records. */
  readonly active: string | undefined;
  readonly keys: ReadonlyMap<string, KeptKey>;
  /** Entries that could not be read; they are never deleted. */
  readonly aside: readonly unknown[];
}

const isWrapped = (value: unknown): value is Wrapped =>
  isRecord(value) && typeof value['salt'] === 'string' && typeof value['sealed'] === 'string';

/** Reads what can be read: a damaged entry does not affect the others. */
const readDocument = (stored: unknown): KeyDocument & { readonly isDamaged: boolean } => {
  const keys = new Map<string, KeptKey>();
  if (stored === undefined || stored === null)
    return { active: undefined, keys, aside: [], isDamaged: false };
  const damaged: unknown[] = [];
  const given = isRecord(stored) ? stored : {};
  if (!isRecord(stored)) damaged.push(stored);
  if (given['keys'] !== undefined && !isRecord(given['keys'])) damaged.push(given['keys']);
  for (const [id, value] of Object.entries(isRecord(given['keys']) ? given['keys'] : {})) {
    if (value === null || isWrapped(value)) keys.set(id, value);
    else damaged.push({ [id]: value });
  }
  const aside = Array.isArray(given['aside']) ? (given['aside'] as unknown[]) : [];
  const active = typeof given['active'] === 'string' ? given['active'] : undefined;
  return { active, keys, aside: [...aside, ...damaged], isDamaged: damaged.length > 0 };
};

export interface DataKeysOptions {
  readonly holder: KeyHolder;
  readonly secrets: () => Secrets;
  /** Undefined where the runtime has none: then there is no key file either. */
  readonly userDir?: string | undefined;
  readonly warn: (message: string) => void;
  /** Milliseconds until a failed write is retried. */
  readonly retryAfter?: number;
}

/**
 * The keys that seal the records of the store. They are random, and stored wrapped by the runtime's credential secret:
 * a new secret needs a new wrapping, but no new key.
 */
export class DataKeys {
  private readonly holder: KeyHolder;
  private readonly secrets: () => Secrets;
  private readonly file: KeyFile | undefined;
  private readonly warn: (message: string) => void;
  private readonly retryAfter: number;
  private readonly openKeys = new Map<string, DataKey>();
  private document: KeyDocument;
  private active: DataKey | undefined;
  private isDirty = false;
  /** Whether the key file may still hold keys that are wrapped now. */
  private isFileStale = false;
  /** Keys that should be in the file, which could not be written yet. */
  private readonly unfiled = new Set<DataKey>();
  private saving: Promise<void> = Promise.resolve();
  private isRetrying = false;

  constructor({ holder, secrets, userDir, warn, retryAfter = minute }: DataKeysOptions) {
    const warned = new Set<string>();
    this.warn = (message) => {
      if (!warned.has(message)) warn(message);
      warned.add(message);
    };
    this.holder = holder;
    this.secrets = secrets;
    this.file = userDir ? new KeyFile(userDir) : undefined;
    this.retryAfter = retryAfter;
    const { isDamaged, ...document } = readDocument(holder.read());
    this.document = document;
    if (isDamaged) {
      this.warn(
        'Some encryption keys of the saved data are damaged and were set aside. The others still work.',
      );
      this.isDirty = true;
    }
    this.unlock();
    this.rewrap();
    if (this.isDirty) void this.save();
  }

  /** Whether the key in use cannot be opened with the secrets at hand. */
  get isLocked(): boolean {
    const { active } = this.document;
    return active !== undefined && !this.openKeys.has(active);
  }

  seal(plain: Buffer, name: string): Buffer {
    return seal(this.activeKey(), plain, name);
  }

  /** Undefined when the bytes are damaged, or encrypted with a key that is not available. */
  open(sealed: Buffer, name: string): Buffer | undefined {
    const key = this.openKeys.get(keyIdOf(sealed) ?? '');
    return key && unseal(key, sealed, name);
  }

  hash(value: string): string {
    return keyedHash(this.activeKey(), value);
  }

  /** Resolves when the key is saved: nothing may be encrypted with a key that a crash would lose. */
  async ready(): Promise<void> {
    if (!this.active) await this.takeUp();
    this.activeKey();
    await (this.isDirty ? this.save() : this.saving);
  }

  private activeKey(): DataKey {
    if (this.active) return this.active;
    const { active, keys } = this.document;
    // An earlier key is preferred, because hashes made with it are in the keys of records.
    const [earlier] = [active ?? '', ...keys.keys()].flatMap((id) => this.openKeys.get(id) ?? []);
    const key = earlier ?? newDataKey();
    this.openKeys.set(key.id, key);
    this.active = key;
    if (!earlier) this.keep(key);
    if (active !== key.id) {
      this.document = { ...this.document, active: key.id };
      this.isDirty = true;
    }
    return key;
  }

  /** Wraps the key by the current secret, or puts it into the file. If the file cannot be written, the old wrapping stays. */
  private keep(key: DataKey): void {
    const { current } = this.secrets();
    const before = this.document.keys.get(key.id);
    const isKept = current !== undefined || this.putIntoFile(key);
    const keeping = current === undefined ? null : wrap(key, current);
    const kept = isKept || before === undefined ? keeping : before;
    if (!isKept && before === undefined && this.file) this.unfiled.add(key);
    this.document = { ...this.document, keys: new Map(this.document.keys).set(key.id, kept) };
    this.isDirty = true;
  }

  private unlock(): void {
    const { candidates } = this.secrets();
    for (const [id, wrapped] of this.document.keys) {
      if (this.openKeys.has(id)) continue;
      const key = wrapped
        ? candidates.map((secret) => unwrap(id, wrapped, secret)).find((found) => found !== undefined)
        : this.file?.get(id);
      if (key) this.openKeys.set(id, key);
    }
  }

  /** Wraps the keys again after the credential secret was set, changed or removed. */
  private rewrap(): void {
    const { current } = this.secrets();
    for (const key of this.openKeys.values()) {
      const wrapped = this.document.keys.get(key.id);
      const isInPlace = wrapped
        ? current !== undefined && unwrap(key.id, wrapped, current) !== undefined
        : current === undefined;
      if (isInPlace) continue;
      this.keep(key);
      this.isFileStale = true;
    }
  }

  /** Adopts the keys that another process has written meanwhile. */
  private async takeUp(): Promise<void> {
    const stored = await this.holder.reread();
    if (stored === undefined) return;
    const theirs = readDocument(stored);
    const keys = new Map(this.document.keys);
    for (const [id, kept] of theirs.keys) if (!keys.has(id)) keys.set(id, kept);
    this.document = { ...this.document, keys, active: this.document.active ?? theirs.active };
    this.unlock();
  }

  /** One write at a time; what is dirty meanwhile is one more. */
  private save(): Promise<void> {
    this.saving = this.saving.then(() => this.saveNow());
    return this.saving;
  }

  private async saveNow(): Promise<void> {
    if (!this.isDirty) return;
    this.isDirty = false;
    await this.takeUp();
    const { active, keys, aside } = this.document;
    const document = { version: 1, active, keys: Object.fromEntries(keys), aside };
    const written = await this.holder.write(document);
    for (const key of this.unfiled) if (this.putIntoFile(key)) this.unfiled.delete(key);
    if (this.unfiled.size > 0) this.saveLater();
    if (written === 'stored') {
      if (this.isFileStale) this.clearFile(keys);
      return;
    }
    this.warn(
      'The encryption key cannot be written to disk, so saved authorizations, waits and texts will be lost when Node-RED stops. Make the user directory writable, and unset readOnly in settings.js.',
    );
    if (written === 'failed') this.saveLater();
  }

  /** Retries a failed write: the disk may be writable again before the next change. */
  private saveLater(): void {
    this.isDirty = true;
    if (this.isRetrying) return;
    this.isRetrying = true;
    setTimeout(() => {
      this.isRetrying = false;
      void this.save();
    }, this.retryAfter).unref();
  }

  private putIntoFile(key: DataKey): boolean {
    if (!this.file) return false;
    const isKept = this.file.add(key);
    this.warn(
      isKept
        ? `This Node-RED has no credential secret, so the encryption key is kept in ${this.file.path}, which only its owner can read. Set credentialSecret in settings.js to protect it.`
        : `The encryption key could not be written to ${this.file.path}, so authorizations will be lost when Node-RED stops: make the user directory writable.`,
    );
    return isKept;
  }

  /** Removes keys from the file once their wrapping is on disk. */
  private clearFile(kept: ReadonlyMap<string, KeptKey>): void {
    this.isFileStale = false;
    for (const [id, wrapped] of kept) {
      if (!wrapped || !this.file || this.file.remove(id)) continue;
      this.warn(
        `The credential secret now protects the encryption key, but the unprotected copy in ${this.file.path} could not be deleted: delete that file.`,
      );
    }
  }
}
