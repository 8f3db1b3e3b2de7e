import fc from 'fast-check';
import should from 'should';
import { paceOf } from '../../lib/consent/schedule';
import type { NewWait, NodeWaits } from '../../lib/consent/waits';
import { ann, bob, forPhone, seconds, World } from './fixtures';

/** Short, so that a run goes through everything: quick for 20 s, slow until 100 s. */
const pace = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 100 });
/** Two numbers, one of them with another advisor too, and a member whose id has the digits of a number. */
const people: readonly NewWait[] = [
  forPhone(ann),
  forPhone(bob),
  forPhone(ann, 'another'),
  { advisor: 'default', subject: { memberId: Number(ann) } },
];
const nameOf = ({ advisor, subject }: NewWait): string =>
  `${advisor} ${'phone' in subject ? subject.phone : `#${String(subject.memberId)}`}`;
const someone = (index: number): NewWait => people[index] ?? forPhone(ann);
const nodes = ['one', 'two'];
/** They come and go at once, so that whoever comes later has a place in memory that another had before. */
const crowd = Array.from({ length: 300 }, (_, n) => forPhone(`+1303${String(n).padStart(7, '0')}`));

type Step =
  | { readonly do: 'add'; readonly person: number; readonly node: number }
  | { readonly do: 'pass'; readonly time: number }
  | { readonly do: 'accept'; readonly person: number }
  | { readonly do: 'reset'; readonly person: number; readonly node: number }
  | { readonly do: 'resetAll'; readonly node: number; readonly isClosed: boolean }
  | { readonly do: 'restart' }
  | { readonly do: 'crowd' }
  | { readonly do: 'away'; readonly node: number }
  | { readonly do: 'outage'; readonly time: number };

const pick = fc.nat({ max: 1 });
const who = fc.nat({ max: people.length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add' as const), person: who, node: pick }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('accept' as const), person: who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const), person: who, node: pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('resetAll' as const), node: pick, isClosed: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crowd' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('away' as const), node: pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('outage' as const), time: fc.integer({ min: 1, max: 30 }) }),
  },
);

interface Expected {
  readonly n: number;
  readonly name: string;
  readonly node: string;
  readonly start: number;
}

describe('waits against a naive model', () => {
  it('each ends once, for a reason that holds, in order, and nothing is polled that does not wait', async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25, size: 'max' }), async (steps) => {
        const world = new World();
        const accepted = new Set<string>();
        let isOut = false;
        world.lookups.answer = (of, advisor) => {
          if (isOut) throw new Error('no network');
          return accepted.has(`${advisor} ${of}`) ? 'accepted' : 'pending';
        };
        const attached = new Map<string, NodeWaits>();
        const attachAll = async (): Promise<void> => {
          for (const node of nodes) if (!attached.has(node)) attached.set(node, world.attach(node));
          for (const each of attached.values()) await each.ready;
        };
        await attachAll();
        const all: Expected[] = [];
        const cancelled = new Set<number>();
        const acceptedAt = new Map<string, number>();
        const ended = (): Set<unknown> => new Set(world.told.map(({ settled }) => settled.message.n));
        /** The waits of a node that have not ended are reset; gives the node. */
        const cancel = async (
          node: string,
          isMeant: (one: Expected) => boolean,
        ): Promise<NodeWaits | undefined> => {
          await world.waits.told();
          const gone = ended();
          for (const one of all)
            if (one.node === node && !gone.has(one.n) && isMeant(one)) cancelled.add(one.n);
          return attached.get(node);
        };
        const pass = async (time: number): Promise<void> => {
          const waiting = new Set(all.filter(({ n }) => !ended().has(n)).map(({ name }) => name));
          const before = world.lookups.polls.length;
          await world.clock.move(seconds(time));
          for (const { advisor, of } of world.lookups.polls.slice(before))
            should(waiting.has(`${advisor} ${of}`)).be.true();
        };

        for (const each of steps) {
          if (each.do === 'add') {
            const person = someone(each.person);
            const node = nodes[each.node] ?? 'one';
            const n = all.push({ n: all.length, name: nameOf(person), node, start: world.elapsed }) - 1;
            await attached.get(node)?.add({ n }, [person], pace);
          } else if (each.do === 'pass') await pass(each.time);
          else if (each.do === 'accept') {
            const name = nameOf(someone(each.person));
            accepted.add(name);
            if (!acceptedAt.has(name)) acceptedAt.set(name, world.elapsed);
          } else if (each.do === 'reset') {
            const { subject } = someone(each.person);
            const phone = 'phone' in subject ? subject.phone : bob;
            (await cancel(nodes[each.node] ?? 'one', ({ name }) => name.endsWith(` ${phone}`)))?.reset(phone);
            await world.waits.told();
          } else if (each.do === 'resetAll') {
            const node = nodes[each.node] ?? 'one';
            const own = await cancel(node, () => true);
            own?.reset();
            if (each.isClosed) {
              await own?.detach();
              attached.delete(node);
              await attachAll();
            }
            await world.waits.told();
          } else if (each.do === 'restart') {
            world.restart();
            attached.clear();
            await attachAll();
          } else if (each.do === 'crowd') {
            const passing = world.attach('passing');
            await passing.add({}, crowd, pace);
            passing.reset();
            await world.waits.told();
            await passing.detach();
            // Meanwhile others may end, too.
            const told = world.told.splice(0);
            world.told.push(...told.filter(({ node }) => node !== 'passing'));
            const left = told.filter(({ node }) => node === 'passing');
            should(left.map(({ settled: { subject } }) => subject)).deepEqual(
              crowd.map(({ subject }) => subject),
            );
          } else if (each.do === 'away') {
            const node = nodes[each.node] ?? 'one';
            await attached.get(node)?.detach();
            attached.delete(node);
            await pass(3);
            await attachAll();
          } else {
            isOut = true;
            await pass(each.time);
            isOut = false;
          }
        }
        await pass(200);

        should(world.told.map(({ settled }) => settled.message.n).sort()).deepEqual(
          all.map(({ n }) => n).sort(),
        );
        const order = new Map<string, number>();
        for (const { end, at, settled, node } of world.told) {
          const one = all[settled.message.n as number];
          if (!one) throw new Error('a wait nobody began');
          should(settled.repeated).be.false();
          should(node).equal(one.node);
          const since = acceptedAt.get(one.name) ?? Infinity;
          should(end === 'cancelled').equal(cancelled.has(one.n));
          if (end === 'cancelled') continue;
          if (end === 'accepted') {
            should(at).be.aboveOrEqual(Math.max(since, one.start));
            // Those of a node that was away leave when it is back.
            const together = `${one.name} ${String(at)}`;
            should(one.n).be.above(order.get(together) ?? -1);
            order.set(together, one.n);
          } else {
            should(end).equal('expired');
            should(at - one.start).be.aboveOrEqual(pace.giveUpAfter);
            should(since).be.aboveOrEqual(one.start + pace.giveUpAfter);
          }
        }
        for (const person of people) {
          const polls = world.lookups.polls.filter(
            ({ advisor, of }) => nameOf(person) === `${advisor} ${of}`,
          );
          const times = polls.map(({ at }) => at);
          times.slice(1).forEach((at, n) => should(at).be.above(times[n] ?? 0));
        }
        should(await world.store.table('waits').keyFrom('')).be.undefined();
      }),
      { numRuns: 60 },
    );
  });
});
