import should from 'should';
import { minute, second } from '../../../lib/durations';
import { activityOf } from '../../../lib/runtime/activity';
import type { Environment } from '../../../lib/runtime/environment';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer, type Reply } from '../../support/server';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';

const begin = 1_750_000_000_000;
const phone = '+12025550123';
const reason = 'Member has not consented';
const refused: Reply = { body: { successes: [], failures: [reason], failureDetails: [{ code: 'lag' }] } };
const problem = (status: number, code: string): Reply => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: {
    type: 'about:blank',
    title: code,
    status,
    detail: code,
    instance: '/',
    code,
    traceId: 't',
    retryable: false,
  },
});

/** A service that rejects texts for lack of consent and reports the consent as accepted, unless a test changes that. */
class Service {
  state = 'accepted';
  /** The answer to a text. */
  text: Reply = refused;
  look: Reply | undefined;
  /** When each text arrived, in milliseconds from the start. */
  readonly texts: number[] = [];
  looks = 0;
  asked = 0;
  readonly clock = new MovableClock(() => begin);
  readonly store: Store = createMemoryStore();
  private url = '';

  async start(): Promise<this> {
    const { url } = await startServer(({ url: path, method }) => {
      if (path.includes('/messages')) {
        this.texts.push(this.clock.now() - begin);
        return this.text;
      }
      if (method === 'POST') {
        this.asked += 1;
        return this.state === 'accepted'
          ? problem(400, 'invalid_request')
          : { body: { successes: [{ memberId: 1, consentState: 'pending' }], failures: [] } };
      }
      this.looks += 1;
      return this.look ?? { body: { memberId: 1, state: this.state, lastChanged: begin } };
    });
    this.url = `${url}/v1`;
    return this;
  }

  environment(): TestEnvironment {
    const { clock, store } = this;
    return alsoClose(
      environmentOn(
        { baseUrl: this.url, apiKey: 'key', token: () => 'token' },
        { clock, store, settings: { journal: true } },
      ),
    );
  }
}

const loopOf = (environment: Environment, mode: string, config: object = {}): Promise<Flow> =>
  Flow.load({
    folders: [sendFolder, requestFolder, checkFolder],
    environment,
    nodes: [
      { id: 'send', type: 'advisor-send-text', ...config },
      { id: 'request', type: 'advisor-request-consent' },
      { id: 'check', type: 'advisor-check-consent', mode },
    ],
    wires: [
      ['send', 2, 'request'],
      ['request', 0, 'check'],
      ['check', 0, 'send'],
    ],
  });

describe('a text rejected for lack of consent despite an accepted one', () => {
  let service: Service;
  let environment: TestEnvironment;

  beforeEach(async () => {
    service = await new Service().start();
    environment = service.environment();
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const loop = (mode: string, config: object = {}): Promise<Flow> => loopOf(environment, mode, config);
  const held = async (): Promise<readonly (number | null)[]> =>
    (await activityOf(environment).queue({ page: 1, pageSize: 100, state: 'held' })).data.map(
      ({ notBefore }) => notBefore,
    );
  /** Resolves when the text is delayed; a wait needs time to pass for its first poll. */
  const delayed = async (): Promise<number> => {
    for (;;) {
      const [notBefore] = await held();
      if (typeof notBefore === 'number' && notBefore > service.clock.now()) return notBefore;
      should(service.texts.length).be.below(10, 'the flow spins');
      await service.clock.move(1);
      await nextIteration();
    }
  };
  const left = (flow: Flow, port: number): Arrived[] =>
    flow.arrivals.all.filter((each) => each.from === 'send' && each.port === port);
  const leaves = async (flow: Flow, port: number): Promise<Arrived> => {
    while (left(flow, port).length === 0) await nextIteration();
    return only(left(flow, port));
  };
  const gaps = (): number[] => service.texts.slice(1).map((at, index) => at - (service.texts[index] ?? 0));

  for (const mode of ['once', 'wait']) {
    it(`is retried after 30 seconds, 2 and 10 minutes, then fails, in a loop that checks with ${mode}`, async () => {
      const flow = await loop(mode);
      flow.send({ phone, text: 'Hi' });
      for (const delay of [30 * second, 2 * minute, 10 * minute]) {
        const until = await delayed();
        const before = service.texts.length;
        should(until - begin - (service.texts.at(-1) ?? 0)).equal(delay);
        await service.clock.move(until - service.clock.now() - 1);
        should(service.texts.length).equal(before);
        await service.clock.move(1);
        while (service.texts.length === before) await nextIteration();
      }
      const { msg } = await leaves(flow, 1);
      should(errorOf(msg)).containEql({
        code: 'rejected',
        detail: reason,
        details: [{ code: 'lag' }],
        attempts: 4,
        retryable: false,
      });
      should(gaps().slice(1)).eql([30 * second, 2 * minute, 10 * minute]);
      should(service.asked).equal(1);
      should(left(flow, 2)).have.length(1);
      await service.clock.move(60 * minute);
      should(service.texts).have.length(5);
    });
  }

  it('is sent once the service accepts it', async () => {
    const flow = await loop('once');
    flow.send({ phone, text: 'Hi' });
    await delayed();
    service.text = { body: sent };
    await service.clock.move(30 * second);
    const { msg } = await leaves(flow, 0);
    should(msg.payload).containEql({ attempts: 2 });
    should(msg).not.have.property('resend');
    should(service.texts).have.length(3);
  });

  it('shows in the status until when it is delayed', async () => {
    const flow = await loop('once');
    flow.send({ phone, text: 'Hi' });
    await delayed();
    while (!flow.statuses.some(({ text }) => /1 held until \d/.test(text))) await nextIteration();
  });

  it('is cancelled by a reset', async () => {
    const flow = await loop('once');
    flow.send({ phone, text: 'Hi' });
    await delayed();
    flow.send({ reset: true, phone });
    should(errorOf((await leaves(flow, 1)).msg).code).equal('cancelled');
    await service.clock.move(60 * minute);
    should(service.texts).have.length(2);
  });

  it('continues where it was after a restart', async () => {
    const first = await loop('once');
    first.send({ phone, text: 'Hi' });
    await service.clock.move((await delayed()) - service.clock.now());
    while (service.texts.length < 3) await nextIteration();
    await delayed();
    await Flow.unload();
    environment = service.environment();
    const flow = await loop('once');
    await service.clock.move(2 * minute);
    while (service.texts.length < 4) await nextIteration();
    await service.clock.move((await delayed()) - service.clock.now());
    should(errorOf((await leaves(flow, 1)).msg)).containEql({ code: 'rejected', attempts: 4 });
    should(gaps().slice(1)).eql([30 * second, 2 * minute, 10 * minute]);
  });

  it('needs consent again when that is no longer accepted', async () => {
    for (const look of [
      { body: { memberId: 1, state: 'pending', lastChanged: null } },
      problem(404, 'not_found'),
    ]) {
      const flow = await Flow.load({
        folders: [sendFolder],
        environment,
        nodes: [{ id: 'send', type: 'advisor-send-text' }],
      });
      const [first] = await flow.ask({ phone, text: 'Hi' });
      service.look = look;
      const again = only(await flow.ask(first?.msg ?? {}));
      should(again.port).equal(2);
      should(again.msg).have.property('resend');
      await Flow.unload();
    }
  });

  it('is delayed even if the consent is unknown, and then needs consent again', async () => {
    const flow = await Flow.load({
      folders: [sendFolder],
      environment,
      nodes: [{ id: 'send', type: 'advisor-send-text' }],
    });
    const [first] = await flow.ask({ phone, text: 'Hi' });
    service.look = problem(403, 'forbidden');
    const coming = flow.arrivals.next();
    flow.send(first?.msg ?? {});
    for (let tries = 0; tries < 3; tries++) {
      await service.clock.move((await delayed()) - service.clock.now());
      while (service.texts.length < tries + 3) await nextIteration();
    }
    const again = only(await coming);
    should([again.port, again.msg.outcome]).eql([2, 'needsConsent']);
    should(again.msg).have.property('resend');
    should(gaps().slice(1)).eql([30 * second, 2 * minute, 10 * minute]);
  });

  it('is not delayed beyond its delivery date', async () => {
    const flow = await loop('once', { schedule: 'at' });
    flow.send({ phone, text: 'Hi', deliveryDate: begin + minute });
    await delayed();
    await service.clock.move(30 * second);
    should(errorOf((await leaves(flow, 1)).msg)).containEql({ code: 'rejected', attempts: 2 });
  });

  it('is delayed together with equal texts of one list, of which one is sent', async () => {
    const flow = await loop('once', { onceKey: '', onceKeyType: 'off' });
    flow.send({
      phone: [
        { phone, text: 'Hi' },
        { phone, text: 'Hi' },
      ],
    });
    await delayed();
    while ((await held()).length < 2) await nextIteration();
    const before = service.texts.length;
    service.text = { body: sent };
    await service.clock.move(30 * second);
    while (left(flow, 0).length < 2) await nextIteration();
    should(service.texts.length - before).equal(1);
  });

  it('keeps its send-once key while it is delayed', async () => {
    const flow = await loop('once', { onceKeyType: 'text' });
    flow.send({ phone, text: 'Hi' });
    await delayed();
    const before = service.texts.length;
    flow.send({ phone, text: 'Hi' });
    while ((await held()).length < 2) await nextIteration();
    should(service.texts.length).equal(before);
    service.text = { body: sent };
    await service.clock.move(30 * second);
    while (left(flow, 0).length < 2) await nextIteration();
    should(service.texts.length - before).equal(1);
  });
});

describe('a consent that the simulator ignores', () => {
  const on = simulatedForEach(() => startSimulated({ clock: new MovableClock(() => begin) }));

  it('ends the canonical loop as rejected, after four attempts', async () => {
    const flow = await loopOf(on.environment, 'wait');
    flow.send({ phone: numbers.disbelieved, text: 'Hi' });
    const failed = (): Arrived | undefined =>
      flow.arrivals.all.find(({ from, port }) => from === 'send' && port === 1);
    while (!failed()) await on.simulator.clock.move(second);
    should(errorOf(failed()?.msg ?? {})).containEql({ code: 'rejected', attempts: 4 });
    should(on.received('sendMessage')).equal(5);
    should(on.received('requestConsent')).equal(1);
  });
});
