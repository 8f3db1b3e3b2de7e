import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DataKey } from './cipher';

/** Data keys in the clear, readable by the owner only: for a runtime that has no secret to wrap them with. */
export interface KeyFile {
  readonly path: string;
  read(id: string): DataKey | undefined;
  /** False where the file cannot be written. */
  add(key: DataKey): boolean;
  /** False where it is still in the file. */
  remove(id: string): boolean;
}

export const keyFile = (userDir: string): KeyFile => {
  const path = join(userDir, 'advisor-texting', 'data-key.json');
  const readAll = (): Map<string, string> => {
    try {
      const stored = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
      return new Map(
        Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      );
    } catch {
      return new Map();
    }
  };
  const writeAll = (keys: ReadonlyMap<string, string>): boolean => {
    const next = `${path}.next`;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(next, JSON.stringify(Object.fromEntries(keys)), { mode: 0o600, flush: true });
      renameSync(next, path);
      return true;
    } catch {
      return false;
    }
  };
  return {
    path,
    read(id) {
      const bytes = Buffer.from(readAll().get(id) ?? '', 'base64');
      return bytes.length === 32 ? { id, bytes } : undefined;
    },
    add: (key) => writeAll(readAll().set(key.id, key.bytes.toString('base64'))),
    remove(id) {
      const keys = readAll();
      if (!keys.delete(id)) return true;
      if (keys.size > 0) return writeAll(keys);
      try {
        rmSync(path, { force: true });
        return true;
      } catch {
        return false;
      }
    },
  };
};
