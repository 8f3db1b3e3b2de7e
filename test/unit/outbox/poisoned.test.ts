import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import should from 'should';
import { asCompiled } from '../../support/compiled';
import { itInLongRun } from '../../support/extent';
import { root } from '../../support/installation';
import { Postgres } from '../../support/postgres';
import { openEmbedded } from '../../../lib/state/embedded';
import { key } from '../../../lib/state/store';
import { sealerOf } from '../../support/state/sealer';

describe('an item whose work crashes the process', function () {
  this.timeout(120_000);
  let place: string;

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'advisor-poisoned-'));
  });
  afterEach(() => {
    rmSync(place, { recursive: true, force: true });
  });

  /** Starts a process; resolves when it has exited by itself, or has printed what is awaited. */
  const start = async (
    what: string,
    isDone: (said: readonly string[]) => boolean = () => false,
  ): Promise<{ said: readonly string[]; signal: string | null }> => {
    const child = spawn(
      process.execPath,
      [...asCompiled, join(root, 'test', 'support', 'outbox', 'poisoned-child.ts'), place, what],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const said: string[] = [];
    createInterface(child.stdout).on('line', (line) => {
      said.push(line);
      if (isDone(said)) child.kill('SIGTERM');
    });
    const [, signal] = (await once(child, 'close')) as [number | null, string | null];
    return { said, signal };
  };
  const noteOnRecord = async (): Promise<unknown> => {
    const store = await openEmbedded({ directory: place, sealer: sealerOf('test'), warn: () => undefined });
    const found = await store.get('work', key('careful'));
    await store.close();
    return found?.value;
  };

  const leavesAfterFour = async (): Promise<void> => {
    await start('accept');
    const before: string[] = [];
    for (let crashes = 1; crashes <= 4; crashes++) {
      const { said, signal } = await start('run');
      should(signal).equal('SIGKILL', `start ${crashes}`);
      before.push(...said);
    }
    const { said } = await start('run', (lines) => new Set([...before, ...lines]).size >= 41);
    const all = [...new Set([...before, ...said])];
    const ofPoison = all.filter((line) => line.startsWith('poison'));
    should(ofPoison).eql(['poison crashes']);
    // Items in flight at a crash are unknown, and no others.
    const [sent, unknown] = ['sent', 'unknown'].map((end) => all.filter((line) => line.endsWith(end)).length);
    should((sent ?? 0) + (unknown ?? 0)).equal(40);
    should(sent).be.aboveOrEqual(8);
  };

  it('does so four times, then leaves, and all others are sent', leavesAfterFour);

  itInLongRun('does so four times in PostgreSQL too, whichever process takes it over', async () => {
    const server = await Postgres.start();
    const folder = place;
    try {
      place = server.url();
      await leavesAfterFour();
    } finally {
      place = folder;
      await server.close();
    }
  });

  it('as its outcome leaves does so five times, then does not leave, and all others do', async () => {
    await start('accept');
    const before: string[] = [];
    for (let times = 1; times <= 5; times++) {
      const { said, signal } = await start('emit');
      should(signal).equal('SIGKILL', `start ${times}`);
      before.push(...said);
    }
    const { said } = await start('emit', (lines) => new Set([...before, ...lines]).size >= 40);
    const all = [...new Set([...before, ...said])];
    should(all.filter((line) => line.startsWith('poison'))).eql([]);
    should(all.filter((line) => line.startsWith('number')).length).equal(40);
  });

  it('is not suspected without a crash: nothing is written for it', async () => {
    await start('accept');
    for (let crashes = 1; crashes <= 3; crashes++) await start('run');
    should(await noteOnRecord()).be.undefined();
  });
});
