import fc from 'fast-check';
import should from 'should';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { allowedFrom, isOpen, spreadFrom, zonesOfNumber } from '../../../lib/guards/text-hours';
import zoneTable from '../../../lib/guards/zone-table.json';
import { minutesOf } from '../../../lib/runtime/dates';
import type { EnvironmentSettings } from '../../../lib/runtime/environment';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { startSimulator, type Simulator } from '../../../simulator';
import { alsoClose, closeAll } from '../../support/closing';
import { type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { andOften, howOften, isLong } from '../../support/extent';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { requestFolder, sendFolder } from '../../support/texting/setup';
import { environmentAt } from '../../support/guards/setup';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const federal = { from: 8 * 60, until: 21 * 60 };

/** What a clock on the wall shows, computed in a different way than the product does. */
const wallTime = (zone: string, at: number): string => {
  const clock =
    clocks.get(zone) ??
    new Intl.DateTimeFormat('sv-SE', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
  clocks.set(zone, clock);
  return clock.format(at);
};
const clocks = new Map<string, Intl.DateTimeFormat>();

describe('the hours of a number', () => {
  const zones: [what: string, phone: string, zones: readonly string[] | undefined][] = [
    ['by area code', '+12025550113', ['America/New_York']],
    ['in Canada', '+16045550101', ['America/Vancouver']],
    ['in the Caribbean', '+18765550101', ['America/Jamaica']],
    ['by country', '+33612345678', ['Europe/Paris']],
    ['toll-free', '+18005550113', undefined],
    ['toll-free in Germany', '+498001234567', undefined],
    ['personal in the USA', '+15005550113', undefined],
    ['personal in the United Kingdom', '+447011123456', undefined],
    ['of an area code that is not listed', '+12995550113', undefined],
    ['of no country', '+88213123456', undefined],
  ];
  for (const [what, phone, expected] of zones)
    it(`are those of its zones: ${what}`, () => {
      should(zonesOfNumber(phone)).deepEqual(expected);
    });

  it('are those of all its zones together, or unknown if they overlap by less than an hour', () => {
    const alaska = zonesOfNumber('+19075550101') ?? [];
    should(alaska.length).above(1);
    const at = Date.UTC(2027, 5, 1, 15);
    const open = allowedFrom(federal, { phone: '+19075550101', fallback: '' }, at) ?? 0;
    for (const zone of alaska) should(wallTime(zone, open) >= '08:00').be.true();
    const short = { from: 8 * 60, until: 9 * 60 };
    should(allowedFrom(short, { phone: '+19075550101', fallback: '' }, at)).be.undefined();
    const fallback = allowedFrom(short, { phone: '+19075550101', fallback: 'America/Chicago' }, at) ?? 0;
    should(wallTime('America/Chicago', fallback)).equal('08:00');
  });

  it('are read as times of day', () => {
    should(['08:00', '23:59', '00:00', '9', '9:30', '20'].map(minutesOf)).deepEqual([
      480, 1439, 0, 540, 570, 1200,
    ]);
    should(['24', '24:00', '9:5', '9-17', '9 am', '12:60', '', 'noon'].map(minutesOf)).deepEqual(
      Array(8).fill(undefined),
    );
  });

  it(`start at the first minute that all zones allow, even on days when daylight saving changes${andOften}`, () => {
    const phones = fc.constantFrom(
      '+12025550113',
      '+19075550101',
      '+12195550101',
      '+33612345678',
      '+447911123456',
      '+61412345678',
    );
    // The clocks change within a day of these in America, Europe and Australia.
    const days = fc.constantFrom(
      Date.UTC(2027, 2, 14),
      Date.UTC(2027, 10, 7),
      Date.UTC(2027, 2, 28),
      Date.UTC(2027, 9, 31),
      Date.UTC(2027, 3, 4),
      Date.UTC(2027, 9, 3),
      Date.UTC(2027, 6, 1),
    );
    const hours = fc.constantFrom(
      federal,
      { from: 480, until: 1200 },
      { from: 20 * 60, until: 120 },
      { from: 150, until: 540 },
    );
    fc.assert(
      fc.property(
        phones,
        days,
        fc.integer({ min: -day, max: 2 * day }),
        hours,
        (phone, date, offset, window) => {
          const at = date + offset;
          const own = zonesOfNumber(phone) ?? [];
          const opening = allowedFrom(window, { phone, fallback: own[0] ?? '' }, at);
          if (opening === undefined) return;
          should(isOpen(window, own, opening) || isOpen(window, own.slice(0, 1), opening)).be.true();
          const used = isOpen(window, own, opening) ? own : own.slice(0, 1);
          if (opening > at && used === own)
            for (let time = Math.floor(at / minute) * minute + minute; time < opening; time += minute)
              should(isOpen(window, own, time)).be.false();
          const spread = spreadFrom(window, { phone, fallback: own[0] ?? '' }, opening);
          should(spread - opening).within(0, 15 * minute);
          should(isOpen(window, used, spread)).be.true();
        },
      ),
      { numRuns: howOften(150) },
    );
  });

  it('are used from their start if they are shorter than what held texts are spread over', () => {
    const opening = Date.UTC(2027, 0, 4, 8);
    const short = { from: 8 * 60, until: 8 * 60 + 1, outside: 'hold' } as const;
    for (let last = 0; last < 10; last++)
      should(
        spreadFrom(short, { phone: `+4930123450${String(last)}`, timeZone: 'UTC', fallback: '' }, opening),
      ).within(opening, opening + minute - 1);
  });
});

describe('text hours', () => {
  let simulator: Simulator;
  let store: Store;
  let environment: TestEnvironment;
  /** Six in the evening in New York. */
  const evening = Date.UTC(2027, 0, 4, 23);

  const start = async (now: number): Promise<void> => {
    simulator = alsoClose(await startSimulator({ clock: new MovableClock(() => now) }));
    store = createMemoryStore();
  };
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const environmentWith = (settings: Partial<EnvironmentSettings>): TestEnvironment =>
    (environment = environmentAt(simulator, { store, settings }));

  const folders = [sendFolder, requestFolder];
  const load = (
    outside: 'hold' | 'fail',
    config: Readonly<Record<string, unknown>> = {},
    settings: Partial<EnvironmentSettings> = {},
  ): Promise<Flow> =>
    Flow.load({
      folders,
      environment: environmentWith({ textHours: { ...federal, outside }, ...settings }),
      nodes: [{ id: 'node', type: 'advisor-send-text', ...config }],
    });
  const texts = () => simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'sendMessage');

  const { consented } = numbers;

  it('fail a text outside them, and say when it may be sent', async () => {
    await start(evening + 4 * hour);
    const flow = await load('fail');
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi' }));
    should(errorOf(msg)).containEql({ code: 'quiet_hours', notBefore: Date.UTC(2027, 0, 5, 13) });
    const [own] = await flow.ask({ phone: consented, text: 'Hi', timeZone: 'America/Los_Angeles' });
    should(own?.port).equal(0);
    const list = [
      { phone: consented, TimeZone: 'Asia/Tokyo' },
      { phone: '+12025550199', timeZone: 'nowhere' },
    ];
    const arrived = inOrder(await flow.ask({ phone: list, text: 'Hi again' }, 2));
    should(arrived[0]?.port).equal(0);
    should(errorOf(arrived[1]?.msg ?? {}).code).equal('invalid_input');
    const [unknown] = await flow.ask({ phone: '+18005550113', text: 'Hi' });
    should(errorOf(unknown?.msg ?? {})).containEql({ code: 'invalid_input' });
    should(texts().length).equal(2);
  });

  it('show in the status what was sent, and what is held, until when and in which zone', async () => {
    await start(evening);
    const flow = await load('hold');
    const shows = async (text: RegExp): Promise<void> => {
      while (!text.test(flow.statuses.at(-1)?.text ?? '')) await nextIteration();
    };
    await flow.ask({ phone: [consented, 'nobody', '+442079460018'], text: 'Hi' }, 2);
    await shows(/1 sent, 1 failed, 1 held until/);
    await flow.ask({ phone: consented, text: 'Hi again' });
    await shows(/sent.*, 1 held until/);
    flow.send({ phone: '+442079460019', text: 'Hi' });
    await shows(/2 held, next .*:\d\d UTC$/);
    await flow.ask({ phone: '+442079460019', reset: true });
    await shows(/1 held until/);
    await flow.ask({ reset: true });
    await shows(/^(?!.*held)/);
  });

  it('hold a text until they start, spread over a quarter of an hour, even over a restart', async () => {
    await start(evening + 4 * hour);
    const flow = await load('hold');
    const phone = Array.from({ length: 40 }, (_, index) => `+120255501${(10 + index).toString()}`);
    flow.send({ phone, text: 'Hi' });
    await simulator.clock.move(hour);
    should(texts().length).equal(0);
    should(flow.statuses.at(-1)?.text).match(/held/);
    await Flow.unload();
    const again = await load('hold');
    await simulator.clock.move(9 * hour - 1);
    should(texts().length).equal(0);
    const left = again.arrivals.next(40);
    await simulator.clock.move(15 * minute);
    const arrived = await left;
    const times = texts().map(({ at }) => wallTime('America/New_York', at));
    should(times.length).equal(40);
    should(times.every((time) => time >= '08:00' && time < '08:15')).be.true();
    should(new Set(times).size).above(5);
    const summaries = arrived.flatMap(({ msg }) => msg.summary ?? []) as { total: number }[];
    should(summaries.map(({ total }) => total)).deepEqual([40]);
  });

  it('let msg.reset cancel what is held, and reject it once its number is blocked', async () => {
    await start(evening + 4 * hour);
    const flow = await load('hold');
    const [one, other] = ['+12025550121', '+12025550122'];
    flow.send({ phone: [one, other], text: 'Hi' });
    await simulator.clock.move(minute);
    const cancelled = only(await flow.ask({ reset: true, phone: one }));
    should(errorOf(cancelled.msg).code).equal('cancelled');
    const left = flow.arrivals.next(1);
    await (await doNotTextOf(environment)).block(other, null, 0);
    should(errorOf(only(await left).msg).code).equal('blocked');
    await simulator.clock.move(day);
    should(texts().length).equal(0);
  });

  it('hold nothing too long: what could not be sent in time is stale', async () => {
    await start(evening + 4 * hour);
    const flow = await load('hold');
    flow.send({ phone: consented, text: 'Hi' });
    await simulator.clock.move(minute);
    await Flow.unload();
    await simulator.clock.move(12 * hour);
    const again = await load('hold');
    const { code, message } = errorOf(only(await again.arrivals.next(1)).msg);
    should(code).equal('stale');
    should(message).match(/^This was not carried out because Node-RED or this node was not running /);
    should(texts().length).equal(0);
  });

  it('move the delivery date of a scheduled text at the service, and the payload says so', async () => {
    await start(evening);
    const schedule = { schedule: 'at', deliveryDate: 'deliveryDate', deliveryDateType: 'msg' };
    const flow = await load('hold', schedule);
    const asked = Date.UTC(2027, 0, 6, 3);
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', deliveryDate: asked }));
    const { deliveryDate, movedFrom } = msg.payload as { deliveryDate: number; movedFrom: number };
    should(movedFrom).equal(asked);
    should(wallTime('America/New_York', deliveryDate)).match(/^08:(0\d|1[0-4])$/);
    const { messages } = simulator.state().phones.find(({ phone }) => phone === consented) ?? {};
    should(messages?.map(({ scheduledFor }) => scheduledFor)).deepEqual([deliveryDate]);
    const within = Date.UTC(2027, 0, 6, 18);
    const plain = only(await flow.ask({ phone: consented, text: 'Hi', deliveryDate: within }));
    should(plain.msg.payload).containEql({ deliveryDate: within });
    should(plain.msg.payload).not.have.property('movedFrom');
  });

  it('move a scheduled text again that has waited beyond its delivery date: the service may send it at once', async () => {
    // Ten minutes before nine, when the hours end.
    await start(evening + 2 * hour + 50 * minute);
    const schedule = { schedule: 'at', deliveryDate: 'deliveryDate', deliveryDateType: 'msg' };
    const flow = await load('hold', schedule);
    const asked = simulator.clock.now() + 5 * minute;
    const client = await environment.client();
    client.limits.pause(15 * minute);
    const coming = flow.ask({ phone: consented, text: 'Hi', deliveryDate: asked });
    await simulator.clock.move(16 * minute);
    const { deliveryDate, movedFrom } = only(await coming).msg.payload as Record<string, number>;
    should(movedFrom).equal(asked);
    should(wallTime('America/New_York', deliveryDate ?? 0)).match(/^08:(0\d|1[0-4])$/);
    should(texts()).have.length(1);
  });

  it('hold consent requests too, and nothing of a node that may text at any time', async () => {
    await start(evening + 4 * hour);
    const flow = await Flow.load({
      folders,
      environment: environmentWith({ textHours: { ...federal, outside: 'fail' } }),
      nodes: [
        { id: 'ask', type: 'advisor-request-consent' },
        { id: 'at-any', type: 'advisor-send-text', hours: 'any' },
      ],
    });
    should(errorOf(only(await flow.ask({ phone: consented })).msg).code).equal('quiet_hours');
    const left = flow.arrivals.next(1);
    flow.send({ phone: consented, text: 'Hi' }, 'at-any');
    should(only(await left).port).equal(0);
  });

  it('show in a dry run until when a text would be held', async () => {
    await start(evening + 4 * hour);
    const flow = await load('hold');
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', dryRun: true }));
    const { notBefore } = msg.payload as { notBefore: number };
    should(wallTime('America/New_York', notBefore)).match(/^08:(0\d|1[0-4])$/);
    should(texts().length).equal(0);
  });

  const knownZones = (phone: string | null): readonly string[] => {
    const zones = zonesOfNumber(phone ?? '') ?? [];
    should(zones).not.be.empty();
    return zones;
  };

  /** A number of each +1 area code with new zones, and of each country. */
  const everywhere = (): string[] => {
    const seen = new Set<string>();
    const phones = Object.values(zoneTable).flatMap((prefixes) =>
      prefixes
        .split(' ')
        .map((prefix) => `+${prefix}${prefix.length === 4 ? '5550123' : '5550123456'.slice(0, 9)}`),
    );
    return phones.filter((phone) => {
      const zones = zonesOfNumber(phone)?.join(' ');
      if (zones === undefined || seen.has(zones)) return false;
      seen.add(zones);
      // If the zones overlap by less than an hour, nobody is texted without the environment's zone.
      return [Date.UTC(2027, 2, 13), Date.UTC(2027, 10, 6)].every(
        (at) => allowedFrom(federal, { phone, fallback: '' }, at) !== undefined,
      );
    });
  };

  const changes = [
    ['begins', Date.UTC(2027, 2, 13)],
    ['ends', Date.UTC(2027, 10, 6)],
  ] as const;
  for (const [which, saturday] of isLong ? changes : changes.slice(0, 1))
    it(`are respected in every zone of every area code and country while daylight saving ${which}`, async function () {
      this.timeout(120_000);
      await start(saturday);
      simulator.change({ consentRequired: false });
      const flow = await load('hold', {}, { maxConcurrent: 64 });
      const phone = everywhere();
      should(phone.length).above(100);
      let sent = 0;
      for (let round = 0; round < 4; round++) {
        sent += phone.length;
        flow.send({ phone, text: `round ${round.toString()}` });
        await simulator.clock.move(10 * hour + 20 * minute);
      }
      const left = flow.arrivals.next(sent);
      await simulator.clock.move(2 * day);
      should((await left).every(({ port }) => port === 0)).be.true();
      should(texts().length).equal(sent);
      for (const { at, phone: to } of texts())
        for (const zone of knownZones(to)) {
          const time = wallTime(zone, at);
          should(time >= '08:00' && time < '21:00').be.true(`${to ?? ''} at ${time} in ${zone}`);
        }
    });

  it('are respected: whenever texts come, nobody receives one outside them', async function () {
    this.timeout(120_000);
    await start(Date.UTC(2027, 2, 12));
    const flow = await load('hold');
    const phones = fc.constantFrom(
      '+12025550113',
      '+19075550101',
      '+12195550101',
      '+13105550101',
      '+18085550101',
    );
    let left = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(phones, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 9 * 60 }),
        async (phone, wait) => {
          left += phone.length;
          flow.send({ phone, text: `at ${left.toString()}` });
          await simulator.clock.move(wait * minute);
        },
      ),
      { numRuns: 40 },
    );
    await simulator.clock.move(2 * day);
    should(texts().length).above(20);
    for (const { at, phone } of texts())
      for (const zone of knownZones(phone)) {
        const time = wallTime(zone, at);
        should(time >= '08:00' && time < '21:00').be.true(`${phone ?? ''} at ${time} in ${zone}`);
      }
  });
});
