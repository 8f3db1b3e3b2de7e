import should from 'should';
import { Later } from '../../../lib/outbox/queue';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { hour, minute, second } from '../../../lib/durations';
import { recommended } from '../../../lib/consent/pace';
import type { Shared } from '../../../lib/outbox/records';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { SettableClock } from '../../support/settable-clock';
import {
  acceptMany,
  acceptOne,
  type Host,
  type Requests,
  requestsOn,
  tellingWhom,
} from '../../support/outbox/requests';
import { overStore } from '../../support/state/over-store';

type Work = Host['work'];

const sends: Work = async (item) => {
  await item.start();
  return 'sent';
};

describe('a long list that is being saved when its node starts', () => {
  it('is not taken for one that an earlier start has left incomplete', async () => {
    const memory = createMemoryStore();
    const [begun, held] = [gate(), gate()];
    let writes = 0;
    const store = overStore(memory, {
      write: async (...asked: Parameters<Store['write']>) => {
        writes += 1;
        if (writes === 3) {
          begun.open();
          await held.opened;
        }
        return memory.write(...asked);
      },
    });
    const told: string[] = [];
    const outbox = requestsOn(store, { work: sends, ...tellingWhom(told) });
    acceptMany(outbox, 101);
    await begun.opened;
    await outbox.start();
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    held.open();
    while (told.length < 101) await nextIteration();
    await outbox.close();
  });
});

describe('a text that was delayed when its node closed', () => {
  const clock = new MovableClock(() => 1_750_000_000_000);
  const store = createMemoryStore({ clock });
  let told: string[] = [];

  const start = async (work: Work): Promise<Requests> => {
    told = [];
    const emit: Host['emit'] = async (_job, _item, { outcome }) => {
      told.push(outcome);
      return true;
    };
    const outbox = requestsOn(store, { work, emit }, { width: 4, clock });
    await outbox.start();
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    return outbox;
  };
  const haveLeft = async (count: number): Promise<void> => {
    while (told.length < count) await nextIteration();
  };

  for (const count of [1, 3])
    it(`is sent by the next start if the service had certainly not accepted it: ${count}`, async () => {
      let putOff = 0;
      const before = await start(async (item) => {
        const { signal } = item;
        await item.start();
        await item.undo();
        putOff += 1;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return undefined;
      });
      acceptMany(before, count);
      while (putOff < count) await nextIteration();
      await before.close();

      const after = await start(sends);
      await haveLeft(count);
      await after.close();
      should(new Set(told)).eql(new Set(['sent']));
    });

  for (const count of [1, 3])
    it(`is sent by the next start if it had been held for long and was just due: ${count}`, async () => {
      const notBefore = clock.now() + 10 * hour;
      let [held, waiting] = [0, 0];
      const before = await start(async (item) => {
        const { signal } = item;
        if (clock.now() < notBefore) {
          held += 1;
          throw new Later(notBefore);
        }
        waiting += 1;
        if (item.data.index === 1) await item.start();
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return undefined;
      });
      acceptMany(before, count);
      while (held < count) await nextIteration();
      const moved = clock.move(10 * hour + 1000);
      while (waiting < count) await nextIteration();
      await before.close();
      await moved;

      const after = await start(sends);
      await haveLeft(count);
      await after.close();
      should(new Set(told)).eql(new Set(['sent']));
    });
});

describe('texts that are held while the wall clock jumps', () => {
  it('leave within a minute once they are due, and not before', async () => {
    const clock = new SettableClock(1_750_000_000_000);
    const notBefore = clock.now() + 2 * hour;
    let held = 0;
    const told: string[] = [];
    const outbox = requestsOn(
      createMemoryStore({ clock }),
      {
        work: async (turn) => {
          if (clock.now() >= notBefore) return sends(turn);
          held += 1;
          throw new Later(notBefore);
        },
        ...tellingWhom(told),
      },
      { clock },
    );
    await outbox.start();
    for (let each = 0; each < 10; each++) acceptOne(outbox, String(each));
    while (held < 10) await nextIteration();
    for (let turns = 0; turns < 20; turns++) await nextIteration();

    clock.jump(hour);
    await clock.monotonic.move(minute);
    should([held, told]).eql([10, []]);
    clock.jump(80 * minute);
    await clock.monotonic.move(minute);
    while (told.length < 10) await nextIteration();
    await outbox.close();
    should(told.every((each) => each.endsWith('sent'))).be.true();
  });
});

describe('texts that the store has not saved yet when their node closes', () => {
  it('are sent by the next start of the node, once the store has saved them', async () => {
    const memory = createMemoryStore();
    const { opened, open } = gate();
    const store: Store = overStore(memory, {
      write: async (operations, conditions) => {
        await opened;
        return memory.write(operations, conditions);
      },
    });
    const told: string[] = [];
    const outbox = (): Requests => requestsOn(store, { work: sends, ...tellingWhom(told) }, { width: 4 });
    const pass = async (turns: number): Promise<void> => {
      for (let left = turns; left > 0; left--) await nextIteration();
    };
    const before = outbox();
    for (let each = 0; each < 60; each++) acceptOne(before, `before ${each}`);
    await pass(10);
    // A close gives up after a while.
    const closed = before.close();
    const after = outbox();
    await after.start();
    await pass(10);
    acceptOne(after, 'after');
    await pass(10);
    open();
    for (let turns = 0; turns < 1000 && told.length < 61; turns++) await nextIteration();
    await Promise.all([closed, after.close()]);
    const expected = [...Array.from({ length: 60 }, (_, each) => `before ${each} sent`), 'after sent'];
    should(told.sort()).eql(expected.sort());
  });
});

describe('a start', () => {
  const pass = async (): Promise<void> => {
    for (let turns = 0; turns < 50; turns++) await nextIteration();
  };

  it('is made again where any of its reads fails, and counts its waits once', async () => {
    for (let wrong = 0, isFailing = true; isFailing; wrong++) {
      const clock = new MovableClock(() => 1_750_000_000_000);
      const memory = createMemoryStore({ clock });
      const told: string[] = [];
      const faults: unknown[] = [];
      const outboxOn = (store: Store): Requests =>
        requestsOn(
          store,
          {
            work: async (item) => {
              if (item.isWait) throw new Later(clock.now() + 30 * second);
              return sends(item);
            },
            ...tellingWhom(told),
            fault: (fault) => faults.push(fault),
          },
          { clock },
        );
      const before = outboxOn(overStore(memory));
      acceptOne(before, 'text');
      acceptOne(before, 'wait', { advisor: '', pace: recommended } as Shared);
      await before.close();
      isFailing = false;
      let left = wrong;
      const failing = async (): Promise<void> => {
        if (left-- !== 0) return;
        isFailing = true;
        throw new Error('broken');
      };
      const after = outboxOn(
        overStore(memory, {
          get: (...args) => failing().then(() => memory.get(...args)),
          page: (...args) => failing().then(() => memory.page(...args)),
          keys: (...args) => failing().then(() => memory.keys(...args)),
          count: (...args) => failing().then(() => memory.count(...args)),
        } as Partial<Store>),
      );
      const starting = after.start();
      await pass();
      await clock.move(second);
      await starting;
      await pass();
      should([wrong, told, after.waitCount, faults.length < 2]).eql([wrong, ['text sent'], 1, true]);
      await after.close();
    }
  });

  it('whose reads fail ends with its node', async () => {
    const broken = (): Promise<never> => Promise.reject(new Error('broken'));
    const faults: unknown[] = [];
    const host = { work: sends, ...tellingWhom([]), fault: (fault: unknown) => faults.push(fault) };
    const outbox = requestsOn(overStore(createMemoryStore(), { page: broken }), host);
    const starting = outbox.start();
    await pass();
    await outbox.close();
    await starting;
    should(faults).have.length(1);
  });
});
