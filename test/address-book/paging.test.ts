import should from 'should';
import { Seen } from '../../lib/runtime/paging';
import { eachOf, oneAtATime } from '../../lib/runtime/queue';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('seen records', () => {
  it('remember at least a generation, and never more than two', () => {
    const seen = new Seen(100);
    for (let id = 0; id < 1000; id++) seen.add(id);
    should(Array.from({ length: 100 }, (_, at) => seen.has(900 + at)).every(Boolean)).be.true();
    should(Array.from({ length: 800 }, (_, id) => seen.has(id)).some(Boolean)).be.false();
  });
});

describe('one at a time', () => {
  it('runs tasks of one key in the order they came, and others beside them', async () => {
    const events: string[] = [];
    const task = (name: string) => async (): Promise<void> => {
      events.push(`${name} begins`);
      await turn();
      events.push(`${name} ends`);
    };
    await Promise.all([
      oneAtATime('a', task('a1')),
      oneAtATime('a', task('a2')),
      oneAtATime('b', task('b1')),
    ]);
    should(events.indexOf('a2 begins')).be.above(events.indexOf('a1 ends'));
    should(events.indexOf('b1 begins')).be.below(events.indexOf('a1 ends'));
  });

  it('goes on after a task that failed', async () => {
    const failing = oneAtATime('a', () => Promise.reject(new Error('no')));
    const next = oneAtATime('a', () => Promise.resolve('yes'));
    await should(failing).be.rejectedWith('no');
    should(await next).equal('yes');
  });
});

describe('a list at work', () => {
  it('has so many under way and no more', async () => {
    let underWay = 0;
    let most = 0;
    const done: number[] = [];
    await eachOf(Array.from('abcdefghij'), 3, async (_, index) => {
      most = Math.max(most, ++underWay);
      await turn();
      underWay--;
      done.push(index);
    });
    should(most).equal(3);
    should(done.sort((a, b) => a - b)).deepEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
