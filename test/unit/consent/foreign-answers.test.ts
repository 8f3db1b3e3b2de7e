import should from 'should';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn } from '../../support/environment';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startServer } from '../../support/server';
import { checkFolder, requestFolder } from '../../support/texting/setup';

describe('a consent, answered with all the freedom of the contract', () => {
  const bodies: string[] = [];
  afterEach(async () => {
    bodies.length = 0;
    await Flow.unload();
    await closeAll();
  });

  const nodeOn = async (body: object, node: { readonly type: string; readonly mode?: string }) => {
    const server = await startServer((request) => {
      bodies.push(request.body);
      return { body };
    });
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service));
    return Flow.load({
      folders: [checkFolder, requestFolder],
      environment,
      nodes: [{ id: 'node', ...node }],
    });
  };

  for (const mode of ['once', 'wait'])
    it(`is accepted however the state is written, in the mode "${mode}"`, async () => {
      for (const state of ['accepted', 'Accepted', 'ACCEPTED']) {
        const flow = await nodeOn({ state }, { type: 'advisor-check-consent', mode });
        const { port, msg } = only(await flow.ask({ phone: numbers.silent }));
        should(port).equal(0);
        should(msg.payload).containEql({ state: 'accepted' });
        await Flow.unload();
      }
    });

  it('is not accepted in a state that only contains the word', async () => {
    const flow = await nodeOn({ state: 'Not accepted' }, { type: 'advisor-check-consent', mode: 'once' });
    const { port, msg } = only(await flow.ask({ phone: numbers.silent }));
    should(port).equal(2);
    should(msg.payload).containEql({ state: 'Not accepted' });
  });

  it('was not asked for if the only target has a failure, even with an entry of its own that names no state', async () => {
    const failures = ['The number is a landline'];
    for (const consentState of [undefined, null, '', 'none', 'None']) {
      const body = { successes: [{ memberId: 7, consentState }], failures };
      const flow = await nodeOn(body, { type: 'advisor-request-consent' });
      const { port, msg } = only(await flow.ask({ phone: numbers.silent }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'rejected', detail: 'The number is a landline' });
      await Flow.unload();
    }
  });

  it('is asked for one number at a time, because an answer does not say whose entry is which', async () => {
    const flow = await nodeOn(
      { successes: [{ memberId: 7, consentState: 'pending' }], failures: [] },
      { type: 'advisor-request-consent' },
    );
    await flow.ask({ phone: [numbers.silent, numbers.unasked] }, 2);
    const asked = [numbers.silent, numbers.unasked].map((phone) => JSON.stringify({ phoneNumbers: [phone] }));
    should(bodies.sort()).eql(asked.sort());
  });

  it('counts as asked for after an answer that cannot be read: nobody is asked twice', async () => {
    const flow = await nodeOn({ successes: [], failures: [] }, { type: 'advisor-request-consent' });
    const { msg } = only(await flow.ask({ phone: numbers.silent }));
    should(errorOf(msg).code).equal('invalid_response');
    const again = only(await flow.ask({ phone: numbers.silent }));
    should(again.port).equal(0);
    should(again.msg.payload).containEql({ requested: false });
  });

  it('was asked for if the only target has a state, whatever else the answer says', async () => {
    const body = { successes: [{ memberId: 7, consentState: 'pending' }], failures: ['Delivered late'] };
    const flow = await nodeOn(body, { type: 'advisor-request-consent' });
    const { port, msg } = only(await flow.ask({ phone: numbers.silent }));
    should(port).equal(0);
    should(msg.payload).containEql({ memberId: 7, consentState: 'pending', requested: true });
  });
});
