import fc from 'fast-check';
import assert from 'node:assert/strict';
import {
  endOf,
  key,
  nextKey,
  type Condition,
  type Operation,
  type Store,
  type Table,
} from '../../../lib/state/store';
import { andOften, howOften } from '../extent';

export interface Engine {
  open(): Promise<Store>;
  /** Closes the store and opens it again, with the key of a word; undefined if nothing survives that. */
  reopen?(store: Store, word?: string): Promise<Store>;
  dispose(): Promise<void>;
}

const put = (name: string, value: unknown, table: Table = 'work'): Operation => ({
  table,
  put: key(name),
  value,
});
const remove = (name: string, table: Table = 'work'): Operation => ({ table, remove: key(name) });

const everything = { from: Buffer.alloc(0), to: Buffer.alloc(1100, 0xff) };

const namesIn = async (store: Store, table: Table = 'work'): Promise<string[]> => {
  const page = await store.page(table, { ...everything, limit: 1000 });
  return page.map((entry) => entry.key.toString('utf8', 0, entry.key.length - 1));
};

/** What every engine promises. */
export const testEngine = (name: string, create: () => Promise<Engine>): void => {
  describe(`the store: ${name}`, () => {
    let engine: Engine;
    let store: Store;
    beforeEach(async () => {
      engine = await create();
      store = await engine.open();
    });
    afterEach(async () => {
      await store.close();
      await engine.dispose();
    });

    it('returns what was put, and nothing once it is removed', async () => {
      assert.equal(await store.get('work', key('a')), undefined);
      assert.equal(await store.write([put('a', { text: 'hello' })]), true);
      assert.deepEqual((await store.get('work', key('a')))?.value, { text: 'hello' });
      assert.equal(await store.write([remove('a')]), true);
      assert.equal(await store.get('work', key('a')), undefined);
    });

    it('keeps every kind of value unchanged', async () => {
      const values = [
        null,
        0,
        -0,
        NaN,
        '',
        'ü€😀',
        [],
        {},
        [1, [2, [3]]],
        new Date(5),
        Buffer.from([1, 2]),
        new Map([[1, new Set(['x'])]]),
        { a: undefined, b: 1n },
        'x'.repeat(100_000),
        Array.from({ length: 5000 }, (_, n) => n),
      ];
      await store.write(values.map((value, n) => put(`v${n}`, value)));
      for (const [n, value] of values.entries())
        assert.deepEqual((await store.get('work', key(`v${n}`)))?.value, value);
    });

    it('leaves a function out rather than lose its record', async () => {
      await store.write([put('f', { name: 'Ann', call: () => 1, list: [() => 2, 3] })]);
      assert.deepEqual((await store.get('work', key('f')))?.value, { name: 'Ann', list: [null, 3] });
    });

    it('shares no record with its writer or reader', async () => {
      const value = { list: [1] };
      const written = store.write([put('a', value)]);
      value.list.push(2);
      await written;
      const read = await store.get<typeof value>('work', key('a'));
      read?.value.list.push(3);
      assert.deepEqual((await store.get('work', key('a')))?.value, { list: [1] });
    });

    it('keeps its tables separate', async () => {
      await store.write([put('a', 1, 'wait'), put('b', 2, 'work')]);
      assert.deepEqual(await namesIn(store, 'wait'), ['a']);
      assert.deepEqual(await namesIn(store, 'work'), ['b']);
    });

    it('reads pages in the order of bytes, forward and backward', async () => {
      const keys = [
        Buffer.from([0]),
        Buffer.from([0, 0]),
        Buffer.from([0, 255]),
        Buffer.from([1]),
        Buffer.from([127]),
        Buffer.from([128]),
        Buffer.from([255]),
        Buffer.from([255, 0]),
        Buffer.from([255, 255, 255]),
      ];
      await store.write(
        [...keys].reverse().map((each) => ({ table: 'work', put: each, value: each.toString('hex') })),
      );
      const page = async (range: object): Promise<unknown[]> => {
        const whole = { ...everything, limit: 100, ...range };
        const entries = await store.page('work', whole);
        assert.deepEqual(
          await store.keys('work', whole),
          entries.map((entry) => entry.key),
        );
        return entries.map(({ value }) => value);
      };
      const names = keys.map((each) => each.toString('hex'));
      assert.deepEqual(await page({}), names);
      assert.deepEqual(await page({ reverse: true }), [...names].reverse());
      assert.deepEqual(await page({ limit: 2 }), names.slice(0, 2));
      assert.deepEqual(await page({ limit: 2, reverse: true }), names.slice(-2).reverse());
      assert.deepEqual(await page({ from: keys[2], to: keys[6] }), names.slice(2, 6));
      assert.deepEqual(
        await page({ from: keys[2], to: keys[6], reverse: true }),
        names.slice(2, 6).reverse(),
      );
      assert.deepEqual(await page({ from: Buffer.from([2]), to: Buffer.from([200]), reverse: true }), [
        '80',
        '7f',
      ]);
      assert.deepEqual(await page({ from: keys[6], to: keys[2] }), []);
      assert.deepEqual(await page({ limit: 0 }), []);
      assert.deepEqual(await page({ skip: 3, limit: 2 }), names.slice(3, 5));
      assert.deepEqual(await page({ skip: 3, limit: 2, reverse: true }), [...names].reverse().slice(3, 5));
      assert.deepEqual(await page({ from: keys[2], to: keys[6], skip: 3 }), names.slice(5, 6));
      assert.deepEqual(await page({ skip: 100 }), []);
      assert.equal(await store.count('work', everything.from, everything.to), keys.length);
      assert.equal(await store.count('work', key(Buffer.from([1])), key(Buffer.from([255]))), 3);
      assert.equal(await store.count('work', key(Buffer.from([255])), key(Buffer.from([1]))), 0);
    });

    it('fills each page, even if part of the range cannot be read', async () => {
      const nameOf = (n: number): string => String(n).padStart(3, '0');
      const names = Array.from({ length: 300 }, (_, n) => nameOf(n));
      // The first and the last cannot be read, nor can every other one, nor many in a row.
      const isLost = (n: number): boolean =>
        n === 0 || n === 299 || (n < 20 ? n % 2 === 1 : n > 30 && n < 260);
      const write = (some: readonly string[]): Promise<boolean> =>
        store.write(some.map((name) => put(name, name)));
      await write(names.filter((_, n) => isLost(n)));
      if (engine.reopen) store = await engine.reopen(store, 'another');
      else await store.write(names.map((name) => remove(name)));
      const readable = names.filter((_, n) => !isLost(n));
      await write(readable);
      for (const limit of [1, 2, 7, 150])
        for (const reverse of [false, true]) {
          const found: unknown[] = [];
          for (let { from, to }: { from: Buffer; to: Buffer } = everything; ;) {
            const page = await store.page('work', { from, to, limit, reverse });
            found.push(...page.map(({ value }) => value));
            const last = page.at(-1);
            if (!last || page.length < limit) break;
            if (reverse) to = last.key;
            else from = nextKey(last.key);
          }
          assert.deepEqual(found, reverse ? [...readable].reverse() : readable, `${limit} at a time`);
        }
      assert.deepEqual(
        [1, 2, 31].map((n) => store.isUnreadable('work', key(nameOf(n)))),
        [!!engine.reopen, false, !!engine.reopen],
      );
    });

    it('finds keys that start with a prefix', async () => {
      await store.write([put('ab', 1), put('a', 2), put('b', 3)]);
      const prefix = Buffer.from('a');
      const page = await store.page('work', { from: prefix, to: endOf(prefix), limit: 10 });
      assert.deepEqual(
        page.map(({ value }) => value),
        [2, 1],
      );
    });

    it('writes all or nothing', async () => {
      await store.write([put('a', 1)]);
      const conditions = [{ table: 'work', key: key('a') }] as const;
      assert.equal(await store.write([put('b', 2), remove('a')], conditions), false);
      assert.deepEqual(await namesIn(store), ['a']);
    });

    it('gives each put of a record a new version', async () => {
      const versions = new Set<unknown>();
      for (let n = 0; n < 5; n++) {
        await store.write([put('a', 'the same')]);
        const found = await store.get('work', key('a'));
        versions.add(found?.version);
        assert.equal((await store.page('work', { ...everything, limit: 1 }))[0]?.version, found?.version);
      }
      assert.equal(versions.size, 5);
    });

    it('writes only while every condition holds', async () => {
      const a = { table: 'work', key: key('a') } as const;
      const absent = [a, { table: 'wait', key: key('a') }] as const;
      assert.equal(await store.write([put('a', 1)], absent), true);
      assert.equal(await store.write([put('a', 2)], absent), false);
      const version = (await store.get('work', key('a')))?.version ?? 0;
      assert.equal(await store.write([put('a', 3)], [{ ...a, version }]), true);
      assert.equal(await store.write([put('a', 4)], [{ ...a, version }]), false);
      assert.equal((await store.get('work', key('a')))?.value, 3);
      await store.write([remove('a')]);
      assert.equal(await store.write([put('a', 5)], [{ ...a, version }]), false);
      assert.deepEqual(await namesIn(store), []);
    });

    it('sees, in its conditions, earlier writes of the same tick', async () => {
      const a = { table: 'work', key: key('a') } as const;
      const results = await Promise.all([
        store.write([put('a', 1)], [a]),
        store.write([put('a', 2), put('b', 2)], [a]),
        store.write([remove('a')]),
        store.write([put('a', 3)], [a]),
      ]);
      assert.deepEqual(results, [true, false, true, true]);
      assert.deepEqual(await namesIn(store), ['a']);
      assert.equal((await store.get('work', key('a')))?.value, 3);
    });

    it('lets only one of many that want the same record have it', async () => {
      const results = await Promise.all(
        Array.from({ length: 50 }, async (_, n) => {
          await new Promise((resolve) => setTimeout(resolve, n % 5));
          return store.write([put('a', n)], [{ table: 'work', key: key('a') }]);
        }),
      );
      assert.equal(results.filter(Boolean).length, 1);
    });

    it('performs writes in order', async () => {
      const done: number[] = [];
      const writes = Array.from({ length: 200 }, (_, n) =>
        store
          .write([put('a', n), put(`n${n}`, 'x'.repeat(n % 7 === 0 ? 100_000 : 10))])
          .then(() => done.push(n)),
      );
      await Promise.all(writes);
      assert.deepEqual(
        done,
        Array.from({ length: 200 }, (_, n) => n),
      );
      assert.equal((await store.get('work', key('a')))?.value, 199);
    });

    it('has written nothing of what is not saved', async () => {
      const written = store.write([put('a', 'x'.repeat(1000))]);
      await written;
      assert.equal(store.engine.commits.unwritten, 0);
      assert.equal(store.engine.trouble, undefined);
    });

    it('rejects a key or a record that is too large, and keeps working', async () => {
      await assert.rejects(store.write([{ table: 'work', put: Buffer.alloc(1025), value: 1 }]), /1024/);
      await assert.rejects(store.write([{ table: 'work', put: Buffer.alloc(0), value: 1 }]), /without a key/);
      await assert.rejects(store.write([put('big', 'x'.repeat(65 * 1024 * 1024))]), /smaller/);
      await store.write([{ table: 'work', put: Buffer.alloc(1024, 1), value: 1 }]);
      assert.equal(store.engine.commits.unwritten, 0);
      assert.equal(await store.count('work', everything.from, everything.to), 1);
    });

    it('hashes personal values to 16 bytes, the same each time', () => {
      assert.equal(store.hash('+15550100').length, 16);
      assert.deepEqual(store.hash('+15550100'), store.hash('+15550100'));
      assert.notDeepEqual(store.hash('+15550100'), store.hash('+15550101'));
    });

    it('rejects writes once it is closed', async () => {
      await store.close();
      await assert.rejects(store.write([put('a', 1)]), /closed/);
    });

    it(`behaves like a plain map, whatever the operations${andOften}`, async function () {
      this.timeout(120_000);
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
          const fresh = await create();
          let opened = await fresh.open();
          const model = new Model();
          try {
            for (const each of steps) {
              if (each.do === 'reopen') opened = (await fresh.reopen?.(opened)) ?? opened;
              else await model.run(opened, each);
            }
          } finally {
            await opened.close();
            await fresh.dispose();
          }
        }),
        { numRuns: howOften(60) },
      );
    });
  });
};

// A naive model

const anyKey = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(...['a', 'b', 'ab', '\0', '\xff', '\xff\xff'].map((text) => Buffer.from(text, 'latin1'))),
);
const anyTable = fc.constantFrom<Table>('wait', 'work');
const anyOperation = fc.oneof(
  fc.record({ table: anyTable, put: anyKey, value: fc.jsonValue() }),
  fc.record({ table: anyTable, remove: anyKey }),
);
const anyCondition = fc.record({
  table: anyTable,
  key: anyKey,
  kind: fc.constantFrom('absent', 'current', 'stale'),
});
const anyWrite = fc.record({
  operations: fc.array(anyOperation, { minLength: 1, maxLength: 4 }),
  conditions: fc.array(anyCondition, { maxLength: 2 }),
});
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      writes: fc.array(anyWrite, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('page' as const),
      table: anyTable,
      from: anyKey,
      to: anyKey,
      limit: fc.nat(6),
      reverse: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('get' as const), table: anyTable, key: anyKey }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
);
type Step = Exclude<typeof step extends fc.Arbitrary<infer S> ? S : never, { do: 'reopen' }>;

class Model {
  private readonly tables = { wait: new Map<string, unknown>(), work: new Map<string, unknown>() };

  async run(store: Store, each: Step): Promise<void> {
    if (each.do === 'get') {
      const found = await store.get(each.table, each.key);
      assert.deepEqual(found?.value, this.tables[each.table].get(each.key.toString('latin1')));
      return;
    }
    if (each.do === 'page') {
      const { table, from, to, limit, reverse } = each;
      const inRange = [...this.tables[table].keys()]
        .sort((a, b) => (a < b ? -1 : 1))
        .filter((name) => name >= from.toString('latin1') && name < to.toString('latin1'));
      const expected = (reverse ? [...inRange].reverse() : inRange).slice(0, limit);
      const page = await store.page(table, { from, to, limit, reverse });
      assert.deepEqual(
        page.map((entry) => [entry.key.toString('latin1'), entry.value]),
        expected.map((name) => [name, this.tables[table].get(name)]),
      );
      assert.equal(await store.count(table, from, to), inRange.length);
      return;
    }
    // Versions are read first; the writes then go out in one tick, and what one changes is stale for the next.
    const changed = new Set<string>();
    const prepared: {
      readonly operations: readonly Operation[];
      readonly conditions: Condition[];
      readonly holds: boolean;
    }[] = [];
    const found = new Map<string, Condition['version']>();
    for (const { conditions } of each.writes)
      for (const { table, key: of } of conditions)
        found.set(nameOf(table, of), (await store.get(table, of))?.version);
    for (const { operations, conditions } of each.writes) {
      const asked = conditions.map(({ table, key: of, kind }) => {
        const name = nameOf(table, of);
        const version = found.get(name);
        const exists = this.tables[table].has(of.toString('latin1'));
        if (kind === 'absent' || version === undefined)
          return { condition: { table, key: of }, holds: !exists };
        const isStale = kind === 'stale';
        const condition = { table, key: of, version: isStale ? 'stale' : version };
        return { condition, holds: exists && !isStale && !changed.has(name) };
      });
      const holds = asked.every((one) => one.holds);
      prepared.push({ operations, conditions: asked.map(({ condition }) => condition), holds });
      if (!holds) continue;
      for (const operation of operations) {
        const of = 'put' in operation ? operation.put : operation.remove;
        changed.add(nameOf(operation.table, of));
        if ('put' in operation)
          this.tables[operation.table].set(
            of.toString('latin1'),
            JSON.parse(JSON.stringify(operation.value)),
          );
        else this.tables[operation.table].delete(of.toString('latin1'));
      }
    }
    const results = await Promise.all(
      prepared.map(({ operations, conditions }) => store.write(operations, conditions)),
    );
    assert.deepEqual(
      results,
      prepared.map(({ holds }) => holds),
    );
  }
}

const nameOf = (table: Table, of: Buffer): string => `${table}/${of.toString('latin1')}`;
