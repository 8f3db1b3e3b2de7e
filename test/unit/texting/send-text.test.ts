import { inspect } from 'node:util';
import helper from 'node-red-node-test-helper';
import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import { alsoClose, closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { environmentOn } from '../../support/environment';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { type Reply, startServer } from '../../support/server';
import { problemReply } from '../../support/service/setup';
import { startSimulated, type Simulated } from '../../support/simulated';
import { heldSendNode, sendNode } from '../../support/texting/setup';
import { wordsIn } from '../../../lib/runtime/language';
import { createStatus, look, unauthorizedLook } from '../../../lib/runtime/status';
import { gate } from '../../support/gate';
import { until } from '../../support/until';

describe('send text node', () => {
  let on: Simulated;

  before(async () => {
    on = await startSimulated();
  });
  after(() => on.close());
  beforeEach(async () => {
    await on.simulator.reset();
    on.simulator.ledger.clear();
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const texts = (): unknown[] =>
    on.simulator.ledger
      .entries()
      .filter(({ endpoint }) => endpoint === 'sendMessage')
      .map(({ phone }) => phone);

  /** A service that answers as the test says, to see exactly what is sent. */
  const scripted = async (answer: (body: Record<string, unknown>) => Reply, settings = {}) => {
    const server = await startServer(({ body }) => answer(JSON.parse(body) as Record<string, unknown>));
    const environment = alsoClose(
      environmentOn({ baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' }, { settings }),
    );
    return { environment, bodies: () => server.received.map(({ body }) => JSON.parse(body) as unknown) };
  };

  describe('one recipient', () => {
    it('leaves on "sent" with the ids and the values used, and keeps the rest of the message', async () => {
      const flow = await sendNode(on.environment);
      const message = { phone: numbers.consented, text: 'Hi', topic: 'kept', payload: 'old', error: 'old' };
      const { port, msg } = only(await flow.ask(message));
      should(port).equal(0);
      const payload = msg.payload as Record<string, unknown>;
      should(payload).have.keys('messageId', 'memberId', 'scheduled', 'attempts');
      should(payload).containEql({ scheduled: false, attempts: 1 });
      should(payload.messageId).be.a.Number();
      should(msg).containEql({ phone: numbers.consented, text: 'Hi', advisor: 'default', topic: 'kept' });
      should(msg).not.have.any.keys('error', 'parts', 'resend', 'recipient');
      await flow.completed.next();
      should(texts()).deepEqual([numbers.consented]);
    });

    it('leaves on "needs consent" with the reason and what to send again', async () => {
      const flow = await sendNode(on.environment);
      const { port, msg } = only(await flow.ask({ phone: numbers.unasked, text: 'Hi' }));
      should(port).equal(2);
      should(Object.keys(msg.payload as object)).deepEqual(['reason']);
      should((msg.payload as { reason: string }).reason).match(/consent/i);
      should(msg.resend).deepEqual({
        node: 'send',
        phone: numbers.unasked,
        text: 'Hi',
        advisor: 'default',
      });
      should(msg).not.have.property('error');
    });

    it('sends exactly what msg.resend says when it returns, and removes it', async () => {
      const flow = await sendNode(on.environment);
      const { msg } = only(await flow.ask({ phone: numbers.unasked, text: 'Hi' }));
      on.simulator.accept(numbers.unasked);
      const other = { phone: '+12025550199', text: 'something else', repeated: true };
      const back = only(await flow.ask({ ...msg, ...other }));
      should(back.port).equal(0);
      should(back.msg).containEql({ phone: numbers.unasked, text: 'Hi' });
      should(back.msg).not.have.properties('resend', 'repeated');
    });

    it('leaves msg.resend of another node alone and reads its own fields', async () => {
      const flow = await sendNode(on.environment);
      const resend = { node: 'other', phone: numbers.unasked, text: 'Bye', advisor: 'default' };
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi', resend }));
      should(port).equal(0);
      should(msg).containEql({ phone: numbers.consented, resend });
    });

    for (const who of ['optedOut', 'landline'] as const) {
      it(`fails as "rejected" with the service's own words (${who}), and leaves the payload alone`, async () => {
        const flow = await sendNode(on.environment);
        const { port, msg } = only(await flow.ask({ phone: numbers[who], text: 'Hi', payload: 'mine' }));
        should(port).equal(1);
        should(msg.payload).equal('mine');
        const error = errorOf(msg);
        should(error).containEql({ code: 'rejected', retryable: false, attempts: 1 });
        should(error.detail).be.a.String().and.not.be.empty();
        should(error.message).containEql(error.detail);
        should(error.message).match(/Correct the number, or leave this person out/);
        should(error.source).deepEqual({ id: 'send', type: 'advisor-send-text', name: 'my send' });
      });
    }

    it('reports an answer without success or failure as invalid_response', async () => {
      const { environment } = await scripted(() => ({ body: { successes: [], failures: [] } }));
      const flow = await sendNode(environment);
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_response');
    });

    it('treats any entry in successes as a success, with null if an id is missing', async () => {
      const { environment } = await scripted(() => ({ body: { successes: [{}], failures: ['consent'] } }));
      const flow = await sendNode(environment);
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
      should(port).equal(0);
      should(msg.payload).containEql({ messageId: null, memberId: null });
    });
  });

  describe('outputs without wires', () => {
    it('raise a failure for Catch: our code, and the whole of msg.error as its cause', async () => {
      const flow = await sendNode(on.environment, {}, { unwired: [1] });
      flow.send({ phone: numbers.landline, text: 'Hi' });
      const { error } = only(await flow.errors.next());
      should(error).containEql({ code: 'rejected' });
      should(error.cause).containEql({ code: 'rejected', attempts: 1 });
      should(flow.arrivals.all).be.empty();
      should(flow.completed.all).be.empty();
    });

    it('turn "needs consent" into a failure with code consent_required, without msg.resend', async () => {
      const flow = await sendNode(on.environment, {}, { unwired: [2] });
      const { port, msg } = only(await flow.ask({ phone: numbers.unasked, text: 'Hi', payload: 1 }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('consent_required');
      should(msg.payload).equal(1);
      should(msg).not.have.property('resend');
    });

    it('raise each failure of a list with its own message and complete once', async () => {
      const flow = await sendNode(on.environment, {}, { unwired: [1, 2] });
      flow.send({ phone: [numbers.landline, numbers.unasked, 'nonsense'], text: 'Hi' });
      const errors = await flow.errors.next(3);
      should(errors.map(({ error }) => error.code).sort()).deepEqual([
        'consent_required',
        'invalid_input',
        'rejected',
      ]);
      await flow.completed.next();
      should(flow.completed.all).have.length(1);
    });
  });

  describe('lists', () => {
    it('get one outcome per entry, with parts inside the outer parts', async () => {
      const flow = await sendNode(on.environment);
      const outer = { id: 'outer', index: 0 };
      const phone = [numbers.consented, numbers.unasked, numbers.landline, '12'];
      const arrived = inOrder(await flow.ask({ phone, text: 'Hi', parts: outer, payload: 'p' }, 4));
      should(arrived.map(({ port }) => port)).deepEqual([0, 2, 1, 1]);
      for (const [index, { msg }] of arrived.entries()) {
        should(msg.parts).containEql({ type: 'array', index, count: 4, parts: outer });
      }
      should(new Set(arrived.map(({ msg }) => (msg.parts as { id: string }).id)).size).equal(1);
      should(arrived.map(({ msg }) => msg.phone)).deepEqual(phone);
      await flow.completed.next();
    });

    it('get parts even with one entry', async () => {
      const flow = await sendNode(on.environment);
      const { msg } = only(await flow.ask({ phone: [numbers.consented], text: 'Hi' }));
      should(msg.parts).containEql({ index: 0, count: 1 });
    });

    it('accept objects with a phone, keep each whole, and prefer its own text', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { phone: 'payload' });
      const payload = [
        { phone: '+12025550101', name: 'Ann' },
        { phone: '+12025550102', name: 'Bob', text: 'Only for Bob' },
      ];
      const arrived = inOrder(await flow.ask({ payload, text: 'For all' }, 2));
      should(arrived.map(({ msg }) => msg.recipient)).deepEqual(payload);
      should(arrived.map(({ msg }) => msg.text)).deepEqual(['For all', 'Only for Bob']);
      should(bodies()).containEql({ phone: '+12025550102', text: 'Only for Bob' });
    });

    for (const [what, phone] of [
      ['an empty list', []],
      ['nothing', undefined],
      ['an object', { phone: '+12025550101' }],
      ['a list within a list', [['+12025550101', '+12025550102']]],
    ] as const) {
      it(`fail as one invalid_input without a request: ${what}`, async () => {
        const flow = await sendNode(on.environment);
        const { port, msg } = only(await flow.ask({ phone, text: 'Hi' }));
        should(port).equal(1);
        should(errorOf(msg).code).equal('invalid_input');
        should(texts()).be.empty();
        await flow.completed.next();
      });
    }

    it('result in independent messages', async () => {
      const { environment } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment);
      const [first, second] = await flow.ask(
        { phone: ['+12025550101', '+12025550102'], text: 'Hi', data: { seen: [] } },
        2,
      );
      (first?.msg.data as { seen: unknown[] }).seen.push('changed');
      should(second?.msg.data).deepEqual({ seen: [] });
    });
  });

  describe('numbers', () => {
    it('are only checked against the contract if they have a +', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }), { country: 'US' });
      const flow = await sendNode(environment);
      const phone = ['+12345678', '+1234567', '+0123456789', '+1 202 555 0101', '+1234567890123456'];
      const arrived = inOrder(await flow.ask({ phone, text: 'Hi' }, 5));
      should(arrived.map(({ port }) => port)).deepEqual([0, 1, 1, 0, 1]);
      should(bodies()).containDeep([
        { phone: '+12345678', text: 'Hi' },
        { phone: '+12025550101', text: 'Hi' },
      ]);
      should(arrived[3]?.msg.phone).equal('+12025550101');
    });

    it("are read in the environment's country if they are national", async () => {
      const { environment } = await scripted(() => ({ body: sent }), { country: 'US' });
      const flow = await sendNode(environment);
      const arrived = inOrder(await flow.ask({ phone: ['(202) 555-0101', 2025550102], text: 'Hi' }, 2));
      should(arrived.map(({ msg }) => msg.phone)).deepEqual(['+12025550101', '+12025550102']);
    });

    it('say what to do about a national one when there is no country', async () => {
      const flow = await sendNode(on.environment);
      const { msg } = only(await flow.ask({ phone: '(202) 555-0101', text: 'Hi' }));
      should(errorOf(msg).message).match(
        /start it with \+ and the code, .*, or choose a Country in the environment/,
      );
    });
  });

  describe('the text', () => {
    it('replaces {{fields}} of a literal from the recipient, then from the message', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const text = 'Hi {{name}}, {{ office.city }} calls. {{n}}';
      const flow = await sendNode(environment, { phone: 'payload', text, textType: 'str' });
      const payload = [{ phone: '+12025550101', name: 'Ann' }];
      await flow.ask({ payload, name: 'nobody', office: { city: 'Bonn' }, n: 0 });
      should(bodies()).deepEqual([{ phone: '+12025550101', text: 'Hi Ann, Bonn calls. 0' }]);
    });

    for (const name of [undefined, '', null, {}]) {
      it(`leaves no gap for ${inspect(name)}`, async () => {
        const flow = await sendNode(on.environment, { text: 'Hi {{name}}', textType: 'str' });
        const { port, msg } = only(await flow.ask({ phone: numbers.consented, name }));
        should(port).equal(1);
        should(errorOf(msg)).containEql({ code: 'invalid_input' });
        should(errorOf(msg).message).match(/"name"/);
        should(texts()).be.empty();
      });
    }

    it('says how to write a field of the contact that an address book node set as the payload', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const contact = { phone: '+12025550101', payload: { firstName: 'Ann' } };
      const bare = await sendNode(environment, { text: 'Dear {{firstName}}', textType: 'str' });
      const { msg } = only(await bare.ask(contact));
      should(errorOf(msg).message).match(/msg\.payload has one: write payload\.firstName between the braces/);
      await Flow.unload();
      const whole = await sendNode(environment, { text: 'Dear {{payload.firstName}}', textType: 'str' });
      await whole.ask(contact);
      should(bodies()).eql([{ phone: '+12025550101', text: 'Dear Ann' }]);
    });

    it('says how to write a field of the row that an outcome of a list is about, but fills no other row from it', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { text: 'Dear {{name}}', textType: 'str' });
      const outcome = { phone: '+12025550101', recipient: { name: 'Ann' } };
      const { msg } = only(await flow.ask(outcome));
      should(errorOf(msg).message).match(/msg\.recipient has one: write recipient\.name between the braces/);
      const list = only(await flow.ask({ ...outcome, phone: [{ phone: outcome.phone }] }));
      should(errorOf(list.msg).message).match(/The recipient has these: phone\.$/);
      should(bodies()).be.empty();
    });

    it('names the fields of the contact of a single message, where one is missing', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { text: 'Hallo {{Vorname}}', textType: 'str' });
      const contact = { contactId: 1001, firstName: 'Ann' };
      const { msg } = only(await flow.ask({ phone: '+12025550101', contact }));
      should(errorOf(msg).message).match(/The recipient has these: contactId, firstName\.$/);
      should(bodies()).be.empty();
    });

    it('names the fields that the recipient has, where one is missing', async () => {
      const flow = await sendNode(on.environment, { text: 'Hi {{firstName}}', textType: 'str' });
      const { msg } = only(await flow.ask({ phone: [{ 'First Name': 'Ann', phone: numbers.consented }] }));
      should(errorOf(msg).message).match(/no "firstName" .+ recipient has these: First Name, phone\.$/);
    });

    it('says how to get the results of a page one by one', async () => {
      const payload = { data: [{ title: 'One' }], pageInfo: {} };
      for (const field of ['payload.title', 'title']) {
        const flow = await sendNode(on.environment, { text: `See {{${field}}}`, textType: 'str' });
        const contact = { firstName: 'Ann' };
        const { msg } = only(await flow.ask({ phone: numbers.consented, payload, contact }));
        should(errorOf(msg).message).match(new RegExp(`no "${field}" .+ page of results: set "Output"`));
        await Flow.unload();
      }
    });

    it('is not sent with double braces where a field was meant', async () => {
      const flow = await sendNode(on.environment, { text: 'Hi {{name} there', textType: 'str' });
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, name: 'Ann' }));
      should({ port, code: errorOf(msg).code }).eql({ port: 1, code: 'invalid_input' });
    });

    it('is not sent with the error of a formula where a name was meant', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { phone: 'payload', text: 'Hi {{name}}', textType: 'str' });
      const errors = ['#N/A', '#NV', '#REF!', '#BEZUG!', '#DIV/0!', '#¿NOMBRE?', ' #VALUE! '];
      const names = [...errors, '#1', 'NV'];
      const payload = names.map((name, index) => ({ phone: `+1202555010${String(index)}`, name }));
      const arrived = inOrder(await flow.ask({ payload }, names.length));
      should(arrived.map(({ port }) => port)).eql([...errors.map(() => 1), 0, 0]);
      should(errorOf(arrived[0]?.msg ?? {}).message).match(/"name" is an error of the spreadsheet \(#N\/A\)/);
      should(bodies()).have.length(2);
    });

    it('cut in the middle of a character fails for that recipient alone', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { phone: 'payload' });
      const payload = [
        { phone: '+12025550101', text: 'Hi 😀'.slice(0, 4) },
        { phone: '+12025550102', text: 'Hi 😀' },
      ];
      const arrived = inOrder(await flow.ask({ payload }, 2));
      should(arrived.map(({ port }) => port)).eql([1, 0]);
      should(errorOf(arrived[0]?.msg ?? {}).message).match(/half a character.*whole characters/);
      should(bodies()).eql([{ phone: '+12025550102', text: 'Hi 😀' }]);
    });

    it('from a file that was read in another encoding fails for the recipients with an umlaut', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment, { phone: 'payload', text: 'Hi {{name}}', textType: 'str' });
      const names = Buffer.from('Müller,Ann', 'latin1').toString('utf8').split(',');
      const payload = names.map((name, index) => ({ phone: `+1202555010${String(index)}`, name }));
      const arrived = inOrder(await flow.ask({ payload }, 2));
      should(arrived.map(({ port }) => port)).eql([1, 0]);
      should(errorOf(arrived[0]?.msg ?? {}).message).match(/in place of a letter.*choose the encoding/);
      should(bodies()).eql([{ phone: '+12025550101', text: 'Hi Ann' }]);
    });

    for (const text of [undefined, '', '  \n', {}, 'half \ud83d']) {
      it(`${inspect(text)} is invalid_input`, async () => {
        const flow = await sendNode(on.environment);
        const { port, msg } = only(await flow.ask({ phone: numbers.consented, text }));
        should(port).equal(1);
        should(errorOf(msg).code).equal('invalid_input');
        should(texts()).be.empty();
      });
    }

    it('is in msg.payload, and the error says so', async () => {
      const flow = await sendNode(on.environment);
      const { msg } = only(await flow.ask({ phone: numbers.consented, payload: 'Hi there' }));
      should(errorOf(msg).message).match(/msg\.payload contains text: choose msg\.payload/);
    });

    it('can come from JSONata', async () => {
      const flow = await sendNode(on.environment, { text: '"Hi " & name', textType: 'jsonata' });
      const { msg } = only(await flow.ask({ phone: numbers.consented, name: 'Ann' }));
      should(msg.text).equal('Hi Ann');
    });
  });

  describe('scheduled', () => {
    const at = Date.parse('2090-01-02T03:04:05Z');

    for (const [kind, deliveryDate] of [
      ['epoch milliseconds', at],
      ['an ISO string', '2090-01-02T03:04:05Z'],
      ['a Date', new Date(at)],
    ] as const) {
      it(`accepts ${kind}`, async () => {
        const { environment, bodies } = await scripted(() => ({ body: sent }));
        const flow = await sendNode(environment, { schedule: 'at' });
        const { msg } = only(
          await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate, frequency: 2 }),
        );
        should(bodies()).deepEqual([
          { phone: '+12025550101', text: 'Hi', scheduleDelivery: true, deliveryDate: at, frequency: 2 },
        ]);
        should(msg.payload).containEql({ scheduled: true });
      });
    }

    it('sends seconds when the environment says so, and omits an empty frequency', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }), { deliveryDateUnit: 's' });
      const flow = await sendNode(environment, { schedule: 'at' });
      await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate: at, frequency: '' });
      should(bodies()).deepEqual([
        { phone: '+12025550101', text: 'Hi', scheduleDelivery: true, deliveryDate: at / 1000 },
      ]);
    });

    it('treats a cleared property as a missing one', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const cleared = { frequency: '', frequencyType: 'msg', advisor: '', advisorType: 'jsonata' };
      const flow = await sendNode(environment, { schedule: 'at', ...cleared });
      await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate: at, advisor: 'default' });
      should(bodies()[0]).not.have.property('frequency');
    });

    it('keeps the null id that the service returns', async () => {
      const flow = await sendNode(on.environment, { schedule: 'at' });
      const { msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi', deliveryDate: at }));
      should(msg.payload).containEql({ messageId: null, scheduled: true });
      await flow.completed.next();
      should(flow.statuses.at(-1)?.text).match(/^sim scheduled Jan \d, \d{1,2}:\d\d( [AP]M)?$/);
    });

    for (const deliveryDate of [undefined, 'soon', 1, new Date(0), NaN]) {
      it(`${String(deliveryDate)} is invalid_input`, async () => {
        const flow = await sendNode(on.environment, { schedule: 'at' });
        const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi', deliveryDate }));
        should(port).equal(1);
        should(errorOf(msg).code).equal('invalid_input');
        should(texts()).be.empty();
      });
    }

    it('ignores schedule fields when it sends immediately', async () => {
      const { environment, bodies } = await scripted(() => ({ body: sent }));
      const flow = await sendNode(environment);
      await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate: 'nonsense', frequency: 1 });
      should(bodies()).deepEqual([{ phone: '+12025550101', text: 'Hi' }]);
    });
  });

  describe('the advisor', () => {
    const among = (advisors: readonly string[]) =>
      environmentOn(
        {
          baseUrl: on.simulator.baseUrl,
          apiKey: on.simulator.credentials.apiKey,
          token: (advisor) => on.simulator.accessToken(advisor),
        },
        { advisors },
      );
    const message = { phone: numbers.consented, text: 'Hi' };

    it('is taken from msg.advisor, and written to the message', async () => {
      const flow = await sendNode(alsoClose(among(['ann', 'bob'])));
      const { port, msg } = only(await flow.ask({ ...message, advisor: 'bob' }));
      should(port).equal(0);
      should(msg.advisor).equal('bob');
    });

    it('is the only one when none is named', async () => {
      const flow = await sendNode(alsoClose(among(['ann'])));
      should(only(await flow.ask({ ...message })).msg.advisor).equal('ann');
    });

    it('is never that of the message before', async () => {
      const flow = await sendNode(alsoClose(among(['ann', 'bob'])));
      should(only(await flow.ask({ ...message, advisor: 'bob' })).port).equal(0);
      const { port, msg } = only(await flow.ask({ ...message }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
    });

    it('is never guessed among several', async () => {
      const flow = await sendNode(alsoClose(among(['ann', 'bob'])));
      const { port, msg } = only(await flow.ask({ ...message }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
    });

    it('is missing if the chosen source is empty, whatever msg.advisor says', async () => {
      const flow = await sendNode(alsoClose(among(['ann'])), { advisor: 'who', advisorType: 'msg' });
      const { msg } = only(await flow.ask({ ...message, advisor: 'ann' }));
      should(errorOf(msg).code).equal('invalid_input');
    });

    it('must authorize if they have not, for each recipient', async () => {
      const flow = await sendNode(alsoClose(among(['ann'])));
      const arrived = await flow.ask({ ...message, phone: [numbers.consented, 'x'], advisor: 'eve' }, 2);
      should(inOrder(arrived).map(({ msg }) => errorOf(msg).code)).deepEqual([
        'authorization_required',
        'invalid_input',
      ]);
      should(errorOf(inOrder(arrived)[0]?.msg ?? {}).retryable).equal(true);
    });
  });

  for (const [what, given] of [
    ['a number', { phone: numbers.consented, text: 'Hi' }],
    ['no number', { text: 'Hi' }],
    ['an invalid number', { phone: '555 0101', text: 'Hi' }],
    ['neither number nor text, in a dry run', { dryRun: true }],
  ] as const) {
    it(`says what is missing when it has no environment, before anything else: given ${what}`, async () => {
      const flow = await sendNode(undefined);
      const { port, msg } = only(await flow.ask({ ...given }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'not_configured', ...('dryRun' in given && { dryRun: true }) });
    });
  }

  describe('msg.reset', () => {
    it('cancels what has not started, lets requests in flight finish, and emits nothing itself', async () => {
      const { flow, open, server } = await heldSendNode({
        client: { maxConcurrent: 2 },
        settings: { maxConcurrent: 4 },
      });
      const phone = Array.from({ length: 20 }, (_, n) => `+120255501${String(n).padStart(2, '0')}`);
      flow.send({ phone, text: 'Hi' });
      while (server.received.length < 2) await nextIteration();
      flow.send({ reset: true });
      await flow.completed.next();
      open();
      const arrived = await flow.arrivals.next(20);
      const sentOnes = arrived.filter(({ port }) => port === 0);
      should(sentOnes).have.length(2);
      const codes = new Set(arrived.filter(({ port }) => port === 1).map(({ msg }) => errorOf(msg).code));
      should([...codes]).deepEqual(['cancelled']);
      should(server.received).have.length(2);
      await flow.completed.next();
    });
  });

  it("does not quote the service's reason in errors that are logged", async () => {
    const flow = await sendNode(on.environment, {}, { unwired: [1] });
    flow.send({ phone: numbers.landline, text: 'Hi' });
    const raised = only(await flow.errors.next());
    should(raised.error['message']).match(/msg\.error\.detail.+correct the number/);
    should(String(raised.error['message'])).not.match(/landline/);
  });

  it('does not log the words in which the service refuses a request: they may quote the text', async () => {
    const { environment } = await scripted(() =>
      problemReply('invalid_request', { detail: 'No "Hi", please' }),
    );
    const flow = await sendNode(environment, {}, { unwired: [1] });
    flow.send({ phone: numbers.consented, text: 'Hi' });
    const raised = only(await flow.errors.next());
    should(raised.error['message']).match(/refused the request: check the values that were sent\.$/);
  });

  describe('status', () => {
    it('says until when the service paused all requests', async () => {
      const clock = new MovableClock(() => Date.parse('2030-01-01T12:00:00Z'));
      const server = await startServer(({ index }) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '300' } } : { body: sent },
      );
      const environment = alsoClose(
        environmentOn({ baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' }, { clock }),
      );
      const flow = await sendNode(environment);
      flow.send({ phone: '+12025550101', text: 'Hi' });
      while (flow.statuses.length === 0) await nextIteration();
      should(flow.statuses[0]?.text).match(/^paused until \d\d:\d5$/);
      await clock.move(300_000);
      should(only(await flow.arrivals.next()).port).equal(0);
    });

    it('says until when the token endpoint is left alone', async () => {
      const token = gate();
      const server = await startServer(() => ({ body: sent }));
      const service = {
        baseUrl: `${server.url}/v1`,
        apiKey: 'key',
        token: () => token.opened.then(() => 'token'),
      };
      const environment = alsoClose(environmentOn(service));
      const paused = Object.defineProperty(environment, 'pausedUntil', { value: Date.now() + 300_000 });
      const flow = await sendNode(paused);
      flow.send({ phone: '+12025550101', text: 'Hi' });
      while (flow.statuses.length === 0) {
        environment.changed();
        await nextIteration();
      }
      should(flow.statuses[0]?.text).match(/^paused until \d{1,2}:\d\d( [AP]M)?$/);
      token.open();
      should(only(await flow.arrivals.next()).port).equal(0);
    });

    it('survives a change of an invalid environment', async () => {
      const refused: unknown[] = [];
      const note = (reason: unknown): void => {
        refused.push(reason);
      };
      const environment = Object.assign(
        environmentOn({ baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key', token: () => 'token' }),
        { client: () => Promise.reject(new Error('not in order')) },
      );
      await sendNode(environment);
      const before = process.listeners('unhandledRejection');
      process.removeAllListeners('unhandledRejection');
      process.on('unhandledRejection', note);
      environment.changed();
      await new Promise((resolve) => setTimeout(resolve, 20));
      process.removeListener('unhandledRejection', note);
      for (const listener of before) process.on('unhandledRejection', listener);
      should(refused).deepEqual([]);
    });

    it('says for when a text is scheduled, in the zone of the environment', async () => {
      const server = await startServer(() => ({ body: sent }));
      const environment = alsoClose(
        environmentOn(
          { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' },
          { settings: { timeZone: 'America/Chicago' } },
        ),
      );
      const flow = await sendNode(environment, { schedule: 'at' });
      await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate: '2090-11-17T09:00' });
      should(flow.statuses.at(-1)?.text).equal('scheduled Nov 17, 09:00');
    });

    it('says when a text is scheduled by the clock of its date, and names another zone', async () => {
      for (const [timeZone, shown] of [
        ['Europe/Berlin', 'scheduled Nov 17, 09:00 UTC-6'],
        ['America/Chicago', 'scheduled Nov 17, 09:00'],
      ]) {
        const { environment } = await scripted(() => ({ body: sent }), { timeZone });
        const flow = await sendNode(environment, { schedule: 'at' });
        await flow.ask({ phone: '+12025550101', text: 'Hi', deliveryDate: '2090-11-17T09:00-06:00' });
        should(flow.statuses.at(-1)?.text).equal(shown);
        await Flow.unload();
      }
    });

    it('shows the date of an older outcome', async () => {
      const clock = new MovableClock(() => Date.parse('2030-01-31T12:00:00'));
      const texts: string[] = [];
      const words = wordsIn('en-US');
      const status = createStatus(
        { status: (shown) => texts.push((shown as { text: string }).text) },
        wordsIn('en-US'),
        undefined,
        false,
        clock,
      );
      const at = clock.now();
      status.show(() =>
        look('green', 'dot', words.say('status.sent', { time: words.time(at, clock.now()) })),
      );
      await clock.move(86_400_000);
      status.close();
      should(texts).deepEqual(['sent 12:00 PM', 'sent Jan 31, 12:00 PM']);
    });

    it('shows nobody as unauthorized who has authorized before it was shown', async () => {
      const clock = new MovableClock(() => Date.parse('2030-01-31T12:00:00'));
      const texts: unknown[] = [];
      const status = createStatus(
        { status: (shown) => texts.push((shown as { text?: string }).text) },
        wordsIn('en-US'),
        undefined,
        false,
        clock,
      );
      status.show(() => look('green', 'dot', 'sent'));
      status.show(() => unauthorizedLook(wordsIn('en-US'), false));
      status.clearIfAuthorized(() => true);
      await clock.move(2000);
      status.close();
      should(texts).deepEqual(['sent', undefined]);
    });

    it('leaves nothing behind that asks for an authorization: after a deploy, none may be needed', () => {
      const texts: unknown[] = [];
      const status = createStatus(
        { status: (shown) => texts.push((shown as { text?: string }).text) },
        wordsIn('en-US'),
        undefined,
      );
      status.show(() => unauthorizedLook(wordsIn('en-US'), false));
      status.close();
      should(texts).deepEqual(['not authorized', undefined]);
    });

    it('shows nothing after its node has closed', async () => {
      const clock = new MovableClock(() => Date.parse('2030-01-31T12:00:00'));
      const texts: string[] = [];
      const status = createStatus(
        { status: (shown) => texts.push((shown as { text: string }).text) },
        wordsIn('en-US'),
        undefined,
        false,
        clock,
      );
      status.close();
      status.show(() => look('green', 'dot', 'late'));
      await clock.move(2 * 86_400_000);
      should(texts).deepEqual([]);
    });

    it('shows the date of outcomes before today on a simulator whose clock was moved', async () => {
      const flow = await sendNode(on.environment);
      await flow.ask({ phone: numbers.consented, text: 'Hi' });
      await flow.completed.next();
      await on.simulator.clock.move(86_400_000);
      should(flow.statuses.at(-1)?.text).match(/^sim sent [A-Z][a-z]+ \d+, \d{1,2}:\d\d( [AP]M)?$/);
    });

    it('clears a status from before a deploy at midnight, when it would need a date', async () => {
      const first = await sendNode(on.environment);
      await first.ask({ phone: numbers.consented, text: 'Hi' });
      await first.completed.next();
      await Flow.unload();
      await sendNode(on.environment);
      const statuses: unknown[] = [];
      helper.getNode('send')?.on('call:status', ({ args }: { args: unknown[] }) => statuses.push(...args));
      await on.simulator.clock.move(86_400_000);
      should(statuses).eql([{}]);
    });

    it('says how many of a list left by each output, regardless of the last', async () => {
      const flow = await sendNode(on.environment);
      await flow.ask({ phone: ['x', 'y', numbers.unasked, numbers.consented], text: 'Hi' }, 4);
      await flow.completed.next();
      const isLast = (): boolean => flow.statuses.at(-1)?.text === 'sim 1 sent, 2 failed, 1 no consent';
      await until(isLast);
    });

    it('says so even if the last of a list is shown immediately, and does not stay at "2 / 2"', async () => {
      const flow = await sendNode(on.environment);
      await flow.ask({ phone: [numbers.consented, numbers.consented], text: 'Hi' }, 2);
      await flow.completed.next();
      should(flow.statuses.map(({ text }) => text)).deepEqual(['sim 1 sent, 1 already sent']);
    });

    it('starts with sim on the simulator and shows a clock time', async () => {
      const flow = await sendNode(on.environment);
      await flow.ask({ phone: numbers.consented, text: 'Hi' });
      await flow.completed.next();
      should(flow.statuses.at(-1)?.text).match(/^sim sent \d{1,2}:\d\d( [AP]M)?$/);
    });
  });
});
