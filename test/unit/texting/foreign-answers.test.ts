import should from 'should';
import type { Environment, EnvironmentSettings } from '../../../lib/runtime/environment';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn } from '../../support/environment';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';

describe('a text, answered with all the freedom of the contract', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const scripted = async (
    answer: () => { status?: number; body: unknown },
    settings: Partial<EnvironmentSettings> = {},
  ): Promise<{ environment: Environment }> => {
    const server = await startServer(answer);
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    return { environment: alsoClose(environmentOn(service, { settings })) };
  };

  it('is sent though the answer has no failures, with unchanged ids', async () => {
    for (const [written, id] of [
      ['"m-1"', 'm-1'],
      ['9007199254740993', '9007199254740993'],
    ]) {
      const body = `{"successes":[{"messageId":${String(written)},"memberId":${String(written)}}]}`;
      const { environment } = await scripted(() => ({ body }));
      const flow = await sendNode(environment);
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
      should(port).equal(0);
      should(msg.payload).containEql({ messageId: id, memberId: id });
      await Flow.unload();
    }
  });

  it('is counted by its code, even if that is the name of a property of every object', async () => {
    const codes = ['__proto__', 'constructor', '__proto__'];
    const { environment } = await scripted(() => ({
      status: 400,
      body: { code: codes.pop(), retryable: false },
    }));
    const flow = await sendNode(environment);
    const phone = [numbers.consented, numbers.silent, numbers.landline];
    const all = await flow.ask({ phone, text: 'Hi' }, 3);
    const { byCode } = all.at(-1)?.msg['summary'] as { byCode: object };
    should(Object.entries(byCode)).containDeep([
      ['__proto__', 2],
      ['constructor', 1],
    ]);
  });

  it('needs consent if failure details of any shape say so', async () => {
    const failureDetails = { [numbers.consented]: { reason: { code: 'CONSENT_REQUIRED' } } };
    const { environment } = await scripted(() => ({ body: { failures: ['Not sent'], failureDetails } }));
    const flow = await sendNode(environment);
    const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
    should(port).equal(2);
    should(msg.payload).eql({ reason: 'Not sent', details: failureDetails });
  });

  it('keeps the failure details of a rejection in the error, even for missing consent with nothing wired', async () => {
    const failureDetails = [{ code: 'landline', hint: { carrier: 'none' } }];
    const { environment } = await scripted(() => ({ body: { failures: ['Not textable'], failureDetails } }));
    const flow = await sendNode(environment);
    const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
    should(port).equal(1);
    should(errorOf(msg)).containEql({ code: 'rejected', detail: 'Not textable', details: failureDetails });
    await Flow.unload();

    const codes = [{ code: 'consent_required' }];
    const other = await scripted(() => ({ body: { failures: ['Not sent'], failureDetails: codes } }));
    const unwired = await sendNode(other.environment, {}, { unwired: [2] });
    const failed = only(await unwired.ask({ phone: numbers.consented, text: 'Hi' }));
    should(failed.port).equal(1);
    should(errorOf(failed.msg)).containEql({ code: 'consent_required', details: codes });
  });

  it('fails in the words of the service if that says "cancelled", which is a code of ours', async () => {
    const body = { code: 'cancelled', retryable: false, detail: 'The line is closed' };
    const { environment } = await scripted(() => ({ status: 400, body }));
    const flow = await sendNode(environment);
    const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
    should(port).equal(1);
    should(errorOf(msg)).containEql({ code: 'invalid_request', detail: 'The line is closed' });
  });

  it('has no details if the service gave none', async () => {
    for (const failureDetails of [undefined, null]) {
      const { environment } = await scripted(() => ({ body: { failures: ['Landline'], failureDetails } }));
      const flow = await sendNode(environment);
      const { msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
      should(errorOf(msg)).not.have.property('details');
      await Flow.unload();
    }
  });

  it("needs consent if the environment's pattern matches, whatever else the rejection says", async () => {
    const reason = 'Member has not consented to receive texts or has opted out';
    const refused = () => ({ body: { failures: [reason] } });
    for (const [consentPattern, port] of [
      ['not consented', 2],
      ['', 1],
    ] as const) {
      const { environment } = await scripted(refused, { consentPattern });
      const flow = await sendNode(environment);
      should(only(await flow.ask({ phone: numbers.consented, text: 'Hi' })).port).equal(port);
      await Flow.unload();
    }
  });

  it('is compared by its beginning with the pattern of the user if the reason is very long', async () => {
    const failures = [`not consented ${'not '.repeat(1_000_000)}`];
    for (const [consentPattern, port] of [
      ['.*not.*consented', 2],
      ['.*not.*x', 1],
    ] as const) {
      const { environment } = await scripted(() => ({ body: { failures } }), { consentPattern });
      const flow = await sendNode(environment);
      should(only(await flow.ask({ phone: numbers.consented, text: 'Hi' })).port).equal(port);
      await Flow.unload();
    }
  });

  it('was probably sent if the answer cannot be read, and the error says so', async () => {
    const { environment } = await scripted(() => ({ body: '<html>OK</html>' }));
    const flow = await sendNode(environment);
    const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi' }));
    should(port).equal(1);
    should(errorOf(msg)).containEql({ code: 'invalid_response', retryable: false });
    should(errorOf(msg).message).match(/probably carried out/);
  });
});
