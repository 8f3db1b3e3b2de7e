import { newDataKey, unwrap, wrap, type DataKey } from './cipher';
import type { KeptKey } from './document';
import type { KeyFile } from './key-file';
import type { Secrets } from './secrets';

export interface KeyringOptions {
  readonly secrets: () => Secrets;
  /** Absent where the runtime has no user directory. */
  readonly keyFile?: KeyFile | undefined;
  readonly warn: (message: string) => void;
}

/** The data keys that could be had, and how they are kept: wrapped by the runtime's secret, or in the key file. */
export class Keyring {
  readonly #options: KeyringOptions;
  readonly #keys = new Map<string, DataKey>();

  constructor(options: KeyringOptions) {
    this.#options = options;
  }

  get(id: string | undefined): DataKey | undefined {
    return this.#keys.get(id ?? '');
  }

  create(): DataKey {
    const key = newDataKey();
    this.#keys.set(key.id, key);
    return key;
  }

  /** Returns the ids of those that could not be had. */
  unlock(kept: ReadonlyMap<string, KeptKey>): string[] {
    const { candidates } = this.#options.secrets();
    const locked: string[] = [];
    for (const [id, { wrapped }] of kept) {
      if (this.#keys.has(id)) continue;
      const key = wrapped
        ? candidates.map((secret) => unwrap(id, wrapped, secret)).find((found) => found !== undefined)
        : this.#options.keyFile?.read(id);
      if (key) this.#keys.set(id, key);
      else locked.push(id);
    }
    return locked;
  }

  /** How it was kept before stays, where it cannot be kept as it is to be now. */
  keep(key: DataKey, at: number, before: KeptKey | undefined): KeptKey {
    const { current } = this.#options.secrets();
    if (current !== undefined) return { at, wrapped: wrap(key, current) };
    return this.#putIntoFile(key) || !before ? { at, wrapped: null } : before;
  }

  /** Those that are not kept the way they are to be now, because a secret was set, changed or given up. */
  misplaced(kept: ReadonlyMap<string, KeptKey>): DataKey[] {
    const { current } = this.#options.secrets();
    return [...this.#keys.values()].filter(({ id }) => {
      const wrapped = kept.get(id)?.wrapped;
      if (!wrapped) return current !== undefined;
      return current === undefined || unwrap(id, wrapped, current) === undefined;
    });
  }

  /** Once their new wrapping is on disk, the open copies go. */
  clearFile(kept: ReadonlyMap<string, KeptKey>): void {
    const { keyFile, warn } = this.#options;
    for (const [id, { wrapped }] of kept) {
      if (!wrapped || !keyFile || keyFile.remove(id)) continue;
      warn(
        `The key to stored authorizations is protected by the credential secret now, but its open copy in ${keyFile.path} could not be removed: delete that file.`,
      );
    }
  }

  #putIntoFile(key: DataKey): boolean {
    const { keyFile, warn } = this.#options;
    if (!keyFile) return false;
    const isKept = keyFile.add(key);
    warn(
      isKept
        ? `This Node-RED has no credential secret, so the key to stored authorizations lies in ${keyFile.path}, readable only by its owner. Set credentialSecret in settings.js to protect it.`
        : `The key to stored authorizations could not be written to ${keyFile.path}. Authorizations will be lost when Node-RED stops: make the user directory writable.`,
    );
    return isKept;
  }
}
