import { mock } from 'node:test';
import should from 'should';
import { setTimeout as sleep } from 'node:timers/promises';
import { activityOf } from '../../../lib/runtime/activity';
import type { Red } from '../../../lib/runtime/red';
import type { Clock } from '../../../lib/service/clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Engine } from '../../../lib/state/store';
import {
  announcerOf,
  health,
  pendingIn,
  readActivity,
  serviceState,
} from '../../../nodes/environment/sidebar-data';
import { bundleOf } from '../../../nodes/environment/bundle';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { runningOf } from '../../../nodes/environment/running';
import { servicesOf } from '../../../nodes/environment/services';
import { nextIteration } from '../../support/event-loop';
import {
  adminAuth,
  adminPassword,
  auditIn,
  startRed,
  type Answer,
  type FlowNode,
  type RealRed,
} from '../../support/node-red';
import { numbers, toldIn } from '../../support/numbers';
import { overStore } from '../../support/state/over-store';

const password = adminAuth.users[0]?.password;
const { silent, unasked } = numbers;

interface Item {
  readonly id: string;
  readonly name?: string;
  readonly phone: string | null;
  readonly detail?: string | null;
  readonly list?: string | null;
}
interface Page {
  readonly data: Item[];
  readonly pageInfo: { readonly totalRecord: number | null };
}

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Test' },
  { id: 'env', type: 'advisor-environment', name: 'Play', service: 'simulator', country: 'US' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', wires: [['wait']] },
  {
    id: 'wait',
    type: 'advisor-check-consent',
    z: 'tab',
    name: 'my wait',
    environment: 'env',
    mode: 'wait',
    wires: [['out'], ['out'], ['out']],
  },
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', wires: [] },
  { id: 'text', type: 'test-port', z: 'tab', name: 'text', wires: [['send']] },
  { id: 'send', type: 'advisor-send-text', z: 'tab', environment: 'env', wires: [[], ['failed'], []] },
  { id: 'failed', type: 'test-port', z: 'tab', name: 'failed', wires: [] },
  { id: 'to block', type: 'test-port', z: 'tab', name: 'block', wires: [['block']] },
  {
    id: 'block',
    type: 'advisor-do-not-text',
    z: 'tab',
    environment: 'env',
    operation: 'block',
    reason: 'called from +12025550199',
    wires: [['blocked'], [], []],
  },
  { id: 'blocked', type: 'test-port', z: 'tab', name: 'blocked', wires: [] },
  // As good as stopped: what is sent through it stays queued.
  { id: 'slow', type: 'advisor-environment', service: 'simulator', requestsPerSecond: 0.001 },
  { id: 'slowly', type: 'test-port', z: 'tab', name: 'slowly', wires: [['creep']] },
  { id: 'creep', type: 'advisor-send-text', z: 'tab', environment: 'slow', wires: [[], ['failed'], []] },
];

describe('the activity routes on a real Node-RED', function () {
  this.timeout(120_000);
  let red: RealRed;
  const tokens = new Map<string, string | undefined>();

  before(async () => {
    red = await startRed({
      version: 5,
      settings: {
        httpAdminRoot: '/red',
        httpNodeRoot: '/api',
        logging: { console: { level: 'info', audit: true } },
        adminAuth: {
          type: 'credentials',
          users: [
            { username: 'viewer', password, permissions: 'advisor-texting.read' },
            { username: 'clerk', password, permissions: ['read', 'advisor-texting.write'] },
            { username: 'admin', password, permissions: '*' },
          ],
        },
      },
    });
    for (const user of ['viewer', 'clerk', 'admin']) {
      await red.login(user, adminPassword);
      tokens.set(user, red.token);
    }
    await red.deploy(flows);
  });
  after(async () => {
    await red.close();
  });

  const ask = (user: string, method: string, path: string): Promise<Answer> => {
    red.token = tokens.get(user);
    return red.request(method, `advisor-texting/${path}`, method === 'POST' ? {} : undefined);
  };
  const page = async (user: string, path: string): Promise<Page> => {
    const { status, json } = await ask(user, 'GET', path);
    should(status).equal(200);
    return json as Page;
  };
  const waiting = async (count: number): Promise<Page> => {
    for (;;) {
      const found = await page('clerk', 'env/waits');
      if (found.pageInfo.totalRecord === count) return found;
      await sleep(20);
    }
  };

  it('show the do-not-text list, masked for users who may only read, and remove entries for the others', async () => {
    const phones = Array.from({ length: 9 }, (_, at) => `+1202555014${String(at)}`);
    for (const [at, phone] of phones.entries()) {
      await red.send('block', { phone });
      await red.messages('blocked', at + 1);
    }
    const all = await page('clerk', 'env/do-not-text');
    should(all.data.map(({ phone }) => phone)).deepEqual(phones.toReversed());
    should(all.pageInfo.totalRecord).equal(9);
    should((await page('clerk', 'env/do-not-text?phone=50142')).data).have.length(1);
    should((await page('clerk', 'env/do-not-text?phone=202%20555%200142')).data).have.length(1);
    should((await page('clerk', 'env/do-not-text?phone=called')).data).have.length(9);
    const { text } = await ask('viewer', 'GET', 'env/do-not-text');
    should(text).match(/…0142/);
    should(toldIn(text, [...phones, '+12025550199'])).be.empty();
    should(text).not.containEql('called');
    should((await page('viewer', 'env/do-not-text?phone=0142')).data).be.empty();
    const one = 'env/do-not-text/%2B12025550142';
    should((await ask('viewer', 'DELETE', one)).status).equal(401);
    should((await ask('clerk', 'DELETE', one)).status).equal(200);
    should((await ask('clerk', 'DELETE', one)).status).equal(404);
    should((await page('clerk', 'env/do-not-text')).pageInfo.totalRecord).equal(8);
  });

  it('show numbers to users who may write, and the last four digits to users who may only read', async () => {
    await red.send('in', { phone: [{ phone: silent, name: 'Ada' }, { phone: unasked }] });
    const { data } = await waiting(2);
    should(data.map(({ phone }) => phone).toSorted()).deepEqual([silent, unasked]);
    should(data.map(({ name }) => name).toSorted()).deepEqual(['Ada', undefined]);
    should((await page('clerk', 'env/waits?phone=ada')).data.map(({ phone }) => phone)).deepEqual([silent]);
    // As written for the environment.
    should((await page('clerk', 'env/waits?phone=(202)%20555-0111')).data).have.length(1);
    const shown = await page('viewer', 'env/waits');
    should(shown.data.map(({ phone }) => phone).toSorted()).deepEqual(['…0111', '…0112']);
    for (const secret of [silent, unasked, 'Ada'])
      should(JSON.stringify(shown)).not.containEql(secret.slice(-8));
    should((await page('viewer', 'env/waits?phone=ada')).data).be.empty();
    const pending = async (user: string, query = '') =>
      (await ask(user, 'GET', `env/pending${query}`)).json as { people: string[] };
    const { people, ...counts } = await pending('clerk', '?node=wait');
    should(counts).deepEqual({ count: 2, waits: 2 });
    should(people.toSorted()).deepEqual([unasked, 'Ada']);
    should((await pending('viewer')).people.toSorted()).deepEqual(['…0111', '…0112']);
    should(await pending('clerk', '?node=send')).deepEqual({ count: 0, waits: 0, people: [] });
    const search = `env/waits?phone=${encodeURIComponent(silent)}`;
    should((await page('clerk', search)).data.map(({ phone }) => phone)).deepEqual([silent]);
    should(await page('viewer', search)).containDeep({ data: [], pageInfo: { totalRecord: 0 } });
    should((await page('viewer', 'env/waits?page=2&pageSize=1')).data).have.length(1);
    await red.send('text', { phone: 'nobody', text: 'x' });
    await red.send('text', { phone: numbers.optedOut, text: 'secret' });
    await red.messages('failed', 2);
    for (const user of ['clerk', 'viewer']) {
      const failures = await page(user, 'env/failures');
      should(failures.pageInfo.totalRecord).equal(2);
      should(failures.data.map(({ phone }) => phone)).containEql(
        user === 'clerk' ? numbers.optedOut : '…0114',
      );
      should(JSON.stringify(failures)).not.containEql('secret');
      const { advice } = failures as Page & { advice: string[] };
      should(advice).have.length(2);
      should(advice.join(' ')).match(/use one such as/);
      // The service's words.
      should(JSON.stringify(failures).includes('opted out')).equal(user === 'clerk');
      should(JSON.stringify(failures).includes(numbers.optedOut)).equal(user === 'clerk');
    }
    should((await page('viewer', 'env/queue')).data).be.empty();
  });

  it('check and cancel one wait for users who may write, and the audit log says who did', async () => {
    const from = red.lines.length;
    const { data } = await waiting(2);
    const id = data.find(({ phone }) => phone === unasked)?.id ?? '';
    should((await ask('viewer', 'DELETE', `env/waits/${id}`)).status).equal(401);
    should((await ask('viewer', 'POST', `env/waits/${id}/check`)).status).equal(401);
    should((await ask('clerk', 'POST', `env/waits/${id}/check`)).json).deepEqual({ id });
    should((await ask('clerk', 'DELETE', `env/waits/${id}`)).json).deepEqual({ id });
    const [told] = await red.messages('out', 1);
    should(told).containEql({ phone: unasked, outcome: 'notAccepted' });
    const again = await ask('clerk', 'DELETE', `env/waits/${id}`);
    should(again.status).equal(404);
    should((again.json as { message: string }).message).match(/finished/);
    // An id of one kind is not accepted for another.
    for (const path of [`env/queue/${id}`, `env/lists/${id}`, 'env/queue/q', 'env/lists/l'])
      should((await ask('clerk', 'DELETE', path)).status).equal(404);
    await waiting(1);
    await red.logged(/advisor-texting\.cancel/, { from });
    const clerk = { username: 'clerk', environment: 'env', advisor: undefined };
    should(auditIn(red, from)).deepEqual(['check', 'cancel'].map((event) => ({ event, ...clerk })));
  });

  it("list queued items and lists in progress by pages, and cancel and stop them, with the user's name", async () => {
    const from = red.lines.length;
    const lists = (path = ''): Promise<Page> => page('viewer', `slow/lists${path}`);
    for (let n = 0; n < 3; n++)
      await red.send('slowly', {
        phone: [1, 2, 3].map((k) => ({ phone: `+1206555010${String(3 * n + k)}`, name: 'Ada' })),
        text: 'x',
      });
    for (;;) if ((await lists()).pageInfo.totalRecord === 3) break;
    const pages = await Promise.all([1, 2, 3].map((n) => lists(`?pageSize=2&page=${String(n)}`)));
    should(pages.map(({ data }) => data.length)).deepEqual([2, 1, 0]);
    const ids = pages.flatMap(({ data }) => data.map(({ id }) => id));
    should(new Set(ids).size).equal(3);
    should((await ask('viewer', 'DELETE', `slow/lists/${ids[2] ?? ''}`)).status).equal(401);
    should((await ask('clerk', 'DELETE', `slow/lists/${ids[2] ?? ''}`)).json).deepEqual({ id: ids[2] });
    const { data } = await page('clerk', 'slow/queue');
    should(data.every(({ name }) => name === 'Ada')).be.true();
    should((await page('clerk', 'slow/queue?phone=ada')).data).not.be.empty();
    should((await page('clerk', 'slow/queue?phone=zoe')).data).be.empty();
    should(JSON.stringify(await page('viewer', 'slow/queue'))).not.containEql('Ada');
    const queued = data.findLast(({ list }) => list === ids[1])?.id ?? '';
    should((await ask('clerk', 'DELETE', `slow/queue/${queued}`)).json).deepEqual({ id: queued });
    await red.logged(/advisor-texting\.cancel/, { from });
    const clerk = { username: 'clerk', environment: 'slow', advisor: undefined };
    should(auditIn(red, from)).deepEqual(['stop', 'cancel'].map((event) => ({ event, ...clerk })));
  });

  it('read a query parameter that is an object or a list as if it were missing', async () => {
    const names = ['node', 'page', 'pageSize', 'phone', 'state', 'advisor', 'filter', 'service', 'scopes'];
    const reads = ['pending', 'waits', 'queue', 'lists', 'failures', 'do-not-text', 'advisors'];
    for (const path of [...reads, 'lookup/contacts'])
      for (const suffix of ['[toString]', '[valueOf][]', '[]', '']) {
        const query = names.map((name) => `${name}${suffix}=1&${name}${suffix}=2`).join('&');
        const { status } = await ask('clerk', 'GET', `env/${path}?${query}`);
        should({ path, suffix, status }).deepEqual({ path, suffix, status: 200 });
      }
  });

  it('wait for a deploy to finish instead of missing an environment that it restarts', async () => {
    red.token = tokens.get('admin');
    const statuses = new Set<number>();
    const deploys = { areOver: false };
    const reading = (async () => {
      while (!deploys.areOver) {
        const paths = ['service', 'waits', 'queue', 'lists', 'failures', 'advisors?page=1'];
        const asked = paths.map((path) => red.request('GET', `advisor-texting/env/${path}`));
        for (const { status } of await Promise.all(asked)) statuses.add(status);
      }
    })();
    for (let n = 0; n < 5; n++)
      await red.deploy(
        flows.map((node) => (node.id === 'env' ? { ...node, name: `Play ${String(n)}` } : node)),
        n % 2 === 0 ? 'full' : 'nodes',
      );
    deploys.areOver = true;
    await reading;
    should([...statuses]).deepEqual([200]);
  });

  it('report good health to anybody, on both roots', async () => {
    for (const root of ['red', 'api']) {
      const answer = await fetch(`${red.url}/${root}/advisor-texting/health`);
      should(answer.status).equal(200);
      should(await answer.json()).deepEqual({ status: 'ok' });
    }
  });
});

describe('activity, for programs', () => {
  const healthOf = (RED: Red): { status: number; body: unknown } => {
    const said = { status: 0, body: undefined as unknown };
    const response = {
      status(status: number) {
        said.status = status;
        return response;
      },
      set: () => response,
      json(body: unknown) {
        said.body = body;
      },
    };
    health(RED, response as never);
    return said;
  };

  it('is unhealthy once the store could not be written for thirty seconds, regardless of clock changes and deploys', async () => {
    const hour = 3_600_000;
    let [wall, elapsed] = [Date.now(), 5000];
    const clock: Clock = { now: () => wall, elapsed: () => elapsed, after: () => () => undefined };
    const memory = createMemoryStore();
    let stalledFor = 0;
    Object.defineProperty(memory.engine.commits, 'underWayFor', { get: () => stalledFor });
    let trouble: string | undefined;
    const listeners = new Set<() => void>();
    const engine: Partial<Engine> = {
      onChange(listener: () => void) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      get trouble() {
        return trouble;
      },
    };
    const store = overStore(memory, {}, engine);
    const become = (said: string | undefined): void => {
      trouble = said;
      for (const listener of listeners) listener();
    };
    const quiet = (): void => undefined;
    const RED = {
      settings: { available: () => false },
      log: { info: quiet, warn: quiet, error: quiet },
    } as unknown as Red;
    const services = { ...servicesOf(RED), clock, openStore: () => Promise.resolve(store) };
    const environment = new RunningEnvironment(services, 'env', {}, () => undefined);
    runningOf(RED).add(environment);
    await environment.store();
    should(healthOf(RED)).deepEqual({ status: 200, body: { status: 'ok' } });
    become('The disk is full.');
    wall += hour;
    should(healthOf(RED).status).equal(200);
    elapsed += 29_999;
    should(healthOf(RED).status).equal(200);
    // It is reported again, and is not a new problem.
    become('The disk is full.');
    wall -= 2 * hour;
    elapsed += 1;
    // Only users with permissions here may read why.
    should(healthOf(RED)).deepEqual({ status: 503, body: { status: 'unavailable' } });
    const shown = (): Promise<object> =>
      serviceState(RED, {
        form: { running: environment },
        request: { headers: {} },
        mayWrite: false,
      } as never);
    should(await shown()).containEql({ trouble: 'The disk is full.' });
    become(undefined);
    should(healthOf(RED).status).equal(200);
    should(await shown()).containEql({ trouble: null });
    become('The disk is full.');
    elapsed += 29_999;
    should(healthOf(RED).status).equal(200);
    elapsed += 1;
    should(healthOf(RED).status).equal(503);
    // A deploy recreates the environment, over the same store.
    runningOf(RED).delete(environment);
    await environment.close();
    const next = new RunningEnvironment(services, 'env', {}, () => undefined);
    runningOf(RED).add(next);
    const opening = next.store();
    should(healthOf(RED).status).equal(503);
    await opening;
    should(healthOf(RED).status).equal(503);
    become(undefined);
    should(healthOf(RED).status).equal(200);
    // A disk that hangs reports no trouble.
    stalledFor = 29_999;
    should(healthOf(RED).status).equal(200);
    stalledFor += 1;
    should(healthOf(RED).status).equal(503);
    stalledFor = 0;
    should(healthOf(RED).status).equal(200);
    await next.close();
  });

  it('puts the code of every failure into words', async () => {
    const quiet = (): void => undefined;
    const RED = {
      settings: { available: () => false },
      log: { info: quiet, warn: quiet, error: quiet },
    } as unknown as Red;
    const store = createMemoryStore();
    const services = { ...servicesOf(RED), openStore: () => Promise.resolve(store) };
    const running = new RunningEnvironment(services, 'env', {}, () => undefined);
    for (const code of ['rejected', 'authorization_required', 'not_configured', 'not_consented', 'E 12'])
      activityOf(running).failed({
        node: { id: 'node', name: '' },
        problem: { code, message: 'No.', retryable: false, attempts: 0 },
        msg: {},
      });
    const request = { headers: {}, query: {}, acceptsLanguages: () => ['en'] };
    const shown = (mayWrite: boolean): Promise<object> =>
      readActivity('failures', { form: { running }, request, mayWrite } as never);
    const ours = {
      rejected: 'refused',
      authorization_required: 'not authorized',
      not_configured: 'not set up',
      not_consented: 'service error',
    };
    should(await shown(true)).containEql({ codes: { ...ours, 'E 12': 'service error' } });
    should(await shown(false)).containEql({ codes: { ...ours, other: 'service error' } });
    await running.close();
  });

  it('notifies editors where something has changed, not what, and not for each change', async () => {
    const published: unknown[][] = [];
    const heard = new Promise<void>((resolve) => {
      const publish = (...said: unknown[]): void => {
        published.push(said);
        // Once more, since what has changed may be saved only a moment later.
        if (published.length === 2) resolve();
      };
      const RED = { comms: { publish } } as unknown as Red;
      for (let n = 0; n < 1000; n++) announcerOf(RED, n % 2 === 0 ? 'one' : 'other')();
    });
    await heard;
    const [first] = published.map(([, news]) => (news as { number: number }).number);
    should(first).be.above(0);
    should(published).deepEqual(
      [0, 1].map((later) => [
        'advisor-texting/changed',
        { number: (first ?? 0) + later, environments: ['one', 'other'] },
        true,
      ]),
    );
  });

  it('is numbered so that an editor notices when it has missed the end of a runtime and the start of the next', async () => {
    const numbersOfTwo = (): Promise<number[]> =>
      new Promise((resolve) => {
        const numbers: number[] = [];
        const publish = (_topic: string, { number }: { number: number }): void => {
          if (numbers.push(number) === 2) resolve(numbers);
        };
        announcerOf({ comms: { publish } } as unknown as Red, 'one')();
      });
    const before = await numbersOfTwo();
    for (const number of await numbersOfTwo()) should(before).not.containEql(number - 1);
  });

  describe('while the store is unavailable', () => {
    beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
    let services: ReturnType<typeof servicesOf>;
    afterEach(async () => {
      mock.timers.reset();
      await (await services.simulator.start()).close();
    });
    /** Moves time until the work has finished. */
    const settled = async <T>(work: Promise<T>): Promise<T | Error> => {
      let result: { readonly value: T | Error } | undefined;
      work.then(
        (value) => (result = { value }),
        (fault: unknown) => (result = { value: fault as Error }),
      );
      for (let seconds = 0; seconds < 60 && !result; seconds++) {
        await nextIteration();
        mock.timers.tick(1000);
      }
      return result?.value ?? new Error('nobody was answered');
    };
    const away = new Promise<never>(() => undefined);
    const begin = () => {
      const quiet = (): void => undefined;
      const RED = {
        settings: { available: () => false },
        log: { info: quiet, warn: quiet, error: quiet },
      } as unknown as Red;
      services = { ...servicesOf(RED), openStore: () => away };
      const running = new RunningEnvironment(services, 'env', {}, () => undefined);
      const request = { headers: {}, query: {}, acceptsLanguages: () => ['en'] };
      return { RED, running, asked: { form: { running, written: {} }, request } as never };
    };

    it('provides a support bundle, without failures', async () => {
      const { RED, asked } = begin();
      should(await settled(bundleOf(RED, services, asked))).containDeep({
        failures: [],
        state: { store: null },
      });
    });

    it('says so instead of how much would be cancelled', async () => {
      const { running, asked } = begin();
      running.addPending({ id: 'node' }, () => away);
      should(await settled(pendingIn(asked))).containEql({ status: 503 });
    });
  });
});
