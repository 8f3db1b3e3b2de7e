import type { Connection } from '../../../lib/auth/connection';
import { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import { startProcess } from './setup';

interface Settings {
  readonly connection: Connection;
  readonly now: number;
  /** Where it prints that name and stops, to be killed. */
  readonly moment: 'intended' | 'answered' | 'stored';
}

const forEver = (): Promise<never> => {
  setInterval(() => undefined, 1000);
  return new Promise(() => undefined);
};

/** A separate process that refreshes a token. */
const run = async (): Promise<void> => {
  const [, , userDir = '', settings = ''] = process.argv;
  const { connection, now, moment } = JSON.parse(settings) as Settings;
  const stopAt = async (reached: Settings['moment']): Promise<void> => {
    if (reached !== moment) return;
    console.log(moment);
    await forEver();
  };
  const { tokens } = await startProcess(userDir, {
    isOnDisk: true,
    clock: new MovableClock(() => now),
    post: async (...request) => {
      await stopAt('intended');
      const answer = await postForm(...request);
      await stopAt('answered');
      return answer;
    },
  });
  await tokens.token(connection, 'default');
  await stopAt('stored');
  await forEver();
};

void run();
