import assert from 'node:assert/strict';
import type { Connection } from '../../../lib/auth/connection';
import { newGrant, Vault } from '../../../lib/auth/vault';
import { RequestHistory } from '../../../lib/consent/request-history';
import { doNotTextOf, type DoNotText } from '../../../lib/guards/do-not-text';
import { Once } from '../../../lib/guards/once';
import { heldLane, keysOf, laterLane } from '../../../lib/outbox/records';
import { systemClock } from '../../../lib/service/clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { moveToDatabase, unfinishedIn } from '../../../nodes/environment/moving';
import { overStore } from '../../support/state/over-store';

const phone = '+12025550101';
const day = 24 * 3600 * 1000;
const simulated = { service: 'simulator' as const, clock: systemClock };
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
    openStore: () => Promise.resolve(overStore(store, { close: () => Promise.resolve() })),
    clock: systemClock,
    warn: (text) => assert.fail(text),
    startId: 'one',
  });
const historyOf = (store: Store, space: string): RequestHistory =>
  new RequestHistory(store, space, systemClock);
const keyOf = (environment: string) =>
  ({
    space: spaceOf(environment),
    node: `send ${environment}`,
    advisor: 'default',
    phone,
    key: 'k',
  }) as const;

/** One unfinished item of each kind: held, single, of a list, and a wait. */
const fillQueues = async (store: Store, environment: string): Promise<void> => {
  const space = spaceOf(environment);
  const arrival = Buffer.alloc(12, 1);
  const [held, single, ofList, ofWaits] = ['held', 'single', 'list', 'wait'].map((name) =>
    keysOf(`${name} ${environment}`),
  );
  assert.ok(held && single && ofList && ofWaits);
  const alone = { state: 'accepted', item: { index: 0 }, single: { space } };
  await store.write([
    { table: 'work', put: held.item(arrival, 0, false), value: alone },
    { table: 'wait', put: held.due(heldLane, 5, arrival, 0), value: 0 },
    { table: 'work', put: single.item(arrival, 0, false), value: alone },
    { table: 'work', put: ofList.item(arrival, 0, false), value: { state: 'finished', item: { index: 0 } } },
    { table: 'work', put: ofList.list(arrival), value: { space, isComplete: true } },
    { table: 'work', put: ofWaits.item(arrival, 0, true), value: alone },
    { table: 'wait', put: ofWaits.due(laterLane, 5, arrival, 0), value: 0 },
  ]);
};

const authorize = async (
  store: Store,
  environment: string,
  refreshToken: string,
  refreshedAt: number,
): Promise<void> => {
  const vault = vaultOf(store);
  const connection = connectionOf(environment);
  const grant = { ...newGrant(connection, 'default'), refreshToken, refreshedAt };
  await vault.use(() => vault.authorized(connection, grant));
};

const sendOnce = async (store: Store, environment: string, now: number): Promise<void> => {
  const once = new Once(store, keyOf(environment), day, {
    service: 'simulator',
    clock: { ...systemClock, now: () => now },
  });
  const claimed = await once.claim('item', 0);
  assert.ok(claimed.kind === 'own');
  await store.write([once.step(once.ended(claimed.claim, { state: 'sent', payload: { messageId: 1 } }))]);
  once.release('item');
};

/** One of everything that all instances of an environment share. */
const fill = async (store: Store, environment: string): Promise<void> => {
  await historyOf(store, spaceOf(environment)).ask(
    'default',
    phone,
    { every: day, limit: 0 },
    async ({ start }) => {
      await start();
      return { requested: true, memberId: 7, consentState: 'pending' };
    },
  );
  await sendOnce(store, environment, Date.now());
  await (await listOf(store)).block(phone, 'asked to stop', 1);
  await authorize(store, environment, `of ${environment}`, 1);
};

const listOf = (store: Store): Promise<DoNotText> => doNotTextOf({ service: 'sandbox', store: () => store });

/** What the modules find of an environment. */
const contents = async (store: Store, environment: string) => {
  const vault = vaultOf(store);
  return {
    asked: (await historyOf(store, spaceOf(environment)).preview('default', phone, { every: day, limit: 0 }))
      .consentState,
    once: (await new Once(store, keyOf(environment), day, simulated).foresee())?.kind,
    blocked: (await (await listOf(store)).get(phone))?.reason,
    authorized: await vault.use(
      () => vault.get(connectionOf(environment), 'default')?.grant.refreshToken ?? null,
    ),
  };
};

describe('an environment that moves to another store', () => {
  it('stays while its nodes have anything left, and says how much', async () => {
    const store = createMemoryStore();
    assert.deepEqual(await unfinishedIn(store, 'mine'), { items: 0, waits: 0 });
    await fillQueues(store, 'other');
    assert.deepEqual(await unfinishedIn(store, 'mine'), { items: 0, waits: 0 });
    await fillQueues(store, 'mine');
    assert.deepEqual(await unfinishedIn(store, 'mine'), { items: 3, waits: 1 });
  });

  it('stays for what a node has accepted since it has another environment, too', async () => {
    const store = createMemoryStore();
    const at = keysOf('changed');
    for (const [byte, environment] of ['other', 'mine'].entries())
      await store.write([
        {
          table: 'work',
          put: at.item(Buffer.alloc(12, byte), 0, false),
          value: { state: 'accepted', single: { space: spaceOf(environment) } },
        },
      ]);
    assert.deepEqual(await unfinishedIn(store, 'mine'), { items: 2, waits: 0 });
    assert.deepEqual(await unfinishedIn(store, 'other'), { items: 0, waits: 0 });
  });

  it('stays for an item whose list is missing: it leaves with the next start of its node', async () => {
    const store = createMemoryStore();
    const put = keysOf('n').item(Buffer.alloc(12, 1), 0, false);
    await store.write([{ table: 'work', put, value: { state: 'accepted' } }]);
    assert.deepEqual(await unfinishedIn(store, 'mine'), { items: 1, waits: 0 });
  });

  it('takes along what its instances share, under its numbers and names, and nothing of another', async () => {
    const [from, to] = [createMemoryStore(), createMemoryStore()];
    await fill(from, 'mine');
    const before = await contents(from, 'mine');
    assert.deepEqual(before, {
      asked: 'pending',
      once: 'sent',
      blocked: 'asked to stop',
      authorized: 'of mine',
    });
    await fill(from, 'other');
    const move = (): Promise<number> => moveToDatabase(from, to, 'mine', connectionOf('mine'), true);
    assert.equal(await move(), 4);
    assert.deepEqual(await contents(to, 'mine'), before);
    const none = { asked: null, once: undefined, blocked: undefined, authorized: null };
    assert.deepEqual(await contents(from, 'mine'), none);
    assert.deepEqual(await contents(from, 'other'), {
      ...(before as object),
      blocked: undefined,
      authorized: 'of other',
    });
    assert.equal(await move(), 0);
  });

  it('brings nothing back that was ended in the other store since', async () => {
    const [from, to] = [createMemoryStore(), createMemoryStore()];
    await fill(from, 'mine');
    const move = (): Promise<number> => moveToDatabase(from, to, 'mine', connectionOf('mine'), true);
    await move();
    await (await listOf(to)).unblock(phone);
    const vault = vaultOf(to);
    await vault.use(() => vault.disconnect('mine', 'default'));
    await move();
    assert.deepEqual(await contents(to, 'mine'), {
      asked: 'pending',
      once: 'sent',
      blocked: undefined,
      authorized: null,
    });
  });

  it('uses the refresh token that was made last, wherever that was', async () => {
    for (const [here, there] of [
      [2, 1],
      [1, 2],
    ] as const) {
      const [from, to] = [createMemoryStore(), createMemoryStore()];
      await authorize(from, 'mine', `made at ${here}`, here);
      await authorize(to, 'mine', `made at ${there}`, there);
      await moveToDatabase(from, to, 'mine', connectionOf('mine'), true);
      assert.equal((await contents(to, 'mine')).authorized, 'made at 2');
      assert.equal((await contents(from, 'mine')).authorized, null);
    }
  });

  it('knows the later of two texts with a key, so that none is sent twice', async () => {
    const [from, to] = [
      createMemoryStore(),
      createMemoryStore({ clock: { now: () => Date.now() - 2 * day } }),
    ];
    await sendOnce(to, 'mine', Date.now() - 2 * day);
    await sendOnce(from, 'mine', Date.now());
    await moveToDatabase(from, to, 'mine', connectionOf('mine'), true);
    assert.equal((await contents(to, 'mine')).once, 'sent');
  });

  it('leaves the do-not-text list if another environment uses it', async () => {
    const [from, to] = [createMemoryStore(), createMemoryStore()];
    await fill(from, 'mine');
    await moveToDatabase(from, to, 'mine', connectionOf('mine'), false);
    assert.equal((await (await listOf(from)).get(phone))?.reason, 'asked to stop');
    assert.equal(await (await listOf(to)).get(phone), undefined);
  });
});
