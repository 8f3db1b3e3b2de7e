import { open as openRoot } from 'lmdb';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import should from 'should';
import { forgetAbsent } from '../../lib/state/absent';
import { openStore, type Sealer } from '../../lib/state/embedded';
import { Journal } from '../../lib/state/journal';
import type { Store, Table } from '../../lib/state/store';
import { startProcess } from '../auth/support';
import { sealerOf } from './sealer';

const day = 24 * 3_600_000;

const all = async <T>(table: Table<T>): Promise<[string, T][]> => {
  const found: [string, T][] = [];
  for await (const [key, value] of table.entries()) found.push([key, value]);
  return found;
};

describe('records that cannot be read', () => {
  let directory: string;
  let warnings: string[];
  const open = (sealer: Sealer = sealerOf('one')): Promise<Store> =>
    openStore({ directory, sealer, warn: (text) => warnings.push(text) });
  const another = (): Promise<Store> => open(sealerOf('another'));

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-unreadable-'));
    warnings = [];
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  /** Opens the database of a closed store as it is. */
  const inTable = async <T>(
    name: string,
    work: (table: {
      get(key: string): Buffer | undefined;
      putSync(key: string, value: Buffer): void;
      getKeys(): Iterable<string>;
    }) => T,
  ): Promise<T> => {
    const root = openRoot<Buffer, string>(join(directory, 'state.mdb'), { encoding: 'binary', maxDbs: 32 });
    const done = work(root.openDB<Buffer, string>(name, { encoding: 'binary' }));
    await root.close();
    return done;
  };
  const keysIn = (name: string): Promise<string[]> => inTable(name, (table) => [...table.getKeys()]);
  const damage = (name: string, choose: (keys: readonly string[]) => string | undefined): Promise<void> =>
    inTable(name, (table) => {
      const key = choose([...table.getKeys()]) ?? '';
      const bytes = Buffer.from(table.get(key) ?? '');
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      table.putSync(key, bytes);
    });

  it('are set aside when damaged, reported together, and all else goes on', async () => {
    const first = await open();
    for (const put of ['k1', 'k2', 'k3']) await first.table('t').write([{ put, value: put }]);
    await first.close();
    await damage('t', ([key]) => key);
    await damage('t', ([, key]) => key);

    const store = await open();
    should(await all(store.table('t'))).deepEqual([['k3', 'k3']]);
    should(await store.table('t').get('k1')).be.undefined();
    should(await store.table('t').hasLost('k1')).be.true();
    should(await store.table('t').hasLost('k3')).be.false();
    should(await store.table('other').hasLost('k')).be.false();
    await nextTurn();
    should(warnings).have.length(1);
    should(warnings[0]).match(/^2 stored record\(s\) were damaged/);
    await store.close();
    should(await keysIn('damaged')).deepEqual(['t/k1', 't/k2']);
    should(await keysIn('t')).deepEqual(['k3']);
  });

  it('stay where they are while their key is not to be had, and are read again when it is', async () => {
    const first = await open();
    await first.table('t').write(['k1', 'k2'].map((put) => ({ put, value: put })));
    await first.close();

    const locked = await another();
    await locked.table('t').write([{ put: 'k3', value: 'new' }]);
    should(await all(locked.table('t'))).deepEqual([['k3', 'new']]);
    should(await all(locked.table('t'))).deepEqual([['k3', 'new']]);
    should(await locked.table('t').get('k1')).be.undefined();
    should(await locked.table('t').hasLost('k')).be.true();
    await nextTurn();
    should(warnings).have.length(1);
    should(warnings[0]).match(/sealed with a key that is not to be had/);
    await locked.close();

    const back = await open();
    should(await all(back.table('t'))).deepEqual([
      ['k1', 'k1'],
      ['k2', 'k2'],
    ]);
    await back.close();
    should(await keysIn('damaged')).be.empty();
  });

  it('are not lost to something new under the same key', async () => {
    const first = await open();
    await first.table('t').write([{ put: 'k', value: 'old' }]);
    await first.close();
    const locked = await another();
    should(await locked.table('t').get('k')).be.undefined();
    await locked.table('t').write([{ put: 'k', value: 'new' }]);
    await locked.table('t').write([{ put: 'k', value: 'newer' }]);
    should(await locked.table('t').get('k')).equal('newer');
    should(await locked.table('t').hasLost('k')).be.true();
    await locked.close();
    const [aside, ...others] = await inTable('damaged', (table) =>
      [...table.getKeys()].map((key) => table.get(key)),
    );
    should(others).be.empty();
    should(
      sealerOf('one')
        .open(aside ?? Buffer.alloc(0), 't/k')
        ?.toString(),
    ).equal('J"old"');
  });

  it('of a vault are those of another secret, and come back with it', async () => {
    const start = async (credentialSecret: string): Promise<Store> => {
      const { vault } = startProcess(directory, { local: { credentialSecret } });
      await vault.ready();
      return open(vault);
    };
    const first = await start('a');
    await first.table('t').write([{ put: 'k', value: 1 }]);
    await first.close();
    const locked = await start('b');
    should(await all(locked.table('t'))).be.empty();
    await locked.close();
    const back = await start('a');
    should(await all(back.table('t'))).deepEqual([['k', 1]]);
    await back.close();
    should(await keysIn('damaged')).be.empty();
  });

  describe('of a journal', () => {
    let now: number;
    const journal = (store: Store): Journal<string, string> => new Journal(store, 'node', () => now);
    const states = async (store: Store): Promise<string[]> =>
      (await journal(store).resume(day)).flatMap(({ open: todos }) =>
        todos.map(({ recipient, what }) => `${recipient} ${what}`),
      );

    beforeEach(() => {
      now = 1_700_000_000_000;
    });

    it('let nothing be sent a second time, though it was the last and the process is killed once more', async () => {
      const first = await open();
      const entry = journal(first).accept({ message: {}, recipients: ['a', 'b', 'c'] });
      await nextTurn();
      await entry.begin(0);
      await entry.outcome(0, 'sent');
      await entry.begin(1);
      await first.close();
      await damage('journal', (keys) => keys.at(-1));
      for (const _ of [1, 2]) {
        const store = await open();
        should(await states(store)).deepEqual(['a tell', 'b unknown', 'c unknown']);
        await store.close();
      }
    });

    it('keep what else is known of their message until they can be read again', async () => {
      const first = await open();
      journal(first).accept({ message: {}, recipients: ['a', 'b'] });
      await first.close();
      const [job = ''] = await keysIn('journal');
      const log = job.replace(/a$/, 'c00000000');
      const between = await another();
      await between.table('journal').write([{ put: log, value: { begun: [0] } }]);
      should(await states(between)).be.empty();
      await nextTurn();
      await between.close();
      should(await keysIn('journal')).deepEqual([job, log]);
    });

    it('keep the outcome of their message until they can be read again', async () => {
      const first = await open();
      const entry = journal(first).accept({ message: {}, recipients: ['a'] });
      await entry.begin(0);
      await entry.outcome(0, 'sent');
      await first.close();
      await inTable('journal', (table) => {
        const [job = ''] = [...table.getKeys()];
        const sealed = Buffer.from(table.get(job) ?? '');
        sealed.write('elsewhere', 1, 8, 'latin1');
        table.putSync(job, sealed);
      });
      const before = await keysIn('journal');
      const store = await open();
      should(await states(store)).be.empty();
      await store.close();
      should(await keysIn('journal')).deepEqual(before);
    });

    it('go on after a start with another secret', async () => {
      const first = await open();
      journal(first).accept({ message: {}, recipients: ['a'] });
      await nextTurn();
      await first.close();

      const locked = await another();
      should(await states(locked)).be.empty();
      await forgetAbsent(locked, new Set(['node']), now);
      const entry = journal(locked).accept({ message: {}, recipients: ['b'] });
      await entry.begin(0);
      await entry.outcome(0, 'sent');
      entry.told(0);
      await locked.close();

      const back = await open();
      should(await states(back)).deepEqual(['a send']);
      await back.close();
    });
  });
});
