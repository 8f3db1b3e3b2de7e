import { randomBytes } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
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

const keyPath = (userDir: string): string => join(userDir, 'advisor-texting', 'wrapped-key.json');

/** Whether a data key was ever stored. */
export const isKeyKept = (settings: RuntimeSettings): boolean =>
  (settings.userDir !== undefined && existsSync(keyPath(settings.userDir))) ||
  settingOf(settings, property) != null;

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

/** Undefined when it cannot be read. */
const readJson = (path: string): unknown => {
  try {
    // To read a pipe would block the process.
    return statSync(path).isFile() ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
  } catch {
    return undefined;
  }
};

const isRemoved = (path: string): boolean => {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
};

/**
 * Only its owner can read the file. False when it cannot be written. With `isFirst`, a file that another process has made
 * meanwhile stays.
 */
const writePrivate = (path: string, content: unknown, isFirst = false): boolean => {
  const next = `${path}.${randomBytes(6).toString('hex')}.next`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(next, JSON.stringify(content), { mode: 0o600, flush: true });
    if (!isFirst || !isLinked(next, path)) renameSync(next, path);
    return true;
  } catch {
    return false;
  } finally {
    isRemoved(next);
  }
};

/** Makes the file at `path`, if there is none; false where the file system has no links. */
const isLinked = (next: string, path: string): boolean => {
  try {
    linkSync(next, path);
    return true;
  } catch {
    return existsSync(path);
  }
};

interface SavedKey {
  readonly id: string;
  /** By a secret of the runtime; null for a key in a key file. */
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

/**
 * Keeps the key in the runtime's settings and beside the store. The file decides: of two processes with one user
 * directory, each writes the settings without what the other has added.
 */
export const keyHolderOf = (settings: RuntimeSettings): KeyHolder => {
  const { userDir } = settings;
  const inSettings = (): unknown => settingOf(settings, property);
  if (userDir === undefined) return { read: inSettings, write: () => Promise.resolve(false) };
  const path = keyPath(userDir);
  return {
    read() {
      // A file that cannot be read is a damaged key, and not the lack of one; another process may make it right after.
      const isThere = existsSync(path);
      const inFile = readJson(path);
      return savedIn(inFile) ? inFile : (inSettings() ?? (isThere ? {} : undefined));
    },
    async write(document, isFirst) {
      if (!writePrivate(path, document, isFirst)) return false;
      try {
        await settings.set(property, readJson(path));
      } catch {
        // Read-only settings, or a full disk: the file is enough.
      }
      return true;
    },
  };
};

/** The id may come from a damaged file. */
const keyId = /^[0-9a-f]{16}$/;

/**
 * Data keys in plain: for a runtime that has no secret to wrap them with. Each has a file of its own, as other processes
 * may save theirs at the same time.
 */
class KeyFiles {
  constructor(private readonly userDir: string) {}

  pathOf(id: string): string {
    return join(this.userDir, 'advisor-texting', `data-key-${id}.json`);
  }

  get(id: string): DataKey | undefined {
    const key = keyId.test(id) ? readJson(this.pathOf(id)) : undefined;
    const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : undefined;
    return bytes?.length === 32 ? dataKey(id, bytes) : undefined;
  }

  /** False when the file cannot be written. */
  add({ id, bytes }: DataKey): boolean {
    return writePrivate(this.pathOf(id), bytes.toString('base64'));
  }

  /** False when the key is still there. */
  remove(id: string): boolean {
    return isRemoved(this.pathOf(id));
  }
}

export interface StoreKeyOptions {
  readonly holder: KeyHolder;
  readonly secrets: () => Secrets;
  /** Whether there are records that only the saved key can decrypt. Else a key that cannot be unwrapped is replaced. */
  readonly isNeeded: () => boolean;
  /** Undefined where the runtime has none: then there are no key files either. */
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
  private readonly files: KeyFiles | undefined;
  private readonly warned = new Set<string>();
  key: DataKey | undefined;
  private wrapped: Wrapped | null = null;
  /** A key is saved that none of the secrets unwraps, or that is damaged. */
  private isLocked = false;
  private isDirty = false;
  isUnsaved = false;
  /** Another process may be saving a key at the same time: the first one counts. */
  private isFirst = false;
  private saving: Promise<void> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;

  constructor(private readonly options: StoreKeyOptions) {
    this.files = options.userDir ? new KeyFiles(options.userDir) : undefined;
    this.unlock(options.holder.read());
    if (this.isDirty) void this.save();
  }

  /** Resolves when the key is saved: nothing may be encrypted with a key that a crash would lose. */
  async ready(): Promise<void> {
    const { holder, isNeeded } = this.options;
    // Another process may have made it meanwhile.
    if (!this.key) this.unlock(holder.read());
    if (!this.key && !(this.isLocked && isNeeded())) {
      this.isFirst = !this.isLocked;
      this.isUnsaved = this.isDirty = true;
      this.key = newDataKey();
    }
    await (this.isDirty ? this.save() : this.saving);
  }

  private unlock(stored: unknown): void {
    const saved = savedIn(stored);
    const { candidates, current } = this.options.secrets();
    const open = (secret: string): DataKey | undefined =>
      saved?.wrapped ? unwrap(saved.id, saved.wrapped, secret) : undefined;
    const key = saved?.wrapped === null ? this.files?.get(saved.id) : candidates.map(open).find(Boolean);
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

  /** Wraps the key by the current secret, or puts it into its file. If the file cannot be written, the old wrapping stays. */
  private async saveNow(): Promise<void> {
    const { key, files, options } = this;
    if (!this.isDirty || !key) return;
    this.isDirty = false;
    const { current } = options.secrets();
    const isFiled = current === undefined && files !== undefined && this.putInto(files, key);
    if (current !== undefined) this.wrapped = wrap(key, current);
    else if (isFiled) this.wrapped = null;
    const { wrapped } = this;
    const document = { version: 1, active: key.id, keys: { [key.id]: wrapped } };
    const isWritten = await options.holder.write(document, this.isFirst);
    if (isWritten && this.isFirst && this.takeOther(key)) return;
    if (isWritten && (wrapped || isFiled || !files)) this.isUnsaved = false;
    else this.saveLater();
    if (isWritten && wrapped && files?.remove(key.id) === false)
      this.warn(
        `The credential secret now protects the encryption key, but the unprotected copy in ${files.pathOf(key.id)} could not be deleted: delete that file.`,
      );
    if (!isWritten)
      this.warn(
        'The encryption key cannot be written to disk, so saved authorizations, waits and texts will be lost when Node-RED stops. Make the user directory writable.',
      );
  }

  /** Takes the key of another process that was faster; false when there is none. */
  private takeOther(own: DataKey): boolean {
    this.isFirst = false;
    const stored = this.options.holder.read();
    if (stored == null || savedIn(stored)?.id === own.id) return false;
    this.files?.remove(own.id);
    this.key = undefined;
    this.isUnsaved = false;
    this.unlock(stored);
    return true;
  }

  /** The disk may be writable again before the next change. */
  private saveLater(): void {
    const { retryAfter } = this.options;
    if (retryAfter === undefined) return;
    this.isDirty = true;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.save(), retryAfter).unref();
  }

  private putInto(files: KeyFiles, key: DataKey): boolean {
    const isKept = files.add(key);
    const path = files.pathOf(key.id);
    this.warn(
      isKept
        ? `This Node-RED has no credential secret, so the encryption key is kept in ${path}, which only its owner can read. Set credentialSecret in settings.js to protect it.`
        : `The encryption key could not be written to ${path}, so authorizations will be lost when Node-RED stops: make the user directory writable.`,
    );
    return isKept;
  }

  private warn(message: string): void {
    if (!this.warned.has(message)) this.options.warn(message);
    this.warned.add(message);
  }
}
