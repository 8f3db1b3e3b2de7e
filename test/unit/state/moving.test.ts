import assert from 'node:assert/strict';
import { moveRecords, type Movable } from '../../../lib/state/moving';
import { key, type Store } from '../../../lib/state/store';
import { Disk, never } from '../../support/outbox/process';
import { nextIteration } from '../../support/event-loop';
import { overStore } from '../../support/state/over-store';

interface Known {
  readonly name: string;
  readonly at: number;
}

const kinds = ['known', 'blocked'] as const;
const table = 'work';
const placeOf = (kind: string, place: number | Buffer): Buffer => key(kind, 'mine', place);
const count = 250;
const movables = [
  {
    prefix: key('known', 'mine'),
    copy: ({ value }, to) => ({ put: placeOf('known', to.hash(value.name)), value }),
    isNewer: (here, there) => here.at > there.at,
  } satisfies Movable<Known>,
  {
    prefix: key('blocked', 'mine'),
    copy: ({ key: put, value }) => ({ put, value }),
  } satisfies Movable<Known>,
] as readonly unknown[] as readonly Movable[];

const everything = { from: Buffer.of(0), to: Buffer.of(0xff), limit: 1000 };
const contentsOf = async ({ memory }: Disk): Promise<string[]> =>
  (await memory.page<Known>(table, everything)).map(({ value: { name, at } }) => `${name} ${at}`).toSorted();

/** Two stores, and a process between them that can be killed at any commit. */
class World {
  readonly here = new Disk([0], { now: () => 1 });
  readonly there = new Disk([0], { now: () => 1 });
  commitsLeft = Infinity;
  made = 0;

  async fill(): Promise<void> {
    for (const kind of kinds)
      for (let n = 0; n < count; n++)
        await this.here.memory.write([
          { table, put: placeOf(kind, n), value: { name: `${kind} ${n}`, at: 5 } },
        ]);
  }

  /** Resolves with the number of records, or when the process is dead. */
  async move(): Promise<number | 'dead'> {
    let moved: number | undefined;
    void moveRecords(this.over(this.here), this.over(this.there), movables).then((sum) => (moved = sum));
    for (let idle = 0, made = -1; idle < 200 && moved === undefined; idle++) {
      if (made !== this.made) [idle, made] = [0, this.made];
      await nextIteration();
    }
    return moved ?? 'dead';
  }

  private over({ memory }: Disk): Store {
    return overStore(memory, {
      write: async (operations, conditions) => {
        await nextIteration();
        if (this.commitsLeft === 0) await never;
        this.commitsLeft -= 1;
        this.made += 1;
        return memory.write(operations, conditions);
      },
    });
  }
}

const filled = async (): Promise<World> => {
  const world = new World();
  await world.fill();
  return world;
};

describe('records that move to another store', () => {
  it('arrive complete, under the hashes of the other store, and none is left behind', async () => {
    const world = await filled();
    const all = await contentsOf(world.here);
    assert.equal(await world.move(), 2 * count);
    assert.deepEqual(await contentsOf(world.there), all);
    assert.deepEqual(await contentsOf(world.here), []);
    assert.ok(await world.there.memory.get(table, placeOf('known', world.there.memory.hash('known 7'))));
    assert.equal(await world.move(), 0);
  });

  it('are complete in one store at any moment, and after any kill the next start completes the move', async () => {
    const whole = await filled();
    const all = await contentsOf(whole.here);
    await whole.move();
    for (let commits = 0; commits < whole.made; commits += commits < 2 * count - 3 ? 37 : 1) {
      const world = await filled();
      world.commitsLeft = commits;
      assert.equal(await world.move(), 'dead');
      const [here, there] = [await contentsOf(world.here), await contentsOf(world.there)];
      assert.deepEqual(here.length === all.length ? here : there, all, `killed after ${commits}`);
      world.commitsLeft = Infinity;
      await world.move();
      assert.deepEqual(await contentsOf(world.there), all, `killed after ${commits}`);
      assert.deepEqual(await contentsOf(world.here), []);
    }
  });

  it('replace older ones, as after a return to the first store, and never newer ones', async () => {
    const world = await filled();
    const { memory } = world.there;
    const place = (n: number): Buffer => placeOf('known', memory.hash(`known ${n}`));
    for (const [n, at] of [4, 5, 6].entries())
      await memory.write([{ table, put: place(n), value: { name: `there ${n}`, at } }]);
    await memory.write([{ table, put: placeOf('blocked', 0), value: { name: 'there', at: 0 } }]);
    await world.move();
    const names = await Promise.all(
      [0, 1, 2].map(async (n) => (await memory.get<Known>(table, place(n)))?.value.name),
    );
    assert.deepEqual(names, ['known 0', 'there 1', 'there 2']);
    assert.equal((await memory.get<Known>(table, placeOf('blocked', 0)))?.value.name, 'there');
  });

  it('do not replace what another process writes meanwhile', async () => {
    const world = await filled();
    const { memory } = world.there;
    const put = placeOf('known', memory.hash('known 0'));
    const get: Store['get'] = memory.get.bind(memory);
    Object.assign(memory, {
      get: async (...asked: Parameters<Store['get']>) => {
        const found = await get(...asked);
        if (asked[1].equals(put) && !found)
          await memory.write([{ table, put, value: { name: 'another', at: 6 } }]);
        return found;
      },
    });
    await world.move();
    assert.equal((await get<Known>(table, put))?.value.name, 'another');
  });
});
