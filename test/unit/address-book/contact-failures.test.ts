import should from 'should';
import { alsoClose } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { environmentOn } from '../../support/environment';
import { Flow } from '../../support/flow';
import { problemReply } from '../../support/service/setup';
import { until } from '../../support/until';
import { contactNode, groupNode, scripted } from '../../support/address-book/setup';

const ann = 1001;

describe('contact node, failures', () => {
  const on = simulatedForEach();

  for (const operation of ['get', 'update', 'delete']) {
    it(`says what to do about an unknown contact (${operation})`, async () => {
      const flow = await contactNode(on.environment, { operation });
      const failed = only(await flow.ask({ contactId: 999999, payload: { city: 'Reno' } }));
      should(failed.port).equal(1);
      should(errorOf(failed.msg)).containEql({ code: 'not_found', status: 404, attempts: 1 });
      should(errorOf(failed.msg).message).match(/check/);
      should(failed.msg.payload).deepEqual({ city: 'Reno' });
      should(failed.msg.contactId).equal(999999);
    });
  }

  it('takes no file for a contact: the bytes of a buffer are not its fields', async () => {
    const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
    for (const operation of ['create', 'update', 'save']) {
      const flow = await contactNode(environment, { operation });
      const failed = only(await flow.ask({ contactId: ann, payload: Buffer.alloc(20_000_000) }));
      should(errorOf(failed.msg).code).equal('invalid_input');
      should(errorOf(failed.msg).message).match(/^There is no contact in msg\.payload/);
      await Flow.unload();
    }
    should(requests()).be.empty();
  });

  it('names the scope that is missing', async () => {
    const { environment } = alsoClose(await startSimulated({}, { scopes: ['openid', 'core.contacts.read'] }));
    const flow = await contactNode(environment, { operation: 'create' });
    const failed = only(await flow.ask({ payload: { firstName: 'A' } }));
    should(errorOf(failed.msg).code).equal('forbidden');
    should(errorOf(failed.msg).message).match(/core\.contacts\.write/);
  });

  it('fails each entry of a list for an advisor who has not authorized, so that Join completes', async () => {
    const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
    const payload = [{ firstName: 'A' }, { firstName: 'B' }];
    const creating = await contactNode(environment, { operation: 'create' });
    const created = await creating.ask({ payload, advisor: 'eve' }, 2);
    should(created.map((one) => errorOf(one.msg).code)).deepEqual(Array(2).fill('authorization_required'));
    should(created.map(({ msg }) => msg.contact)).deepEqual(payload);
    for (const { msg } of created) should(msg.parts).containEql({ type: 'array', count: 2 });
    await until(() => creating.statuses.at(-1)?.text === 'not authorized', 'The status');
    await Flow.unload();
    const adding = await groupNode(environment, {
      operation: 'addContact',
      groupId: '3',
      groupIdType: 'num',
    });
    const added = await adding.ask({ contactId: [1, 2, 3], advisor: 'eve' }, 3);
    should(added.map((one) => errorOf(one.msg).code)).deepEqual(Array(3).fill('authorization_required'));
    should(added.map(({ msg }) => msg.contactId)).deepEqual([1, 2, 3]);
    should(requests()).be.empty();
  });

  it('shows from the start that nobody has authorized, until somebody has, and when nobody is left', async () => {
    const advisors: string[] = [];
    const service = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { advisors }));
    const flow = await contactNode(environment, { operation: 'get' });
    await until(() => flow.statuses.at(-1)?.text === 'not authorized', 'The status');
    advisors.push('ann');
    environment.changed();
    await nextIteration();
    should(flow.statuses.at(-1)).deepEqual({});
    advisors.pop();
    environment.changed();
    await until(() => flow.statuses.at(-1)?.text === 'not authorized', 'The status');
  });

  it('stops showing that somebody must authorize once somebody has', async () => {
    const advisors = ['ann'];
    const service = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { advisors }));
    const flow = await contactNode(environment, { operation: 'get' });
    const shown = async (): Promise<unknown> => {
      await nextIteration();
      return flow.statuses.at(-1);
    };
    await flow.ask({ contactId: ann, advisor: 'bob' });
    environment.changed();
    should(await shown()).containEql({ text: 'not authorized' });
    advisors.push('bob');
    environment.changed();
    should(await shown()).deepEqual({});
  });

  it('reports a body that violates the contract as invalid_response', async () => {
    const { environment } = await scripted(() => ({ body: { surprise: true } }));
    const flow = await contactNode(environment, { operation: 'get' });
    should(errorOf(only(await flow.ask({ contactId: 5 })).msg).code).equal('invalid_response');
  });

  it('does not create twice when the outcome is unknown', async () => {
    on.simulator.faults.add({ endpoint: 'createContact', kind: 'cut-after' });
    const flow = await contactNode(on.environment, { operation: 'create' });
    const failed = only(await flow.ask({ payload: { firstName: 'A' } }));
    should(errorOf(failed.msg).code).equal('outcome_unknown');
    should(on.received('createContact')).equal(1);
  });

  it('raises an error for Catch when nothing is wired to the failures', async () => {
    const flow = await contactNode(on.environment, { operation: 'get' }, { unwired: [1] });
    flow.send({ contactId: 'Ann Ito' });
    const { error } = only(await flow.errors.next());
    should(error).containEql({ code: 'invalid_input' });
    should((error as { cause: unknown }).cause).have.property('source');
    should(flow.completed.all).be.empty();
  });

  it('leaves the advisor of the message alone, and acts for that one', async () => {
    const flow = await contactNode(on.environment, { operation: 'get' });
    const { msg } = only(await flow.ask({ contactId: ann, advisor: 'maria' }));
    should(msg.advisor).equal('maria');
    should(on.simulator.ledger.entries().map(({ advisor }) => advisor)).deepEqual(['maria']);
  });

  it('fails with a message when there is no environment, or an unknown operation', async () => {
    const flow = await contactNode(on.environment, { operation: 'explode' });
    should(errorOf(only(await flow.ask({ payload: {} })).msg).message).match(/explode/);
    await Flow.unload();
    const bare = await contactNode(on.environment, { environment: '' });
    should(errorOf(only(await bare.ask({ payload: {} })).msg).code).equal('not_configured');
    should(errorOf(only(await bare.ask({})).msg).code).equal('not_configured');
  });

  it('passes a problem of the service on unchanged', async () => {
    const { environment } = await scripted(() =>
      problemReply('invalid_request', { details: { field: 'phone' } }),
    );
    const flow = await contactNode(environment, { operation: 'create' });
    const failed = only(await flow.ask({ payload: { phone: '+12065550101' } }));
    should(errorOf(failed.msg)).containEql({ code: 'invalid_request', status: 400, traceId: 'trace-1' });
    should(errorOf(failed.msg)).containEql({ details: { field: 'phone' } });
  });
});
