import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { Caller, shouldBeCut } from '../../support/simulator/caller';

const phone = '+12145550104';
const friend = '+12065550101';

describe("the simulator's control API", () => {
  let simulator: Simulator;
  let caller: Caller;

  beforeEach(async () => {
    simulator = await startSimulator();
    caller = new Caller(simulator);
  });
  afterEach(() => simulator.close());

  const stateOf = async (wanted: string) => {
    const { body } = await caller.control('GET', 'state');
    return (
      body['phones'] as { phone: string; consent: string; messages: { text: string; kind: string }[] }[]
    ).find((one) => one.phone === wanted);
  };

  it('shows a phone per number with the messages it received', async () => {
    await caller.ask(phone);
    await caller.control('POST', `phones/${encodeURIComponent(phone)}/accept`, {});
    await caller.send(phone, 'Hello Dev');
    const shown = await stateOf(phone);
    should(shown?.consent).equal('accepted');
    should(shown?.messages.map(({ kind }) => kind)).eql(['consent-request', 'reply', 'text']);
    should(shown?.messages.at(-1)?.text).equal('Hello Dev');
  });

  it('shows seeded phones before anything happened', async () => {
    should(await stateOf(friend)).containEql({ name: 'Ann Ito', consent: 'accepted', messages: [] });
  });

  it('declines and resets a phone', async () => {
    await caller.ask(phone);
    await caller.control('POST', `phones/${encodeURIComponent(phone)}/decline`, {});
    should(await stateOf(phone)).containEql({ consent: 'pending', declined: true });
    await caller.control('POST', `phones/${encodeURIComponent(phone)}/reset`, {});
    should(await stateOf(phone)).containEql({ consent: 'none', messages: [] });
  });

  it('keeps advisors separate: contacts, consent and messages', async () => {
    const other = new Caller(simulator, 'jordan');
    await caller.send(friend, 'From Alex');
    await caller.control('POST', `phones/${encodeURIComponent(phone)}/accept`, { advisor: 'jordan' });
    should((await caller.check(phone)).body['state']).equal('none');
    should((await other.check(phone)).body['state']).equal('accepted');
    should(other.textsOn(friend)).eql([]);
    await caller.call('POST', '/core/contact/contacts', { firstName: 'Mine' });
    const total = async (one: Caller): Promise<unknown> =>
      ((await one.call('GET', '/core/contact/contacts')).body['pageInfo'] as { totalRecord: number })
        .totalRecord;
    should(await total(caller)).equal(11);
    should(await total(other)).equal(10);
  });

  it('returns contacts page by page and filtered', async () => {
    const { body } = await caller.control('GET', 'contacts?advisor=default&page=1&pageSize=3&filter=');
    should(body['total']).equal(10);
    should(body['data']).have.length(3);
    const filtered = await caller.control('GET', 'contacts?filter=ITO');
    should(filtered.body).containDeep({ total: 1, data: [{ fullName: 'Ann Ito', phone: friend }] });
  });

  it('moves the clock', async () => {
    const before = simulator.clock.now();
    const { body } = await caller.control('POST', 'clock', { advance: 86_400 });
    should(body['now'])
      .be.a.Number()
      .and.not.below(before + 86_400_000);
    for (const advance of [-1, 1e300])
      should((await caller.control('POST', 'clock', { advance })).status).equal(400);
  });

  it('keeps a ledger of every request, its result and whether it was carried out', async () => {
    await caller.send(friend, 'One');
    await caller.send(phone, 'Two');
    await caller.send('nonsense', 'Three');
    simulator.faults.add({ endpoint: 'sendMessage', kind: 'cut-after' });
    await shouldBeCut(caller.send(friend, 'Four'));
    simulator.faults.add({ endpoint: 'sendMessage', kind: 'cut-before' });
    await shouldBeCut(caller.send(friend, 'Five'));
    const { body } = await caller.control('GET', 'ledger?endpoint=sendMessage');
    const entries = body['entries'] as Record<string, unknown>[];
    should(entries.map(({ text, outcome, status, processed }) => [text, outcome, status, processed])).eql([
      ['One', 'sent', 200, true],
      ['Two', 'not-consented', 200, true],
      [undefined, 'invalid_request', 400, false],
      ['Four', 'sent', 0, true],
      ['Five', 'cut-before', 0, false],
    ]);
    should(entries[0]).containEql({
      method: 'POST',
      path: '/text/messaging/messages',
      advisor: 'default',
      phone: friend,
    });
    should(entries[0]?.['messageId']).be.a.Number();
    await caller.control('DELETE', 'ledger');
    should((await caller.control('GET', 'ledger')).body).eql({ received: 0, entries: [] });
  });

  it('injects faults into the next requests of an endpoint, and lists those still active', async () => {
    should(
      (
        await caller.control('POST', 'faults', {
          endpoint: 'getConsent',
          code: 'rate_limited',
          retryAfter: 7,
          next: 2,
        })
      ).status,
    ).equal(200);
    const first = await caller.check(friend);
    should([first.status, first.headers.get('retry-after')]).eql([429, '7']);
    should((await caller.send(friend)).status).equal(200);
    should((await caller.control('GET', 'faults')).body).containDeep([{ next: 1 }]);
    should((await caller.check(friend)).status).equal(429);
    should((await caller.check(friend)).status).equal(200);
    should((await caller.control('GET', 'faults')).text).equal('[]');
  });

  it('injects faults at a rate, the same ones for the same seed', async () => {
    const run = async (): Promise<string> => {
      const seeded = await startSimulator({ randomSeed: 42 });
      seeded.faults.add({ status: 500, rate: 0.3 });
      const statuses: number[] = [];
      for (let index = 0; index < 100; index++)
        statuses.push((await new Caller(seeded).check(friend)).status);
      await seeded.close();
      return statuses.join(' ');
    };
    const statuses = await run();
    should(await run()).equal(statuses);
    should(statuses.split('500').length - 1).be.within(15, 45);
  });

  it('injects an error after processing on request', async () => {
    simulator.faults.add({ code: 'internal_error', processed: true, phone: friend });
    should((await caller.send(friend, 'Done')).status).equal(500);
    should(caller.textsOn(friend)).eql(['Done']);
  });

  it('knows an advisor whose key was cut in the middle of a character', async () => {
    should((await new Caller(simulator, 'Zoë 😀'.slice(0, 5)).send(friend, 'Hello')).status).equal(200);
  });

  it('says what is wrong with a fault, a setting or a path', async () => {
    for (const fault of [
      {},
      { code: 'nonsense' },
      { code: 'conflict', kind: 'slow' },
      { status: 200 },
      { code: 'conflict', rate: 1, next: 1 },
      { code: 'conflict', endpoint: 'x' },
    ]) {
      should((await caller.control('POST', 'faults', fault)).status).equal(400);
    }
    should((await caller.control('PUT', 'settings', { nonsense: true })).status).equal(400);
    should((await caller.control('GET', 'nothing')).status).equal(404);
    for (const wrong of ['123', '%'])
      should((await caller.control('POST', `phones/${wrong}/accept`, {})).status).equal(400);
  });

  it('changes settings', async () => {
    const { body } = await caller.control('PUT', 'settings', { consentRequired: false });
    should(body).containEql({ consentRequired: false, consentConfigured: true });
    should((await caller.send(phone)).body['failures']).eql([]);
  });

  it('resets to the seed, and keeps authorizations', async () => {
    const token = simulator.accessToken('default');
    await caller.send(friend, 'Gone');
    await caller.call('DELETE', '/core/contact/contacts/1002');
    simulator.change({ consentRequired: false });
    simulator.faults.add({ status: 500, rate: 1 });
    await caller.control('POST', 'reset');
    should(caller.textsOn(friend)).eql([]);
    should(simulator.settings.consentRequired).be.true();
    const kept = new Caller(simulator, 'default', () => token);
    should((await kept.call('GET', '/core/contact/contacts/1002')).status).equal(200);
  });

  it('notifies listeners of changes, many as one', async () => {
    const response = await new Promise<IncomingMessage>((resolve) =>
      get(`${simulator.url}/control/events`, resolve),
    );
    should(response.headers['content-type']).equal('text/event-stream');
    await once(response, 'data');
    await Promise.all(Array.from({ length: 20 }, () => caller.send(friend)));
    const [chunk] = (await once(response, 'data')) as [Buffer];
    should(chunk.toString()).equal('data: changed\n\n');
    response.destroy();
  });

  it("rejects foreign hosts and origins on page and control, but not on the contract's endpoints", async () => {
    const status = (path: string, headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve) => {
        get(simulator.url + path, { headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
      });
    for (const path of ['/', '/control/state']) {
      should(await status(path, { host: 'evil.example' })).equal(403);
      should(await status(path, { origin: 'https://evil.example' })).equal(403);
      should(await status(path, { origin: 'null' })).equal(403);
      should(await status(path, { host: 'localhost:1234' })).equal(200);
      should(await status(path, { origin: simulator.url })).equal(200);
    }
    should(await status('/v1/core/contact/groups', { host: 'evil.example' })).equal(401);
  });

  it('listens on localhost only', () => {
    should(new URL(simulator.url).hostname).equal('127.0.0.1');
  });

  it('serves page and control wherever another server mounts it', async () => {
    const server = createServer((request, response) => {
      request.url = (request.url ?? '').replace('/red/simulator', '');
      void simulator.handle(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/red/simulator`;
    should((await fetch(`${at}/`)).headers.get('content-type')).match(/^text\/html/);
    should((await fetch(`${at}/control/state`)).status).equal(200);
    should((await fetch(`${at}/v1/core/contact/groups`)).status).equal(404);
    should((await fetch(`${at}/..%2findex.ts`)).status).equal(404);
    server.closeAllConnections();
    server.close();
  });
});
