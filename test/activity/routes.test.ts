import should from 'should';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Red } from '../../lib/runtime/red';
import { announcerOf, health } from '../../nodes/environment/activity';
import type { RunningEnvironment } from '../../nodes/environment/environment';
import { runningOf } from '../../nodes/environment/running';
import { adminAuth, adminPassword, startRed, type Answer, type RealRed } from '../support/node-red';

const password = adminAuth.users[0]?.password;
const silent = '+12025550111';
const never = '+12025550112';

interface Item {
  readonly id: string;
  readonly name?: string;
  readonly phone: string | null;
  readonly detail?: string | null;
}
interface Page {
  readonly data: Item[];
  readonly pageInfo: { readonly totalRecord: number | null };
}

describe('the routes of what goes on, on a real Node-RED', function () {
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
    await red.deploy([
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
    ]);
  });
  after(async () => {
    await red.close();
  });

  const ask = (user: string, method: string, path: string): Promise<Answer> => {
    red.token = tokens.get(user);
    return red.request(method, `advisor-texting/env/${path}`, method === 'POST' ? {} : undefined);
  };
  const page = async (user: string, path: string): Promise<Page> => {
    const { status, json } = await ask(user, 'GET', path);
    should(status).equal(200);
    return json as Page;
  };
  const waiting = async (count: number): Promise<Page> => {
    for (;;) {
      const found = await page('clerk', 'waits');
      if (found.pageInfo.totalRecord === count) return found;
      await sleep(20);
    }
  };

  it('show numbers to who may write, and the last four digits to who may only read', async () => {
    await red.send('in', { phone: [{ phone: silent, name: 'Ada' }, { phone: never }] });
    const { data } = await waiting(2);
    should(data.map(({ phone }) => phone).toSorted()).deepEqual([silent, never]);
    should(data.map(({ name }) => name).toSorted()).deepEqual(['Ada', undefined]);
    should((await page('clerk', 'waits?phone=ada')).data.map(({ phone }) => phone)).deepEqual([silent]);
    // As it is written where the environment is.
    should((await page('clerk', 'waits?phone=(202)%20555-0111')).data).have.length(1);
    const shown = await page('viewer', 'waits');
    should(shown.data.map(({ phone }) => phone).toSorted()).deepEqual(['…0111', '…0112']);
    should(JSON.stringify(shown)).not.containEql('555').and.not.containEql('Ada');
    should((await page('viewer', 'waits?phone=ada')).data).be.empty();
    const search = `waits?phone=${encodeURIComponent(silent)}`;
    should((await page('clerk', search)).data.map(({ phone }) => phone)).deepEqual([silent]);
    should(await page('viewer', search)).containDeep({ data: [], pageInfo: { totalRecord: 0 } });
    should((await page('viewer', 'waits?page=2&pageSize=1')).data).have.length(1);
    await red.send('text', { phone: 'nobody', text: 'x' });
    await red.send('text', { phone: '+12025550114', text: 'secret' });
    await red.messages('failed', 2);
    for (const user of ['clerk', 'viewer']) {
      const failures = await page(user, 'failures');
      should(failures.pageInfo.totalRecord).equal(2);
      should(failures.data.map(({ phone }) => phone)).containEql(user === 'clerk' ? '+12025550114' : '…0114');
      should(JSON.stringify(failures)).not.containEql('secret');
      const { advice } = failures as Page & { advice: string[] };
      should(advice).have.length(2);
      should(advice.join(' '))
        .match(/give one such as/)
        .and.match(/opted out/);
      should(advice.join(' ').includes('+12025550114')).equal(user === 'clerk');
    }
    should((await page('viewer', 'queue')).data).be.empty();
  });

  it('check and cancel one wait, for who may write, and the audit log says who it was', async () => {
    const { data } = await waiting(2);
    const id = data.find(({ phone }) => phone === never)?.id ?? '';
    should((await ask('viewer', 'DELETE', `waits/${id}`)).status).equal(401);
    should((await ask('viewer', 'POST', `waits/${id}/check`)).status).equal(401);
    should((await ask('clerk', 'POST', `waits/${id}/check`)).json).deepEqual({ id });
    should((await ask('clerk', 'DELETE', `waits/${id}`)).json).deepEqual({ id });
    const [told] = await red.messages('out', 1);
    should(told).containEql({ phone: never, outcome: 'notAccepted' });
    const again = await ask('clerk', 'DELETE', `waits/${id}`);
    should(again.status).equal(404);
    should((again.json as { message: string }).message).match(/ended/);
    // An id of one kind is not taken for another's.
    for (const path of [`queue/${id}`, `lists/${id}`, 'queue/q', 'lists/l'])
      should((await ask('clerk', 'DELETE', path)).status).equal(404);
    await waiting(1);
    const audit = red.lines.filter((line) => line.includes('advisor-texting.cancel'));
    should(audit.length).equal(1);
    should(audit[0]).containEql('clerk').and.containEql('env');
  });

  it('say that all is well, to anybody, on both roots', async () => {
    for (const root of ['red', 'api']) {
      const answer = await fetch(`${red.url}/${root}/advisor-texting/health`);
      should(answer.status).equal(200);
      should(await answer.json()).deepEqual({ status: 'ok' });
    }
  });
});

describe('what goes on, for others than people', () => {
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

  it('is not well once the store could not be written for thirty seconds', () => {
    const RED = {} as Red;
    const environment = { troubleSince: undefined as number | undefined };
    runningOf(RED).add(environment as RunningEnvironment);
    should(healthOf(RED)).deepEqual({ status: 200, body: { status: 'ok' } });
    environment.troubleSince = Date.now() - 20_000;
    should(healthOf(RED).status).equal(200);
    environment.troubleSince = Date.now() - 31_000;
    should(healthOf(RED).status).equal(503);
    should(JSON.stringify(healthOf(RED).body)).not.match(/disk|store|trouble/i);
  });

  it('tells editors that something has changed, not what, and not for each change', async () => {
    const published: unknown[][] = [];
    const heard = new Promise<void>((resolve) => {
      const publish = (...said: unknown[]): void => {
        published.push(said);
        // Once more, since what has changed may be on record only a moment later.
        if (published.length === 2) resolve();
      };
      const announce = announcerOf({ comms: { publish } } as unknown as Red);
      for (let n = 0; n < 1000; n++) announce();
    });
    await heard;
    should(published).deepEqual(Array.from({ length: 2 }, () => ['advisor-texting/changed', {}, true]));
  });
});
