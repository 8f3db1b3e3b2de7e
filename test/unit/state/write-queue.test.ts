import assert from 'node:assert/strict';
import type { DatabaseFile, Ownership, RawOperation } from '../../../lib/state/database-file';
import { Sealing } from '../../../lib/state/sealing';
import { WriteQueue } from '../../../lib/state/write-queue';
import { sealerOf } from '../../support/state/sealer';

const put = (name: string, bytes = Buffer.alloc(10)): RawOperation => ({
  place: 'work',
  key: Buffer.from(name),
  bytes,
});

describe('the queue of writes', () => {
  let commits: string[][];
  let failing: boolean;
  let queue: WriteQueue;
  let failures: unknown[];
  /** A disk that fails when it is told to. */
  const file = {
    refresh: () => undefined,
    peek: () => undefined,
    get: () => undefined,
    commit: async (_version: number, _owner: Ownership, operations: readonly RawOperation[]) => {
      if (failing) throw new Error('no room');
      commits.push(operations.map(({ key }) => key.toString()));
      return true;
    },
  } as unknown as DatabaseFile;
  const ownership = (commit: number): Ownership => ({ holder: 'me', commit, time: 0 });
  const begin = (): void => queue.begin({ file, owned: 1, ownership });
  let failed: Promise<void>;

  beforeEach(() => {
    [commits, failures, failing] = [[], [], false];
    let tell: () => void;
    failed = new Promise((resolve) => (tell = resolve));
    queue = new WriteQueue(new Sealing(sealerOf('test')), {
      written: () => undefined,
      lost: () => undefined,
      failed: (fault) => {
        failures.push(fault);
        tell();
      },
    });
  });

  it('makes one commit of what one turn writes, and no larger than 4 MB', async () => {
    begin();
    await Promise.all(['a', 'b', 'c'].map((name) => queue.add([put(name)])));
    assert.deepEqual(commits, [['a', 'b', 'c']]);
    commits = [];
    const large = Buffer.alloc(1_500_000);
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => queue.add([put(name, large)])));
    assert.deepEqual(commits, [['a', 'b'], ['c', 'd'], ['e']]);
  });

  it('counts what is not on record', async () => {
    const written = queue.add([put('a')]);
    assert.equal(queue.unwritten, 11);
    begin();
    await written;
    assert.equal(queue.unwritten, 0);
  });

  it('writes again, in order, what a failed commit did not write', async () => {
    begin();
    failing = true;
    const written = [queue.add([put('a')]), queue.add([put('b')])];
    await failed;
    written.push(queue.add([put('c')]));
    assert.equal(failures.length, 1);
    failing = false;
    queue.settle({ holder: 'me', commit: 0, time: 0 }, 'me');
    begin();
    assert.deepEqual(await Promise.all(written), [true, true, true]);
    assert.deepEqual(commits, [['a', 'b', 'c']]);
  });

  it('does not write again what turns out to be on record', async () => {
    begin();
    failing = true;
    const a = { table: 'work', key: Buffer.from('a') } as const;
    const written = [queue.add([put('a')], [a]), queue.add([put('a')], [a])];
    await failed;
    failing = false;
    queue.settle({ holder: 'me', commit: 1, time: 0 }, 'me');
    begin();
    assert.deepEqual(await Promise.all(written), [true, false]);
    assert.deepEqual(commits, []);
    assert.equal(queue.commit, 1);
  });
});
