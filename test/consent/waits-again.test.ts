import should from 'should';
import { recommended } from '../../lib/consent/schedule';
import { ann, bob, forPhone, seconds, World } from './fixtures';

const known = { memberId: 7, state: 'accepted', lastChanged: 1 };

/** Waits on a disk that can be full. */
const onDisk = () => {
  const world = new World();
  const disk = { isFull: false };
  const table = world.store.table('waits');
  const write = table.write.bind(table);
  table.write = (writes) => (disk.isFull ? Promise.reject(new Error('no space')) : write(writes));
  const accept = async (phone: string): Promise<void> => {
    world.waits.accepted('default', { phone }, known);
    await world.waits.told();
  };
  const told = (): unknown[] =>
    world.told.map(({ end, settled }) => [settled.message.n, end, settled.repeated]);
  return { world, disk, accept, told };
};

describe('waits whose end cannot be put on disk', () => {
  it('are told once there is space, once each, and that is said once for each try', async () => {
    const { world, disk, accept, told } = onDisk();
    const node = world.attach();
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    await node.add({ n: 2 }, [forPhone(bob)], recommended);
    disk.isFull = true;
    await accept(ann);
    await accept(bob);
    should(told()).be.empty();
    should(world.warnings).deepEqual(['unsettled']);
    await world.clock.move(seconds(61));
    should(told()).be.empty();
    should(world.warnings).have.length(3);

    disk.isFull = false;
    await world.clock.move(seconds(30));
    await world.waits.told();
    should(told()).deepEqual([
      [1, 'accepted', false],
      [2, 'accepted', false],
    ]);
    await world.clock.move(seconds(120));
    should(world.told).have.length(2);
    await node.detach();
    should(await world.store.table('waits').keyFrom('')).be.undefined();
  });

  it('are told by the next node of the same id when their own closes first', async () => {
    const { world, disk, accept, told } = onDisk();
    const node = world.attach();
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    disk.isFull = true;
    await accept(ann);
    disk.isFull = false;
    await node.detach();
    should(told()).be.empty();

    const next = world.attach();
    await next.ready;
    await world.clock.move(seconds(61));
    should(told()).deepEqual([[1, 'accepted', false]]);
    should(next.count).equal(0);
  });

  it('are not tried again in a process that has ended', async () => {
    const { world, disk, accept, told } = onDisk();
    await world.attach().add({ n: 1 }, [forPhone(ann)], recommended);
    disk.isFull = true;
    await accept(ann);
    world.restart();
    disk.isFull = false;
    await world.clock.move(seconds(61));
    should(told()).be.empty();
    const next = world.attach();
    await next.ready;
    should(next.count).equal(1);
  });
});
