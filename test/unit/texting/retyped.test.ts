import should from 'should';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import type { Message } from '../../../lib/runtime/red';
import * as contactRuntime from '../../../nodes/contact/runtime';
import { spec as contactSpec } from '../../../nodes/contact/spec';
import { closeAll, alsoClose } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { errorOf } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer, type Scripted } from '../../support/server';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';

const contactFolder = { spec: contactSpec, runtime: contactRuntime };
const folders = [sendFolder, requestFolder, checkFolder, contactFolder];

const types = {
  'send text': { type: 'advisor-send-text' },
  'request consent': { type: 'advisor-request-consent' },
  'check consent': { type: 'advisor-check-consent', mode: 'wait' },
  contact: { type: 'advisor-contact', operation: 'create' },
} as const;
type Kind = keyof typeof types;

const phones = Array.from({ length: 150 }, (_, index) => `+1202555${String(1000 + index)}`);
const input = (kind: Kind): Message =>
  kind === 'contact'
    ? { payload: phones.map((phone) => ({ phone, firstName: 'A', lastName: 'B' })) }
    : { phone: phones, text: 'Hi' };

describe('a node that changes its type under the same id', () => {
  let store: Store;
  let server: Scripted;
  let isAnswering: boolean;

  beforeEach(async () => {
    store = createMemoryStore();
    isAnswering = false;
    server = await startServer(async () => {
      while (!isAnswering) await nextIteration();
      return { body: { ...sent, id: 1, memberId: 1, state: 'pending', lastChanged: 1, failures: [] } };
    });
  });
  afterEach(async () => {
    isAnswering = true;
    await Flow.unload();
    await closeAll();
  });

  const environment = (): TestEnvironment =>
    alsoClose(
      environmentOn(
        { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' },
        { store, settings: { journal: true } },
      ),
    );
  /** Requests that change something at the service, unlike polls. */
  const changesMade = (): number => server.received.filter(({ method }) => method !== 'GET').length;
  const load = (kind: Kind): Promise<Flow> =>
    Flow.load({ folders, environment: environment(), nodes: [{ id: 'one', ...types[kind] }] });

  const changes: readonly (readonly [from: Kind, to: Kind])[] = [
    ['send text', 'request consent'],
    ['request consent', 'send text'],
    ['send text', 'contact'],
    ['contact', 'send text'],
    ['send text', 'check consent'],
    ['check consent', 'send text'],
    ['check consent', 'contact'],
  ];
  for (const [from, to] of changes)
    it(`from ${from} to ${to}: cancels what was waiting and does nothing else with it`, async () => {
      const before = await load(from);
      before.send(input(from));
      while (server.received.length === 0) await nextIteration();
      const closed = Flow.unload();
      isAnswering = true;
      await closed;
      const told = before.arrivals.all.length;
      const made = changesMade();

      const after = await load(to);
      const rest = await after.arrivals.next(phones.length - told);
      await Flow.unload();
      should(changesMade()).equal(made);
      const codes = rest.map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port));
      should(codes.filter((code) => code !== 'cancelled').length).be.belowOrEqual(made);
      should(codes.filter((code) => code !== 'cancelled' && code !== 0)).be.empty();
    });
});
