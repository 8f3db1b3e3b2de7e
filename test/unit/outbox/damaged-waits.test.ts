import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { open as openLmdb } from 'lmdb';
import { paceOf, type Pace } from '../../../lib/consent/rings';
import { Waits } from '../../../lib/consent/waits';
import type { OutboxItem } from '../../../lib/outbox/message-items';
import { MovableClock } from '../../../lib/service/clock';
import { openEmbedded } from '../../../lib/state/embedded';
import type { Store } from '../../../lib/state/store';
import { WaitingQueue } from '../../support/outbox/waiting';
import { sealerOf } from '../../support/state/sealer';

const begin = 1_750_000_000_000;
const phone = '+12025550101';
// Its end lies beyond every second that the clock can move while the disk is slow.
const pace = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 10_000_000 });
const space = 'environment';

interface Person extends OutboxItem {
  readonly phone: string;
}
interface Order {
  readonly start: number;
  readonly pace: Pace;
}
type Outbox = WaitingQueue<Person, Order>;

describe('a wait whose entries are damaged', () => {
  let directory: string;
  let clock: MovableClock;
  let polls: number;
  let told: string[];
  let answer: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-damaged-waits-'));
    clock = new MovableClock(() => begin);
    polls = 0;
    told = [];
    answer = 'pending';
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  /** A node, its environment and its store, as after a start. */
  const start = async (): Promise<{ store: Store; outbox: Outbox; waits: Waits; stop(): Promise<void> }> => {
    const store = await openEmbedded({ directory, sealer: sealerOf('test'), warn: () => undefined, clock });
    const waits = new Waits({
      store,
      space: Buffer.from(space),
      clock,
      concurrency: 4,
      client: () => ({
        pausedUntil: 0,
        close: () => Promise.resolve(),
        call: async () => {
          polls += 1;
          return { data: { memberId: 7, state: answer, lastChanged: 1 }, status: 200, attempts: 1 } as never;
        },
      }),
      ended: (wait, outcome, removals) => outbox.end(wait.item, outcome.kind, removals),
      missing: async (item) => {
        await outbox.restore(item);
      },
      changed: () => undefined,
    });
    const outbox: Outbox = new WaitingQueue<Person, Order>({
      store,
      space,
      clock,
      waits: () => waits,
      emit: async (_message, _item, { outcome }) => {
        told.push(outcome);
        return true;
      },
      waitOf: (item, person, order) => ({ item, advisor: 'default', subject: person, ...order }),
    });
    waits.start();
    await outbox.start();
    const stop = async (): Promise<void> => {
      waits.stop();
      await outbox.close();
      await store.close();
    };
    return { store, outbox, waits, stop };
  };

  const accept = (outbox: Outbox): Promise<void> =>
    outbox.accept([{ index: 0, phone }], { start: clock.now(), pace });

  /** Moves the clock until `isSo`; between two moves the commits get real time. */
  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    const late = Date.now() + 60_000;
    while (!isSo()) {
      assert.ok(Date.now() < late, `${what} did not come within a minute`);
      await clock.move(1000);
      await sleep(1);
    }
  };

  /** Changes the records of waits whose keys name `kind`, below the store. */
  const damage = async (
    kind: string,
    change: (table: ReturnType<typeof openLmdb<Buffer, Buffer>>, key: Buffer, value: Buffer) => void,
  ): Promise<number> => {
    const options = { encoding: 'binary', keyEncoding: 'binary', overlappingSync: false, maxDbs: 8 } as const;
    const root = openLmdb<Buffer, Buffer>(join(directory, 'store.mdb'), options);
    const table = root.openDB<Buffer, Buffer>('wait', options);
    const found = Array.from(table.getRange()).filter(({ key }) => key.includes(`${space}${kind}\0`));
    for (const { key, value } of found) change(table as never, key, Buffer.from(value));
    await root.close();
    return found.length;
  };

  it('is still polled after a bit of its record has flipped, and emits its outcome once', async () => {
    const first = await start();
    await accept(first.outbox);
    await until('the first poll', () => polls > 0);
    await first.stop();
    const count = await damage('wait', (table, key, value) => {
      value[value.length - 1] = (value.at(-1) ?? 0) ^ 1;
      table.putSync(key, value);
    });
    assert.equal(count, 1);

    const second = await start();
    polls = 0;
    await until('the third poll', () => polls > 2);
    assert.deepEqual(told, []);
    answer = 'accepted';
    await until('the outcome', () => told.length > 0);
    await until('the end of the wait', () => second.outbox.count === 0);
    await second.stop();
    assert.deepEqual(told, ['accepted']);
  });

  it('is found again after a start when the page with its place on the ring was lost', async () => {
    const first = await start();
    await accept(first.outbox);
    await until('the first poll', () => polls > 0);
    await first.stop();
    assert.equal(await damage('ring', (table, key) => table.removeSync(key)), 1);

    const second = await start();
    polls = 0;
    // A damaged page leaves only that something was lost, and when.
    second.store.hasLost = () => Promise.resolve(true);
    await second.outbox.start();
    await until('the third poll', () => polls > 2);
    answer = 'accepted';
    await until('the outcome', () => told.length > 0);
    await second.stop();
    assert.deepEqual(told, ['accepted']);
  });
});
