import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import files, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { open as openLmdb } from 'lmdb';
import { openEmbedded, type EmbeddedOptions } from '../../../lib/state/embedded';
import { endOf, key, type Store } from '../../../lib/state/store';
import { sealerOf } from '../../support/state/sealer';
import { startStore, type StoreProcess } from '../../support/state/processes';
import { leaveOut } from '../../support/machine';
import { smallDisk } from '../../support/state/small-disk';

const isNumber = (line: string): boolean => /^\d+$/.test(line);
const everything = { from: Buffer.alloc(0), to: Buffer.alloc(100, 0xff), limit: 100_000 };
const turn = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('a failing store', function () {
  this.timeout(180_000);
  let directory: string;
  let warnings: string[];
  let processes: StoreProcess[];

  const open = (options: Partial<EmbeddedOptions> = {}): Promise<Store> =>
    openEmbedded({ directory, sealer: sealerOf('test'), warn: (text) => warnings.push(text), ...options });
  const start = (...[args, options]: Parameters<typeof startStore>): StoreProcess => {
    const started = startStore(args, options);
    processes.push(started);
    return started;
  };
  /** The store's raw bytes. */
  const raw = async (change: (table: ReturnType<typeof rawTables>) => void): Promise<void> => {
    const root = openLmdb<Buffer, Buffer>(join(directory, 'store.mdb'), {
      encoding: 'binary',
      keyEncoding: 'binary',
      overlappingSync: false,
      maxDbs: 8,
    });
    change(rawTables(root));
    await root.close();
  };
  const rawTables =
    (root: ReturnType<typeof openLmdb<Buffer, Buffer>>) =>
    (name: string, useVersions = false) =>
      root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary', useVersions });

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-faults-'));
    warnings = [];
    processes = [];
  });
  afterEach(async () => {
    for (const each of processes) each.signal('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
    rmSync(directory, { recursive: true, force: true });
  });

  describe('with records that cannot be read', () => {
    const put = (name: string, value: unknown) => ({ table: 'work' as const, put: key(name), value });

    it('reports damaged records once, and takes them for missing', async () => {
      let store = await open();
      await store.write(['a', 'b', 'c', 'd'].map((name) => put(name, name)));
      await store.close();
      await raw((table) => {
        for (const name of ['b', 'c']) {
          const bytes = Buffer.from(table('work').get(key(name)) ?? []);
          bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
          table('work').putSync(key(name), bytes);
        }
      });
      store = await open();
      const values = async (): Promise<unknown[]> =>
        (await store.page('work', everything)).map(({ value }) => value);
      assert.deepEqual(await values(), ['a', 'd']);
      assert.deepEqual(await values(), ['a', 'd']);
      assert.equal(await store.get('work', key('b')), undefined);
      await turn();
      assert.equal(warnings.length, 1);
      assert.match(warnings[0] ?? '', /^2 saved record\(s\) are damaged/);
      const unreadable = (): string[] =>
        ['a', 'b', 'c', 'd'].filter((name) => store.isUnreadable('work', key(name)));
      assert.deepEqual(unreadable(), ['b', 'c']);
      assert.equal(store.isUnreadable('wait', key('b')), false);
      const [missing, other] = [[{ table: 'work', key: key('b') }] as const, put('b', 'again')];
      assert.deepEqual(await Promise.all([store.write([other], missing), store.write([other], missing)]), [
        true,
        false,
      ]);
      assert.deepEqual(await values(), ['a', 'again', 'd']);
      assert.deepEqual(unreadable(), ['c']);
      await store.write([{ table: 'work', remove: key('c') }]);
      assert.equal(await store.get('work', key('c')), undefined);
      assert.deepEqual(unreadable(), []);
      await store.close();
      assert.equal(warnings.length, 1);
    });

    it('does not confuse two records', async () => {
      let store = await open();
      await store.write([put('mine', 1), put('yours', 2), { table: 'wait', put: key('mine'), value: 3 }]);
      await store.close();
      await raw((table) =>
        table('work').putSync(key('mine'), Buffer.from(table('wait').get(key('mine')) ?? [])),
      );
      store = await open();
      assert.equal(await store.get('work', key('mine')), undefined);
      await store.close();
    });
  });

  describe('under another key', () => {
    it('is left alone: nothing is read or saved, the trouble says why, and all is there with the right key', async () => {
      let store = await open();
      await store.write([{ table: 'work', put: key('a'), value: 1 }]);
      await store.close();
      for (const sealer of [sealerOf('another'), { key: undefined }]) {
        store = await open({ sealer });
        assert.match(store.engine.trouble ?? '', /another credentialSecret.*ADVISOR_TEXTING_PREVIOUS_SECRET/);
        const [reading, writing] = [
          store.get('work', key('a')),
          store.write([{ table: 'work', put: key('a'), value: 2 }]),
        ];
        await Promise.all([store.close(), assert.rejects(reading), assert.rejects(writing)]);
      }
      store = await open();
      assert.equal((await store.get('work', key('a')))?.value, 1);
      await store.close();
    });
  });

  describe('under a key that could not be saved', () => {
    it('is not started, says why, and is as soon as the key is saved', async () => {
      const sealer = { ...sealerOf('test'), isUnsaved: true };
      const store = await open({ sealer });
      assert.match(
        store.engine.trouble ?? '',
        /cannot be opened \(its encryption key could not be saved\): nothing is sent/,
      );
      assert.equal(existsSync(join(directory, 'store.mdb')), false);
      const written = store.write([{ table: 'work', put: key('a'), value: 1 }]);
      sealer.isUnsaved = false;
      assert.equal(await written, true);
      await store.close();
    });
  });

  describe('of another version', () => {
    it('is left alone when it is newer: nothing is saved, and the trouble says why', async () => {
      let store = await open();
      await store.write([{ table: 'work', put: key('a'), value: 1 }]);
      await store.close();
      await raw((table) => {
        table('meta', true).putSync(Buffer.from('format'), Buffer.from('{"version":2}'), 1);
      });
      store = await open();
      assert.match(store.engine.trouble ?? '', /newer version.*nothing is sent.*Install that version/);
      const written = store.write([{ table: 'work', put: key('b'), value: 2 }]);
      await Promise.all([assert.rejects(written, /closed/), store.close()]);
      await raw((table) => {
        assert.equal(table('work').doesExist(key('b')), false);
        assert.equal(table('work').doesExist(key('a')), true);
      });
    });
  });

  describe('on a full disk', () => {
    it('never reports an unwritten record as written, says why, and resumes when there is room', async function () {
      if (process.platform !== 'linux') leaveOut(this, 'a small disk needs Linux');
      const disk = await smallDisk(directory);
      const writer = start([directory, 'a', 'write'], { before: disk.before });
      await writer.said((line) => Number(line) > 10);
      // Writes while the disk is being filled would not be counted.
      writer.signal('SIGSTOP');
      disk.fill();
      writer.signal('SIGCONT');
      const why = disk.tellsFree ? 'cannot be written (no space left on the disk' : 'cannot be written';
      await writer.said((line) => line.startsWith('trouble') && line.includes(why));
      const acknowledged = writer.lines.filter(isNumber).length;
      await turn(3000);
      assert.equal(writer.lines.filter(isNumber).length, acknowledged);
      const before = writer.lines.length;
      disk.makeRoom(writer.pid);
      await writer.said(isNumber, before);
      writer.signal('SIGKILL');
      await writer.ended;
      disk.unmount();
      const store = await open();
      const prefix = key('a', 'a');
      const page = await store.page<{ n: number }>('work', { from: prefix, to: endOf(prefix), limit: 1e6 });
      const numbers = page.map(({ value }) => value.n);
      assert.deepEqual(
        numbers.slice(0, writer.lines.filter(isNumber).length),
        writer.lines.filter(isNumber).map(Number),
      );
      await store.close();
    });

    it('does not end the process at its first start, says why, and resumes when there is room', async function () {
      if (process.platform !== 'linux') leaveOut(this, 'a small disk needs Linux');
      const disk = await smallDisk(directory);
      disk.fill(0);
      const writer = start([directory, 'a', 'write'], { before: disk.before });
      const why = 'cannot be opened (no space left on the disk';
      if (disk.tellsFree) await writer.said((line) => line.startsWith('trouble') && line.includes(why));
      disk.makeRoom(writer.pid);
      await writer.said(isNumber);
      writer.signal('SIGKILL');
      await writer.ended;
      disk.unmount();
    });

    it('waits for a directory that cannot be created, and resumes when it can', async () => {
      const blocked = join(directory, 'file', 'store');
      writeFileSync(join(directory, 'file'), '');
      const store = await open({ directory: blocked });
      assert.equal(store.engine.durable, true);
      assert.match(store.engine.trouble ?? '', /cannot be opened/);
      const changed = new Promise<void>((resolve) => store.engine.onChange(resolve));
      const written = store.write([{ table: 'work', put: key('a'), value: 1 }]);
      const read = store.get('work', key('a'));
      assert.ok(store.engine.commits.unwritten > 0);
      rmSync(join(directory, 'file'));
      await changed;
      assert.equal(store.engine.trouble, undefined);
      assert.equal(await written, true);
      assert.equal(await read, undefined, 'it waited until the store was there');
      await store.close();
      assert.ok(existsSync(join(blocked, 'store.mdb')));
    });
  });

  describe('whose directory may no longer be entered', () => {
    it('says nothing, because the open file is still written', async () => {
      const store = await open();
      const { statSync } = files;
      const refused = mock.method(files, 'statSync', (...args: Parameters<typeof statSync>) => {
        if (!String(args[0]).startsWith(directory)) return statSync(...args);
        throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
      });
      while (refused.mock.callCount() < 2) await turn(100);
      assert.equal(await store.write([{ table: 'work', put: key('a'), value: 1 }]), true);
      refused.mock.restore();
      assert.deepEqual(warnings, []);
      await store.close();
    });
  });

  describe('whose files cannot be opened', () => {
    const file = (name: string): string => join(directory, name);
    const obstacles: Readonly<Record<string, [name: string, put: (path: string) => void]>> = {
      'a pipe is in its place': ['store.mdb', (path) => execFileSync('mkfifo', [path])],
      'it is a link to nothing': ['store.mdb', (path) => symlinkSync(file('nowhere'), path)],
      'a folder is in the place of its lock': ['store.mdb-lock', (path) => mkdirSync(path)],
    };
    for (const [what, [name, put]] of Object.entries(obstacles))
      it(`says so where ${what}, and resumes when that is gone`, async function () {
        if (process.platform === 'win32') leaveOut(this, 'pipes and links need another system');
        await (await open()).close();
        rmSync(file(name));
        put(file(name));
        const child = start([directory, 'a', 'write'], { env: { RATE: '10' } });
        await child.said((line) => line.startsWith('trouble') && line.includes('cannot be opened'));
        rmSync(file(name), { recursive: true });
        await child.said(isNumber);
      });

    it('resumes when fewer files are open', async function () {
      if (process.platform !== 'linux') leaveOut(this, 'a limit of open files needs Linux');
      const before = ['sh', '-c', 'ulimit -n 64; exec "$0" "$@"'];
      for (let left = 0; left <= 6; left++) {
        const child = start([directory, 'a', 'hold'], {
          before,
          env: { RATE: '10', DESCRIPTORS: String(left) },
        });
        await child.said((line) => line.startsWith('trouble'));
        child.signal('SIGUSR2');
        await child.said(isNumber);
        child.signal('SIGTERM');
        await child.ended;
      }
    });
  });

  describe('without its engine', () => {
    it('works in memory, and says why', async () => {
      // The location of its native code.
      const child = start([directory, 'a', 'burst'], { env: { LMDB_PREBUILD: directory } });
      await child.said((line) => line === 'in memory');
      await child.said(isNumber);
      assert.match(child.lines.find((line) => line.startsWith('warning')) ?? '', /lmdb cannot be loaded/);
      assert.equal(existsSync(join(directory, 'store.mdb')), false);
    });

    it('does not take memory for the file that is there: the do-not-text list is in it', async () => {
      await (await open()).close();
      const child = start([directory, 'a', 'burst'], { env: { LMDB_PREBUILD: directory } });
      await child.said((line) => line.startsWith('trouble') && line.includes('No native build'));
      await child.said((line) => line.includes('Install the package again'));
      assert.ok(!child.lines.includes('in memory'));
    });
  });

  describe('with readers', () => {
    it('reuses freed space, even while others read', async () => {
      const store = await open();
      const write = (n: number): Promise<boolean> =>
        store.write(
          Array.from({ length: 20 }, (_, m) => ({
            table: 'work',
            put: key('a', m),
            value: { n, text: 'x'.repeat(500) },
          })),
        );
      await write(0);
      const pages: Promise<unknown>[] = [];
      for (let n = 0; n < 400; n++) {
        pages.push(store.page('work', { ...everything, limit: 10 }));
        await write(n);
      }
      await Promise.all(pages);
      assert.ok(statSync(join(directory, 'store.mdb')).size < 1_000_000);
      await store.close();
    });
  });

  describe('whose starts are interrupted', () => {
    it('loses nothing, at whatever moment that happens', async () => {
      const names = Array.from({ length: 300 }, (_, n) => n);
      let store = await open();
      await store.write(names.map((n) => ({ table: 'wait', put: key('kept', n), value: { n } })));
      await store.close();
      for (let n = 0; n < 12; n++) {
        const broken = start([directory, 'broken', 'write']);
        await broken.said((line) => line === 'begin');
        await turn(n * 8);
        broken.signal((['SIGKILL', 'SIGINT', 'SIGTERM'] as const)[n % 3] ?? 'SIGKILL');
        await broken.ended;
      }
      store = await open();
      assert.equal(store.engine.trouble, undefined);
      const page = await store.page<{ n: number }>('wait', {
        from: key('kept'),
        to: endOf(key('kept')),
        limit: 1000,
      });
      assert.deepEqual(
        page.map(({ value }) => value.n),
        names,
      );
      await store.close();
      assert.deepEqual(warnings, []);
    });
  });

  describe('with a clock that jumps', () => {
    it('has a time that never runs backwards, even over restarts, and ignores jumps forward', async () => {
      let [wall, elapsed] = [1_000_000_000_000, 0];
      const clock = { now: () => wall, elapsed: () => elapsed };
      let store = await open({ clock });
      assert.equal(store.now(), wall);
      wall += 1e12;
      elapsed += 1000;
      assert.equal(store.now(), 1_000_000_001_000, 'a clock set forward while it runs means nothing');
      await store.write([{ table: 'work', put: key('a'), value: store.now() }]);
      await store.close();

      wall = 0;
      store = await open({ clock });
      const stored = (await store.get<number>('work', key('a')))?.value ?? Infinity;
      assert.ok(store.now() >= stored, 'no stored time lies ahead');
      assert.ok(store.now() - stored < 1000);
      elapsed += 5;
      assert.ok(store.now() >= stored + 5);
      await store.close();

      wall = 1_100_000_000_000;
      store = await open({ clock });
      assert.equal(store.now(), wall);
      await store.close();
    });

    it('does not start while the clock is implausible, says so, and resumes when it is set', async () => {
      let wall = 0;
      const clock = { now: () => wall, elapsed: () => 0 };
      const store = await open({ clock, earliest: Date.UTC(2025, 0, 1) });
      assert.match(store.engine.trouble ?? '', /clock of this machine shows 1970-01-01/);
      const written = store.write([{ table: 'work', put: key('a'), value: 1 }]);
      wall = Date.UTC(2027, 0, 1);
      assert.equal(await written, true);
      assert.equal(store.engine.trouble, undefined);
      assert.equal(store.now(), wall);
      await store.close();
    });

    it('uses the saved time if the clock is wrong at a start, and adopts the clock once when it is set', async () => {
      const earliest = Date.UTC(2025, 0, 1);
      let [wall, elapsed] = [Date.UTC(2027, 0, 1), 0];
      const clock = { now: () => wall, elapsed: () => elapsed };
      let store = await open({ clock, earliest });
      await store.close();
      wall = 0;
      store = await open({ clock, earliest });
      assert.equal(store.engine.trouble, undefined);
      assert.equal(store.now(), Date.UTC(2027, 0, 1) + 1, 'everything saved is older');
      wall = Date.UTC(2027, 0, 3);
      while (store.now() < wall) await turn(20);
      wall += 1e12;
      elapsed += 5;
      await turn(4000);
      assert.equal(store.now(), Date.UTC(2027, 0, 3) + 5);
      await store.close();
    });

    it('knows the time of its last commit after a kill', async () => {
      const writer = start([directory, 'a', 'write']);
      await writer.said((line) => Number(line) > 20);
      const at = Date.now();
      // Two ticks deliver the lines that were printed before. Of the next two commits, the second starts after `at`.
      await turn();
      await turn();
      await writer.said((line) => /^\d+$/.test(line), writer.lines.length + 1);
      writer.signal('SIGKILL');
      await writer.ended;
      const store = await open({ clock: { now: () => 0, elapsed: () => 0 } });
      // The killed owner may have left a socket; the store is taken over immediately.
      assert.equal(store.engine.trouble, undefined);
      assert.ok(store.now() >= at);
      await store.close();
    });
  });
});
