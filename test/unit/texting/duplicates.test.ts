import should from 'should';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn } from '../../support/environment';
import { Flow } from '../../support/flow';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';
import { until } from '../../support/until';

const refused = (why: string): object => ({ successes: [], failures: [why] });

describe('the same number and text twice in one list', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  /** A service that gives these answers to texts, one after the other; nobody has consented there. */
  const answering = async (...answers: readonly object[]) => {
    let texts = 0;
    const server = await startServer(({ method }) =>
      method === 'GET' ? { body: { memberId: 9, state: 'pending' } } : { body: answers[texts++] ?? sent },
    );
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    return { environment: alsoClose(environmentOn(service)), received: () => texts };
  };

  const one = '+12025550101';

  it('is sent once; the duplicate leaves with the original', async () => {
    const { environment, received } = await answering();
    const flow = await sendNode(environment);
    const arrived = inOrder(await flow.ask({ phone: [one, '+12025550102', one], text: 'Hi' }, 3));
    should(received()).equal(2);
    should(arrived.map(({ port }) => port)).deepEqual([0, 0, 0]);
    should(arrived[2]?.msg.payload).containEql({ messageId: 7, duplicateOf: 0 });
    should(arrived[0]?.msg.payload).not.have.property('duplicateOf');
  });

  it('is sent once even if both return with consent', async () => {
    const { environment, received } = await answering(refused('No consent'));
    const flow = await sendNode(environment);
    const asked = inOrder(await flow.ask({ phone: [one, one], text: 'Hi' }, 2));
    should(asked.map(({ port }) => port)).deepEqual([2, 2]);
    const [original, duplicate] = asked.map(({ msg }) => msg);
    const [first] = await flow.ask(original ?? {});
    const payload = { ...(first?.msg.payload as object) };
    Object.assign(first?.msg.payload as object, { messageId: 'changed by the flow' });
    const [second] = await flow.ask(duplicate ?? {});
    should([first?.port, second?.port]).deepEqual([0, 0]);
    should(second?.msg.payload).deepEqual({ ...payload, duplicateOf: 0 });
    should(received()).equal(2);
    await until(() => flow.statuses.at(-1)?.text === '1 sent, 1 already sent', 'A status that counts both');
  });

  it('has one outcome for both, whatever happens to the one that returned', async () => {
    const { environment, received } = await answering(
      refused('No consent'),
      refused('Still no consent'),
      refused('Landline'),
    );
    const flow = await sendNode(environment);
    const asked = inOrder(await flow.ask({ phone: [one, one], text: 'Hi' }, 2));
    for (const { msg } of asked) flow.send(msg);
    const still = inOrder(await flow.arrivals.next(2));
    should(still.map(({ port }) => port)).deepEqual([2, 2]);
    for (const { msg } of still) flow.send(msg);
    const ended = await flow.arrivals.next(2);
    should(ended.map(({ msg }) => errorOf(msg).code)).deepEqual(['rejected', 'rejected']);
    should(received()).equal(3);
  });

  it('is sent even if only the duplicate returns', async () => {
    const { environment, received } = await answering(refused('No consent'));
    const flow = await sendNode(environment);
    const asked = inOrder(await flow.ask({ phone: [one, one], text: 'Hi' }, 2));
    const duplicate = asked[1]?.msg ?? {};
    should(duplicate.payload).deepEqual({ reason: 'No consent', duplicateOf: 0 });
    should(duplicate.resend).deepEqual({ node: 'send', phone: one, text: 'Hi', advisor: 'default' });
    const [back] = await flow.ask(duplicate);
    should(back?.port).equal(0);
    should(back?.msg.payload).deepEqual({
      messageId: 7,
      memberId: 9,
      scheduled: false,
      attempts: 1,
      segments: 1,
    });
    should(back?.msg).not.have.property('resend');
    should(received()).equal(2);
  });

  it('is sent for each of two lists, dates or advisors, even if both return with consent', async () => {
    const { environment, received } = await answering();
    const flow = await sendNode(environment);
    const resend = { node: 'send', phone: one, text: 'Hi', advisor: 'default', deliveryDate: 4e12 };
    for (const other of [
      { parts: { id: 'another', index: 1 } },
      { resend: { ...resend, deliveryDate: 4e12 + 1 } },
      { resend: { ...resend, advisor: 'maria' } },
    ]) {
      const before = received();
      const [first] = await flow.ask({ resend, parts: { id: 'list', index: 0 } });
      const [second] = await flow.ask({ resend, parts: { id: 'list', index: 1 }, ...other });
      should([first?.port, second?.port]).deepEqual([0, 0]);
      should(received() - before).equal(2);
    }
  });
});
