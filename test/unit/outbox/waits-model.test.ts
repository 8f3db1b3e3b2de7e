import assert from 'node:assert/strict';
import fc from 'fast-check';
import { consentOf, type WaitItem, type WaitShared } from '../../../lib/consent/consent';
import { paceOf } from '../../../lib/consent/pace';
import { MovableClock } from '../../../simulator/movable-clock';
import { nextIteration } from '../../support/event-loop';
import { andOften, howOften } from '../../support/extent';
import { Disk, never, type Process } from '../../support/outbox/process';
import { space, WaitingQueue, type WaitingNodeOptions } from '../../support/outbox/waiting';

const begin = 1_750_000_000_000;
const pace = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 100 });
const phones = ['+12025550101', '+12025550102', '+12025550103'] as const;
const phone = fc.constantFrom(...phones);

interface Person extends WaitItem {
  readonly n: number;
  readonly phone: string;
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('accept' as const), count: fc.constantFrom(1, 2, 3, 3, 130) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), turns: fc.nat({ max: 12 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('move' as const), ms: fc.nat({ max: 30_000 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('consent' as const), phone }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), commits: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deploy' as const), turns: fc.nat({ max: 8 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flush' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('reset' as const), phone: fc.option(phone, { nil: undefined }) }),
  },
);
const delays = fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 8 });

interface Life {
  readonly process: Process;
  readonly outbox: Promise<WaitingQueue<Person, WaitShared>>;
  readonly started: Promise<void>;
  readonly closed: AbortController;
}

/** One process after the other on one store, and a service that says who has consented. */
class Machine {
  readonly told: { readonly name: number; readonly outcome: string; readonly repeated: boolean }[] = [];
  /** By name: saved when its call was answered. */
  readonly accepted = new Set<number>();
  readonly people: Person[] = [];
  readonly consented = new Set<string>();
  private readonly clock = new MovableClock(() => begin);
  private readonly disk: Disk;
  private life: Life;

  constructor(slow: readonly number[]) {
    this.disk = new Disk(slow, this.clock);
    this.life = this.start();
  }

  private start(process = this.disk.start()): Life {
    const closed = new AbortController();
    const { store } = process;
    const clock = this.disk.clockOf(process, this.clock);
    const consent = consentOf({
      service: 'simulator',
      space,
      clock,
      store: () => store,
      isBlocked: async () => false,
      client: () => ({
        call: async (_name, request) => {
          if (process.isDead) return never;
          const { query } = request as { readonly query: { readonly phone: string } };
          await nextIteration();
          const state = this.consented.has(query.phone) ? 'accepted' : 'pending';
          return { data: { memberId: 7, state, lastChanged: 1 }, status: 200, attempts: 1 } as never;
        },
      }),
    });
    const outbox = consent.then(
      (opened) => new WaitingQueue({ consent: opened, ...this.hostIn(process, closed.signal) }),
    );
    const started = outbox.then((opened) => opened.start());
    started.catch(() => undefined);
    return { process, outbox, started, closed };
  }

  private hostIn(
    process: Process,
    closed: AbortSignal,
  ): Pick<WaitingNodeOptions<Person, WaitShared, string>, 'emit' | 'fault' | 'atOnce' | 'outcomeOf'> {
    return {
      emit: async (message, { n: name }, { outcome, repeated, isLast, counts }) => {
        if (process.isDead) return never;
        if (closed.aborted) return false;
        this.told.push({ name, outcome, repeated });
        for (let turns = name % 3; turns > 0; turns--) await nextIteration();
        if (isLast) {
          const { total: _total, ...kinds } = counts;
          const sum = Object.values(kinds).reduce((all, count) => all + count, 0);
          assert.equal(sum, message.record.count, 'the last outcome comes with all of them counted');
        }
        return true;
      },
      fault: (fault) => {
        throw fault;
      },
      atOnce: ({ n }) => (n % 7 === 3 ? 'wrong' : undefined),
      outcomeOf: ({ kind }) => kind,
    };
  }

  async accept(count: number): Promise<void> {
    const { started } = this.life;
    const outbox = await this.life.outbox;
    await Promise.race([started, nextIteration()]);
    const items = Array.from({ length: count }, (_, index): Person => {
      const name = this.people.length + index;
      return { index, n: name, phone: phones[name % phones.length] ?? phones[0] };
    });
    this.people.push(...items);
    const order = { advisor: 'default', start: this.clock.now(), pace };
    void outbox.accept(items, order).then(() => {
      for (const { n } of items) this.accepted.add(n);
    });
  }

  async reset(of: string | undefined): Promise<void> {
    (await this.life.outbox).reset(of === undefined ? undefined : [of]);
  }

  async flush(): Promise<void> {
    (await this.life.outbox).flush();
  }

  move(ms: number): Promise<void> {
    return this.clock.move(ms);
  }

  async kill(commits: number): Promise<void> {
    await this.disk.kill(this.life.process, commits);
    (await this.life.outbox).stop();
    this.life = this.start();
  }

  async restart(): Promise<void> {
    await (await this.life.outbox).close();
    await this.disk.end(this.life.process);
    this.life = this.start();
  }

  /** The next start of the node does not wait until the close has finished. */
  async deploy(turns: number): Promise<void> {
    const { process, outbox, closed } = this.life;
    closed.abort();
    void (await outbox).close();
    for (let left = turns; left > 0; left--) await nextIteration();
    this.life = this.start(process);
  }

  /** Until every outcome has been emitted, or nothing more comes. */
  async settle(): Promise<void> {
    const all = { from: Buffer.of(0), to: Buffer.of(0xff), limit: 1000 };
    const left = async (): Promise<[number, number]> => {
      const records = await this.disk.memory.keys('work', all);
      return [
        records.filter((key) => !key.toString('latin1').startsWith('home\0')).length,
        (await this.disk.memory.keys('wait', all)).length,
      ];
    };
    for (let rounds = 0; rounds < 40; rounds++) {
      for (let turns = 0; turns < 25; turns++) await nextIteration();
      const [recordsLeft, entriesLeft] = await left();
      if (rounds > 1 && recordsLeft + entriesLeft === 0) break;
      await this.move(10_000);
    }
    const outbox = await this.life.outbox;
    assert.equal(outbox.count, 0, 'none is counted as waiting');
    outbox.stop();
    assert.deepEqual(await left(), [0, 0], 'nothing is left in the store, nor polled any more');
  }
}

describe('the waits of a node against a naive list', () => {
  it(`are each emitted, once or marked as repeated, over kills at any commit, deploys, resets and slow reads${andOften}`, async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), delays, async (steps, slow) => {
        const machine = new Machine(slow);
        for (const each of steps) {
          if (each.do === 'accept') await machine.accept(each.count);
          else if (each.do === 'consent') machine.consented.add(each.phone);
          else if (each.do === 'reset') await machine.reset(each.phone);
          else if (each.do === 'flush') await machine.flush();
          else if (each.do === 'move') await machine.move(each.ms);
          else if (each.do === 'restart') await machine.restart();
          else if (each.do === 'deploy') await machine.deploy(each.turns);
          else if (each.do === 'kill') await machine.kill(each.commits);
          else for (let turns = 0; turns < each.turns; turns++) await nextIteration();
        }
        await machine.settle();
        const first = new Map<number, string>();
        for (const { name, outcome, repeated } of machine.told) {
          const before = first.get(name);
          if (before !== undefined) assert.ok(repeated, `${name} was emitted before`);
          assert.equal(outcome, before ?? outcome, 'and the same is emitted');
          first.set(name, outcome);
          const { phone: of } = machine.people[name] ?? { phone: '' };
          if (outcome === 'accepted') assert.ok(machine.consented.has(of), `${name} consented`);
        }
        for (const name of machine.accepted) assert.ok(first.has(name), `${name} is emitted`);
      }),
      {
        numRuns: howOften(60),
        // A look ends a wait while a reset reads it.
        examples: [
          [
            [
              { do: 'reset', phone: undefined },
              { do: 'kill', commits: 1 },
              { do: 'accept', count: 130 },
              { do: 'restart' },
              { do: 'pass', turns: 3 },
              { do: 'move', ms: 0 },
              { do: 'pass', turns: 4 },
              { do: 'move', ms: 0 },
              { do: 'reset', phone: undefined },
            ],
            [0, 5, 5, 4],
          ],
        ],
      },
    );
  });
});
