import should from 'should';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { spreadFrom } from '../../../lib/guards/text-hours';
import { MovableClock } from '../../../simulator/movable-clock';
import { wordsIn } from '../../../lib/runtime/language';
import { activityOf } from '../../../lib/runtime/activity';
import { systemLanguage } from '../../../lib/runtime/red';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, key, type Store } from '../../../lib/state/store';
import { invalidInput } from '../../../lib/runtime/errors';
import { datesOf, deliveryOf, onTheWire } from '../../../nodes/send-text/schedule';
import { startSimulator, type LedgerEntry, type Simulator } from '../../../simulator';
import { alsoClose, closeAll } from '../../support/closing';
import type { TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived } from '../../support/flow';
import { hour } from '../../../lib/durations';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { until } from '../../support/until';
import {
  ask,
  consented,
  environmentAt as environmentOver,
  folders,
  hold,
  unasked,
  night,
  request,
  send,
} from '../../support/guards/setup';
import { overStore } from '../../support/state/over-store';

const awake = 'Pacific/Honolulu';
const federal = { from: 8 * 60, until: 21 * 60 };
const withKey = { ...send, onceKey: 'order', onceKeyType: 'msg' };

describe('a text held until its text hours', () => {
  let store: Store;

  beforeEach(() => {
    store = createMemoryStore();
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const service = async (at = night): Promise<Simulator> =>
    alsoClose(await startSimulator({ clock: new MovableClock(() => at) }));
  const environmentAt = (simulator: Simulator, settings: object = hold): TestEnvironment =>
    environmentOver(simulator, { store, settings });
  const load = (
    environment: TestEnvironment | undefined,
    ...nodes: { readonly id: string; readonly type: string }[]
  ): Promise<Flow> => Flow.load({ folders, ...(environment && { environment }), nodes });
  const received = (simulator: Simulator, endpoint = 'sendMessage'): LedgerEntry[] =>
    simulator.ledger.entries().filter((entry) => entry.endpoint === endpoint);
  const heldCount = async (environment: TestEnvironment): Promise<number> => {
    const { data } = await activityOf(environment).queue({ page: 1, pageSize: 100, state: 'held' });
    return data.length;
  };
  const areHeld = async (environment: TestEnvironment, count: number): Promise<void> => {
    while ((await heldCount(environment)) < count) await nextIteration();
  };
  const codeOf = ({ port, msg }: Arrived): unknown => (port === 1 ? errorOf(msg).code : port);

  it('is cancelled when its environment is pointed elsewhere, and releases its key', async () => {
    const first = await service();
    const other = await service();
    const before = environmentAt(first);
    const flow = await load(before, withKey);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    await areHeld(before, 1);
    await Flow.unload();

    const moved = await load(environmentAt(other), withKey);
    should(codeOf(only(await moved.arrivals.next()))).equal('cancelled');
    await Flow.unload();
    should(received(other)).be.empty();

    const back = await load(environmentAt(first), withKey);
    const again = await ask(back, { phone: consented, text: 'Hi', order: 7, timeZone: awake }, 'send');
    should(again.port).equal(0);
    should(again.msg.payload).not.have.property('alreadySent');
    should(received(first)).have.length(1);
  });

  it('stays while its environment is removed or disabled, and leaves in its hours once that is back', async () => {
    const simulator = await service();
    const before = environmentAt(simulator);
    const flow = await load(before, send);
    flow.send({ phone: consented, text: 'Hi' });
    await areHeld(before, 1);
    await Flow.unload();

    const without = await load(undefined, send);
    while (!without.statuses.some(({ fill }) => fill === 'red')) await nextIteration();
    await simulator.clock.move(5 * hour);
    should(without.arrivals.all).be.empty();
    await Flow.unload();

    const environment = environmentAt(simulator);
    const back = await load(environment, send);
    await areHeld(environment, 1);
    const coming = back.arrivals.next();
    await simulator.clock.move(6 * hour);
    should(only(await coming).port).equal(0);
    should(received(simulator)).have.length(1);
  });

  it('is not sent by an environment whose hours have become invalid', async () => {
    const simulator = await service();
    const before = environmentAt(simulator);
    const flow = await load(before, send);
    flow.send({ phone: consented, text: 'Hi' });
    await areHeld(before, 1);
    await Flow.unload();
    const spoilt = { ...environmentAt(simulator, {}), fault: invalidInput('setting_hours') };
    const after = await load(spoilt, send, { id: 'block', type: 'advisor-do-not-text' });
    // Blocking a number works whatever setting needs fixing.
    should((await ask(after, { phone: unasked }, 'block')).port).equal(0);
    const coming = after.arrivals.next();
    await simulator.clock.move(12 * hour);
    should(codeOf(only(await coming))).equal('invalid_input');
    should(received(simulator)).be.empty();
  });

  it('is rejected in each of two lists, and in each node, when somebody in both is blocked', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, send, { ...send, id: 'other' }, request);
    const lists = [
      [consented, '+12025550121'],
      ['+12025550122', consented],
    ];
    for (const [index, phone] of lists.entries())
      flow.send({ phone, text: `Hi ${index.toString()}`, list: index }, 'send');
    flow.send({ phone: [consented], text: 'Hi' }, 'other');
    flow.send({ phone: consented }, 'request');
    await areHeld(environment, 6);
    const blocked = flow.arrivals.next(4);
    await (await doNotTextOf(environment)).block(consented, null, 0);
    should((await blocked).map(codeOf)).deepEqual(Array(4).fill('blocked'));
    const rest = flow.arrivals.next(2);
    await simulator.clock.move(12 * hour);
    should((await rest).map(({ msg }) => (msg.summary as { failed: number }).failed)).deepEqual([1, 1]);
    should(received(simulator).some(({ phone }) => phone === consented)).be.false();
    should(received(simulator, 'requestConsent')).be.empty();
  });

  it('releases its key when its number is blocked', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, withKey);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    await areHeld(environment, 1);
    const refused = flow.arrivals.next();
    const list = await doNotTextOf(environment);
    await list.block(consented, null, 0);
    should(codeOf(only(await refused))).equal('blocked');
    await list.unblock(consented);
    const { port } = await ask(flow, { phone: consented, text: 'Hi', order: 7, timeZone: awake }, 'send');
    should(port).equal(0);
  });

  it('takes a repeat along immediately when it is cancelled alone', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, { ...withKey, onceFor: 1 } as typeof send);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    await areHeld(environment, 1);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    flow.send({ phone: consented, text: 'Hi', order: 8 });
    await areHeld(environment, 3);
    const activity = activityOf(environment);
    const { data } = await activity.queue({ page: 1, pageSize: 1 });
    const cancelled = flow.arrivals.next(2);
    await activity.cancel(data[0]?.id ?? '');
    should((await cancelled).map(codeOf)).deepEqual(['cancelled', 'cancelled']);
    const last = flow.arrivals.next();
    await simulator.clock.move(12 * hour);
    should(only(await last).port).equal(0);
    should(received(simulator)).have.length(1);
  });

  it('leaves in its hours even if a day passes at once and the disk is slow, and the status says when', async () => {
    const slowly = async <T>(result: Promise<T>): Promise<T> => {
      for (let turns = 0; turns < 30; turns++) await nextIteration();
      return result;
    };
    const fast = store;
    store = overStore(fast, {
      get: (table, key) => slowly(fast.get(table, key)),
      write: (operations, conditions) => slowly(fast.write(operations, conditions)),
    });
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, withKey);
    const left = flow.arrivals.next();
    flow.send({ phone: consented, text: 'Hi', order: 'A' }, 'send');
    await areHeld(environment, 1);
    await simulator.clock.move(24 * hour);
    should(only(await left).port).equal(0);
    const opening = Date.UTC(2027, 0, 5, 13);
    const { at } = only(received(simulator));
    should(at).be.within(opening, opening + hour / 4);
    const time = wordsIn(systemLanguage({})).time(at, simulator.clock.now());
    const shown = await until(() => flow.statuses.findLast(({ text }) => text.includes('sent')));
    should(shown.text).endWith(`sent ${time}`);
  });

  it('completes its list when it leaves, long after the others', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, send);
    flow.send({ phone: [{ phone: consented, timeZone: awake }, unasked], text: 'Hi' });
    await flow.arrivals.next();
    await areHeld(environment, 1);
    // The other has been emitted, and nothing of the list is in memory.
    while ((await store.count('work', key('counts'), endOf(key('counts')))) === 0) await nextIteration();
    should(flow.settled).be.empty();
    await simulator.clock.move(24 * hour);
    await flow.arrivals.next();
    const [completed] = await flow.completed.next();
    should(completed?.['summary']).containEql({ total: 2, sent: 1 });
  });

  it('is held over the day if the hours span midnight', async () => {
    const simulator = await service(Date.UTC(2027, 0, 5, 17));
    const overnight = { textHours: { from: 20 * 60, until: 6 * 60, outside: 'hold' as const } };
    const environment = environmentAt(simulator, overnight);
    const flow = await load(environment, send);
    flow.send({ phone: consented, text: 'Hi' });
    await areHeld(environment, 1);
    const coming = flow.arrivals.next();
    await simulator.clock.move(9 * hour);
    only(await coming);
    const opening = Date.UTC(2027, 0, 6, 1);
    should(received(simulator)[0]?.at).within(opening, opening + hour / 4);
    // After midnight, the hours of the day before continue.
    await simulator.clock.move(Date.UTC(2027, 0, 6, 10, 59) - simulator.clock.now());
    should((await ask(flow, { phone: consented, text: 'Late' }, 'send')).port).equal(0);
    await simulator.clock.move(60_000);
    flow.send({ phone: consented, text: 'Too late' });
    await areHeld(environment, 1);
    should(received(simulator)).have.length(2);
  });

  it('may be a text that returned with consent, which is sent once by its key', async () => {
    const simulator = await service(night - 2 * hour);
    const environment = environmentAt(simulator);
    const flow = await load(environment, withKey, request);
    const { msg } = await ask(flow, { phone: unasked, text: 'Hi', order: 7 }, 'send');
    should(msg.resend).containEql({ onceKey: '7' });
    await ask(flow, { phone: unasked }, 'request');
    simulator.accept(unasked);
    await simulator.clock.move(2 * hour);
    const before = received(simulator).length;
    const { resend } = msg;
    flow.send({ ...msg, resend: { ...(resend as object) } }, 'send');
    flow.send({ ...msg, resend: { ...(resend as object) } }, 'send');
    await areHeld(environment, 2);
    const coming = flow.arrivals.next(2);
    await simulator.clock.move(12 * hour);
    const payloads = (await coming).map(({ msg: left }) => left.payload as { alreadySent?: true });
    should(payloads.map(({ alreadySent }) => alreadySent).sort()).deepEqual([true, undefined]);
    should(received(simulator).length - before).equal(1);
  });

  it('shows in a dry run of a repeat, which would leave as sent before', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, withKey);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    await areHeld(environment, 1);
    const { msg } = await ask(flow, { phone: consented, text: 'Hi', order: 7, dryRun: true }, 'send');
    should(msg.payload).containEql({ alreadySent: true, dryRun: true });
    should(msg.payload).have.property('notBefore');
  });

  it('is predicted by a dry run of a consent request, and so are blocked numbers and quiet hours', async () => {
    const simulator = await service();
    const environment = environmentAt(simulator);
    const flow = await load(environment, request);
    const dry = (phone: string): Promise<Arrived> => ask(flow, { phone, dryRun: true }, 'request');
    const { port, msg } = await dry(unasked);
    should(port).equal(0);
    const opening = Date.UTC(2027, 0, 5, 13);
    should((msg.payload as { notBefore: number }).notBefore).within(opening, opening + hour / 4);
    await (await doNotTextOf(environment)).block(consented, null, 0);
    should(errorOf((await dry(consented)).msg)).containEql({ code: 'blocked', dryRun: true });
    await Flow.unload();
    const strict = environmentAt(simulator, { textHours: { ...federal, outside: 'fail' } });
    const failing = await load(strict, request);
    const refused = await ask(failing, { phone: unasked, dryRun: true }, 'request');
    should(errorOf(refused.msg)).containEql({ code: 'quiet_hours', dryRun: true });
    should((await activityOf(strict).failures({ page: 1, pageSize: 50 })).data).be.empty();
    should(received(simulator, 'requestConsent')).be.empty();
  });

  it('shows the moved delivery date in the payload and at the service, in any unit', () => {
    const asked = Date.UTC(2027, 0, 6, 3);
    const opening = Date.UTC(2027, 0, 6, 13);
    for (const phone of [consented, unasked, '+12025550137', '+12025550155']) {
      const movedTo = spreadFrom(federal, { phone, fallback: '' }, opening);
      for (const deliveryDateUnit of ['ms', 's'] as const) {
        const settings = { deliveryDateUnit, timeZone: '' };
        const delivery = deliveryOf(asked, undefined, settings, 0);
        const sent = onTheWire(delivery, movedTo, settings).deliveryDate;
        const deliveryDate = deliveryDateUnit === 's' ? sent * 1000 : sent;
        should(datesOf(delivery, movedTo)).deepEqual({ deliveryDate, movedFrom: asked });
      }
    }
  });
});
