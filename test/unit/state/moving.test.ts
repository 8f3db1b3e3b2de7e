import assert from 'node:assert/strict';
import { moveRecords, stayHere, type Destination, type Movable } from '../../../lib/state/moving';
import { endOf, key, type Store } from '../../../lib/state/store';
import { Disk, never } from '../../support/outbox/process';
import { nextIteration } from '../../support/event-loop';

const jobs = key('job', 'node');
const movables = async (): Promise<readonly Movable[]> => [
  { table: 'work', prefix: jobs },
  { table: 'wait', prefix: jobs },
];
const everything = { from: Buffer.of(0), to: Buffer.of(0xff), limit: 1000 };
const count = 250;

/** Two stores and a process between them, which can be killed at any commit. */
class World {
  readonly here = new Disk([0], { now: () => 1 });
  /** By the name of the destination; released ones are in use. */
  readonly there = new Map<string, Disk>();
  readonly released = new Set<string>();
  commitsLeft = Infinity;
  made = 0;

  async fill(): Promise<void> {
    for (const table of ['work', 'wait'] as const)
      for (let n = 0; n < count; n++)
        await this.here.memory.write([{ table, put: key(jobs, n), value: `${table} ${n}` }]);
  }

  private async commit(): Promise<void> {
    await nextIteration();
    if (this.commitsLeft === 0) await never;
    this.commitsLeft -= 1;
    this.made += 1;
  }

  private over(disk: Disk): Store {
    const { memory } = disk;
    return {
      ...memory,
      write: async (operations, conditions) => {
        await this.commit();
        const isWritten = await memory.write(operations, conditions);
        await this.check();
        return isWritten;
      },
    };
  }

  /** Resolves when the process is done or killed. */
  async move(): Promise<'moved' | 'dead'> {
    const open = async (id: string): Promise<Destination> => {
      const disk = this.there.get(id) ?? new Disk([0], { now: () => 1 });
      this.there.set(id, disk);
      return {
        store: this.over(disk),
        release: async () => {
          await this.commit();
          this.released.add(id);
          await this.check();
        },
        discard: async () => {
          await this.commit();
          this.there.delete(id);
        },
      };
    };
    const moving = moveRecords(this.over(this.here), 'environment', movables, open);
    return this.outlived(moving);
  }

  stay(): Promise<'moved' | 'dead'> {
    return this.outlived(stayHere(this.over(this.here), 'environment', movables));
  }

  private async outlived(work: Promise<unknown>): Promise<'moved' | 'dead'> {
    const state = { isOver: false };
    void work.then(() => (state.isOver = true));
    for (let idle = 0, made = -1; idle < 200 && !state.isOver; idle++) {
      if (made !== this.made) [idle, made] = [0, this.made];
      await nextIteration();
    }
    return state.isOver ? 'moved' : 'dead';
  }

  /** Nothing can start in two places. */
  private async check(): Promise<void> {
    const here = new Set(await this.jobsIn(this.here));
    for (const id of this.released) {
      const there = await this.jobsIn(this.there.get(id) ?? assert.fail());
      assert.ok(!there.some((each) => here.has(each)), 'the same work is in two places');
    }
  }

  private async jobsIn({ memory }: Disk): Promise<string[]> {
    const found = await memory.keys('work', { from: jobs, to: endOf(jobs), limit: 1000 });
    return found.map((each) => each.toString('hex'));
  }

  async records(disk: Disk): Promise<string[]> {
    const found = await Promise.all(
      (['work', 'wait'] as const).map((table) => disk.memory.page<string>(table, everything)),
    );
    return found.flat().map(({ value }) => value);
  }

  /** What can be processed there, in alphabetical order. */
  async arrived(): Promise<string[]> {
    const found = await Promise.all(
      [...this.released].map((id) => this.records(this.there.get(id) ?? assert.fail())),
    );
    return found.flat().toSorted();
  }
}

const all = (['work', 'wait'] as const).flatMap((table) =>
  Array.from({ length: count }, (_, n) => `${table} ${n}`),
);

/** A world with records to move, after moves that were killed once they had made so many commits. */
const worldAfter = async (...kills: readonly number[]): Promise<World> => {
  const world = new World();
  await world.fill();
  for (const commits of kills) {
    world.commitsLeft = commits;
    await world.move();
  }
  world.commitsLeft = Infinity;
  return world;
};

/** Every number of commits after which a move can be killed. */
const killings = async (): Promise<number[]> => {
  const world = await worldAfter();
  assert.equal(await world.move(), 'moved');
  assert.ok(world.made > 0);
  return Array.from({ length: world.made + 1 }, (_, commits) => commits);
};

describe('work that moves to another store', () => {
  it('arrives complete, and nothing is left behind', async () => {
    const world = await worldAfter();
    assert.equal(await world.move(), 'moved');
    assert.deepEqual([...world.released], [...world.there.keys()]);
    assert.deepEqual(await world.arrived(), all.toSorted());
    assert.deepEqual(await world.records(world.here), []);
  });

  it('is not searched for again if there is none', async () => {
    const world = new World();
    assert.equal(
      await moveRecords(
        world.here.memory,
        'environment',
        async () => [],
        () => assert.fail(),
      ),
      0,
    );
    assert.equal(world.there.size, 0);
  });

  it('arrives once, whenever and however often the process is killed between commits', async () => {
    for (const first of await killings())
      for (const second of [0, 1, 3, 7]) {
        const world = await worldAfter(first, second);
        assert.equal(await world.move(), 'moved');
        assert.deepEqual(await world.arrived(), all.toSorted(), `killed after ${first} and ${second}`);
        assert.deepEqual(await world.records(world.here), []);
      }
  });

  it('stays if the move is cancelled halfway, or is only there once it was copied', async () => {
    for (const killed of await killings()) {
      const world = await worldAfter(killed);
      assert.equal(await world.stay(), 'moved');
      const here = (await world.records(world.here)).filter((each) => / \d/.test(each));
      // What is processed here meanwhile does not return with an old copy.
      if (here.length > 0) await world.here.memory.write([{ table: 'work', remove: key(jobs, 0) }]);
      assert.equal(await world.move(), 'moved');
      const expected = here.length > 0 ? all.filter((each) => each !== 'work 0') : all;
      assert.deepEqual(await world.arrived(), expected.toSorted(), `killed after ${killed}`);
    }
  });

  it('that arrives here after a cancelled move is left alone, and moves the next time', async () => {
    for (const killed of await killings()) {
      const world = await worldAfter(killed);
      assert.equal(await world.stay(), 'moved');
      await world.here.memory.write([{ table: 'work', put: key(jobs, count), value: 'new' }]);
      // Each start asks again.
      assert.equal(await world.stay(), 'moved');
      assert.ok((await world.records(world.here)).includes('new'), `killed after ${killed}`);
      assert.equal(await world.move(), 'moved');
      assert.deepEqual(await world.arrived(), [...all, 'new'].toSorted(), `killed after ${killed}`);
      assert.deepEqual(await world.records(world.here), []);
    }
  });
});
