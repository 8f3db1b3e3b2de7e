import { EventEmitter, once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { mock } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import express, { type NextFunction, type Request, type Response } from 'express';
import should from 'should';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import type { Red } from '../../../lib/runtime/red';
import { adminRoutes } from '../../../nodes/environment/admin-routes';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { runningOf } from '../../../nodes/environment/running';
import { servicesOf, type Services } from '../../../nodes/environment/services';
import { startSimulator, type Simulator } from '../../../simulator';
import { closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { type Scripted, startServer } from '../../support/server';
import { callbackUri, decide, freshFolder, removeFolders } from '../../support/auth/setup';

interface Answer {
  readonly status: number;
  readonly json: unknown;
}

describe('what a form may do with stored secrets', () => {
  let simulator: Simulator;
  /** Another server, which only a form names. */
  let elsewhere: Scripted;
  let RED: Red;
  let services: Services;
  let server: Server;
  /** The permissions of the user; undefined if there are no logins. */
  let scope: readonly string[] | undefined;
  /** The deployed flows. */
  let nodes: object[];
  let stored: Record<string, string>;

  beforeEach(async () => {
    simulator = await startSimulator();
    elsewhere = await startServer(() => ({ status: 401, body: {} }));
    scope = undefined;
    nodes = [];
    stored = {};
    const quiet = (): void => undefined;
    const app = express().use(express.json());
    RED = {
      events: new EventEmitter(),
      httpAdmin: app,
      auth: {
        needsPermission: () => (request: Request, _: Response, next: NextFunction) => {
          Object.assign(request, { authInfo: { scope } });
          next();
        },
      },
      nodes: {
        getCredentials: () => stored,
        eachNode: (visit: (node: object) => void) => {
          nodes.forEach(visit);
        },
      },
      settings: {
        available: () => false,
        userDir: freshFolder(),
        get adminAuth() {
          return scope && {};
        },
      },
      log: { info: quiet, warn: quiet, error: quiet, audit: quiet },
    } as unknown as Red;
    services = servicesOf(RED);
    adminRoutes(RED, RED.httpAdmin, services);
    server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(async () => {
    await stop();
    server.close();
    await simulator.close();
    await closeAll();
  });
  after(removeFolders);

  const properties = (): object => ({
    service: 'sandbox',
    baseUrl: simulator.baseUrl,
    authUrl: simulator.authUrl,
    tokenUrl: simulator.tokenUrl,
    redirectUri: callbackUri,
    scopes: ['offline_access', 'text.messaging.read'],
  });
  const typed = (): object => ({ ...properties(), ...simulator.credentials });
  const hidden = (): object => ({
    ...properties(),
    clientId: simulator.credentials.clientId,
    clientSecret: '__PWRD__',
    apiKey: '__PWRD__',
    refreshToken: '',
  });

  const run = (): void => {
    stored = { ...simulator.credentials };
    nodes = [{ id: 'env1', type: 'advisor-environment', ...properties() }];
    const values = { ...properties(), ...stored };
    const variables: Record<string, unknown> = { THE_KEY: stored['apiKey'], PAGE: 'page' };
    const lookup = (name: string): unknown => variables[name];
    runningOf(RED).add(new RunningEnvironment(services, 'env1', values, lookup));
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...runningOf(RED)].map((environment) => environment.close()));
    runningOf(RED).clear();
  };
  const remove = async (): Promise<void> => {
    await stop();
    nodes = [];
    stored = {};
  };

  const ask = async (method: string, path: string, body?: object | string): Promise<Answer> => {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${String(port)}/advisor-texting/env1/${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body ? { body: typeof body === 'string' ? body : JSON.stringify(body) } : {}),
    });
    return { status: answer.status, json: await answer.json() };
  };

  it('is answered even if it cannot be searched for secrets, because it has thousands of levels', async () => {
    run();
    scope = ['advisor-texting.write'];
    const levels = 10_000;
    for (const [before, after] of [
      ['{"a":', '}'],
      ['[', ']'],
    ] as const) {
      const deep = `${before.repeat(levels)}1${after.repeat(levels)}`;
      const { status } = await ask('POST', 'authorize', `{"form":{"other":${deep},"clientId":""}}`);
      should(status).equal(500);
    }
  });
  it('is answered soon even if it names a variable of the deployed environment thousands of times', async () => {
    run();
    scope = ['advisor-texting.write'];
    nodes = nodes.map((node) => ({ ...node, scopes: ['${PAGE}'] }));
    const scopes = Array.from({ length: 9_000 }, () => '${PAGE}');
    const from = performance.now();
    const { status } = await ask('POST', 'authorize', { form: { ...typed(), scopes } });
    should(status).equal(200);
    should(performance.now() - from).be.below(10_000);
  });
  const authorize = async (form?: object, advisor?: string): Promise<void> => {
    const { json } = await ask('POST', 'authorize', { form, advisor });
    const address = (await decide((json as { url: string }).url)).href;
    should((await ask('POST', 'complete', { address })).status).equal(200);
  };
  const check = async (form?: object): Promise<Record<string, string | true>> => {
    const { json } = await ask('POST', 'test', { form });
    const checks = json as { check: string; ok: boolean | null; message: string }[];
    return Object.fromEntries(checks.map(({ check: name, ok, message }) => [name, ok === true || message]));
  };
  const allWell = {
    reachability: true,
    token: true,
    apiKey: true,
    scopes: true,
    prefixes: true,
    names: true,
  };

  const handedOver = (): unknown[] =>
    elsewhere.received.flatMap(({ headers, body }) =>
      [headers.authorization, headers['x-api-key'], body].filter((part) => part),
    );
  const isRefused = ({ status, json }: Answer): void => {
    should(status).equal(400);
    should(json).containEql({ code: 'not_configured' });
    should((json as { message: string }).message).match(/enter the secrets again/);
    should(elsewhere.received).be.empty();
  };

  for (const [what, rest] of [
    ['left out', () => ({})],
    ['left as they are', hidden],
    ['typed in but one', () => ({ ...typed(), apiKey: '__PWRD__' })],
    ['named by a variable', () => ({ ...typed(), apiKey: '${THE_KEY}' })],
  ] as const) {
    it(`sends no stored secret to another server when secrets are ${what}`, async () => {
      run();
      await authorize();
      isRefused(await ask('POST', 'test', { form: { ...rest(), baseUrl: `${elsewhere.url}/v1` } }));
      isRefused(await ask('POST', 'test', { form: { ...rest(), tokenUrl: `${elsewhere.url}/token` } }));
      isRefused(await ask('POST', 'authorize', { form: { ...rest(), tokenUrl: `${elsewhere.url}/token` } }));
    });
  }

  it('says in the dialog what to press there, and not to open it', async () => {
    run();
    const { token } = await check();
    should(token).equal('This advisor has not been authorized yet: press Authorize.');
  });

  it('tests the only advisor for the command, and asks to name one of several', async () => {
    run();
    const test = () => ask('POST', 'test', { whole: true });
    await authorize(undefined, 'maria');
    should((await test()).json).matchAny({ check: 'token', ok: true });
    await authorize(undefined, 'jordan');
    const { status, json } = await test();
    should(status).equal(400);
    should(json).match({ message: /^Several advisors have authorized .+--advisor/ });
  });

  it('gives no link before the form is deployed, and does not mention the simulator', async () => {
    runningOf(RED).add(new RunningEnvironment(services, 'env1', { service: 'simulator' }, () => undefined));
    const { status, json } = await ask('POST', 'link', { advisor: 'ann' });
    should(status).equal(400);
    should((json as { message: string }).message).match(/fill in this environment and deploy it first/);
  });

  for (const path of ['link', 'store/confirm'])
    it(`says for ${path} that the environment is not running, if the flows are stopped`, async () => {
      run();
      await stop();
      const { status, json } = await ask('POST', path, { advisor: 'ann' });
      should(status).equal(404);
      should((json as { message: string }).message).match(/is not running: deploy it or start the flows/);
    });

  describe('while the store is away', () => {
    afterEach(() => mock.timers.reset());

    /** Asks while the store is away, which comes back after the answer. */
    const askInVain = async (running: RunningEnvironment, method: string, path: string): Promise<void> => {
      const store = await running.store();
      let comeBack = (): void => undefined;
      const back = new Promise<typeof store>((resolve) => {
        comeBack = () => resolve(store);
      });
      const away = mock.method(running, 'store', () => back);
      mock.timers.enable({ apis: ['setTimeout'] });
      let answer: Answer | undefined;
      const asking = ask(method, path).then((each) => (answer = each));
      while (!answer) {
        await nextIteration();
        mock.timers.tick(100);
      }
      mock.timers.reset();
      should((await asking).status).equal(503);
      comeBack();
      await pause(100);
      away.mock.restore();
    };
    const started = (): RunningEnvironment => {
      run();
      const [running] = runningOf(RED);
      if (!running) throw new Error('it does not run');
      return running;
    };

    it('confirms no store that comes back after the answer', async () => {
      const running = started();
      const confirm = mock.method(running, 'confirmStore', async () => true);
      await askInVain(running, 'POST', 'store/confirm');
      should(confirm.mock.callCount()).equal(0);
    });

    it('takes nobody off the do-not-text list after the answer', async () => {
      const running = started();
      const list = await doNotTextOf(running);
      await list.block('+12025550142', null, 1);
      await askInVain(running, 'DELETE', 'do-not-text/%2B12025550142');
      should(await list.check('+12025550142')).be.ok();
    });
  });

  it('sends no secret of a disabled environment either', async () => {
    run();
    await authorize();
    await stop();
    isRefused(await ask('POST', 'test', { form: { ...hidden(), baseUrl: `${elsewhere.url}/v1` } }));
    isRefused(await ask('POST', 'authorize', { form: { ...hidden(), tokenUrl: `${elsewhere.url}/t` } }));
    should(await check(hidden())).deepEqual(allWell);
  });

  it('cannot use what is stored for a node of another type', async () => {
    stored = { ...simulator.credentials };
    nodes = [{ id: 'env1', type: 'somebody-elses' }];
    const { json } = await ask('POST', 'test', { form: { ...hidden(), tokenUrl: `${elsewhere.url}/token` } });
    should((json as { message: string }).message).match(/fill in Client secret/);
    should(elsewhere.received).be.empty();
  });

  it('uses stored secrets for their own server', async () => {
    run();
    await authorize(hidden());
    should(await check()).deepEqual(allWell);
    should(await check({})).deepEqual(allWell);
    should(await check(hidden())).deepEqual(allWell);
    should(await check({ ...typed(), baseUrl: `${simulator.baseUrl}/` })).containEql({ token: true });
  });

  for (const [what, prepare] of [
    ['deployed', () => undefined],
    ['disabled', stop],
    ['deleted', remove],
  ] as const) {
    it(`sends no advisor's token to another server from an environment that is ${what}`, async () => {
      run();
      await authorize();
      await prepare();
      const found = await check({ ...typed(), baseUrl: `${elsewhere.url}/v1` });
      should(found).containEql({ reachability: true, token: true });
      should(found['apiKey']).match(/not deployed: deploy it/);
      should(found['scopes']).match(/not deployed: deploy it/);
      should(handedOver()).be.empty();
      should(await check(typed())).deepEqual(allWell);
    });
  }

  it('tests what was authorized before the first deploy', async () => {
    await authorize(typed());
    should(await check(typed())).deepEqual(allWell);
  });

  for (const [what, prepare] of [
    ['deployed', () => undefined],
    ['disabled', stop],
  ] as const) {
    it(`reaches no server that only the form names for users who may not deploy, except the one that is ${what}`, async () => {
      run();
      await authorize();
      await prepare();
      scope = ['advisor-texting.write'];
      const { url } = elsewhere;
      const places = {
        baseUrl: `${url}/v1`,
        authUrl: `${url}/authorize`,
        tokenUrl: `${url}/token`,
        redirectUri: `${url}/advisor-texting/callback`,
        proxy: url,
      };
      for (const form of [places, { ...typed(), ...places }, { ...hidden(), ...places }]) {
        should(await check(form)).deepEqual(allWell);
        const { json } = await ask('POST', 'authorize', { form });
        const asked = new URL((json as { url: string }).url);
        should(asked.href).startWith(simulator.authUrl);
        should(asked.searchParams.get('redirect_uri')).equal(callbackUri);
        const address = (await decide(asked.href)).href;
        should((await ask('POST', 'complete', { address })).status).equal(200);
      }
      should(elsewhere.received).be.empty();
      scope = ['advisor-texting.write', 'flows.write'];
      should(await check({ ...typed(), baseUrl: `${url}/v1` })).containEql({ reachability: true });
      should(elsewhere.received).not.be.empty();
    });
  }

  it('resolves variables in query names, for users who may deploy', async () => {
    run();
    await authorize(hidden());
    const form = { ...hidden(), names: { page: '${PAGE}' } };
    should(await check(form)).deepEqual(allWell);
    scope = ['advisor-texting.write'];
    const { status, json } = await ask('POST', 'test', { form });
    should(status).equal(400);
    should((json as { message: string }).message).match(/uses PAGE, which is not deployed/);
  });

  it('tests nothing before the first deploy for users who may not deploy, and says so', async () => {
    scope = ['advisor-texting.write'];
    for (const route of ['test', 'authorize']) {
      const { status, json } = await ask('POST', route, { form: typed() });
      should(status).equal(400);
      should((json as { message: string }).message).match(/not deployed: deploy it/);
    }
  });

  it('lists advisors whatever address the form contains', async () => {
    run();
    await authorize();
    const states = async (query: object): Promise<string[]> => {
      const { json } = await ask('GET', `advisors?${new URLSearchParams({ ...query }).toString()}`);
      return (json as { state: string }[]).map(({ state }) => state);
    };
    const shown = { service: 'sandbox', grant: 'authorization_code', scopes: 'openid' };
    const { clientId } = simulator.credentials;
    should(await states({ ...shown, clientId, tokenUrl: simulator.tokenUrl })).deepEqual(['authorized']);
    should(await states({ ...shown, clientId, tokenUrl: `${elsewhere.url}/token` })).deepEqual([
      'authorize_again',
    ]);
    should(elsewhere.received).be.empty();
  });
});
