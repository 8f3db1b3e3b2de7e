import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net, { type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseFile } from '../../../lib/state/database-file';
import { openEmbedded } from '../../../lib/state/embedded';
import { lifeOf, showLife } from '../../../lib/state/sign-of-life';
import { endOf, key, type Store } from '../../../lib/state/store';
import { sealerOf } from '../../support/state/sealer';
import { leaveOut } from '../../support/machine';
import { until } from '../../support/until';
import { startStore, type StoreProcess } from '../../support/state/processes';

const owner = (line: string): boolean => line === 'owner';
const troubled = (line: string): boolean => line.startsWith('trouble Another process');
const isNumber = (line: string): boolean => /^\d+$/.test(line);
/**
 * Resolves when it has asked for a sign of life, without writing anything, more often than in one attempt to own the
 * store.
 */
const onlyAsks = async (process: StoreProcess): Promise<void> => {
  let next = process.lines.length;
  for (let n = 0; n < 5; n++) {
    const line = await process.said((said) => said === 'asks' || isNumber(said), next);
    assert.equal(line, 'asks', 'two wrote at the same time');
    next = process.lines.indexOf('asks', next) + 1;
  }
};

const numbersOf = async (store: Store, name: string): Promise<number[]> => {
  const prefix = key('a', name);
  const page = await store.page<{ n: number }>('work', { from: prefix, to: endOf(prefix), limit: 1e6 });
  return page.map(({ value }) => value.n);
};

describe('the owner of a store', function () {
  this.timeout(180_000);
  let directory: string;
  let processes: StoreProcess[];
  const start = (
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    before: readonly string[] = [],
  ): StoreProcess => {
    const started = startStore(args, { env: { RATE: '10', ...env }, before });
    processes.push(started);
    return started;
  };
  const open = (): Promise<Store> =>
    openEmbedded({ directory, sealer: sealerOf('test'), warn: () => undefined });

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-owner-'));
    processes = [];
  });
  afterEach(async () => {
    for (const each of processes) each.signal('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
    rmSync(directory, { recursive: true, force: true });
  });

  /** Starts a second process while a first writes, stops the first, and waits until the second has taken over. */
  const succession = async (
    signal: NodeJS.Signals,
    environments: readonly NodeJS.ProcessEnv[] = [],
  ): Promise<void> => {
    const first = start([directory, 'first', 'write'], environments[0]);
    await first.said(isNumber);
    const second = start([directory, 'second', 'write'], environments[1]);
    await second.said(troubled);
    await onlyAsks(second);
    first.signal(signal);
    await first.ended;
    await second.said(isNumber);
    second.signal('SIGTERM');
    await second.ended;
    const store = await open();
    for (const [name, each] of [
      ['first', first],
      ['second', second],
    ] as const) {
      const acknowledged = each.lines.filter(isNumber).map(Number);
      const kept = new Set(await numbersOf(store, name));
      assert.deepEqual(
        acknowledged.filter((n) => !kept.has(n)),
        [],
        `${name} lost saved records`,
      );
    }
    await store.close();
  };

  it('is succeeded by the waiting process when it is killed', () => succession('SIGKILL'));

  it('is succeeded by the waiting process when it stops', () => succession('SIGTERM'));

  it('can be reached through a path that is too long for a socket, whatever the temporary folders', async () => {
    const base = directory;
    directory = join(base, 'a'.repeat(100), 'b'.repeat(100));
    const temps = ['one', 'two'].map((name) => join(base, name));
    for (const temp of temps) mkdirSync(temp);
    await succession(
      'SIGKILL',
      temps.map((TMPDIR) => ({ TMPDIR })),
    );
    directory = base;
  });

  it('is left alone while it is stopped or busy, and loses nothing', async () => {
    const first = start([directory, 'first', 'write']);
    await first.said(isNumber);
    first.signal('SIGSTOP');
    const second = start([directory, 'second', 'write']);
    await second.said(troubled);
    await onlyAsks(second);
    const before = first.lines.length;
    first.signal('SIGCONT');
    await first.said(isNumber, before);
  });

  it('keeps the store while no sign of life can be seen, and is succeeded when it exits', async () => {
    const first = start([directory, 'first', 'write']);
    await first.said(isNumber);
    for (const name of readdirSync(directory)) if (name.endsWith('.sock')) rmSync(join(directory, name));
    const second = start([directory, 'second', 'write'], { STEPS: 'claims' });
    let heard = 0;
    const claims = async (): Promise<void> => {
      const line = await second.said((said) => said === 'claims' || isNumber(said), heard);
      assert.equal(line, 'claims', 'two wrote at the same time');
      heard = second.lines.indexOf('claims', heard) + 1;
    };
    for (const times of [1, 2, 3]) {
      await claims();
      await until(() => !existsSync(join(directory, 'store.mdb-claim')), 'The answer to the claim');
      if (times === 3) first.signal('SIGKILL');
      second.signal('SIGUSR2');
    }
    await first.ended;
    await claims();
    second.signal('SIGUSR2');
    await second.said(isNumber);
  });

  it('keeps the store when another waiting process claims it again each time the owner has answered', async () => {
    const first = start([directory, 'first', 'write']);
    await first.said(isNumber);
    for (const name of readdirSync(directory)) if (name.endsWith('.sock')) rmSync(join(directory, name));
    const second = start([directory, 'second', 'write']);
    await second.said((line) => line === 'claims');
    const claim = join(directory, 'store.mdb-claim');
    for (let times = 0; times < 10; times++) {
      await until(() => !existsSync(claim), 'The answer to the claim');
      writeFileSync(claim, '');
    }
    assert.ok(!second.lines.some(isNumber), 'two wrote at the same time');
    first.signal('SIGKILL');
    await second.said(isNumber);
  });

  it('is not disturbed by one in another container, where it has the same process id', async function () {
    const container = ['unshare', '--user', '--map-root-user', '--pid', '--fork'];
    const [command = '', ...rest] = [...container, 'true'];
    if (spawnSync(command, rest).status !== 0) leaveOut(this, 'unshare cannot make namespaces');
    const first = start([directory, 'first', 'write'], {}, container);
    await first.said(isNumber);
    for (const name of readdirSync(directory)) if (name.endsWith('.sock')) rmSync(join(directory, name));
    const second = start([directory, 'second', 'write'], {}, container);
    // With equal process ids, lmdb may fail to begin a read: the second process then tries again.
    await second.said((line) => line.startsWith('trouble') && line.includes('Another process (1)'));
    first.signal('SIGKILL');
    await second.said(isNumber);
  });

  it('stops writing when another process took over by mistake, and resumes when that one exits', async () => {
    const first = start([directory, 'first', 'hold']);
    await first.said(owner);
    // It cannot answer a claim while it is stopped, and its socket is gone: the second must assume that it is dead.
    for (const name of readdirSync(directory)) if (name.endsWith('.sock')) rmSync(join(directory, name));
    first.signal('SIGSTOP');
    const second = start([directory, 'second', 'write']);
    await second.said(isNumber);
    const before = first.lines.length;
    first.signal('SIGUSR2');
    first.signal('SIGCONT');
    await first.said(troubled, before);
    assert.equal(first.lines.some(isNumber), false, 'it wrote what the other might have overwritten');
    const told = first.lines.length;
    await onlyAsks(first);
    second.signal('SIGTERM');
    await second.ended;
    await first.said(isNumber, told);
    first.signal('SIGTERM');
    await first.ended;
    const store = await open();
    for (const [name, each] of [
      ['first', first],
      ['second', second],
    ] as const)
      assert.deepEqual(await numbersOf(store, name), each.lines.filter(isNumber).map(Number));
    await store.close();
  });

  it('also gives up the commit in flight when another process takes over', async () => {
    const store = await open();
    await store.write([{ table: 'work', put: key('a'), value: 'before' }]);
    const { commit } = DatabaseFile.prototype;
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    const isCommitting = new Promise<void>((started) => {
      DatabaseFile.prototype.commit = async function (...args) {
        started();
        await gate;
        return commit.apply(this, args);
      };
    });
    const isTroubled = (isIt: boolean): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if ((store.engine.trouble !== undefined) !== isIt) return;
          unlisten();
          resolve();
        };
        const unlisten = store.engine.onChange(look);
        look();
      });
    const other = new DatabaseFile(join(directory, 'store.mdb'));
    try {
      const written = store.write([{ table: 'work', put: key('a'), value: 'stale' }]);
      written.catch(() => undefined);
      await isCommitting;
      const { value, version } = other.meta('owner') ?? assert.fail();
      await other.hand(version, { ...value, holder: 'other' });
      await isTroubled(true);
      DatabaseFile.prototype.commit = commit;
      go();
      await other.hand(version + 1, { commit: value.commit, time: value.time });
      await isTroubled(false);
      await assert.rejects(written, /another process/);
      assert.equal((await store.get('work', key('a')))?.value, 'before');
    } finally {
      DatabaseFile.prototype.commit = commit;
      go();
      await other.close();
      await store.close();
    }
  });

  it('passes the store on in a rolling update, and loses nothing', async () => {
    let before = start([directory, '0', 'write']);
    await before.said(isNumber);
    for (let n = 1; n < 4; n++) {
      const next = start([directory, String(n), 'write']);
      await next.said(troubled);
      before.signal('SIGTERM');
      await next.said(owner);
      await next.said(isNumber);
      before = next;
    }
    before.signal('SIGTERM');
    await before.ended;
    const store = await open();
    for (const [n, each] of processes.entries())
      assert.deepEqual(await numbersOf(store, String(n)), each.lines.filter(isNumber).map(Number));
    await store.close();
  });

  it('keeps running if it cannot accept connections that ask for a sign of life', async () => {
    const made: Server[] = [];
    const { createServer } = net;
    net.createServer = ((listener: () => void) => {
      const server = createServer(listener);
      made.push(server);
      return server;
    }) as typeof createServer;
    try {
      const life = await showLife(directory);
      for (let n = 0; n < 2; n++) made[0]?.emit('error', new Error('too many open files'));
      assert.equal(await lifeOf(directory, life.address), 'lives');
      await life.close();
      assert.equal(made.length, 1);
    } finally {
      net.createServer = createServer;
    }
  });

  it('ends quietly if the socket cannot be removed', async () => {
    const life = await showLife(directory);
    const socket = join(directory, life.address ?? '');
    rmSync(socket);
    mkdirSync(socket);
    await life.close();
  });

  it('leaves the files to nobody else, and no socket behind', async () => {
    const store = await open();
    assert.equal(statSync(directory).mode & 0o777, 0o700);
    for (const name of ['store.mdb', 'store.mdb-lock'])
      assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600);
    await store.close();
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.endsWith('.sock')),
      [],
    );
  });

  it('is unique in a process, whoever opens the store and by whatever path', async () => {
    const one = await open();
    const two = await openEmbedded({
      directory: `${directory}/.`,
      sealer: sealerOf('test'),
      warn: () => undefined,
    });
    await one.write([{ table: 'work', put: key('a'), value: 1 }]);
    await one.close();
    assert.equal((await two.get('work', key('a')))?.value, 1);
    await two.close();
    const three = await open();
    assert.equal((await three.get('work', key('a')))?.value, 1);
    await three.close();
  });
});
