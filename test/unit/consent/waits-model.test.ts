import fc from 'fast-check';
import should from 'should';
import { paceOf } from '../../../lib/consent/pace';
import { ann, bob, refusal, seconds, World, type WaitOf } from '../../support/consent/world';
import { andOften, howOften } from '../../support/extent';

/** Short, so that a run covers everything; the last has been edited. */
const paces = [
  paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 100 }),
  paceOf({ pollEvery: 2, pollFor: 6, thenEvery: 20, giveUpAfter: 70 }),
] as const;
/** Two numbers, and a member whose id has the digits of a number. */
const people = [ann, bob, `#${ann.slice(1)}`] as const;
const advisors = ['default', 'another'] as const;

const who = fc.record({ person: fc.constantFrom(...people), advisor: fc.constantFrom(...advisors) });
type Who = typeof who extends fc.Arbitrary<infer T> ? T : never;
const nameOf = ({ person, advisor }: Who): string => `${advisor} ${person}`;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('add' as const), who, pace: fc.constantFrom(...paces) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.nat({ max: 40_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('accept' as const), who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), index: fc.nat({ max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flush' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('outage' as const), time: fc.nat({ max: 30_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('seenElsewhere' as const), who }) },
);

interface Expected {
  readonly n: number;
  readonly name: string;
  readonly start: number;
  readonly wait: WaitOf;
}

/** Milliseconds from the start at which a wait is polled when nobody answers. */
const naiveTimes = ({ pollEvery, pollFor, thenEvery, giveUpAfter }: WaitOf['pace']): number[] => {
  const times: number[] = [];
  for (let at = 0; at <= pollFor && at < giveUpAfter; at += pollEvery) times.push(at);
  const quickEnd = times.at(-1) ?? 0;
  for (let at = quickEnd + thenEvery; at < giveUpAfter; at += thenEvery) times.push(at);
  return [...times, giveUpAfter];
};

describe('waits against a naive model', () => {
  it(`are polled at all their times, never early and at most a tenth late, however late timers fire${andOften}`, async function () {
    this.timeout(120_000);
    const latest = 20;
    const group = fc.record({
      pause: fc.nat({ max: 15_000 }),
      // More than are read at once.
      count: fc.constantFrom(1, 3, 40),
      pace: fc.constantFrom(...paces),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(group, { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(fc.nat({ max: latest })),
        async (groups, delays) => {
          const world = new World();
          world.delay = () => Number(delays.next().value);
          const expected: { of: string; start: number; wait: WaitOf }[] = [];
          for (const { pause, count, pace } of groups) {
            await world.clock.move(pause);
            const waits = Array.from({ length: count }, (_, n) => {
              const of = `+1303${String(expected.length + n).padStart(7, '0')}`;
              return { of, start: world.elapsed, wait: world.wait(of, pace) };
            });
            expected.push(...waits);
            await world.accept(...waits.map(({ wait }) => wait));
          }
          await world.clock.move(seconds(120));
          for (const { of, start, wait } of expected) {
            const naive = naiveTimes(wait.pace);
            const polled = world.times(of).map((at) => at - start);
            should(polled.length).equal(naive.length, `${of}: ${polled.join()} for ${naive.join()}`);
            for (const [n, due] of naive.entries()) {
              const { pollEvery, pollFor, thenEvery, giveUpAfter } = wait.pace;
              const lastStep = giveUpAfter - (naive[n - 1] ?? 0);
              const interval = due === giveUpAfter ? lastStep : due <= pollFor ? pollEvery : thenEvery;
              should(polled[n]).be.within(due, due + interval / 10 + latest, `${of} at ${due}`);
            }
          }
          should(world.told.length).equal(expected.length);
          world.kill();
        },
      ),
      { numRuns: howOften(60) },
    );
  });

  it(`end once and leave nothing, however long the answers take${andOften}`, async function () {
    this.timeout(120_000);
    const many = fc.record({
      pause: fc.nat({ max: 15_000 }),
      waits: fc.array(fc.record({ person: fc.nat({ max: 5 }), pace: fc.constantFrom(...paces) }), {
        minLength: 1,
        maxLength: 6,
      }),
      isRestart: fc.boolean(),
    });
    const slowness = fc.oneof(
      { weight: 5, arbitrary: fc.nat({ max: 400 }) },
      { weight: 3, arbitrary: fc.nat({ max: 20_000 }) },
      { weight: 1, arbitrary: fc.nat({ max: 120_000 }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(many, { minLength: 1, maxLength: 8, size: 'max' }),
        fc.infiniteStream(slowness),
        fc.integer({ min: 1, max: 4 }),
        async (steps, answers, concurrency) => {
          const world = new World(concurrency);
          world.slowness = () => Number(answers.next().value);
          let count = 0;
          for (const { pause, waits, isRestart } of steps) {
            await world.clock.move(pause);
            if (isRestart) await world.restart();
            count += waits.length;
            await world.accept(
              ...waits.map(({ person, pace }) => world.wait(`+1303000000${String(person)}`, pace)),
            );
          }
          await world.clock.move(seconds(100));
          world.slowness = () => 100;
          await world.clock.move(seconds(400));
          should(world.told.length).equal(count);
          should(await world.left()).equal(0);
          world.kill();
        },
      ),
      { numRuns: howOften(150) },
    );
  });

  it('retry all last polls without an answer, however many', async () => {
    const world = new World();
    const pace = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 100 });
    world.delay = () => 7;
    await world.accept(
      ...Array.from({ length: 70 }, (_, n) => world.wait(`+1303${String(n).padStart(7, '0')}`, pace)),
    );
    await world.clock.move(seconds(90));
    world.answer = () => refusal('network_error');
    await world.clock.move(seconds(60));
    world.answer = () => 'pending';
    await world.clock.move(seconds(30));
    should(world.told.length).equal(70);
    world.kill();
  });

  it(`end once, for a valid reason, in order of arrival, and nothing is polled that does not wait${andOften}`, async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
        const world = new World();
        world.memberId = null;
        const accepted = new Set<string>();
        /** Waits that have not ended, in order of arrival. */
        let open: Expected[] = [];
        /** Polls for nobody. */
        const strays: string[] = [];
        let isOut = false;
        let count = 0;
        let checked = 0;
        world.answer = (person, advisor) => {
          const name = `${advisor} ${person}`;
          if (!open.some((each) => each.name === name)) strays.push(name);
          if (isOut) return refusal('network_error');
          return accepted.has(name) ? 'accepted' : 'pending';
        };
        const check = (): void => {
          const news = world.told.slice(checked);
          checked = world.told.length;
          const latest = new Map<string, number>();
          for (const { n, end, at } of news) {
            const expected = open.find((each) => each.n === n);
            if (!expected) throw new Error(`${n} ended twice`);
            const { name, start, wait } = expected;
            open = open.filter((each) => each !== expected);
            if (end === 'expired') should(at).be.aboveOrEqual(start + wait.pace.giveUpAfter);
            if (end !== 'accepted') continue;
            should(accepted.has(name)).be.true();
            should(n).be.above(latest.get(name) ?? -1);
            latest.set(name, n);
          }
        };
        for (const each of steps) {
          switch (each.do) {
            case 'add': {
              const wait = world.wait(each.who.person, each.pace, each.who.advisor);
              open.push({ n: count++, name: nameOf(each.who), start: world.elapsed, wait });
              await world.accept(wait);
              break;
            }
            case 'pass':
              await world.clock.move(each.time);
              break;
            case 'accept':
              accepted.add(nameOf(each.who));
              break;
            case 'cancel': {
              const found = open[each.index];
              if (found) await world.cancel(found.wait);
              break;
            }
            case 'flush':
              await world.flush();
              break;
            case 'restart':
              await world.restart();
              break;
            case 'outage':
              isOut = true;
              await world.clock.move(each.time);
              isOut = false;
              break;
            case 'seenElsewhere': {
              const { person, advisor } = each.who;
              accepted.add(nameOf(each.who));
              const status = { memberId: null, state: 'accepted', lastChanged: null };
              const subject = person.startsWith('#')
                ? { memberId: Number(person.slice(1)) }
                : { phone: person };
              await (await world.consent).accepted(advisor, subject, status);
              // Another look may have seen it at the same moment.
              await world.clock.move(0);
              check();
              should(open.some(({ name }) => name === nameOf(each.who))).be.false();
              break;
            }
          }
          check();
        }
        // An acceptance is seen within an interval; all end within an interval of their end.
        await world.clock.move(seconds(22));
        check();
        should(open.filter(({ name }) => accepted.has(name))).eql([]);
        await world.clock.move(seconds(120));
        check();
        should(open).eql([]);
        should(strays).eql([]);
        should(await world.left()).equal(0);
        world.kill();
      }),
      { numRuns: howOften(150) },
    );
  });
});
