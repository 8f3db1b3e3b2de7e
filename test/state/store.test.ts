import { open as openRoot } from 'lmdb';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import 'should';
import { createMemoryStore } from '../../lib/state/memory';
import { EmbeddedDatabase } from '../../lib/state/database';
import { openStore } from '../../lib/state/embedded';
import type { Store, Table } from '../../lib/state/store';
import { runChild } from './child';
import { sealerOf } from './sealer';

const all = async <T>(table: Table<T>, prefix?: string): Promise<[string, T][]> => {
  const found: [string, T][] = [];
  for await (const [key, value] of table.entries(prefix)) found.push([key, value]);
  return found;
};

describe('store', () => {
  let directory: string;
  let warnings: string[];
  const open = (word = 'test'): Promise<Store> =>
    openStore({ directory, sealer: sealerOf(word), warn: (text) => warnings.push(text) });

  beforeEach(() => {
    directory = join(mkdtempSync(join(tmpdir(), 'advisor-store-')), 'state');
    warnings = [];
  });
  afterEach(() => {
    chmodSync(join(directory, '..'), 0o700);
    rmSync(join(directory, '..'), { recursive: true, force: true });
  });

  const kinds: readonly [string, () => Promise<Store>][] = [
    ['embedded', open],
    ['in memory', () => Promise.resolve(createMemoryStore())],
  ];
  for (const [kind, create] of kinds) {
    it(`${kind}: gives back what was written, in key order, by prefix`, async () => {
      const store = await create();
      const table = store.table<unknown>('things');
      const value = {
        date: new Date(5),
        bytes: Buffer.from('ab'),
        map: new Map([[1, new Set(['x'])]]),
        none: null,
      };
      await table.write([
        { put: 'b/2', value },
        { put: 'a/1', value: 'one' },
        { put: 'b/1', value: [1, 'é', -0] },
      ]);
      (await all(table)).should.eql([
        ['a/1', 'one'],
        ['b/1', [1, 'é', -0]],
        ['b/2', value],
      ]);
      (await all(table, 'b/')).map(([key]) => key).should.eql(['b/1', 'b/2']);
      ((await table.keyFrom('a/2')) ?? '').should.equal('b/1');
      ((await table.keyFrom('c')) === undefined).should.be.true();
      await table.write([{ remove: 'b/1' }, { put: 'a/1', value: 'two' }]);
      (await all(table)).map(([key]) => key).should.eql(['a/1', 'b/2']);
      ((await table.get('a/1')) as string).should.equal('two');
      ((await table.get('b/1')) === undefined).should.be.true();
      (await all(store.table('others'))).should.eql([]);
      await store.close();
    });

    it(`${kind}: a soon-write is seen at once and never overtakes a later write`, async () => {
      const store = await create();
      const table = store.table<string>('things');
      await table.writeSoon([{ put: 'k', value: 'old' }]);
      ((await table.get('k')) ?? '').should.equal('old');
      await table.writeSoon([{ remove: 'k' }]);
      await table.write([{ put: 'k', value: 'new' }]);
      await new Promise((resolve) => setTimeout(resolve, 150));
      (await all(table)).should.eql([['k', 'new']]);
      await store.close();
    });
  }

  it('walks through thousands of entries while they are being removed', async () => {
    const store = await open();
    const table = store.table<number>('many');
    await table.write(
      Array.from({ length: 3000 }, (_, n) => ({ put: `x/${String(n).padStart(5, '0')}`, value: n })),
    );
    let seen = 0;
    for await (const [key] of table.entries('x/')) {
      seen += 1;
      await table.write([{ remove: key }]);
    }
    seen.should.equal(3000);
    (await all(table)).length.should.equal(0);
    await store.close();
  });

  it('walks through entries of any size, and stops at the end of a prefix', async () => {
    const store = await open();
    const table = store.table<string>('many');
    const sizes = [10, 400_000, 400_000, 20, 200_000, 100_000, 1];
    await table.write(sizes.map((size, n) => ({ put: `x/${String(n)}`, value: 'y'.repeat(size) })));
    await table.write([{ put: 'y/0', value: 'another' }]);
    (await all(table, 'x/')).map(([, value]) => value.length).should.eql(sizes);
    (await all(table, 'w/')).should.eql([]);
    await store.close();
  });

  it('is one store for all who open the same directory, and closes with the last', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    await first.table('t').write([{ put: 'k', value: 1 }]);
    await first.close();
    await first.close();
    ((await second.table<number>('t').get('k')) ?? 0).should.equal(1);
    await second.table('t').writeSoon([{ put: 'soon', value: 2 }]);
    const closing = second.close();
    const third = await open();
    await closing;
    third.durable.should.be.true();
    ((await third.table<number>('t').get('soon')) ?? 0).should.equal(2);
    await third.close();
    warnings.should.eql([]);
  });

  it('keeps its files to the user, and nothing in them readable', async () => {
    const store = await open();
    await store.table('t').write([{ put: 'k', value: { text: 'canary-text', phone: '+12025550142' } }]);
    await store.close();
    (statSync(directory).mode & 0o777).should.equal(0o700);
    for (const name of readdirSync(directory)) {
      const file = join(directory, name);
      (statSync(file).mode & 0o777).should.equal(0o600);
      const bytes = readFileSync(file);
      bytes.includes('canary-text').should.be.false();
      bytes.includes('2025550142').should.be.false();
    }
  });

  it('has on disk what it wrote when it is killed, whole transactions only', async () => {
    for (const after of [1, 40, 333]) {
      const child = runChild('keeps-writing.ts', directory);
      await child.printed(after);
      await child.kill();
      const said = child.lines.length - 2;
      child.lines[0]?.should.equal('durable');
      const store = await open();
      const table = store.table<{ n: number }>('numbers');
      const found = await all(table, 'a/');
      found.length.should.be.aboveOrEqual(said);
      found.map(([, { n }]) => n).should.eql(found.map((_, index) => index));
      (await all(table, 'b/')).length.should.equal(found.length);
      await store.close();
    }
    warnings.should.eql([]);
  });

  it('belongs to one process: a second one works in memory and says so', async () => {
    const child = runChild('keeps-writing.ts', directory);
    await child.printed(10);
    const second = await open();
    second.durable.should.be.false();
    warnings.length.should.equal(1);
    warnings[0]?.should.match(/Another process/);
    (await all(second.table('numbers'))).should.eql([]);
    await second.close();
    await child.kill();
    const third = await open();
    third.durable.should.be.true();
    (await third.table<{ n: number }>('numbers').get('a/00000005'))?.should.eql({ n: 5 });
    await third.close();
  });

  it('keeps in memory what it could not put on disk, across a close and an open', async () => {
    writeFileSync(directory, 'in the way');
    const store = await open();
    store.durable.should.be.false();
    warnings[0]?.should.match(/cannot be opened .* in memory/);
    await store.table('t').write([{ put: 'k', value: 1 }]);
    await store.close();
    const again = await open();
    ((await again.table<number>('t').get('k')) ?? 0).should.equal(1);
    await again.table('t').write([{ remove: 'k' }]);
    await again.close();
  });

  it('survives bit flips anywhere in its file: reads what it can, or sets it aside and begins anew', async function () {
    this.timeout(60_000);
    const file = join(directory, 'state.mdb');
    const first = await open();
    await first
      .table('t')
      .write(
        Array.from({ length: 400 }, (_, n) => ({ put: `k${String(n)}`, value: { n, pad: 'x'.repeat(100) } })),
      );
    await first.close();
    const good = readFileSync(file);
    const spots = [16, 24, 4096 + 24, 8192 + 12, 8192 + 40, Math.floor(good.length / 2), good.length - 3000];
    for (const spot of spots) {
      const bad = Buffer.from(good);
      for (let at = spot; at < spot + 8; at++) bad[at] = (bad[at] ?? 0) ^ 0x5a;
      writeFileSync(file, bad);
      const store = await open();
      store.durable.should.be.true();
      for (const [, value] of await all(store.table<{ n: number }>('t'))) value.n.should.be.within(0, 399);
      await store.table('t').write([{ put: 'after', value: { n: 1 } }]);
      await store.close();
    }
    for (const [at, content] of [
      ['truncated', good.subarray(0, 5000)],
      ['garbage', Buffer.alloc(9000, 7)],
    ] as const) {
      writeFileSync(file, content);
      warnings.length = 0;
      const store = await open();
      (await all(store.table('t'))).length.should.equal(0, at);
      warnings[0]?.should.match(/damaged and has been set aside/);
      await store.close();
    }
  });

  const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  it('tries again what there was no space for, and says so once', async () => {
    mkdirSync(directory);
    const root = openRoot<Buffer, string>(join(directory, 'state.mdb'), { encoding: 'binary' });
    const database = new EmbeddedDatabase(root, sealerOf('test'), (text) => warnings.push(text));
    const table = database.table<number>('t');
    await table.write([{ put: 'a', value: 1 }]);
    const transact = root.transactionSync.bind(root);
    let refused = 0;
    root.transactionSync = () => {
      refused += 1;
      throw new Error('no space');
    };
    await table.writeSoon([{ remove: 'a' }]);
    await until(() => refused > 2);
    warnings.length.should.equal(1);
    warnings[0]?.should.match(/could not be written and is tried again: Error: no space/);
    root.transactionSync = transact;
    await until(async () => (await table.get('a')) === undefined);
    await database.close();
  });

  it('flushes to the medium what was committed while a flush was under way', async () => {
    mkdirSync(directory);
    const root = openRoot<Buffer, string>(join(directory, 'state.mdb'), { encoding: 'binary' });
    const flushes: (() => void)[] = [];
    Object.assign(root, { sync: (done: () => void) => flushes.push(done) });
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const table = new EmbeddedDatabase(root, sealerOf('test'), (text) => warnings.push(text)).table('t');
      const quarter = (): number => {
        mock.timers.tick(250);
        return flushes.length;
      };
      await table.write([{ put: 'a', value: 1 }]);
      quarter().should.equal(1);
      await table.write([{ put: 'b', value: 2 }]);
      quarter().should.equal(1);
      flushes[0]?.();
      quarter().should.equal(2);
      flushes[1]?.();
      quarter().should.equal(2);
    } finally {
      mock.timers.reset();
      await root.close();
    }
  });

  it('takes what comes after it was closed for lost, rather than ending the process', async () => {
    const store = await open();
    const table = store.table<number>('t');
    await store.close();
    await table.writeSoon([{ put: 'late', value: 1 }]);
    // Longer than a soon-write takes.
    await new Promise((resolve) => setTimeout(resolve, 150));
    const again = await open();
    (await all(again.table('t'))).should.eql([]);
    await again.close();
  });
});
