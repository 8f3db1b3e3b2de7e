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
import { isRecord, tried } from '../kinds';
import {
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

export interface Secrets {
  /** The secret to wrap with; empty where the runtime has none, and the key is as good as unencrypted. */
  readonly current: string;
  /** All secrets that may open an older wrapping, the likeliest first. */
  readonly candidates: readonly string[];
}

const previousSecretVariable = 'ADVISOR_TEXTING_PREVIOUS_SECRET';
const property = 'advisorTextingKeys';

const settingOf = (settings: RuntimeSettings, name: string): unknown => tried(() => settings.get(name));

/** Whether anything was ever stored: the database is not opened only to find that it is empty. */
export const isStateKept = (userDir: string | undefined): boolean =>
  userDir !== undefined && existsSync(join(userDir, 'advisor-texting', 'store.mdb'));

const keyPath = (userDir: string): string => join(userDir, 'advisor-texting', 'wrapped-key.json');

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
    current: chosen === false ? '' : ([chosen, generated].find(isSecret) ?? ''),
    candidates: [...[chosen, generated, variables[previousSecretVariable], previous].filter(isSecret), ''],
  };
};

/** Undefined when it cannot be read. */
const readJson = (path: string): unknown =>
  // To read a pipe would block the process.
  tried(() => (statSync(path).isFile() ? (JSON.parse(readFileSync(path, 'utf8')) as unknown) : undefined));

/**
 * Only its owner can read the file. False when it cannot be written. With `isFirst`, a file that another process has made
 * meanwhile stays.
 */
const writePrivate = (path: string, content: object, isFirst: boolean): boolean => {
  const next = `${path}.${randomBytes(6).toString('hex')}.next`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(next, JSON.stringify(content), { mode: 0o600, flush: true });
    if (!isFirst || !isLinked(next, path)) renameSync(next, path);
    return true;
  } catch {
    return false;
  } finally {
    // The folder may be missing.
    tried(() => rmSync(next, { force: true }));
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

/** Undefined when there is none, or when it is damaged. */
const savedIn = (stored: unknown): { readonly id: string; readonly wrapped: Wrapped } | undefined => {
  const { active: id, keys } = isRecord(stored) ? stored : {};
  const wrapped = typeof id === 'string' && isRecord(keys) ? keys[id] : undefined;
  const { salt, sealed } = isRecord(wrapped) ? wrapped : {};
  return typeof id === 'string' && typeof salt === 'string' && typeof sealed === 'string'
    ? { id, wrapped: { salt, sealed } }
    : undefined;
};

/**
 * Keeps the key in the runtime's settings and beside the store. The file decides: of two processes with one user
 * directory, each writes the settings without what the other has added. Others may read the settings, so an unprotected
 * key is in the file alone.
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
    async write(document, isFirst, isUnprotected) {
      if (!writePrivate(path, document, isFirst)) return false;
      if (isUnprotected) return true;
      try {
        await settings.set(property, readJson(path));
      } catch {
        // Read-only settings, or a full disk: the file is enough.
      }
      return true;
    },
  };
};

export interface StoreKeyOptions {
  readonly holder: KeyHolder;
  readonly secrets: () => Secrets;
  /** Whether there are records that only the saved key can decrypt. Else a key that cannot be unwrapped is replaced. */
  readonly isNeeded: () => boolean;
  readonly warn: (message: string) => void;
  /** Milliseconds until a failed write is retried; without them, it is not. */
  readonly retryAfter?: number;
}

/**
 * The key that encrypts the records of a store. It is random, and stored wrapped by the runtime's credential secret: a
 * new secret needs a new wrapping, but no new key.
 */
export class StoreKey implements Sealer {
  private readonly warned = new Set<string>();
  key: DataKey | undefined;
  /** A key is saved that none of the secrets unwraps, or that is damaged. */
  private isLocked = false;
  private isDirty = false;
  isUnsaved = false;
  private saving: Promise<void> = Promise.resolve();
  private retry: NodeJS.Timeout | undefined;

  constructor(private readonly options: StoreKeyOptions) {
    this.unlock(options.holder.read());
    if (this.isDirty) void this.save();
  }

  /** Resolves when the key is saved: nothing may be encrypted with a key that a crash would lose. */
  async ready(): Promise<void> {
    const { holder, isNeeded } = this.options;
    // Another process may have made it meanwhile.
    if (!this.key) this.unlock(holder.read());
    if (!this.key && !(this.isLocked && isNeeded())) {
      this.isUnsaved = this.isDirty = true;
      this.key = newDataKey();
    }
    await (this.isDirty ? this.save() : this.saving);
  }

  private unlock(stored: unknown): void {
    const saved = savedIn(stored);
    const { candidates, current } = this.options.secrets();
    const open = (secret: string): DataKey | undefined => saved && unwrap(saved.id, saved.wrapped, secret);
    const key = candidates.map(open).find(Boolean);
    this.isLocked = !key && (this.isLocked || stored != null);
    if (!key) return;
    this.key = key;
    // Else the credential secret was set, changed or removed.
    this.isDirty = !open(current);
  }

  /** One write at a time; what is dirty meanwhile is one more. */
  private save(): Promise<void> {
    this.saving = this.saving.then(() => this.saveNow());
    return this.saving;
  }

  /** Wraps the key by the current secret. If it cannot be written, the old wrapping stays. */
  private async saveNow(): Promise<void> {
    const { key, options } = this;
    if (!this.isDirty || !key) return;
    this.isDirty = false;
    // Another process may be saving a key at the same time: the first one counts.
    const isFirst = this.isUnsaved && !this.isLocked;
    const { current } = options.secrets();
    const document = { version: 1, active: key.id, keys: { [key.id]: wrap(key, current) } };
    const isWritten = await options.holder.write(document, isFirst, current === '');
    if (isWritten && isFirst && this.takeOther(key)) return;
    if (isWritten) this.isUnsaved = false;
    else this.saveLater();
    if (!isWritten)
      this.warn(
        'The encryption key cannot be written to disk, so saved authorizations, waits and texts will be lost when Node-RED stops. Make the user directory writable.',
      );
    else if (current === '')
      this.warn(
        'This Node-RED has no credential secret, so nothing protects the encryption key but that only its owner can read the file advisor-texting/wrapped-key.json. Set credentialSecret in settings.js.',
      );
  }

  /** Takes the key of another process that was faster; false when there is none. */
  private takeOther(own: DataKey): boolean {
    const stored = this.options.holder.read();
    if (stored == null || savedIn(stored)?.id === own.id) return false;
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

  private warn(message: string): void {
    if (!this.warned.has(message)) this.options.warn(message);
    this.warned.add(message);
  }
}
