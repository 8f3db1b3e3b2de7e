import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import type { Environment } from '../../../lib/runtime/environment';
import { invalidInput } from '../../../lib/runtime/errors';
import { MovableClock } from '../../../simulator/movable-clock';
import { endOf, key } from '../../../lib/state/store';
import { alsoClose } from '../../support/closing';
import { environmentOn } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type FlowOptions } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { until } from '../../support/until';
import { errorOf, inOrder } from '../../support/outcomes';
import { startServer } from '../../support/server';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, requestFolder, sendNode } from '../../support/texting/setup';
import { begin, hours, seconds } from '../../support/consent/world';
import { gate } from '../../support/gate';

const folders = [requestFolder, checkFolder];
const { silent, unasked, consented } = numbers;
const unknown = '+12025550999';

describe('consent nodes', () => {
  const on = simulatedForEach(() => startSimulated({ clock: new MovableClock(() => begin) }));

  const load = (
    type: 'advisor-request-consent' | 'advisor-check-consent',
    config: Readonly<Record<string, unknown>> = {},
    more: Partial<FlowOptions> = {},
  ): Promise<Flow> =>
    Flow.load({ folders, environment: on.environment, nodes: [{ id: 'node', type, ...config }], ...more });
  const request = (config = {}, more = {}): Promise<Flow> => load('advisor-request-consent', config, more);
  const check = (config = {}, more = {}): Promise<Flow> => load('advisor-check-consent', config, more);
  const wait = (config = {}, more = {}): Promise<Flow> => check({ mode: 'wait', ...config }, more);

  /** The same environment in a restarted process: only the store is left. */
  const afterRestart = (settings = {}, id = 'test-environment'): Environment => {
    const { baseUrl, credentials } = on.simulator;
    const token = (advisor: string) => on.simulator.accessToken(advisor);
    return environmentOn(
      { baseUrl, apiKey: credentials.apiKey, token },
      { id, service: 'simulator', clock: on.simulator.clock, store: on.store, settings },
    );
  };

  it('keep the contact of a member, whose name is used in the text behind them', async () => {
    const contact = { contactId: 7, firstName: 'Ann', phone: unasked };
    const asked = only(await (await request()).ask({ phone: unasked, contact, payload: contact }));
    await Flow.unload();
    on.simulator.accept(unasked);
    const accepted = only(await (await check()).ask(asked.msg));
    await Flow.unload();
    const send = await sendNode(on.environment, { text: 'Hello {{firstName}}', textType: 'str' });
    const { port, msg } = only(await send.ask(accepted.msg));
    should(port).equal(0);
    should(msg).containEql({ text: 'Hello Ann', contact });
  });

  describe('request consent', () => {
    it('asks, and reports what the service said', async () => {
      const flow = await request();
      const { port, msg } = only(await flow.ask({ phone: silent, text: 'kept', error: 'old' }));
      should(port).equal(0);
      should(msg.payload).containEql({ consentState: 'pending', requested: true, requestedAt: begin });
      should(msg).containEql({ phone: silent, text: 'kept', advisor: 'default' });
      should(msg).not.have.any.keys('error', 'parts');
      await flow.completed.next();
      should(on.received('requestConsent')).equal(1);
    });

    it('shows in its status that a whole message failed, and what is wrong', async () => {
      const flow = await request();
      const { msg } = only(await flow.ask({ phone: [] }));
      should(errorOf(msg).code).equal('invalid_input');
      should(flow.statuses.at(-1)?.text).match(/^sim (unsaved )?invalid input \d{1,2}:\d\d( [AP]M)?$/);
    });

    it('does not ask again within "every", in a list or over a restart', async () => {
      const flow = await request();
      const first = inOrder(await flow.ask({ phone: [silent, { phone: silent, name: 'Ann' }, 'nobody'] }, 3));
      should(first.map(({ port }) => port)).deepEqual([0, 0, 1]);
      should(first.slice(0, 2).map(({ msg }) => (msg.payload as { requested: boolean }).requested)).deepEqual(
        [true, false],
      );
      should(first[1]?.msg.recipient).deepEqual({ phone: silent, name: 'Ann' });
      should(errorOf(first[2]?.msg ?? {}).code).equal('invalid_input');
      should(first[2]?.msg.parts).containEql({ index: 2, count: 3, type: 'array' });
      should(first[2]?.msg.phone).equal('nobody');
      await until(() =>
        /^sim (unsaved )?1 asked, 1 not asked, 1 failed$/.test(flow.statuses.at(-1)?.text ?? ''),
      );
      await Flow.unload();
      const again = await request({}, { environment: afterRestart() });
      const { msg } = only(await again.ask({ phone: silent }));
      should(msg.payload).containEql({ requested: false, requestedAt: begin, consentState: 'pending' });
      should(on.received('requestConsent')).equal(1);
    });

    it('treats a number that has already accepted as a success without a request', async () => {
      const flow = await request();
      const { port, msg } = only(await flow.ask({ phone: consented }));
      should(port).equal(0);
      should(msg.payload).containEql({ consentState: 'accepted', requested: false, requestedAt: null });
      should(flow.statuses.at(-1)?.text).match(/^sim (unsaved )?already accepted$/);
    });

    it('asks nobody over the limit, and notices who has accepted since, also in a dry run', async () => {
      const flow = await request({ every: 0, limit: 1 });
      const { msg: first } = only(await flow.ask({ phone: silent }));
      const { requestedAt } = first.payload as { requestedAt: number };
      should(errorOf(only(await flow.ask({ phone: silent })).msg).code).equal('consent_limit');
      on.simulator.accept(silent);
      for (const dryRun of [true, false]) {
        const { port, msg } = only(await flow.ask({ phone: silent, dryRun }));
        should(port).equal(0);
        should(msg.payload).containEql({ consentState: 'accepted', requested: false, requestedAt });
      }
      should(on.received('requestConsent')).equal(1);
      on.simulator.decline(silent);
      should(only(await flow.ask({ phone: silent })).msg.payload).containEql({ requested: true });
    });

    it('fails over the limit, and on an account that is not set up, and says whom to contact', async () => {
      const flow = await request({ every: 0, limit: 1 });
      await flow.ask({ phone: silent });
      const { port, msg } = only(await flow.ask({ phone: silent }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'consent_limit' });
      should(errorOf(msg).message).match(/without an acceptance/);
      on.simulator.change({ consentConfigured: false });
      const conflict = only(await flow.ask({ phone: unasked }));
      should(errorOf(conflict.msg).code).equal('conflict');
      should(errorOf(conflict.msg).message).match(/contact the operator/);
      // The one look is that over the limit: a conflict says nothing about the number.
      should(on.received('getConsent')).equal(1);
    });
  });

  describe('check consent, once', () => {
    it('leaves by the state it sees', async () => {
      const flow = await check();
      const outcomes = inOrder(await flow.ask({ phone: [consented, unasked, unknown] }, 3));
      should(outcomes.map(({ port }) => port)).deepEqual([0, 2, 2]);
      should(outcomes[0]?.msg.payload).have.keys('memberId', 'state', 'lastChanged');
      should(outcomes[0]?.msg.payload).containEql({ state: 'accepted' });
      should(outcomes[1]?.msg.payload).containEql({ state: 'none', reason: 'not_accepted' });
      should(outcomes[2]?.msg.payload).deepEqual({
        memberId: null,
        state: null,
        lastChanged: null,
        reason: 'unknown_number',
      });
    });

    it('checks by member id', async () => {
      const byPhone = await check();
      const { msg } = only(await byPhone.ask({ phone: consented }));
      const { memberId } = msg.payload as { memberId: number };
      await Flow.unload();
      const flow = await check({ by: 'memberId' });
      const found = only(await flow.ask({ memberId: String(memberId) }));
      should(found.port).equal(0);
      should(found.msg).containEql({ memberId });
      const wrong = only(await flow.ask({ memberId: 'Ann Ito' }));
      should(errorOf(wrong.msg).code).equal('invalid_input');
    });

    it('checks by a member id of any kind that the service returns', async () => {
      const asked: (string | null)[] = [];
      const server = await startServer(({ url }) => {
        const memberId = new URL(url, 'http://service').searchParams.get('memberId');
        asked.push(memberId);
        return { body: { memberId, state: 'accepted', lastChanged: 1 } };
      });
      const environment = alsoClose(
        environmentOn({ baseUrl: server.url, apiKey: 'key', token: () => 'token' }),
      );
      const flow = await check({ by: 'memberId' }, { environment });
      for (const memberId of ['m-17', '9007199254740993'])
        should(only(await flow.ask({ memberId })).msg).containEql({ memberId });
      should(asked).deepEqual(['m-17', '9007199254740993']);
    });

    it('does not wait for people who have already accepted, whatever the interval and the number', async () => {
      const server = await startServer(() => ({ body: { memberId: 1, state: 'accepted', lastChanged: 1 } }));
      const clock = new MovableClock(() => begin);
      const environment = alsoClose(
        environmentOn({ baseUrl: server.url, apiKey: 'key', token: () => 'token' }, { clock }),
      );
      const flow = await wait({ pollEvery: 600 }, { environment });
      const phone = Array.from({ length: 20 }, (_, index) => `+120255501${String(index + 10)}`);
      const coming = flow.arrivals.next(phone.length);
      flow.send({ phone });
      while (flow.completed.all.length === 0 && clock.now() < begin + seconds(1)) await clock.move(10);
      should((await coming).map(({ port }) => port)).deepEqual(phone.map(() => 0));
      should(server.received).have.length(phone.length);
    });

    it('falls back to failure when nothing is wired to the third output', async () => {
      const flow = await check({}, { unwired: [2] });
      const { port, msg } = only(await flow.ask({ phone: unasked, payload: 'as it was' }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'consent_required', attempts: 1 });
      should(msg.payload).equal('as it was');
    });

    it('falls back with what the service said of an unknown number', async () => {
      for (const mode of ['once', 'wait']) {
        const flow = await check({ mode }, { unwired: [2] });
        const coming = flow.arrivals.next();
        flow.send({ phone: unknown });
        await nextIteration();
        // A wait allows a number five minutes to become known.
        await on.simulator.clock.move(mode === 'wait' ? seconds(330) : seconds(5));
        const { port, msg } = only(await coming);
        should(port).equal(1);
        should(errorOf(msg)).containEql({ code: 'not_found', status: 404, attempts: 1 });
        should(errorOf(msg)).have.properties('traceId', 'detail', 'title');
        await Flow.unload();
      }
    });

    it('cancels what msg.reset comes before', async () => {
      const flow = await check();
      const coming = flow.arrivals.next(40);
      flow.send({ phone: Array.from({ length: 40 }, () => unasked) });
      flow.send({ reset: true });
      const reasons = (await coming).map(({ port, msg }) => [
        port,
        (msg.payload as { reason: string }).reason,
      ]);
      should(reasons).containEql([2, 'cancelled']);
      should(reasons.every(([port]) => port === 2)).equal(true);
    });
  });

  describe('check consent, waiting', () => {
    const moved = async (ms: number): Promise<void> => on.simulator.clock.move(ms);

    it('polls 298 times in a silent day on the simulator, then leaves as expired', async function () {
      this.timeout(120_000);
      const flow = await wait();
      flow.send({ phone: unasked, payload: 'x' });
      await moved(hours(24.1));
      const { port, msg } = only(await flow.arrivals.next());
      should(port).equal(2);
      should(msg.payload).containEql({ state: 'none', reason: 'expired' });
      should(on.received('getConsent')).equal(298);
      await flow.completed.next();
    });

    it('leaves when the person accepts, each of a list on its own', async () => {
      const flow = await wait();
      on.simulator.accept(silent);
      flow.send({ phone: [{ phone: silent, name: 'Ann' }, unasked], topic: 'kept' });
      await moved(seconds(4));
      const first = only(await flow.arrivals.next());
      should(first.port).equal(0);
      should(first.msg).containEql({ phone: silent, topic: 'kept', advisor: 'default' });
      should(first.msg.recipient).deepEqual({ phone: silent, name: 'Ann' });
      should(first.msg.parts).containEql({ index: 0, count: 2 });
      should(flow.completed.all).have.length(0);
      on.simulator.accept(unasked);
      await moved(seconds(60));
      should(only(await flow.arrivals.next()).msg.phone).equal(unasked);
      await flow.completed.next();
      should(flow.completed.all).have.length(1);
    });

    it('completes a list when its last has left, however long after the first', async () => {
      const flow = await wait();
      flow.send({ phone: [consented, silent, 'nobody'] });
      await on.simulator.clock.move(seconds(30));
      await flow.arrivals.next(2);
      // What has left is saved as emitted, and nothing of the list is in memory.
      const emitted = async (): Promise<boolean> => {
        const range = { from: key('counts'), to: endOf(key('counts')), limit: 9 };
        const found = await on.store.page<Record<string, number>>('work', range);
        return found.some(({ value }) => value['total'] === 2);
      };
      while (!(await emitted())) await nextIteration();
      should(flow.settled).be.empty();
      on.simulator.accept(silent);
      await on.simulator.clock.move(seconds(60));
      await flow.arrivals.next();
      const [completed] = await flow.completed.next();
      should(completed?.['summary']).containEql({ total: 3, accepted: 2, failed: 1 });
      should(flow.settled).deepEqual([undefined]);
    });

    it('gives each message for one number its own payload', async () => {
      const flow = await wait();
      for (const topic of ['one', 'two']) flow.send({ phone: silent, topic });
      on.simulator.accept(silent);
      await moved(seconds(40));
      const [one, two] = await flow.arrivals.next(2);
      should(one?.msg.payload).deepEqual(two?.msg.payload);
      should(one?.msg.payload === two?.msg.payload).be.false();
    });

    it('continues after a deploy and a restart, and settles nothing when it closes', async () => {
      const flow = await wait();
      flow.send({ phone: [silent, unasked], res: { end: () => 'alive' } });
      await moved(seconds(100));
      await Flow.unload();
      should(flow.arrivals.all).have.length(0);
      should(flow.completed.all).have.length(0);

      const deployed = await wait();
      on.simulator.accept(silent);
      await moved(seconds(40));
      const first = only(await deployed.arrivals.next());
      should((first.msg.res as { end: () => string }).end()).equal('alive');
      should(first.msg).not.have.property('repeated');
      should(first.msg.parts).containEql({ index: 0, count: 2 });
      await Flow.unload();

      const restarted = await wait({}, { environment: afterRestart() });
      await moved(hours(24.1));
      const last = only(await restarted.arrivals.next());
      should(last.msg.payload).containEql({ reason: 'expired' });
      should(last.msg.parts).containEql({ index: 1, count: 2 });
    });

    it('is cancelled when the node gets another environment, and asks nobody there', async () => {
      const flow = await wait();
      flow.send({ phone: silent });
      await moved(seconds(10));
      await Flow.unload();
      on.simulator.ledger.clear();
      const elsewhere = await wait({}, { environment: afterRestart({}, 'another') });
      const { port, msg } = only(await elsewhere.arrivals.next());
      should(port).equal(2);
      should(msg.payload).containEql({ reason: 'cancelled' });
      should(msg).not.have.property('repeated');
      await moved(hours(1));
      should(on.received('getConsent')).equal(0);
    });

    it('is released by an acceptance that another node sees', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [
          { id: 'waits', type: 'advisor-check-consent', mode: 'wait' },
          { id: 'looks', type: 'advisor-check-consent' },
        ],
      });
      flow.send({ phone: silent, n: 1 }, 'waits');
      await moved(seconds(5));
      on.simulator.accept(silent);
      flow.send({ phone: silent, n: 2 }, 'looks');
      const both = await flow.arrivals.next(2);
      should(both.map(({ from, port }) => [from, port]).sort()).deepEqual([
        ['looks', 0],
        ['waits', 0],
      ]);
    });

    it('is released by an acceptance that a poll by member id sees', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [
          { id: 'waits', type: 'advisor-check-consent', mode: 'wait' },
          { id: 'looks', type: 'advisor-check-consent' },
          { id: 'byMember', type: 'advisor-check-consent', by: 'memberId' },
        ],
      });
      flow.send({ phone: silent }, 'looks');
      const { memberId } = only(await flow.arrivals.next()).msg.payload as { memberId: number };
      flow.send({ phone: silent }, 'waits');
      await moved(seconds(5));
      on.simulator.accept(silent);
      flow.send({ memberId }, 'byMember');
      const both = await flow.arrivals.next(2);
      should(both.map(({ from, port }) => [from, port]).sort()).deepEqual([
        ['byMember', 0],
        ['waits', 0],
      ]);
    });

    it('is cancelled by msg.reset and polls immediately on msg.flush, all or one number', async () => {
      const flow = await wait();
      flow.send({ phone: [silent, unasked] });
      await moved(seconds(5));
      const before = on.received('getConsent');
      flow.send({ flush: true, phone: '+1 (202) 555-0112' });
      await moved(1);
      should(on.received('getConsent')).equal(before + 1);
      flow.send({ reset: true, phone: silent });
      const { port, msg } = only(await flow.arrivals.next());
      should(port).equal(2);
      should(msg.payload).containEql({ reason: 'cancelled' });
      should(msg.phone).equal(silent);
      for (const phone of ['nonsense', '', [], null]) {
        const refused = only(await flow.ask({ reset: true, phone }));
        should([refused.port, errorOf(refused.msg).code]).deepEqual([1, 'invalid_input']);
      }
      flow.send({ reset: true });
      should(only(await flow.arrivals.next()).msg.phone).equal(unasked);
    });

    it('polls immediately on msg.flush even for entries of a long list that came just before', async () => {
      const flow = await wait({ pollEvery: 36_000 });
      const phones = Array.from({ length: 250 }, (_, n) => `+1202555${String(1000 + n)}`);
      flow.send({ phone: phones });
      flow.send({ flush: true });
      while (on.received('getConsent') < phones.length) await nextIteration();
    });

    it('continues in an environment that has become invalid, and its status says so', async () => {
      let isWrong = false;
      const environment: Environment & { changed(): void } = {
        ...on.environment,
        advisors() {
          if (isWrong) throw invalidInput('setting_time_zone', { timeZone: 'Mars' });
          return ['default'];
        },
      };
      const flow = await wait({}, { environment });
      flow.send({ phone: silent });
      await moved(seconds(5));
      isWrong = true;
      environment.changed();
      while (!(flow.statuses.at(-1)?.text ?? '').includes('invalid input')) await nextIteration();
      should(flow.arrivals.all).be.empty();
    });

    it('reports a wait as cancelled and not rejected, with the time by the clock of the environment', async () => {
      const flow = await wait();
      flow.send({ phone: silent });
      await moved(seconds(2 * 3600));
      const shown = (): string => new Date(on.simulator.clock.now()).toTimeString().slice(0, 5);
      const times = [shown()];
      flow.send({ reset: true });
      await flow.arrivals.next();
      // Statuses change once a second at most.
      while (!(flow.statuses.at(-1)?.text ?? '').includes('cancelled')) await nextIteration();
      times.push(shown());
      should(times.map((time) => `sim unsaved cancelled ${time}`)).containEql(flow.statuses.at(-1)?.text);
      should(flow.statuses.at(-1)?.fill).equal('yellow');
    });

    it('carries out commands that come before saved waits are read, in the order of arrival', async () => {
      const flow = await wait();
      flow.send({ phone: silent, text: 'old' });
      await moved(seconds(5));
      await Flow.unload();
      const { opened, open } = gate();
      const again = await wait(
        {},
        { environment: { ...afterRestart(), store: () => opened.then(() => on.store) } },
      );
      again.send({ phone: silent, text: 'early' });
      again.send({ reset: true });
      again.send({ phone: silent, text: 'wanted' });
      open();
      const cancelled = await again.arrivals.next(2);
      const reasons = cancelled.map(({ msg }) => [msg.text, (msg.payload as { reason: string }).reason]);
      should(reasons.toSorted()).deepEqual([
        ['early', 'cancelled'],
        ['old', 'cancelled'],
      ]);
      on.simulator.accept(silent);
      await moved(seconds(40));
      const { port, msg } = only(await again.arrivals.next());
      should([port, msg.text]).deepEqual([0, 'wanted']);
      should(again.settled).have.length(3);
    });

    it('can be closed while it emits what had ended before', async () => {
      const phones = Array.from({ length: 20 }, () => silent);
      const flow = await wait();
      for (const phone of phones) flow.send({ phone });
      await moved(seconds(5));
      await Flow.unload();
      const { opened, open } = gate();
      const slow = { ...afterRestart(), store: () => opened.then(() => on.store) };
      const closing = await wait({}, { environment: slow });
      closing.send({ reset: true });
      open();
      await closing.arrivals.next(3);
      await Flow.unload();
      const next = await wait({}, { environment: afterRestart() });
      const told = closing.arrivals.all;
      // Outcomes of one tick leave together.
      while (told.length + next.arrivals.all.length < phones.length) await next.arrivals.next();
      told.push(...next.arrivals.all);
      should(told.map(({ msg }) => (msg.payload as { reason: string }).reason)).deepEqual(
        phones.map(() => 'cancelled'),
      );
    });

    it('shows how many wait and when it polls next', async () => {
      const flow = await wait();
      flow.send({ phone: [silent, unasked] });
      await moved(seconds(10));
      should(flow.statuses.at(-1)?.text).match(/^sim unsaved 2 waiting, next \d{1,2}:\d\d( [AP]M)?$/);
    });

    it('shows how many people wait beside how many messages, if they differ', async () => {
      const flow = await wait();
      const shown = async (text: RegExp): Promise<void> => {
        while (!text.test(flow.statuses.at(-1)?.text ?? '')) {
          await moved(seconds(1));
          await pause(20);
        }
      };
      flow.send({ phone: silent });
      await shown(/ 1 waiting, next /);
      flow.send({ phone: silent });
      await shown(/ 2 waiting \(1 person\), next \d{1,2}:\d\d( [AP]M)?$/);
      flow.send({ phone: [unasked, silent] });
      await shown(/ 4 waiting \(2 people\), next /);
      flow.send({ phone: silent, reset: true });
      await shown(/ 1 waiting, next /);
    });

    it('shows an outage of the service while it waits, and when that is over', async () => {
      const flow = await wait();
      flow.send({ phone: silent });
      await moved(seconds(5));
      on.simulator.faults.add({ endpoint: 'getConsent', code: 'downstream_unavailable', rate: 1 });
      await moved(seconds(60));
      // The number of statuses in between depends on the minute.
      const shown = async (text: RegExp): Promise<void> => {
        await until(() => text.test(flow.statuses.at(-1)?.text ?? ''));
      };
      await shown(/^sim unsaved 1 waiting, service down$/);
      should(flow.statuses.at(-1)).containEql({ fill: 'yellow' });
      on.simulator.faults.clear();
      await moved(seconds(60));
      await shown(/^sim unsaved 1 waiting, next \d{1,2}:\d\d( [AP]M)?$/);
    });

    it('says so when it has no environment, and does not crash Node-RED', async () => {
      const escaped: unknown[] = [];
      const note = (fault: unknown): number => escaped.push(fault);
      process.on('unhandledRejection', note);
      const flow = await wait({ environment: '' });
      const { port, msg } = only(await flow.ask({ phone: silent }));
      process.off('unhandledRejection', note);
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'not_configured' });
      should(escaped).eql([]);
    });
  });
});
