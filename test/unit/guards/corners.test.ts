import should from 'should';
import { pendingIn } from '../../../lib/outbox/queue-reader';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { startSimulator, type LedgerEntry, type Simulator } from '../../../simulator';
import type { Message } from '../../../lib/runtime/red';
import { alsoClose, closeAll } from '../../support/closing';
import type { TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { hour } from '../../../lib/durations';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import {
  ask,
  block,
  consented,
  environmentAt,
  folders,
  hold,
  unasked,
  night,
  request,
  send,
} from '../../support/guards/setup';

const noon = Date.UTC(2027, 0, 4, 17);

describe('guards that meet', () => {
  let simulator: Simulator;
  let store: Store;
  let environment: TestEnvironment;

  const begin = async (at: number, settings = {}, in_: Store = createMemoryStore()): Promise<void> => {
    simulator = alsoClose(await startSimulator({ clock: new MovableClock(() => at) }));
    store = in_;
    makeEnvironment(settings);
  };
  const makeEnvironment = (settings: object, client = {}): void => {
    environment = environmentAt(simulator, { store, settings, client });
  };
  const load = (...nodes: { id: string; type: string }[]): Promise<Flow> =>
    Flow.load({ folders, environment, nodes });
  const received = (endpoint: string): LedgerEntry[] =>
    simulator.ledger.entries().filter((entry) => entry.endpoint === endpoint);

  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('report somebody who was blocked after being asked as blocked, not as asked', async () => {
    await begin(noon);
    const flow = await load(request, block);
    should((await ask(flow, { phone: unasked }, 'request')).port).equal(0);
    await ask(flow, { phone: unasked }, 'block');
    const { port, msg } = await ask(flow, { phone: unasked }, 'request');
    should(port).equal(1);
    should(errorOf(msg).code).equal('blocked');
  });

  it('run in order: an invalid zone is reported before the list is checked, and that before keys and hours', async () => {
    await begin(night, { textHours: { ...hold.textHours, outside: 'fail' } });
    const once = { ...send, onceKeyType: 'text' } as typeof send;
    const flow = await load({ ...once, hours: 'any' } as typeof send, { ...once, id: 'later' }, block);
    const codeOf = async (msg: Message): Promise<unknown> => {
      const { port, msg: left } = await ask(flow, { text: 'Hi', phone: consented, ...msg }, 'later');
      return port === 1 ? errorOf(left).code : left.payload;
    };
    should(await codeOf({})).equal('quiet_hours');
    await ask(flow, { phone: consented }, 'block');
    should(await codeOf({})).equal('blocked');
    should(await codeOf({ timeZone: 'nowhere' })).equal('invalid_input');
    should(await codeOf({ timeZone: 'nowhere', dryRun: true })).equal('invalid_input');
  });

  it('reject somebody who was asked within the day, or as often as allowed, immediately outside the hours', async () => {
    await begin(noon, hold);
    const limited = { ...request, id: 'limited', every: 0, limit: 1 } as typeof request;
    const flow = await load(request, limited);
    const first = await ask(flow, { phone: unasked }, 'request');
    should(first.msg.payload).containEql({ requested: true });
    await simulator.clock.move(night - simulator.clock.now());
    const { requestedAt } = first.msg.payload as { requestedAt: number };
    for (const dryRun of [undefined, true]) {
      const { port, msg } = await ask(flow, { phone: unasked, ...(dryRun && { dryRun }) }, 'request');
      should(port).equal(0);
      should(msg.payload).containEql({ requested: false, requestedAt });
      should(msg.payload).not.have.property('notBefore');
      const again = await ask(flow, { phone: unasked, ...(dryRun && { dryRun }) }, 'limited');
      should(errorOf(again.msg).code).equal('consent_limit');
    }
    should(received('requestConsent')).have.length(1);
  });

  it('count the day between two consent requests from when the first left, when it was held', async () => {
    await begin(night, hold);
    const flow = await load(request);
    const coming = flow.arrivals.next();
    flow.send({ phone: unasked }, 'request');
    while (flow.statuses.length === 0) await nextIteration();
    await simulator.clock.move(11 * hour);
    should(only(await coming).msg.payload).containEql({ requested: true });
    const [{ at } = { at: 0 }] = received('requestConsent');
    await simulator.clock.move(at + 24 * hour - 1 - simulator.clock.now());
    const early = (await ask(flow, { phone: unasked }, 'request')).msg.payload;
    should(early).containEql({ requested: false, requestedAt: at });
    await simulator.clock.move(1);
    should((await ask(flow, { phone: unasked }, 'request')).msg.payload).containEql({ requested: true });
  });

  it('count the day between two consent requests from when the first left, when it was paused', async () => {
    await begin(noon);
    makeEnvironment({}, { maxConcurrent: 1 });
    simulator.faults.add({ endpoint: 'requestConsent', status: 429, retryAfter: 3600 });
    const flow = await load(request);
    const coming = flow.arrivals.next(2);
    // While one is in flight, the other has started; then all pause for an hour.
    flow.send({ phone: [unasked, '+12025550122'] }, 'request');
    const client = await environment.client();
    while (client.limits.pausedUntil === 0) await nextIteration();
    await simulator.clock.move(hour);
    const arrived = await coming;
    const left = received('requestConsent').filter(({ status }) => status !== 429);
    should(left).have.length(2);
    for (const { msg } of arrived) {
      const { requestedAt } = msg.payload as { requestedAt: number };
      should(requestedAt)
        .be.a.Number()
        .and.equal(left.find(({ phone }) => phone === msg.phone)?.at);
    }
  });

  it('leave the list unchanged in a dry run of other nodes', async () => {
    await begin(noon);
    const flow = await load(block);
    const { msg } = await ask(flow, { phone: consented, dryRun: true }, 'block');
    should(msg.payload).not.have.property('dryRun');
    should(await (await doNotTextOf(environment)).get(consented)).not.be.undefined();
  });

  it('keep the zone of a recipient of a list round the loop: nobody is asked at night', async () => {
    await begin(Date.UTC(2027, 0, 5, 6, 30), hold);
    const flow = await load(send, request);
    const phone = [{ phone: unasked, timeZone: 'Pacific/Honolulu' }];
    const { msg } = await ask(flow, { phone, text: 'Hi' }, 'send');
    // 20:30 in Honolulu, 01:30 in New York.
    should((await ask(flow, msg, 'request')).port).equal(0);
    should(received('requestConsent')).have.length(1);
  });

  it('add no zone round the loop to a recipient of a list without one', async () => {
    await begin(Date.UTC(2027, 0, 5, 6, 30), { textHours: { ...hold.textHours, outside: 'fail' } });
    const flow = await load({ ...send, hours: 'any' } as typeof send, request, { ...send, id: 'later' });
    // 20:30 in Honolulu, 01:30 in New York, the number's zone.
    const { msg } = await ask(flow, { phone: [unasked], text: 'Hi', timeZone: 'Pacific/Honolulu' }, 'send');
    should(msg.resend).not.have.property('timeZone');
    const back = { ...msg, resend: { ...(msg.resend as object), node: 'later' } };
    should(errorOf((await ask(flow, msg, 'request')).msg).code).equal('quiet_hours');
    should(errorOf((await ask(flow, back, 'later')).msg).code).equal('quiet_hours');
  });

  it('take the zone of nobody else from a text that a message carries for its resend', async () => {
    await begin(noon, { textHours: { ...hold.textHours, outside: 'fail' } });
    const flow = await load(request);
    const resend = { node: 'send', phone: consented, timeZone: 'America/New_York' };
    const { port, msg } = await ask(flow, { resend, phone: unasked, timeZone: 'Asia/Tokyo' }, 'request');
    should(port).equal(1);
    should(errorOf(msg).code).equal('quiet_hours');
  });

  it('keep the summary of a list complete over a restart, with blocked, repeated, held and rejected texts', async () => {
    await begin(night, hold);
    const once = { ...send, onceKey: '{{id}}', onceKeyType: 'str', hours: 'any' } as typeof send;
    const first = await load(once, block);
    await ask(first, { phone: '+12025550121' }, 'block');
    await ask(first, { phone: [{ phone: consented, id: 'a', text: 'Hi' }] }, 'send');
    await Flow.unload();
    await environment.close();
    makeEnvironment(hold);
    const list = [
      { phone: consented, id: 'a', text: 'Hi again' },
      { phone: '+12025550121', id: 'b', text: 'Hi' },
      { phone: consented, id: 'c', text: 'Held' },
      { phone: consented, id: 'c', text: 'Held' },
      { phone: 'nobody', id: 'd', text: 'Hi' },
    ];
    const within = { ...once, hours: 'environment' } as typeof send;
    const before = await load(within);
    const left = before.arrivals.next(3);
    before.send({ phone: list }, 'send');
    should((await left).every(({ msg }) => msg.summary === undefined)).be.true();
    while (!before.statuses.some(({ text }) => text.includes('held'))) await nextIteration();
    await Flow.unload();
    await environment.close();
    makeEnvironment(hold);
    const after = await load(within);
    const last = after.arrivals.next(2);
    await simulator.clock.move(12 * hour);
    const { id, ...summary } = (await last).at(-1)?.msg.summary as Record<string, unknown>;
    should(id).be.a.String();
    should(summary).deepEqual({
      total: 5,
      sent: 3,
      failed: 2,
      needsConsent: 0,
      alreadySent: 2,
      byCode: { blocked: 1, invalid_input: 1 },
    });
  });

  it('send each text of one round that goes out at a different time', async () => {
    await begin(noon);
    const flow = await load({ ...send, schedule: 'at' } as typeof send, request);
    const back: Message[] = [];
    for (const index of [0, 1]) {
      const deliveryDate = Date.now() + (index + 100) * 24 * hour;
      const parts = { id: 'list', type: 'array', index, count: 2 };
      back.push((await ask(flow, { phone: unasked, text: 'Hi', deliveryDate, parts }, 'send')).msg);
    }
    await ask(flow, { phone: unasked }, 'request');
    simulator.accept(unasked);
    const before = received('sendMessage').length;
    for (const msg of back)
      should((await ask(flow, msg, 'send')).msg.payload).not.have.property('duplicateOf');
    should(received('sendMessage').length - before).equal(2);
  });

  it('save what is held even without a journal, so that it survives a restart', async () => {
    await begin(night, { ...hold, journal: false });
    const flow = await load(send);
    flow.send({ phone: consented, text: 'Hi' }, 'send');
    while (flow.statuses.length === 0) await nextIteration();
    should(await pendingIn(await environment.store(), 'send')).eql({ items: 1, waits: 0 });
  });

  it('release what is held, even if the hours and the journal have been turned off', async () => {
    await begin(night, { ...hold, journal: false });
    const before = await load(send);
    before.send({ phone: consented, text: 'Hi' }, 'send');
    while (before.statuses.length === 0) await nextIteration();
    await Flow.unload();
    await environment.close();
    makeEnvironment({ journal: false });
    const after = await load(send);
    const coming = after.arrivals.next();
    await simulator.clock.move(24 * hour);
    only(await coming);
  });

  it('release what is held from an earlier start as soon as its number is blocked', async () => {
    await begin(night, hold);
    const before = await load(send);
    before.send({ phone: consented, text: 'Hi' }, 'send');
    while (before.statuses.length === 0) await nextIteration();
    await Flow.unload();
    await environment.close();
    makeEnvironment(hold);
    const after = await load(send, block);
    while (after.statuses.length === 0) await nextIteration();
    const coming = after.arrivals.next(2);
    after.send({ phone: consented }, 'block');
    const codes = (await coming).map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port));
    should(codes).containEql('blocked');
    should(received('sendMessage')).be.empty();
  });

  it('give a list that is rejected as a whole its summary, too', async () => {
    await begin(noon);
    const flow = await load({ ...send, schedule: 'at' } as typeof send);
    const coming = flow.arrivals.next(2);
    flow.send({ phone: [consented, unasked], text: 'Hi', deliveryDate: 5 }, 'send');
    const [first, last] = await coming;
    should(first?.msg).not.have.property('summary');
    should(last?.msg.summary).containEql({ total: 2, failed: 2, byCode: { invalid_input: 2 } });
  });
});
