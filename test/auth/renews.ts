import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Connection } from '../../lib/auth/connection';
import { MovableClock } from '../../lib/service/clock';
import { postForm } from '../../lib/service/transport';
import { startProcess } from './support';

/** A process of its own that wants a token once the starting file is there; it may hang in the middle of renewing. */
const run = async (): Promise<void> => {
  const [, , userDir = '', settings = '', startFile = ''] = process.argv;
  const { connection, ahead, hang } = JSON.parse(settings) as {
    connection: Connection;
    ahead: number;
    hang: boolean;
  };
  const { tokens } = startProcess(userDir, {
    clock: new MovableClock(() => Date.now() + ahead),
    post: async (...request) => {
      console.log('asking');
      if (hang) await pause(600_000);
      return postForm(...request);
    },
  });
  console.log('ready');
  while (!existsSync(startFile)) await pause(5);
  console.log(`token ${await tokens.token(connection, 'default')}`);
};

void run();
