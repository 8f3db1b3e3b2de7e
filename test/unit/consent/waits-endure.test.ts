import should from 'should';
import { paceOf, recommended } from '../../../lib/consent/pace';
import { TakenOver } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { isLong } from '../../support/extent';
import { gate } from '../../support/gate';
import { ann, begin, bob, expired, hours, refusal, seconds, World } from '../../support/consent/world';

const numberOf = (n: number): string => `+1303${String(n).padStart(7, '0')}`;
const many = isLong ? 5500 : 1500;
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
/** Quick for 20 s, slow until 100 s. */
const short = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 100 });

describe('waits', () => {
  describe('outlast', () => {
    const enduring: readonly [string, () => never, string | undefined][] = [
      ['a dead network', () => refusal('network_error'), 'network_error'],
      ['a limit on the rate', () => refusal('rate_limited', 429), undefined],
      ['a fault of the service', () => refusal('internal_error', 500), 'internal_error'],
      ['a lost authorization', () => refusal('authorization_required'), undefined],
      ['a token refused twice', () => refusal('unauthorized', 401), 'unauthorized'],
      ['an answer that fits no schema', () => refusal('invalid_response', 200, false), 'invalid_response'],
      ['a redirect', () => refusal('invalid_response', 302, false), 'invalid_response'],
      ['a 403 without a problem body', () => refusal('forbidden', 403, false), 'forbidden'],
      ['a 404 without a problem body', () => refusal('not_found', 404, false), 'not_found'],
      ['a 400 without a problem body', () => refusal('invalid_request', 400, false), 'invalid_request'],
      [
        'an unexpected fault',
        () => {
          throw new Error('?');
        },
        undefined,
      ],
    ];
    for (const [what, fault, outage] of enduring) {
      it(`${what}, and say ${outage === undefined ? 'nothing' : 'why'}`, async () => {
        const world = new World();
        world.answer = fault;
        await world.add(ann);
        await world.clock.move(hours(1));
        world.told.should.eql([]);
        should((await world.consent).outage?.code).equal(outage);
        world.changes.should.equal(outage === undefined ? 0 : 1);
        await world.clock.move(hours(22));
        world.answer = () => 'accepted';
        await world.clock.move(hours(0.2));
        world.ends.should.eql([[0, 'accepted']]);
        should((await world.consent).outage).be.undefined();
      });
    }

    it('an unknown state', async () => {
      const world = new World();
      world.answer = () => 'thinking it over';
      await world.add(ann);
      await world.clock.move(hours(23));
      world.told.should.eql([]);
    });
  });

  describe('and the answer of the service', () => {
    it('that a number is unknown counts from five minutes on', async () => {
      const world = new World();
      world.answer = () => refusal('not_found', 404);
      await world.add(ann);
      await world.clock.move(seconds(299));
      world.told.should.eql([]);
      await world.clock.move(seconds(10));
      world.ends.should.eql([[0, 'unknown_number']]);
      const { outcome } = world.told[0] ?? {};
      should(outcome?.kind === 'not_accepted' && outcome.problem?.status).equal(404);
      (await world.left()).should.equal(0);
    });

    it('that a number is unknown counts at the last poll, however young the wait', async () => {
      const world = new World();
      world.answer = () => refusal('not_found', 404);
      await world.add(ann, short);
      await world.clock.move(seconds(99));
      world.told.should.eql([]);
      await world.clock.move(seconds(3));
      world.ends.should.eql([[0, 'unknown_number']]);
    });

    it('that a number is unknown ends only those for whom it already counts', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(290));
      world.answer = () => refusal('not_found', 404);
      await world.add(ann);
      await world.clock.move(seconds(100));
      world.ends.should.eql([[0, 'unknown_number']]);
      await world.clock.move(seconds(250));
      world.ends.should.eql([
        [0, 'unknown_number'],
        [1, 'unknown_number'],
      ]);
    });

    it('that the request is wrong ends all for the number', async () => {
      const world = new World();
      world.answer = () => refusal('forbidden', 403);
      await world.accept(world.wait(ann), world.wait(ann));
      await world.clock.move(seconds(5));
      world.ends.should.eql([
        [0, 'failed'],
        [1, 'failed'],
      ]);
    });
  });

  describe('whose last poll is not answered', () => {
    it('retry it each interval for an hour, then expire', async () => {
      const world = new World();
      await world.add(ann, short);
      await world.clock.move(seconds(50));
      world.answer = () => refusal('network_error');
      await world.clock.move(seconds(60));
      const before = world.polls.length;
      await world.clock.move(seconds(600));
      (world.polls.length - before).should.be.within(58, 62);
      world.told.should.eql([]);
      await world.clock.move(hours(1));
      world.told.map(({ outcome }) => outcome).should.eql([expired]);
      (await world.left()).should.equal(0);
    });

    it('end with the answer when it comes', async () => {
      const world = new World();
      world.answer = () => refusal('network_error');
      await world.accept(...range(10).map((n) => world.wait(numberOf(n), short)));
      await world.clock.move(seconds(1000));
      world.told.should.eql([]);
      world.answer = () => 'accepted';
      await world.clock.move(seconds(11));
      world.told.length.should.equal(10);
    });

    it('have that hour even if nothing could be polled before', async () => {
      const world = new World();
      await world.add(ann, short);
      await world.clock.move(seconds(50));
      world.kill();
      await world.clock.move(hours(72));
      world.answer = () => refusal('network_error');
      await world.restart();
      await world.clock.move(hours(0.9));
      world.told.should.eql([]);
      await world.clock.move(hours(0.2));
      world.ends.should.eql([[0, 'expired']]);
    });

    it('have that hour after their node was away, even if others have looked meanwhile', async () => {
      const world = new World();
      await world.add(bob, { ...recommended, giveUpAfter: hours(100) });
      const comeBack = await world.acceptElsewhere(world.wait(ann));
      await world.clock.move(hours(72));
      world.answer = () => refusal('network_error');
      await comeBack();
      await world.clock.move(hours(0.9));
      should(world.ends).eql([]);
      await world.clock.move(hours(0.2));
      should(world.ends).eql([[1, 'expired']]);
    });

    it('end with the answer even if the machine slept while it was on its way', async () => {
      const world = new World();
      await world.add(ann, short);
      await world.add(bob);
      const { opened, open } = gate();
      await world.clock.move(seconds(95));
      world.gate = opened;
      // Its last poll has left, and time passes without it.
      world.slowness = () => 0;
      await world.clock.move(seconds(20));
      world.shift += hours(2);
      await world.clock.move(seconds(70));
      world.told.should.eql([]);
      open();
      world.slowness = undefined;
      await world.clock.move(seconds(30));
      world.ends.should.eql([[0, 'expired']]);
    });

    it('share it: one poll for all that end together, and only one that started after the end decides', async () => {
      const world = new World();
      await world.accept(...range(40).map(() => world.wait(ann, short)));
      await world.clock.move(seconds(99));
      const { opened, open } = gate();
      const before = world.polls.length;
      world.gate = opened;
      await world.clock.move(seconds(2));
      open();
      await world.clock.move(seconds(10));
      world.told.length.should.equal(40);
      (world.polls.length - before).should.be.within(1, 2);
    });
  });

  describe('that are not saved yet', () => {
    it('are not skipped, however long that takes', async () => {
      const world = new World();
      await world.add(bob);
      await world.clock.move(1);
      const { opened, open } = gate();
      world.store.gate = opened;
      const accepting = world.accept(world.wait(ann));
      world.slowness = () => 0;
      await world.clock.move(seconds(20));
      open();
      await accepting;
      world.slowness = undefined;
      await world.clock.move(1);
      world.times(ann).length.should.equal(1);
      await world.clock.move(seconds(61));
      world.times(ann).length.should.equal(3);
    });

    it('and started some time ago are polled immediately', async () => {
      const world = new World();
      await world.add(bob);
      await world.clock.move(seconds(10));
      await world.accept({ ...world.wait(ann), start: begin });
      await world.clock.move(1);
      world.times(ann).should.eql([seconds(10)]);
      await world.clock.move(hours(25));
      world.times(ann).length.should.equal(298);
    });

    it(`and started some time ago are polled immediately, each once, however many they are (${many})`, async () => {
      const world = new World();
      await world.add(bob);
      await world.clock.move(seconds(10));
      const { opened, open } = gate();
      world.gate = opened;
      const late = range(many).map((n) => ({
        ...world.wait(`+1202556${n.toString()}`),
        start: begin - seconds(15),
      }));
      for (const from of range(many / 500)) await world.accept(...late.slice(500 * from, 500 * from + 500));
      open();
      await world.clock.move(seconds(1));
      world.polls.length.should.equal(1 + many);
      new Set(world.polls.map(({ of }) => of)).size.should.equal(1 + many);
    });
  });

  describe('continue', () => {
    it('when timers fire late, by more and more or by less and less: no poll is missed', async () => {
      for (const delay of [1, 7, 40].flatMap((most) => [
        (n: number) => n % most,
        (n: number) => most - (n % most),
      ])) {
        const world = new World();
        let n = 0;
        world.delay = () => delay(n++);
        await world.add(ann);
        await world.clock.move(hours(25));
        world.times(ann).length.should.equal(298);
        world.ends.should.eql([[0, 'expired']]);
      }
    });

    it('after restarts, by their original start, without an extra poll', async () => {
      const world = new World();
      await world.add(ann);
      for (let n = 0; n < 24; n++) {
        await world.clock.move(hours(1) - seconds(100));
        await world.restart();
        await world.clock.move(seconds(100));
      }
      await world.clock.move(hours(1));
      world.polls.length.should.equal(298);
      world.ends.should.eql([[0, 'expired']]);
      world.told[0]?.at.should.be.within(hours(24), hours(24) + seconds(30));
    });

    it('after a restart just before a poll, without waiting for a tick', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(75));
      const [, second = 0, third = 0] = world.times(ann);
      third.should.equal(second + seconds(30));
      await world.clock.move(second + seconds(60) - 100 - world.elapsed);
      await world.restart();
      await world.clock.move(seconds(5));
      world.times(ann)[3]?.should.equal(second + seconds(60));
    });

    it('after three days off: what expired ends within an interval, with one last poll each', async () => {
      const world = new World();
      await world.accept(world.wait(ann), world.wait(bob));
      await world.clock.move(seconds(10));
      world.kill();
      await world.clock.move(hours(72));
      world.polls.length = 0;
      world.answer = (of) => (of === ann ? 'accepted' : 'pending');
      await world.restart();
      await world.clock.move(seconds(31));
      world.told
        .map(({ end }) => end)
        .sort()
        .should.eql(['accepted', 'expired']);
      world.polls.length.should.equal(2);
      (await world.left()).should.equal(0);
    });

    it('after faults of the store', async () => {
      const world = new World();
      await world.add(ann);
      const { store } = world;
      const keys = store.keys.bind(store);
      await world.clock.move(seconds(1));
      world.polls.length = 0;
      store.keys = () => Promise.reject(new Error('away'));
      await world.clock.move(seconds(100));
      const during = world.polls.length;
      during.should.be.belowOrEqual(1);
      store.keys = keys;
      await world.clock.move(seconds(31));
      world.polls.length.should.be.within(during + 1, during + 2);
    });

    for (const [what, before] of [
      ['what a look has seen', 0],
      ['the move of a look', seconds(20)],
    ] as const)
      it(`after another process had the store, and ${what} was not saved`, async () => {
        const world = new World();
        const faults: unknown[] = [];
        world.fault = (fault) => faults.push(fault);
        const { store } = world;
        const { write } = store;
        await world.add(ann);
        await world.clock.move(before);
        store.write = () => Promise.reject(new TakenOver(false));
        await world.clock.move(seconds(35));
        should(faults.length).be.above(0);
        store.write = write;
        await world.clock.move(hours(25));
        world.ends.should.eql([[0, 'expired']]);
      });

    it('after a stop and a start at the same moment, each polled as before', async () => {
      const world = new World();
      await world.accept(...range(5).map((n) => world.wait(numberOf(n))));
      for (let n = 0; n < 10; n++) {
        await world.clock.move(seconds(30));
        await world.close();
        await world.restart();
      }
      await world.clock.move(hours(25));
      for (const n of range(5)) world.times(numberOf(n)).length.should.equal(298);
    });

    it('and a stop leaves what is in flight to the next start', async () => {
      const world = new World();
      await world.add(ann);
      const { opened, open } = gate();
      world.gate = opened;
      world.answer = () => 'accepted';
      await world.clock.move(seconds(4));
      world.kill();
      open();
      await nextIteration();
      world.told.should.eql([]);
      await world.restart();
      await world.clock.move(seconds(31));
      world.ends.should.eql([[0, 'accepted']]);
    });
  });

  describe('and clocks that jump', () => {
    for (const [name, jump] of [
      ['hours ahead', hours(3) + seconds(137)],
      ['hours back', -hours(2)],
      ['years back', -hours(24 * 365 * 3)],
    ] as const) {
      it(`${name}: all continue within their interval, and none expires`, async () => {
        const world = new World();
        await world.accept(...range(50).map((n) => world.wait(numberOf(n))));
        await world.clock.move(hours(1));
        world.polls.length = 0;
        world.shift += jump;
        await world.clock.move(seconds(395));
        new Set(world.polls.map(({ of }) => of)).size.should.equal(50);
        world.polls.length.should.be.below(130);
        world.told.should.eql([]);
        await world.add(ann);
        await world.clock.move(seconds(63));
        world.times(ann).length.should.equal(3);
      });
    }
  });
});

describe('waits that expired while nothing was running', () => {
  it('get one last poll per interval each while nobody answers, however many there are', async () => {
    const world = new World();
    const count = 40;
    const phones = Array.from({ length: count }, (_, n) => `+1303${String(n).padStart(7, '0')}`);
    for (const phone of phones) {
      await world.add(phone);
      await world.clock.move(seconds(7));
    }
    world.answer = () => refusal('network_error');
    // A weekend, as far as anybody can tell.
    world.kill();
    world.shift = hours(60);
    await world.restart();
    world.polls.length = 0;
    const turns = 4;
    await world.clock.move(seconds(300 * turns));
    for (const phone of phones) should(world.times(phone).length).be.within(turns - 1, turns + 2, phone);
    world.answer = () => 'pending';
    await world.clock.move(seconds(600));
    should(world.told.length).equal(count);
    world.kill();
  });

  it('all end in the interval after the service answers again, however many pages of them there are', async () => {
    const world = new World();
    await world.accept(...range(100).map((n) => world.wait(numberOf(n), short)));
    world.kill();
    world.shift = hours(1);
    world.answer = () => refusal('network_error');
    await world.restart();
    await world.clock.move(seconds(1));
    should(new Set(world.polls.map(({ of }) => of)).size).equal(100);
    world.answer = () => 'pending';
    await world.clock.move(seconds(11));
    should(world.told.length).equal(100);
    world.kill();
  });
});
