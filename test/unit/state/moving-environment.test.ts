import assert from 'node:assert/strict';
import type { Connection } from '../../../lib/auth/connection';
import { newGrant } from '../../../lib/auth/grants';
import { Vault } from '../../../lib/auth/vault';
import { RequestHistory } from '../../../lib/consent/request-history';
import { recommended } from '../../../lib/consent/pace';
import { consentOf } from '../../../lib/consent/consent';
import { doNotTextOf, type DoNotText } from '../../../lib/guards/do-not-text';
import { Once } from '../../../lib/guards/once';
import { indexKeysOf, indexOf, keysOf, laterLane } from '../../../lib/outbox/records';
import { requestsOn } from '../../support/outbox/requests';
import { systemClock } from '../../../lib/service/clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, key, type Store, type Table } from '../../../lib/state/store';
import { moveToDatabase } from '../../../nodes/environment/moving';

const phone = '+12025550101';
const day = 24 * 3600 * 1000;
const time = { now: () => Date.now(), age: () => Date.now() };
const spaceOf = (environment: string): string => `${environment}/sandbox/https://service.example`;
const connectionOf = (environment: string): Connection => ({
  environment,
  name: environment,
  grant: 'authorization_code',
  baseUrl: 'https://service.example/v1',
  authUrl: 'https://service.example/a',
  tokenUrl: 'https://service.example/t',
  redirectUri: 'https://here.example/c',
  clientId: 'c',
  clientSecret: 's',
  scopes: [],
  seed: '',
  retries: 4,
});

const vaultOf = (store: Store): Vault =>
  new Vault({
    openStore: () => Promise.resolve({ ...store, close: () => Promise.resolve() }),
    clock: systemClock,
    warn: (text) => assert.fail(text),
    startId: 'one',
  });
const historyOf = (store: Store, space: string): RequestHistory =>
  new RequestHistory({ store, space, clock: systemClock });
const keyOf = (environment: string) =>
  ({
    space: spaceOf(environment),
    node: `send ${environment}`,
    advisor: 'default',
    phone,
    key: 'k',
  }) as const;

const queues = ['single', 'list'] as const;

/** One of everything that an environment keeps in a store. */
const fill = async (store: Store, environment: string): Promise<void> => {
  const space = spaceOf(environment);
  const at = keysOf(`send ${environment}`);
  const arrival = Buffer.alloc(12, 1);
  await store.write([
    { table: 'work', put: at.home, value: `type ${space}` },
    {
      table: 'work',
      put: at.item(arrival, 0, false),
      value: { state: 'accepted', item: { index: 0 }, single: { space } },
    },
    { table: 'wait', put: at.due(8, 5, arrival, 0), value: 0 },
  ]);
  const [single, ofList] = queues.map((name) => keysOf(`${name} ${environment}`));
  if (single && ofList)
    await store.write([
      { table: 'work', put: single.item(arrival, 0, false), value: { state: 'accepted', single: { space } } },
      { table: 'wait', put: single.due(0, 0, arrival, 0), value: 0 },
      { table: 'work', put: ofList.item(arrival, 0, false), value: { state: 'accepted' } },
      { table: 'work', put: ofList.list(arrival), value: { space, isComplete: true } },
      { table: 'wait', put: ofList.due(1, 0, arrival, 0), value: 0 },
    ]);
  const ofWaits = keysOf(`wait ${environment}`);
  const seen = { memberId: 7, state: 'pending', lastChanged: 1 };
  const shared = {
    space,
    shared: { advisor: 'default', start: 1000, pace: recommended },
    type: 'type',
    count: 1,
  };
  const item = { index: 0, phone };
  const indexes = indexKeysOf(store, `wait ${environment}`, shared, arrival, item, true, seen);
  await store.write([
    {
      table: 'work',
      put: ofWaits.item(arrival, 0, true),
      value: { state: 'accepted', item, seen, single: shared },
    },
    { table: 'wait', put: ofWaits.due(laterLane, store.now() + 1000, arrival, 0), value: 0 },
    ...indexes.map((put) => ({ table: 'wait' as const, put, value: 0 })),
  ]);
  await historyOf(store, space).ask('default', phone, { every: day, limit: 0 }, async (begin) => {
    await begin();
    return { requested: true, memberId: 7, consentState: 'pending' };
  });
  const claimed = await new Once(store, keyOf(environment), day, time).claim('item', 0);
  assert.ok(claimed.kind === 'own');
  await store.write([claimed.claim.ended({ state: 'sent', payload: { messageId: 1 } })]);
  claimed.claim.release();
  await (await listOf(store)).block(phone, 'asked to stop', 1);
  const vault = vaultOf(store);
  await vault.use(() =>
    vault.authorized(connectionOf(environment), {
      ...newGrant(connectionOf(environment), 'default'),
      refreshToken: `of ${environment}`,
    }),
  );
};

const listOf = (store: Store): Promise<DoNotText> => doNotTextOf({ service: 'sandbox', store: () => store });

/** What the modules find of an environment. */
const contents = async (store: Store, environment: string): Promise<unknown> => {
  const space = spaceOf(environment);
  const vault = vaultOf(store);
  const clock = { now: () => store.now(), after: () => () => undefined };
  // A start of the node writes the indexes that another store has otherwise.
  const queue = requestsOn(
    store,
    { work: () => assert.fail(), emit: () => assert.fail() },
    { node: `wait ${environment}`, space, clock },
  );
  await queue.start();
  await queue.close();
  const consent = await consentOf({
    service: 'simulator',
    space,
    clock,
    client: () => assert.fail(),
    store: () => store,
    isBlocked: async () => false,
  });
  const waits = await consent.list(10, { phone });
  const countUnder = (table: Table, prefix: Buffer): Promise<number> =>
    store.count(table, prefix, endOf(prefix));
  const queued = queues.map(async (name) => {
    const { items, dues, lists } = keysOf(`${name} ${environment}`);
    return [
      await countUnder('work', items),
      await countUnder('wait', dues),
      await countUnder('work', lists),
    ].join(' ');
  });
  return {
    queued: await Promise.all(queued),
    jobs: await store.count(
      'work',
      key('item', `send ${environment}`),
      key('item', `send ${environment}`, 'z'),
    ),
    held: await countUnder('wait', keysOf(`send ${environment}`).dues),
    waits: waits.map(({ seen, start }) => ({ seen, start })),
    isDue: await countUnder('wait', keysOf(`wait ${environment}`).dues),
    ofMember: await countUnder('wait', indexOf(store, 'member', space, { memberId: 7 }, 'default')),
    asked: (await historyOf(store, space).preview('default', phone, { every: day, limit: 0 })).consentState,
    once: (await new Once(store, keyOf(environment), day, time).foresee())?.kind,
    blocked: (await (await listOf(store)).get(phone))?.reason,
    authorized: await vault.use(
      () => vault.get(connectionOf(environment), 'default')?.grant.refreshToken ?? null,
    ),
  };
};

describe('an environment that moves to another store', () => {
  it('takes all its records along, under their numbers and names, and nothing of another', async () => {
    const [from, to] = [createMemoryStore(), createMemoryStore()];
    await fill(from, 'mine');
    const before = await contents(from, 'mine');
    assert.deepEqual(before, {
      queued: ['1 1 0', '1 1 1'],
      jobs: 1,
      held: 1,
      waits: [{ seen: { memberId: 7, state: 'pending', lastChanged: 1 }, start: 1000 }],
      isDue: 1,
      ofMember: 1,
      asked: 'pending',
      once: 'sent',
      blocked: 'asked to stop',
      authorized: 'of mine',
    });
    await fill(from, 'other');
    const takeIn = () =>
      Promise.resolve({ store: to, release: () => Promise.resolve(), discard: () => assert.fail() });
    const move = (): Promise<number> =>
      moveToDatabase(from, { store: to, takeIn }, 'mine', connectionOf('mine'), true);
    assert.ok((await move()) > 0);
    assert.deepEqual(await contents(to, 'mine'), before);
    assert.deepEqual(await contents(from, 'other'), {
      ...(before as object),
      blocked: undefined,
      authorized: 'of other',
    });
    const left = await contents(from, 'mine');
    assert.deepEqual(left, {
      queued: ['0 0 0', '0 0 0'],
      jobs: 0,
      held: 0,
      waits: [],
      isDue: 0,
      ofMember: 0,
      asked: null,
      once: undefined,
      blocked: undefined,
      authorized: null,
    });
    assert.equal(await move(), 0);
  });

  it('leaves the do-not-text list if another environment uses it', async () => {
    const [from, to] = [createMemoryStore(), createMemoryStore()];
    await fill(from, 'mine');
    const takeIn = () =>
      Promise.resolve({ store: to, release: () => Promise.resolve(), discard: () => assert.fail() });
    await moveToDatabase(from, { store: to, takeIn }, 'mine', connectionOf('mine'), false);
    assert.equal((await (await listOf(from)).get(phone))?.reason, 'asked to stop');
  });
});
