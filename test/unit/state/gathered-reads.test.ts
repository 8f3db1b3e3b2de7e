import assert from 'node:assert/strict';
import type { Pool } from 'pg';
import { GatheredReads } from '../../../lib/state/postgres-reads';

interface Query {
  readonly text: string;
  readonly values: readonly (readonly Buffer[])[];
}

/** A pool whose tables contain these names, each with itself as its value. */
const poolOf = (names: readonly string[], queries: Query[], fault?: Error): Pool => {
  const sorted = names.toSorted();
  const query = async (asked: Query): Promise<{ rows: object[] }> => {
    queries.push(asked);
    if (fault) throw fault;
    // In a different order than requested, and each once.
    const found = sorted
      .filter((name) => asked.values[0]?.some((key) => key.toString() === name))
      .toReversed();
    return { rows: found.map((name) => ({ key: Buffer.from(name), value: Buffer.from(name) })) };
  };
  return { query } as unknown as Pool;
};

describe('lookups in one tick', () => {
  const text = (found: Buffer | undefined): string | undefined => found?.toString();

  it('are one query for each table, and each lookup gets its own answer', async () => {
    const queries: Query[] = [];
    const reads = new GatheredReads(() => poolOf(['a', 'b', 'c'], queries));
    const values = ['c', 'x', 'a', 'c'].map((name) => reads.value('work', Buffer.from(name)));
    const other = reads.value('wait', Buffer.from('b'));
    assert.deepEqual((await Promise.all(values)).map(text), ['c', undefined, 'a', 'c']);
    assert.equal(text(await other), 'b');
    assert.equal(queries.length, 2);
    assert.equal(text(await reads.value('work', Buffer.from('b'))), 'b');
    assert.equal(queries.length, 3);
  });

  it('are several queries if there are very many', async () => {
    const queries: Query[] = [];
    const many = Array.from({ length: 1200 }, (_, n) => String(n).padStart(4, '0'));
    const reads = new GatheredReads(() => poolOf(many, queries));
    const found = await Promise.all(many.map((name) => reads.value('wait', Buffer.from(name))));
    assert.deepEqual(found.map(text), many);
    assert.equal(queries.length, 3);
  });

  it('fail together, even without a connection', async () => {
    const fault = new Error('gone');
    const failing = new GatheredReads(() => poolOf([], [], fault));
    const lookups = ['a', 'b'].map((name) => failing.value('work', Buffer.from(name)));
    for (const lookup of await Promise.allSettled(lookups)) assert.equal(lookup.status, 'rejected');
    const closed = new GatheredReads(() => {
      throw fault;
    });
    await assert.rejects(closed.value('work', Buffer.from('a')), fault);
  });
});
