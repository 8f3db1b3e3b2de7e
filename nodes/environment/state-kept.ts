import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Whether waits or sends were ever put on disk. */
export const isStateKept = (userDir: string | undefined): boolean =>
  userDir !== undefined && existsSync(join(userDir, 'advisor-texting', 'store.mdb'));
