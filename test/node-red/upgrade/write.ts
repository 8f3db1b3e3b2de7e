import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { root } from '../../support/installation';
import { type RealRed, startRed } from '../../support/node-red';
import { blocked, flowsAt, held, texted, waiting } from './flow';

const saved = async (red: RealRed, route: string): Promise<void> => {
  for (;;) {
    const { data } = (await red.request('GET', `advisor-texting/${route}`)).json as { data: unknown[] };
    if (data.length > 0) return;
    await setTimeout(100);
  }
};

/** Writes a user directory as this version leaves it: later versions must open it. Run by `npm run release`. */
const main = async (): Promise<void> => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const red = await startRed({ version: 5, flows: flowsAt(new Date()) });
  try {
    await red.send('block-in', { phone: blocked });
    await red.messages('blocked');
    await red.send('ask-in', { phone: texted });
    await red.messages('waited');
    await red.send('send-in', { phone: texted, text: 'Hello' });
    await red.messages('sent');
    await red.send('ask-in', { phone: waiting });
    await red.messages('asked', 2);
    await red.send('hold-in', { phone: held, text: 'Hello' });
    await saved(red, 'environment/waits');
    await saved(red, 'hours/queue');
    await red.stop();
    const files = ['store.mdb', 'wrapped-key.json'].map((name) => `advisor-texting/${name}`);
    const parts = ['flows.json', '.config.runtime.json', ...files];
    execFileSync('tar', ['-czf', join(__dirname, `${version}.tgz`), '-C', red.userDir, ...parts]);
  } finally {
    await red.close();
  }
};

void main();
