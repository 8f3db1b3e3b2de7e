import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Whether anything was ever put on disk: the database is not opened only to find it empty. */
export const isStateKept = (userDir: string | undefined): boolean =>
  userDir !== undefined && existsSync(join(userDir, 'advisor-texting', 'store.mdb'));
