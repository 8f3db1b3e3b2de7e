import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../is-record';
import {
  dataKey,
  newDataKey,
  unwrap,
  wrap,
  type DataKey,
  type KeyHolder,
  type Sealer,
  type Wrapped,
} from '../state/sealing';

/** The part of the runtime's settings that is needed here. In a test runtime, `get` and `set` throw. */
export interface RuntimeSettings {
  get(property: string): unknown;
  set(property: string, value: unknown): Promise<unknown>;
  readonly userDir?: string | undefined;
  readonly readOnly?: boolean | undefined;
}

/** The secrets that a data key may be wrapped with. */
export interface Secrets {
  /** The secret to wrap with; undefined where the runtime has none, and the key goes to a file. */
  readonly current: string | undefined;
  /** All secrets that may open an older wrapping, the likeliest first. */
  readonly candidates: readonly string[];
}

const previousSecretVariable = 'ADVISOR_TEXTING_PREVIOUS_SECRET';
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
export const isKeyKept = (settings: RuntimeSettings): boolean => settingOf(settings, property) != null;

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

/** Keeps the key in the runtime's settings. */
const keyInSettings = (settings: RuntimeSettings): KeyHolder => {
  let failures = 0;
  return {
    read: () => settingOf(settings, property),
    async reread() {
      try {
        // The default storage module keeps its settings in this file; other storage modules have no such file.
        const text = await readFile(join(settings.userDir ?? '', '.config.runtime.json'), 'utf8');
        return (JSON.parse(text) as Record<string, unknown>)[property];
      } catch {
        return undefined;
      }
    },
    async write(document) {
      try {
        // The runtime writes only changes against its memory, which also holds a document that failed to reach the
        // disk: a counter makes the next one differ.
        await settings.set(property, failures === 0 ? document : { ...document, failures });
        return true;
      } catch {
        failures += 1;
        return false;
      }
    },
  };
};

/** Undefined when it cannot be read. */
const readJson = (path: string): unknown => {
  try {
    // To read a pipe would block the process.
    return statSync(path).isFile() ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
  } catch {
    return undefined;
  }
};

/** Only its owner can read the file. False when it cannot be written. */
const writePrivate = (path: string, content: object): boolean => {
  const next = `${path}.next`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(next, JSON.stringify(content), { mode: 0o600, flush: true });
    renameSync(next, path);
    return true;
  } catch {
    return false;
  }
};

/**
 * Where the key is kept: in the runtime's settings, or beside the store if those are read-only or unavailable. Once it
 * lies there it stays.
 */
export const keyHolderOf = (settings: RuntimeSettings, hasSettings: boolean): KeyHolder => {
  const { userDir, readOnly } = settings;
  const path = join(userDir ?? '', 'advisor-texting', 'wrapped-key.json');
  const isBesideStore = userDir !== undefined && (!hasSettings || readOnly === true || existsSync(path));
  if (!isBesideStore) return keyInSettings(settings);
  return {
    read: () => readJson(path) ?? settingOf(settings, property),
    write: async (document) => writePrivate(path, document),
  };
};

/** Data keys in plain: for a runtime that has no secret to wrap them with. */
class KeyFile {
  readonly path: string;

  constructor(userDir: string) {
    this.path = join(userDir, 'advisor-texting', 'data-key.json');
  }

  get(id: string): DataKey | undefined {
    const { [id]: key } = this.keys();
    const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : undefined;
    return bytes?.length === 32 ? dataKey(id, bytes) : undefined;
  }

  /** False when the file cannot be written. */
  add({ id, bytes }: DataKey): boolean {
    return writePrivate(this.path, { ...this.keys(), [id]: bytes.toString('base64') });
  }

  /** False when the key is still in the file. */
  remove(id: string): boolean {
    const { [id]: key, ...others } = this.keys();
    if (key === undefined) return true;
    if (Object.keys(others).length > 0) return writePrivate(this.path, others);
    try {
      rmSync(this.path, { force: true });
      return true;
    } catch {
      return false;
    }
  }

  private keys(): Readonly<Record<string, unknown>> {
    const found = readJson(this.path);
    return isRecord(found) ? found : {};
  }
}

interface SavedKey {
  readonly id: string;
  /** By a secret of the runtime; null for a key in the key file. */
  readonly wrapped: Wrapped | null;
}

/** Undefined when there is none, or when it is damaged. */
const savedIn = (stored: unknown): SavedKey | undefined => {
  const { active: id, keys } = isRecord(stored) ? stored : {};
  const wrapped = typeof id === 'string' && isRecord(keys) ? keys[id] : undefined;
  if (typeof id !== 'string' || (wrapped !== null && !isRecord(wrapped))) return undefined;
  if (!wrapped) return { id, wrapped };
  const { salt, sealed } = wrapped;
  return typeof salt === 'string' && typeof sealed === 'string'
    ? { id, wrapped: { salt, sealed } }
    : undefined;
};

export interface StoreKeyOptions {
  readonly holder: KeyHolder;
  readonly secrets: () => Secrets;
  /** Whether there are records that only the saved key can decrypt. Else a key that cannot be unwrapped is replaced. */
  readonly isNeeded: () => boolean;
  /** Undefined where the runtime has none: then there is no key file either. */
  readonly userDir?: string | undefined;
  readonly warn: (message: string) => void;
  /** Milliseconds until a failed write is retried; without them, it is not. */
  readonly retryAfter?: number;
}

/**
 * The key that encrypts the records of a store. It is random, and stored wrapped by the runtime's credential secret: a
 * new secret needs a new wrapping, but no new key.
 */
export class StoreKey implements Sealer {
  private readonly file: KeyFile | undefined;
  private readonly warned = new Set<string>();
  key: DataKey | undefined;
  private wrapped: Wrapped | null = null;
  /** A key is saved that none of the secrets unwraps, or that is damaged. */
  private isLocked = false;
  private isDirty = false;
  isUnsaved = false;
  private saving: Promise<void> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;

  constructor(private readonly options: StoreKeyOptions) {
    this.file = options.userDir ? new KeyFile(options.userDir) : undefined;
    this.unlock(options.holder.read());
    if (this.isDirty) void this.save();
  }

  /** Resolves when the key is saved: nothing may be encrypted with a key that a crash would lose. */
  async ready(): Promise<void> {
    const isNew = !this.key;
    // Another process may have made it meanwhile.
    const stored = isNew ? await this.options.holder.reread?.() : undefined;
    if (!this.key) this.unlock(stored);
    if (!this.key && !(this.isLocked && this.options.isNeeded())) {
      this.isUnsaved = true;
      this.key = newDataKey();
    }
    this.isDirty ||= isNew && this.key !== undefined;
    await (this.isDirty ? this.save() : this.saving);
  }

  private unlock(stored: unknown): void {
    const saved = savedIn(stored);
    const { candidates, current } = this.options.secrets();
    const open = (secret: string): DataKey | undefined =>
      saved?.wrapped ? unwrap(saved.id, saved.wrapped, secret) : undefined;
    const key = saved?.wrapped === null ? this.file?.get(saved.id) : candidates.map(open).find(Boolean);
    this.isLocked = !key && (this.isLocked || stored != null);
    if (!saved || !key) return;
    [this.key, this.wrapped] = [key, saved.wrapped];
    // Else the credential secret was set, changed or removed.
    this.isDirty = !(current === undefined ? !saved.wrapped : open(current));
  }

  /** One write at a time; what is dirty meanwhile is one more. */
  private save(): Promise<void> {
    this.saving = this.saving.then(() => this.saveNow());
    return this.saving;
  }

  /** Wraps the key by the current secret, or puts it into the file. If the file cannot be written, the old wrapping stays. */
  private async saveNow(): Promise<void> {
    const { key, file, options } = this;
    if (!this.isDirty || !key) return;
    this.isDirty = false;
    const { current } = options.secrets();
    const isFiled = current === undefined && file !== undefined && this.putInto(file, key);
    if (current !== undefined) this.wrapped = wrap(key, current);
    else if (isFiled) this.wrapped = null;
    const { wrapped } = this;
    const document = { version: 1, active: key.id, keys: { [key.id]: wrapped } };
    const isWritten = await options.holder.write(document);
    if (isWritten && (wrapped || isFiled || !file)) this.isUnsaved = false;
    else this.saveLater();
    if (isWritten && wrapped && file?.remove(key.id) === false)
      this.warn(
        `The credential secret now protects the encryption key, but the unprotected copy in ${file.path} could not be deleted: delete that file.`,
      );
    if (!isWritten)
      this.warn(
        'The encryption key cannot be written to disk, so saved authorizations, waits and texts will be lost when Node-RED stops. Make the user directory writable, and unset readOnly in settings.js.',
      );
  }

  /** The disk may be writable again before the next change. */
  private saveLater(): void {
    const { retryAfter } = this.options;
    if (retryAfter === undefined) return;
    this.isDirty = true;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.save(), retryAfter).unref();
  }

  private putInto(file: KeyFile, key: DataKey): boolean {
    const isKept = file.add(key);
    this.warn(
      isKept
        ? `This Node-RED has no credential secret, so the encryption key is kept in ${file.path}, which only its owner can read. Set credentialSecret in settings.js to protect it.`
        : `The encryption key could not be written to ${file.path}, so authorizations will be lost when Node-RED stops: make the user directory writable.`,
    );
    return isKept;
  }

  private warn(message: string): void {
    if (!this.warned.has(message)) this.options.warn(message);
    this.warned.add(message);
  }
}
