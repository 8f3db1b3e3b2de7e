import assert from 'node:assert/strict';
import { CommitQueue, type Batch, type Change, type Committer } from '../../../lib/state/commit-queue';
import { TakenOver, type Condition } from '../../../lib/state/store';

/** Makes commits, unless it is set to answer nothing. */
class Commits implements Committer {
  readonly made: string[][] = [];
  failures = 0;
  /**
   * What happens to each attempt: it succeeds, or fails with or without being committed. An empty list means success.
   */
  readonly fates: ('made' | 'fails' | 'made without an answer' | 'refused')[] = [];
  private lastAttempt = 0;

  ready(): Promise<void> {
    return Promise.resolve();
  }

  async apply(batch: Batch): Promise<boolean> {
    const changes = batch.begin(() => undefined);
    const fate = this.fates.shift() ?? 'made';
    if (fate === 'refused') return false;
    if (fate !== 'fails') {
      this.made.push(changes.map(({ key }) => key.toString()));
      this.lastAttempt = batch.attempt;
    }
    if (fate !== 'made') throw new Error('no answer');
    return true;
  }

  async lastMade(): Promise<number> {
    const made = this.lastAttempt;
    this.lastAttempt = 0;
    return made;
  }

  failed(): void {
    this.failures += 1;
  }

  succeeded(): void {
    this.lastAttempt = 0;
  }
}

describe('the commit queue', () => {
  let commits: Commits;
  let queue: CommitQueue;
  let fence: { isLost: boolean };
  const put = (name: string, conditions: readonly Condition[] = [], bytes = Buffer.alloc(10)) => {
    const change: Change = { table: 'work', key: Buffer.from(name), bytes };
    return queue.add({ fences: [fence], changes: [change], conditions });
  };
  beforeEach(() => {
    commits = new Commits();
    queue = new CommitQueue(commits);
    fence = { isLost: false };
  });

  it('makes one commit of everything written in one tick, up to 4 MB', async () => {
    await Promise.all(['a', 'b', 'c'].map((name) => put(name)));
    assert.deepEqual(commits.made.splice(0), [['a', 'b', 'c']]);
    const large = Buffer.alloc(1_500_000);
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => put(name, [], large)));
    assert.deepEqual(commits.made.splice(0), [['a', 'b'], ['c', 'd'], ['e']]);
    await put('f', [], Buffer.alloc(5_000_000));
    assert.deepEqual(commits.made, [['f']], 'a write is never divided');
  });

  it('says how long a commit has been without an answer', async () => {
    let now = 1000;
    let answer = (): void => undefined;
    const hanging = new Promise<void>((resolve) => (answer = resolve));
    commits.ready = () => hanging;
    queue = new CommitQueue(commits, () => now);
    const written = put('a');
    assert.equal(queue.underWayFor, 0);
    await new Promise((resolve) => setImmediate(resolve));
    now += 30_000;
    assert.equal(queue.underWayFor, 30_000);
    answer();
    await written;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(queue.underWayFor, 0);
  });

  it('counts what is not saved', async () => {
    const written = put('a');
    assert.equal(queue.unwritten, 11);
    await written;
    assert.equal(queue.unwritten, 0);
  });

  it('retries a failed commit before later ones', async () => {
    commits.fates.push('fails', 'fails');
    const written = [put('a'), put('b')];
    await new Promise((resolve) => setImmediate(resolve));
    written.push(put('c'));
    assert.deepEqual(await Promise.all(written), [true, true, true]);
    assert.deepEqual(commits.made, [['a', 'b'], ['c']]);
    assert.equal(commits.failures, 2);
  });

  it('does not retry a commit that succeeded without an answer', async () => {
    commits.fates.push('fails', 'made without an answer');
    const absent = { table: 'work', key: Buffer.from('a') } as const;
    assert.deepEqual(await Promise.all([put('a', [absent]), put('a', [absent])]), [true, false]);
    assert.deepEqual(commits.made, [['a']]);
  });

  for (const [fate, isInDoubt] of [
    ['refused', false],
    ['fails', true],
  ] as const)
    it(`rejects writes to what another process has taken over, in doubt: ${String(isInDoubt)}`, async () => {
      commits.fates.push(fate);
      const lose = (): void => {
        fence.isLost = true;
        queue.rejectLost();
      };
      commits.lastMade = async () => (lose(), 0);
      const written = put('a').catch((fault: unknown) => fault);
      const later = put('b', [], Buffer.alloc(5_000_000)).catch((fault: unknown) => fault);
      const faults = [await written, await later];
      assert.deepEqual(
        faults.map((fault) => fault instanceof TakenOver && fault.isInDoubt),
        [isInDoubt, false],
      );
      assert.deepEqual([commits.made, queue.unwritten], [[], 0]);
    });
});
