import assert from 'node:assert/strict';
import fc from 'fast-check';
import { handOver } from '../../../lib/outbox/hand-over';
import { Queue } from '../../../lib/outbox/queue';
import type { ItemData, Shared } from '../../../lib/outbox/records';
import { nextIteration } from '../../support/event-loop';
import { andOften, howOften } from '../../support/extent';
import { Disk, never, type Process } from '../../support/outbox/process';
import { hosted, nobodys } from '../../support/outbox/requests';

const nodes = ['giver', 'near', 'far'] as const;
type NodeName = (typeof nodes)[number];
/** The nodes that the giver is wired to. */
const receivers = ['near', 'far'] as const;

interface Text extends ItemData {
  readonly nth: number;
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('accept' as const), count: fc.constantFrom(1, 1, 2, 3, 130) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), turns: fc.nat({ max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), commits: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('deploy' as const),
      node: fc.constantFrom(...nodes),
      turns: fc.nat({ max: 8 }),
    }),
  },
);
const turns = fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 8 });
const wiring = fc.record({
  /** The second receiver has another store. */
  isApart: fc.boolean(),
  /** A third receiver is not ours: nobody knows when it has the message. */
  hasOther: fc.boolean(),
  /** Ticks that the receivers take to read a message, one after the other. */
  slowness: turns,
});
type Wiring = typeof wiring extends fc.Arbitrary<infer W> ? W : never;

interface Life {
  readonly processes: readonly [Process, Process];
  readonly queues: Record<NodeName, Queue<Text>>;
}

/** Three nodes, of which the first hands each outcome over to the others; one process after the other. */
class Machine {
  readonly accepted = new Set<number>();
  /** For each receiver and text, the messages that it has emitted. */
  readonly got = { near: new Map<number, Set<string>>(), far: new Map<number, Set<string>>() };
  readonly told: { readonly nth: number; readonly repeated: boolean }[] = [];
  kills = 0;
  private count = 0;
  private reads = 0;
  private time = 1_750_000_000_000;
  private readonly disks: readonly [Disk, Disk];
  private life: Life;

  constructor(
    delays: readonly number[],
    private readonly wiring: Wiring,
  ) {
    const clock = { now: () => this.time };
    const disk = new Disk(delays, clock);
    this.disks = [disk, wiring.isApart ? new Disk(delays, clock) : disk];
    this.life = this.start();
  }

  private start(): Life {
    const [disk, other] = this.disks;
    const process = disk.start();
    const processes = [process, other === disk ? process : other.start()] as const;
    const life: Life = {
      processes,
      queues: {
        giver: this.queue('giver', processes[0], () => life),
        near: this.queue('near', processes[0], () => life),
        far: this.queue('far', processes[1], () => life),
      },
    };
    return life;
  }

  private queue(node: NodeName, process: Process, lifeOf: () => Life): Queue<Text> {
    const queue = new Queue<Text>({
      store: process.store,
      node,
      type: 'type',
      space: 'space',
      width: 4,
      resumeWithin: 3_600_000,
      clock: { now: () => this.time, after: () => () => undefined },
      ...hosted<Text, Shared, string>({
        work: async (item) => {
          await item.start();
          return process.isDead ? never : 'sent';
        },
        outcomeFor: async (_item, reason) => reason,
        kindsOf: (outcome) => [outcome],
        emit: async (message, { nth }, { repeated, offer }) => {
          if (process.isDead) return never;
          if (node === 'giver') return this.send(lifeOf(), { nth, repeated, offer });
          const got = this.got[node].get(nth) ?? new Set<string>();
          this.got[node].set(nth, got.add(message.id));
          return true;
        },
        fault: (fault) => {
          throw fault;
        },
      }),
    });
    void queue.start();
    return queue;
  }

  /** As Node-RED does: the messages leave in the next turn of the event loop, one after the other. */
  private async send(
    { processes: [process] }: Life,
    told: { readonly nth: number; readonly repeated: boolean; readonly offer: number | undefined },
  ): Promise<boolean> {
    const { nth, offer } = told;
    this.told.push(told);
    const msg = {};
    handOver.mark(msg, msg, { id: 'giver' }, offer, receivers.length + (this.wiring.hasOther ? 1 : 0));
    const arriving = nextIteration();
    for (const node of receivers)
      setImmediate(() => {
        if (!process.isDead) void this.receive(process, node, { ...msg }, nth);
      });
    await arriving;
    return process.isDead ? never : true;
  }

  private async receive(process: Process, node: 'near' | 'far', msg: object, nth: number): Promise<void> {
    const claim = handOver.claim(msg, node);
    if (claim === 'taken') return;
    const { slowness } = this.wiring;
    for (let left = slowness[this.reads++ % slowness.length] ?? 0; left > 0; left--) await nextIteration();
    if (process.isDead) return;
    const items = [{ index: 0, nth }];
    this.life.queues[node].accept({}, { shared: nobodys, items, count: 1 }, undefined, claim);
  }

  accept(count: number): void {
    const items = Array.from({ length: count }, (_, index): Text => ({ index, nth: this.count++ }));
    const { giver } = this.life.queues;
    giver.accept({}, { shared: nobodys, items, count });
    const { processes } = this.life;
    void giver.whenSaved().then(() => {
      if (!processes[0].isDead) for (const { nth } of items) this.accepted.add(nth);
    });
  }

  async kill(commits: number): Promise<void> {
    this.kills += 1;
    const { processes } = this.life;
    await this.disks[0].kill(processes[0], commits);
    await this.disks[1].kill(processes[1], 0);
    this.life = this.start();
  }

  async restart(): Promise<void> {
    const { queues, processes } = this.life;
    await Promise.all(Object.values(queues).map((queue) => queue.close()));
    await this.disks[0].end(processes[0]);
    await this.disks[1].end(processes[1]);
    this.life = this.start();
  }

  /** The next start of the node does not wait until the close has finished. */
  async deploy(node: NodeName, turns: number): Promise<void> {
    const { queues, processes } = this.life;
    void queues[node].close();
    for (let left = turns; left > 0; left--) await nextIteration();
    const life = this.life;
    queues[node] = this.queue(node, processes[node === 'far' ? 1 : 0], () => life);
  }

  /** The number of records in the end. */
  async settle(): Promise<number> {
    let left = 0;
    for (let turns = 0; turns < 30_000; turns++) {
      await nextIteration();
      // What others than our nodes have received counts as emitted after a while.
      if (turns % 50 === 49) handOver.concludeAll();
      if (turns % 20 > 0) continue;
      left = 0;
      const range = { from: Buffer.of(0), to: Buffer.of(0xff), limit: 1000 };
      for (const { memory } of new Set(this.disks))
        for (const table of ['work', 'wait'] as const)
          left += (await memory.keys(table, range)).filter(
            (key) => !key.toString('latin1').startsWith('home\0'),
          ).length;
      if (left === 0 && turns > 0) break;
    }
    return left;
  }
}

describe('nodes that hand outcomes over to several others', () => {
  it(`lose none and accept none twice, over kills at any commit, restarts and deploys${andOften}`, async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 30, size: 'max' }),
        turns,
        wiring,
        async (steps, slow, wired) => {
          const machine = new Machine(slow, wired);
          for (const each of steps) {
            if (each.do === 'accept') machine.accept(each.count);
            else if (each.do === 'kill') await machine.kill(each.commits);
            else if (each.do === 'restart') await machine.restart();
            else if (each.do === 'deploy') await machine.deploy(each.node, each.turns);
            else for (let left = each.turns; left > 0; left--) await nextIteration();
          }
          assert.equal(await machine.settle(), 0, 'nothing is left in the store');
          const { told, accepted, got, kills } = machine;
          const first = new Set<number>();
          for (const { nth, repeated } of told) {
            if (first.has(nth)) assert.ok(repeated, `${nth} was emitted before`);
            first.add(nth);
          }
          for (const node of receivers)
            for (const nth of accepted) {
              const times = got[node].get(nth)?.size ?? 0;
              assert.ok(times > 0, `${nth} is lost before ${node}`);
              // Between two stores, there is no common commit.
              const isOnce = times === 1 || (node === 'far' && wired.isApart && kills > 0);
              assert.ok(isOnce, `${nth} is accepted ${times} times by ${node}`);
            }
        },
      ),
      { numRuns: howOften(150) },
    );
  });
});
