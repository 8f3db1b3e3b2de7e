import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** `failed` may go well another time; what is `unkept` lives only as long as the process. */
export type Written = 'stored' | 'failed' | 'unkept';

/** Where the vault's document lies. */
export interface Shelf {
  /** What this process knows. */
  read(): unknown;
  /** What lies on disk, where another process may have written; undefined when that cannot be told. */
  reread(): Promise<unknown>;
  write(document: object): Promise<Written>;
}

/** The part of the runtime's settings that the vault needs. In a test runtime `get` and `set` throw. */
export interface RuntimeSettings {
  get(property: string): unknown;
  set(property: string, value: unknown): Promise<unknown>;
  readonly userDir?: string | undefined;
  readonly readOnly?: boolean | undefined;
}

const property = 'advisorTextingVault';

/** Whether a vault was ever kept here. */
export const isVaultKept = (settings: RuntimeSettings): boolean => {
  try {
    return settings.get(property) != null;
  } catch {
    return false;
  }
};

export const memoryShelf = (): Shelf => {
  let kept: unknown;
  return {
    read: () => kept,
    reread: () => Promise.resolve(undefined),
    write: (document) => {
      kept = document;
      return Promise.resolve('unkept');
    },
  };
};

/** The settings storage, and memory for as long as that is not to be had. */
export const settingsShelf = (settings: RuntimeSettings): Shelf => {
  const memory = memoryShelf();
  let failures = 0;
  return {
    read() {
      try {
        return settings.get(property) ?? memory.read();
      } catch {
        return memory.read();
      }
    },
    async reread() {
      if (!settings.userDir) return undefined;
      try {
        // The default storage keeps its settings in this file; another storage module simply has no such file.
        const text = await readFile(join(settings.userDir, '.config.runtime.json'), 'utf8');
        return (JSON.parse(text) as Record<string, unknown>)[property];
      } catch {
        return undefined;
      }
    },
    async write(document) {
      await memory.write(document);
      try {
        // The runtime writes only what differs from its memory, where a document that failed to reach the disk is too.
        await settings.set(property, failures === 0 ? document : { ...document, failures });
        return settings.readOnly === true ? 'unkept' : 'stored';
      } catch {
        failures += 1;
        return 'failed';
      }
    },
  };
};
