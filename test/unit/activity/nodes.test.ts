import should from 'should';
import { activityOf } from '../../../lib/runtime/activity';
import type { AdvisorItem } from '../../../lib/runtime/activity-items';
import type { Environment } from '../../../lib/runtime/environment';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { isShared, key, type Store } from '../../../lib/state/store';
import * as activityRuntime from '../../../nodes/activity/runtime';
import { spec as activitySpec } from '../../../nodes/activity/spec';
import * as eventsRuntime from '../../../nodes/events/runtime';
import { spec as eventsSpec } from '../../../nodes/events/spec';
import { begin, hours } from '../../support/consent/world';
import { scripted } from '../../support/address-book/setup';
import { alsoClose, closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { gate } from '../../support/gate';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, sendFolder } from '../../support/texting/setup';
import { peers } from '../../support/state/peers';

const folders = [{ spec: activitySpec, runtime: activityRuntime }, checkFolder];
const numbered = (n: number): string => `+1202555${String(n).padStart(4, '0')}`;

describe('texting activity node', () => {
  const on = simulatedForEach(() =>
    startSimulated({ clock: new MovableClock(() => begin) }, { advisors: ['default', 'anna'] }),
  );

  /** A node of each kind, and as many waits as requested. */
  const load = async (config: Readonly<Record<string, unknown>>, waits: number): Promise<Flow> => {
    const flow = await Flow.load({
      folders,
      environment: on.environment,
      nodes: [
        { id: 'activity', type: 'advisor-activity', ...config },
        { id: 'waiting', type: 'advisor-check-consent', name: 'my wait', mode: 'wait' },
      ],
    });
    if (waits === 0) return flow;
    const phone = Array.from({ length: waits }, (_, n) => numbered(2000 + n));
    flow.send({ phone, advisor: 'default' }, 'waiting');
    const asked = { page: 1, pageSize: 1 };
    const activity = activityOf(on.environment);
    while ((await activity.waits(asked)).pageInfo.totalRecord !== waits) await nextIteration();
    return flow;
  };

  it('returns a page of the waits, of all advisors', async () => {
    const flow = await load({ pageSize: 2 }, 3);
    const { port, msg } = only(await flow.ask({ topic: 'kept' }));
    should(port).equal(0);
    should(msg.outcome).equal('done');
    should(msg.topic).equal('kept');
    const { data, pageInfo } = msg.payload as { data: object[]; pageInfo: object };
    should(pageInfo).deepEqual({ page: 1, pageSize: 2, totalRecord: 3 });
    should(data).have.length(2);
    should(data[0]).containEql({
      node: { id: 'waiting', name: 'my wait' },
      advisor: 'default',
      since: begin,
      until: begin + hours(24),
    });
  });

  it('returns each item of all pages once, and the total', async () => {
    const flow = await load({ all: true, emit: 'item', pageSize: 10 }, 25);
    const arrived = inOrder(await flow.ask({}, 25));
    const phones = arrived.map(({ msg }) => (msg.payload as { phone: string }).phone);
    should(new Set(phones).size).equal(25);
    should(arrived.every(({ msg }) => (msg.parts as { count: number }).count === 25)).be.true();
    await flow.completed.next();
  });

  it('returns what belongs to one advisor', async () => {
    const flow = await load({ all: true, emit: 'item', advisor: 'anna' }, 3);
    flow.send({});
    await flow.completed.next();
    should(flow.arrivals.all).be.empty();
    flow.send({ phone: numbered(3000), advisor: 'anna' }, 'waiting');
    const activity = activityOf(on.environment);
    while ((await activity.waits({ page: 1, pageSize: 1 })).pageInfo.totalRecord !== 4) await nextIteration();
    const { msg } = only(await flow.ask({}));
    should(msg.payload).containEql({ phone: numbered(3000), advisor: 'anna' });
    should(msg.parts).containEql({ index: 0, count: 1 });
    flow.send({ phone: numbered(3001), advisor: 'anna' }, 'waiting');
    while ((await activity.waits({ page: 1, pageSize: 1 })).pageInfo.totalRecord !== 5) await nextIteration();
    const both = inOrder(await flow.ask({}, 2));
    should(both.map((each) => (each.msg.parts as { count?: number }).count)).deepEqual([undefined, 2]);
  });

  it('treats no advisor as all, an empty or unreadable one as a mistake, and an unknown one as unauthorized', async () => {
    on.environment.advisorState = (advisor) =>
      advisor === 'anna' ? 'authorize_again' : advisor === 'default' ? 'authorized' : 'unknown';
    for (const operation of ['waits', 'queue', 'failures', 'advisors']) {
      const flow = await load({ operation, advisor: '', advisorType: 'str' }, 0);
      for (const msg of [{}, { advisor: '' }, { advisor: 'anna' }])
        should(only(await flow.ask(msg))).containEql({ port: 0 });
      for (const advisor of [{}, [], true])
        should(errorOf(only(await flow.ask({ advisor })).msg).code).equal('invalid_input');
      should(errorOf(only(await flow.ask({ advisor: 'ana' })).msg).code).equal('authorization_required');
      await Flow.unload();
    }
    const flow = await load({ advisor: 'who', advisorType: 'msg' }, 0);
    should(errorOf(only(await flow.ask({ advisor: 'anna' })).msg).code).equal('invalid_input');
    should(only(await flow.ask({ who: 'default' }))).containEql({ port: 0 });
  });

  it('returns equal failures, each once', async () => {
    const flow = await load({ operation: 'failures', all: true, emit: 'item', pageSize: 10 }, 0);
    flow.send({ phone: Array.from({ length: 45 }, () => 'nobody') }, 'waiting');
    await flow.arrivals.next(45);
    const arrived = inOrder(await flow.ask({}, 45));
    should(
      arrived.every(({ port, msg }) => port === 0 && (msg.parts as { count: number }).count === 45),
    ).be.true();
    for (const { msg } of arrived)
      should(msg.payload)
        .containEql({ code: 'invalid_input' })
        .and.match({ message: /^This is not a phone/ });
  });

  it('lists the advisors', async () => {
    const flow = await load({ operation: 'advisors', emit: 'item' }, 0);
    const arrived = inOrder(await flow.ask({}, 2));
    should(arrived.map(({ msg }) => (msg.payload as AdvisorItem).advisor)).deepEqual(['default', 'anna']);
    should(arrived[0]?.msg.payload).have.keys(
      'state',
      'identity',
      'scopes',
      'missingScopes',
      'expiresAt',
      'refreshedAt',
    );
  });

  it('cancels the wait whose id comes in, once', async () => {
    const flow = await load({ operation: 'cancel' }, 2);
    const [first] = (await activityOf(on.environment).waits({ page: 1, pageSize: 1 })).data;
    const arrived = await flow.ask({ payload: first }, 2);
    const cancelled = arrived.find(({ from }) => from === 'waiting');
    should(cancelled?.msg).containEql({ phone: first?.phone, outcome: 'notAccepted' });
    const done = arrived.find(({ from }) => from === 'activity');
    should(done?.msg.payload).deepEqual({ id: first?.id });
    const { port, msg } = only(await flow.ask({ payload: first }));
    should(port).equal(1);
    should(errorOf(msg).code).equal('not_found');
    should(msg.payload).deepEqual(first);
  });

  it('shows what is held until its text hours, and cancels it by its id', async () => {
    // Four in the morning in New York.
    const night = { from: 8 * 60, until: 21 * 60, outside: 'hold' as const };
    const { simulator, environment, received } = alsoClose(
      await startSimulated(
        { clock: new MovableClock(() => Date.UTC(2027, 0, 5, 9)) },
        { settings: { textHours: night, journal: true } },
      ),
    );
    const flow = await Flow.load({
      folders: [...folders, sendFolder],
      environment,
      nodes: [
        { id: 'show', type: 'advisor-activity', operation: 'queue' },
        { id: 'n-cancel', type: 'advisor-activity', operation: 'cancel' },
        { id: 'send', type: 'advisor-send-text', name: 'my send' },
      ],
    });
    flow.send({ phone: [numbered(113), numbered(121)], text: 'confidential' }, 'send');
    const activity = activityOf(environment);
    const held = async () => (await activity.queue({ page: 1, pageSize: 10, state: 'held' })).data;
    while ((await held()).length < 2) await nextIteration();
    const { msg } = only(await flow.ask({}));
    const { data } = msg.payload as { data: { id: string; phone: string; notBefore: number }[] };
    const opening = Date.UTC(2027, 0, 5, 13);
    for (const [at, item] of data.entries()) {
      should(item).containEql({
        node: { id: 'send', name: 'my send' },
        phone: numbered([113, 121][at] ?? 0),
        advisor: 'default',
        state: 'held',
      });
      should(item.notBefore).within(opening, opening + hours(0.25));
    }
    should(data).have.length(2);
    should(JSON.stringify(data)).not.match(/confidential/);
    const arriving = flow.arrivals.next(2);
    flow.send({ payload: data[0] }, 'n-cancel');
    const cancelled = (await arriving).find(({ from }) => from === 'send');
    should(cancelled?.msg.phone).equal(data[0]?.phone);
    should(errorOf(cancelled?.msg ?? {}).code).equal('cancelled');
    while ((await held()).length > 1) await nextIteration();
    const left = flow.arrivals.next(1);
    await simulator.clock.move(hours(5));
    should(only(await left).msg.phone).equal(data[1]?.phone);
    should(received('sendMessage')).equal(1);
  });

  it('checks a wait now', async () => {
    const flow = await load({ operation: 'check' }, 1);
    while (on.received('getConsent') < 1) await on.simulator.clock.move(1000);
    const [first] = (await activityOf(on.environment).waits({ page: 1, pageSize: 1 })).data;
    should(only(await flow.ask({ payload: first })).port).equal(0);
    while (on.received('getConsent') < 2) await nextIteration();
  });

  it('accepts a list of ids, with an outcome for each, and a summary with the last', async () => {
    const flow = await load({ operation: 'cancel', itemId: 'payload' }, 2);
    const { data } = await activityOf(on.environment).waits({ page: 1, pageSize: 2 });
    const ids = [data[0]?.id, 'w-nothing', data[1]?.id, ''];
    const arrived = await flow.ask({ payload: ids }, 6);
    const own = inOrder(arrived.filter(({ from }) => from === 'activity'));
    should(own.map(({ port }) => port)).deepEqual([0, 1, 0, 1]);
    should([own[1], own[3]].map((each) => errorOf(each?.msg ?? {}).code)).deepEqual([
      'not_found',
      'invalid_input',
    ]);
    should([own[1], own[3]].map((each) => each?.msg.payload)).deepEqual(['w-nothing', '']);
    const summary = {
      id: (own[0]?.msg.parts as { id: string }).id,
      total: 4,
      done: 2,
      failed: 2,
      byCode: { not_found: 1, invalid_input: 1 },
    };
    should(own.map(({ msg }) => msg.summary)).deepEqual([undefined, undefined, undefined, summary]);
    // The message whose waits were cancelled completes too.
    const completed = await flow.completed.next(2);
    should(completed.map((each) => each.summary)).containDeep([summary]);
  });

  it('rejects an invalid id, and an unknown operation', async () => {
    const flow = await load({ operation: 'cancel' }, 0);
    for (const payload of [undefined, {}, { id: 7 }, { id: ' ' }])
      should(errorOf(only(await flow.ask({ payload })).msg).code).equal('invalid_input');
    await Flow.unload();
    const other = await load({ operation: 'burn' }, 0);
    should(errorOf(only(await other.ask({})).msg).code).equal('invalid_input');
  });
});

describe('texting events node', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const item = (advisor: string, state: AdvisorItem['state']): AdvisorItem => ({
    advisor,
    state,
    identity: null,
    scopes: [],
    missingScopes: [],
    expiresAt: null,
    refreshedAt: null,
  });

  /** An environment whose advisors the test changes. */
  const office = async (store: Store) => {
    const { environment } = await scripted(() => ({ body: { data: [] } }), {
      store,
      settings: { journal: true },
    });
    const states = new Map<string, AdvisorItem['state']>();
    const changing: Environment & { changed?: () => void; trouble: string | undefined } = Object.assign(
      environment,
      {
        advisorList: async () => [...states].map(([advisor, state]) => item(advisor, state)),
        authorizationLink: async (advisor: string) => `https://x.example/advisor-texting/link/${advisor}`,
      },
    );
    return { environment: changing, states, changed: () => changing.changed?.() };
  };
  const load = (environment: Environment): Promise<Flow> =>
    Flow.load({
      folders: [{ spec: eventsSpec, runtime: eventsRuntime }],
      environment,
      nodes: [{ id: 'events', type: 'advisor-events' }],
    });

  it('reports a lost authorization, with a link, and a renewed one', async () => {
    const { environment, states, changed } = await office(createMemoryStore());
    states.set('ada', 'authorized');
    states.set('bob', 'authorize_again');
    const flow = await load(environment);
    // Existing authorizations are no event for a new node.
    const { msg } = only(await flow.arrivals.next());
    should(msg.topic).equal('authorize_again');
    const { message, ...rest } = msg.payload as { message: string };
    should(rest).deepEqual({
      environment: { id: environment.id, name: environment.name },
      advisor: 'bob',
      link: 'https://x.example/advisor-texting/link/bob',
    });
    should(message).match(/bob/);
    states.set('bob', 'authorized');
    states.set('ada', 'confirm');
    states.set('eve', 'authorized');
    changed();
    const told = (await flow.arrivals.next(3)).map(({ msg: each }) => [
      each.topic,
      (each.payload as { advisor: string }).advisor,
      'link' in (each.payload as object),
    ]);
    should(told.toSorted()).deepEqual([
      ['authorized', 'bob', false],
      ['authorized', 'eve', false],
      ['confirm', 'ada', false],
    ]);
  });

  it('speaks of no link where there is none', async () => {
    const { environment, states } = await office(createMemoryStore());
    Object.assign(environment, { authorizationLink: async () => undefined });
    states.set('bob', 'authorize_again');
    const { msg } = only(await (await load(environment)).arrivals.next());
    should(msg.payload).not.have.property('link');
    should((msg.payload as { message: string }).message)
      .match(/bob.*open the environment and authorize/)
      .and.not.match(/link/);
  });

  it('reports who authorizes between the deploy of a new node and its first look', async () => {
    const { environment } = await office(createMemoryStore());
    const at = Date.now();
    const authorized = (advisor: string, refreshedAt: number): AdvisorItem => ({
      ...item(advisor, 'authorized'),
      refreshedAt,
    });
    Object.assign(environment, {
      advisorList: async () => [authorized('ada', at - 1000), authorized('bob', Date.now() + 1000)],
    });
    const flow = await load(environment);
    const { msg } = only(await flow.arrivals.next());
    should(msg.topic).equal('authorized');
    should(msg.payload).containEql({ advisor: 'bob' });
  });

  it('reports after a restart what happened meanwhile, and nothing twice', async () => {
    const store = createMemoryStore();
    const first = await office(store);
    first.states.set('ada', 'authorized');
    first.states.set('bob', 'authorize_again');
    const flow = await load(first.environment);
    await flow.arrivals.next();
    await Flow.unload();
    const second = await office(store);
    second.states.set('ada', 'authorize_again');
    second.states.set('bob', 'authorize_again');
    const again = await load(second.environment);
    const { msg } = only(await again.arrivals.next());
    should((msg.payload as { advisor: string }).advisor).equal('ada');
    second.states.set('bob', 'authorized');
    second.changed();
    should((only(await again.arrivals.next()).msg.payload as { advisor: string }).advisor).equal('bob');
    should(again.arrivals.all).have.length(2);
  });

  it('reports an authorization of somebody who was disconnected, like the first', async () => {
    const { environment, states, changed } = await office(createMemoryStore());
    states.set('bob', 'authorize_again');
    const flow = await load(environment);
    await flow.arrivals.next();
    const next = async (): Promise<unknown> =>
      (only(await flow.arrivals.next()).msg.payload as { advisor: string }).advisor;
    states.set('ada', 'authorized');
    changed();
    should(await next()).equal('ada');
    states.delete('ada');
    states.set('bob', 'confirm');
    changed();
    should(await next()).equal('bob');
    states.set('ada', 'authorized').set('eve', 'authorized');
    changed();
    should(await next()).equal('ada');
  });

  it('forgets and repeats nothing while the advisors are temporarily unknown', async () => {
    const { environment, states, changed } = await office(createMemoryStore());
    states.set('ada', 'authorized');
    states.set('bob', 'authorize_again');
    const list = environment.advisorList.bind(environment);
    let asked = 0;
    const failing = async (): Promise<readonly AdvisorItem[]> => {
      asked += 1;
      throw new Error('the database is away');
    };
    Object.assign(environment, { advisorList: failing });
    const flow = await load(environment);
    while (asked < 1) await nextIteration();
    // They were unknown when the node was new: existing authorizations are still no event.
    Object.assign(environment, { advisorList: list });
    changed();
    should((only(await flow.arrivals.next()).msg.payload as { advisor: string }).advisor).equal('bob');
    Object.assign(environment, { advisorList: failing });
    changed();
    while (asked < 2) await nextIteration();
    Object.assign(environment, { advisorList: list });
    states.set('ada', 'confirm');
    changed();
    should((only(await flow.arrivals.next()).msg.payload as { advisor: string }).advisor).equal('ada');
    should(flow.arrivals.all).have.length(2);
  });

  it('warns of nothing when its environment closes before its store has been reached', async () => {
    const { environment } = await office(createMemoryStore());
    let giveUp = (): void => undefined;
    const opening = new Promise<Store>((_, reject) => {
      giveUp = () => reject(new Error('the store is closed'));
    });
    const asked = gate();
    const store = (): Promise<Store> => {
      asked.open();
      return opening;
    };
    Object.assign(environment, { store });
    const flow = await load(environment);
    await asked.opened;
    const closing = Flow.unload();
    giveUp();
    await closing;
    should(flow.warnings).be.empty();
  });

  it('leaves to another instance what that has claimed to report, unless that has died', async () => {
    const store: Store = Object.assign(createMemoryStore(), { peers: peers() });
    const { environment, states, changed } = await office(store);
    for (const advisor of ['ada', 'bob', 'eve']) states.set(advisor, 'authorize_again');
    const put = (advisor: string, state: string | null, until?: number): Promise<boolean> =>
      store.write([
        {
          table: 'work',
          put: key('event-told', 'events', store.hash(advisor)),
          value: {
            advisor,
            state,
            ...(until !== undefined && { claim: { by: 'other', state: 'authorize_again', until } }),
          },
        },
      ]);
    await put('ada', null, store.now() + 60_000);
    await put('bob', null, store.now() - 1);
    await put('eve', 'authorize_again');
    const flow = await load(environment);
    should((only(await flow.arrivals.next()).msg.payload as { advisor: string }).advisor).equal('bob');
    // It has reported it.
    await put('ada', 'authorize_again');
    states.set('eve', 'authorized');
    changed();
    should((only(await flow.arrivals.next()).msg.payload as { advisor: string }).advisor).equal('eve');
    states.set('ada', 'authorized');
    changed();
    should(only(await flow.arrivals.next()).msg.topic).equal('authorized');
    should(flow.arrivals.all).have.length(3);
    should(isShared(key('event-told', 'n'))).be.true();
  });

  it('reports a pause that was over before anybody looked, and after a restart that one has ended', async () => {
    const clock = new MovableClock(() => begin);
    const store = createMemoryStore();
    const { environment } = await scripted(
      (_request, index) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '1' } } : { body: { state: 'pending' } },
      { store, clock },
    );
    await store.write([
      {
        table: 'work',
        put: key('event-told', 'events', store.hash('')),
        value: { advisor: '', state: 'paused' },
      },
    ]);
    const flow = await load(environment);
    should(only(await flow.arrivals.next()).msg.topic).equal('resumed');
    const client = await environment.client();
    const call = client.call(
      'getConsent',
      { query: { phone: numbered(1) } },
      { advisor: 'default', lane: 'x' },
    );
    call.catch(() => undefined);
    while (client.limits.pausedUntil === 0) await nextIteration();
    await clock.move(2000);
    const told = await flow.arrivals.next(2);
    should(told.map(({ msg }) => msg.topic)).deepEqual(['paused', 'resumed']);
    let looks = 0;
    Object.assign(environment, {
      advisorList: async () => {
        looks += 1;
        return [];
      },
    });
    const { changed } = environment as Environment & { changed?: () => void };
    while (looks < 1) {
      changed?.call(environment);
      await nextIteration();
    }
    should(flow.arrivals.all).have.length(3);
  });

  it('reports when the store fails, and when it recovers', async () => {
    const { environment, changed } = await office(createMemoryStore());
    const flow = await load(environment);
    environment.trouble = 'the disk is full';
    changed();
    const { msg } = only(await flow.arrivals.next());
    should(msg.topic).equal('store');
    should(msg.payload).containEql({ ok: false });
    should((msg.payload as { message: string }).message).match(/the disk is full/);
    environment.trouble = undefined;
    changed();
    should(only(await flow.arrivals.next()).msg.payload).containEql({ ok: true });
  });

  it('reports a store that failed before the flows started', async () => {
    const store = createMemoryStore();
    const { environment } = await office(store);
    environment.trouble = 'the database is away';
    // Nothing can be read from it yet.
    const { opened, open } = gate();
    Object.assign(environment, { store: () => opened.then(() => store) });
    const flow = await load(environment);
    const { msg } = only(await flow.arrivals.next());
    should(msg.topic).equal('store');
    should(msg.payload).containEql({ ok: false });
    open();
  });

  it('reports a pause and its end', async () => {
    const clock = new MovableClock(() => begin);
    const { environment } = await scripted(
      (_request, index) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '60' } } : { body: { state: 'pending' } },
      { store: createMemoryStore(), clock },
    );
    const flow = await load(environment);
    const client = await environment.client();
    const call = client.call(
      'getConsent',
      { query: { phone: numbered(1) } },
      { advisor: 'default', lane: 'x' },
    );
    call.catch(() => undefined);
    const { msg } = only(await flow.arrivals.next());
    should(msg.topic).equal('paused');
    should((msg.payload as { until: number }).until).be.above(begin);
    await clock.move(61_000);
    should((await flow.arrivals.next(1)).map(({ msg: each }) => each.topic)).deepEqual(['resumed']);
  });
});
