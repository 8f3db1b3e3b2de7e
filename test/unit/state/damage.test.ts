import assert from 'node:assert/strict';
import fs, {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded } from '../../../lib/state/embedded';
import { PageReader } from '../../../lib/state/page-reader';
import { prepareFile } from '../../../lib/state/recovery';
import { key, type Store } from '../../../lib/state/store';
import { sealerOf } from '../../support/state/sealer';
import { startStore } from '../../support/state/processes';

const everything = { from: Buffer.alloc(0), to: Buffer.alloc(100, 0xff), limit: 1e6 };
const pageSize = 4096;
const waits = 2000;
const works = 200;

describe('a damaged file', function () {
  this.timeout(120_000);
  let directory: string;
  let path: string;
  let warnings: string[];
  const open = (): Promise<Store> =>
    openEmbedded({ directory, sealer: sealerOf('test'), warn: (text) => warnings.push(text) });
  const asides = (): string[] => readdirSync(directory).filter((name) => name.startsWith('store-damaged-'));
  const change = (at: number, bytes: Buffer): void => {
    const descriptor = openSync(path, 'r+');
    writeSync(descriptor, bytes, 0, bytes.length, at);
    closeSync(descriptor);
  };
  /** Pages of a kind, by the flags in their headers: 1 branch, 2 leaf. */
  const pagesOf = (kind: number): number[] => {
    const bytes = readFileSync(path);
    return Array.from({ length: bytes.length / pageSize }, (_, n) => n).filter(
      (n) =>
        n > 1 && bytes.readUInt16LE(n * pageSize + 18) === kind && bytes.readUInt16LE(n * pageSize + 20) > 10,
    );
  };
  /** Starts processes until one can read everything; each may crash on what it finds. */
  const countsAfterStarts = async (): Promise<{ wait: number; work: number; starts: number }> => {
    for (let starts = 1; starts <= 4; starts++) {
      const reader = startStore([directory, 'reader', 'read']);
      await reader.ended;
      const count = (table: string): number =>
        Number(reader.lines.find((line) => line.startsWith(table))?.split(' ')[1] ?? NaN);
      if (!Number.isNaN(count('work'))) return { wait: count('wait'), work: count('work'), starts };
    }
    throw new Error('no start could read the store');
  };

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-damage-'));
    path = join(directory, 'store.mdb');
    warnings = [];
    const store = await open();
    await store.write(
      Array.from({ length: waits }, (_, n) => ({
        table: 'wait',
        put: key('w', n),
        value: { n, text: 'x'.repeat(50) },
      })),
    );
    await store.write(
      Array.from({ length: works }, (_, n) => ({
        table: 'work',
        put: key('t', n),
        value: { n, text: 'x'.repeat(n * 50) },
      })),
    );
    await store.close();
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it('is read page by page as lmdb reads it', () => {
    const reader = new PageReader(path);
    const counts = Object.fromEntries(
      reader.tables().map((tree) => [tree.name, [...reader.records(tree)].length]),
    );
    reader.close();
    assert.deepEqual(counts, { meta: 2, wait: waits, work: works });
    assert.equal(reader.lost, 0);
  });

  it('without a valid header is set aside and replaced by a new one', async () => {
    change(0, Buffer.alloc(2 * pageSize));
    const store = await open();
    assert.equal(store.engine.trouble, undefined);
    assert.equal(await store.write([{ table: 'work', put: key('a'), value: 1 }]), true);
    await store.close();
    assert.equal(asides().length, 1);
    assert.match(warnings.join(), /0 record\(s\) could be read/);
  });

  for (const page of [0, 1])
    it(`is read by one of its two roots where the other, on page ${page}, is damaged`, async () => {
      change(page * pageSize, Buffer.alloc(pageSize, 0xa5));
      const { wait, work } = await countsAfterStarts();
      assert.deepEqual([wait, work], [waits, works]);
      assert.equal(asides().length, 1);
      const store = await open();
      await store.get('work', key('t', 0));
      assert.equal(store.engine.hasLostKeys, true, 'what was saved last may be missing');
      await store.close();
    });

  it('costs only the records on its damaged pages', async () => {
    const leaves = pagesOf(2);
    const damaged = leaves[Math.floor(leaves.length / 2)] ?? 0;
    change(damaged * pageSize, Buffer.alloc(pageSize, 0xa5));
    const { wait, work } = await countsAfterStarts();
    assert.ok(wait + work < waits + works, 'the page held records');
    assert.ok(wait + work > waits + works - 100, `${wait} waits and ${work} texts are left`);
    assert.equal(asides().length, 1);
    const { starts } = await countsAfterStarts();
    assert.equal(starts, 1);
    assert.equal(asides().length, 1, 'it is reported once');
  });

  it('keeps what can be read even if the start that recovers it is interrupted', async () => {
    const leaves = pagesOf(2);
    change((leaves[Math.floor(leaves.length / 2)] ?? 0) * pageSize, Buffer.alloc(pageSize, 0xa5));
    const { renameSync } = fs;
    fs.renameSync = (from, to) => {
      if (to === path) throw new Error('broken off');
      renameSync(from, to);
    };
    const damage = { isDamaged: true, isFirst: true };
    try {
      await assert.rejects(
        prepareFile(path, () => undefined, damage),
        /broken off/,
      );
    } finally {
      fs.renameSync = renameSync;
    }
    const { wait, work } = await countsAfterStarts();
    assert.ok(wait + work > waits + works - 100, `${wait} waits and ${work} texts are left`);
  });

  it('may have contained anything once pages of it were lost', async () => {
    const leaves = pagesOf(2);
    change((leaves[Math.floor(leaves.length / 2)] ?? 0) * pageSize, Buffer.alloc(pageSize, 0xa5));
    await countsAfterStarts();
    const store = await open();
    assert.equal(store.engine.hasLostKeys, true);
    await store.close();
  });

  it('that lost its end keeps the rest', async () => {
    const descriptor = openSync(path, 'r+');
    ftruncateSync(descriptor, Math.floor(statSync(path).size / pageSize / 2) * pageSize);
    closeSync(descriptor);
    const { wait, work } = await countsAfterStarts();
    assert.ok(wait + work > 0, 'something is left');
    const store = await open();
    assert.equal(await store.write([{ table: 'work', put: key('new'), value: 1 }]), true);
    await store.close();
  });

  it('never stops the runtime permanently, whatever the damage', async () => {
    for (const [n, page] of [...pagesOf(2), ...pagesOf(1)].filter((_, at) => at % 17 === 0).entries()) {
      const noise = Buffer.from(Array.from({ length: 64 }, (_, at) => (at * 89 + n * 31) & 0xff));
      change(page * pageSize + ((n * 200) % (pageSize - 64)), noise);
    }
    await countsAfterStarts();
    const store = await open();
    assert.equal(store.engine.trouble, undefined);
    await store.close();
  });

  it('that the first sight misses is found after two starts that were cut short', async () => {
    const start = () => prepareFile(path, (text) => warnings.push(text), { isDamaged: false, isFirst: true });
    const bytes = readFileSync(path);
    const [leaf = 0] = pagesOf(2).filter((page) =>
      bytes.subarray(page * pageSize, (page + 1) * pageSize).includes('w\0\0\0'),
    );
    change(leaf * pageSize, Buffer.alloc(pageSize, 0xff));
    for (let n = 0; n < 2; n++) await start();
    assert.deepEqual(asides(), []);
    await start();
    assert.equal(asides().length, 1);
    assert.match(warnings.join(), /could be read and were kept/);
  });

  it('is not assumed after failed starts', async () => {
    for (let n = 0; n < 4; n++) {
      const reader = startStore([directory, 'dies', 'read']);
      await reader.ended;
      assert.ok(reader.lines.includes(`wait ${waits}`));
    }
    assert.deepEqual(asides(), []);
  });

  it('that is mostly free is compacted when it is opened', async () => {
    let store = await open();
    const big = 'x'.repeat(1_000_000);
    for (let n = 0; n < 8; n++)
      await store.write(
        Array.from({ length: 10 }, (_, m) => ({ table: 'work', put: key('big', n * 10 + m), value: big })),
      );
    for (let n = 0; n < 80; n++) await store.write([{ table: 'work', remove: key('big', n) }]);
    const at = store.now();
    await store.close();
    assert.ok(statSync(path).size > 64 * 1024 * 1024);
    store = await open();
    assert.ok(statSync(path).size < 8 * 1024 * 1024, `${statSync(path).size} bytes`);
    assert.equal((await store.page('wait', everything)).length, waits);
    assert.equal((await store.page('work', everything)).length, works);
    assert.ok(store.now() >= at);
    assert.equal(await store.write([{ table: 'work', put: key('new'), value: 1 }]), true);
    await store.close();
    assert.deepEqual(warnings, []);
    assert.deepEqual(readdirSync(directory).sort(), ['store.mdb', 'store.mdb-lock']);
  });
});
