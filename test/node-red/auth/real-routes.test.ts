import { gzipSync } from 'node:zlib';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { runCheck } from '../../support/command/setup';
import { auditIn, startRed, type RealRed } from '../../support/node-red';
import {
  adminAuth,
  advisorsOf,
  authorizeOn,
  begin,
  decideFrom,
  deployOn,
  enter,
  environmentId,
  open,
  route,
  sandboxFlow,
} from '../../support/auth/real';
import { decide } from '../../support/auth/setup';

describe('admin routes on a real Node-RED, with logins, under a path', function () {
  this.timeout(120_000);
  let simulator: Simulator;
  let red: RealRed;

  before(async () => {
    simulator = await startSimulator({ settings: { redirectUris: ['loopback'], rotateRefreshTokens: true } });
    red = await startRed({
      version: 5,
      settings: {
        adminAuth,
        httpAdminRoot: '/red',
        httpNodeRoot: '/api',
        logging: { console: { level: 'info', audit: true } },
      },
    });
    await red.login('admin', 'admin');
    await deployOn(red, sandboxFlow(red, simulator));
  });
  after(async () => {
    await red.close();
    await simulator.close();
  });

  it('accept only JSON, so that no page of another site can post here', async () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=x',
    ]) {
      const answer = await fetch(`${red.adminUrl}/${route('authorize')}`, {
        method: 'POST',
        headers: { 'content-type': type, authorization: `Bearer ${red.token ?? ''}` },
        body: 'advisor=x',
      });
      should(answer.status).equal(415);
    }
  });

  it('refuse a request that is larger than any form, because a search for variables in it would stop Node-RED', async () => {
    const scopes = Array.from({ length: 20_000 }, () => '${PAGE}');
    const refused = await red.request('POST', route('test'), { form: { scopes } });
    should(refused.status).equal(413);
    should(refused.text).match(/too large/);
    const packed = await fetch(`${red.adminUrl}/${route('test')}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        authorization: `Bearer ${red.token ?? ''}`,
      },
      body: gzipSync(JSON.stringify({ form: { scopes } })),
    });
    should(packed.status).equal(413);
  });

  it('authorize, list without any secret, test, look up and disconnect', async () => {
    const page = await authorizeOn(red);
    should(page.status).equal(200);
    should(page.text).match(/Authorized/);
    const answer = await red.request('GET', route('advisors'));
    const [advisor] = await advisorsOf(red);
    should(advisor).containEql({ advisor: 'default', state: 'authorized', missingScopes: [] });
    should(advisor?.identity).be.a.String();
    should(advisor?.scopes).containEql('text.messaging.write');
    should(advisor?.expiresAt).be.above(Date.now());
    should(answer.text).not.match(/token|eyJ/i);

    const checks = await red.request('POST', route('test'), { advisor: 'default' });
    should(checks.json).have.length(6);
    should((checks.json as { check: string; ok: boolean }[]).map(({ check, ok }) => [check, ok])).deepEqual([
      ['reachability', true],
      ['token', true],
      ['apiKey', true],
      ['scopes', true],
      ['prefixes', true],
      ['names', true],
    ]);

    // The same by the command, from the files of this Node-RED.
    const rehearsed = await runCheck(['--user-dir', red.userDir, '--url', red.adminUrl, '--json'], {
      ADVISOR_TEXTING_ADMIN_TOKEN: red.token ?? '',
    });
    should(rehearsed.err).equal('');
    const lines = JSON.parse(rehearsed.out) as { check: string; ok: boolean | null; message: string }[];
    const shown = checks.json as { check: string; ok: boolean; message: string }[];
    for (const [index, { check, ok, message }] of shown.entries()) {
      should(lines[index]).containEql({ check, ok });
      // What the dialog shows with the names has its own lines here.
      message.should.startWith(lines[index]?.message ?? '');
    }
    const verdicts = Object.fromEntries(lines.map(({ check, ok }) => [check, ok]));
    should(verdicts).containEql({
      client: true,
      adminAuth: true,
      credentialSecret: true,
    });
    should(rehearsed.code).equal(0);

    const all = (await red.request('GET', route('lookup/contacts?advisor=default'))).json as {
      data: { fullName: string }[];
    };
    should(all.data.length).be.above(0);
    const name = all.data[0]?.fullName ?? '';
    const some = await red.request(
      'GET',
      route(`lookup/contacts?filter=${encodeURIComponent(name.toUpperCase())}`),
    );
    should((some.json as { data: unknown[] }).data[0]).deepEqual(all.data[0]);
    should((await red.request('GET', route('lookup/groups'))).status).equal(200);
    should((await red.request('GET', route('lookup/secrets'))).status).equal(404);

    should((await red.request('DELETE', route('advisors/default'))).status).equal(200);
    should(await advisorsOf(red)).be.empty();
    should((await red.request('DELETE', route('advisors/default'))).status).equal(404);
  });

  it('give the editor no secret of a deployed environment', async () => {
    const answers = [
      await red.request('GET', `credentials/advisor-environment/${environmentId}`),
      await red.request('GET', 'flows'),
    ];
    should(answers[0]?.json).containEql({ has_clientSecret: true, has_apiKey: true });
    const { clientSecret, apiKey } = simulator.credentials;
    for (const { text } of answers) should(text).not.containEql(clientSecret).and.not.containEql(apiKey);
  });

  it('say which of token, API key, reachability and scopes is the problem', async () => {
    await authorizeOn(red);
    const [, form] = sandboxFlow(red, simulator);
    const check = async (changes: object, advisor = 'default'): Promise<Record<string, boolean | null>> => {
      const answer = await red.request('POST', route('test'), {
        advisor,
        form: { ...form, ...simulator.credentials, ...changes },
      });
      return Object.fromEntries(
        (answer.json as { check: string; ok: boolean | null }[]).map(({ check, ok }) => [check, ok]),
      );
    };
    const good = {
      reachability: true,
      token: true,
      apiKey: true,
      scopes: true,
      prefixes: true,
      names: true,
    };
    should(await check({})).deepEqual(good);
    should(await check({ apiKey: 'wrong' })).containEql({ reachability: true, token: true, apiKey: false });
    should(await check({ baseUrl: 'http://127.0.0.1:1/v1' })).containEql({
      reachability: false,
      token: true,
      apiKey: null,
      names: null,
    });
    should(await check({ textPrefix: 'other' })).containEql({ reachability: true, prefixes: false });
    should(await check({ names: { page: 'p' } })).containEql({ prefixes: true, names: false });
    should(await check({ scopes: ['core.content.read'] })).containEql({ apiKey: true, scopes: false });
    should(await check({}, 'nobody')).containEql({ reachability: true, token: false });
    await red.request('DELETE', route('advisors/default'));
  });

  it('answer the callback with static pages and a strict policy', async () => {
    const hostile = '<script>alert(1)</script>';
    const url = `${red.adminUrl}/advisor-texting/callback?error=${encodeURIComponent(hostile)}&state=${encodeURIComponent(hostile)}`;
    const page = await open(url);
    should(page.status).equal(400);
    should(page.text).not.containEql('alert');
    should(page.headers.get('content-security-policy')).match(/^default-src 'none'; style-src 'sha256-/);
    should(page.headers.get('cache-control')).equal('no-store');
    const { back, cookie } = await decideFrom(await begin(red), 'Alice', 'deny');
    const denied = await open(back, { cookie });
    should(denied.status).equal(400);
    should(denied.text).containEql('Access was denied');
  });

  it('accept a callback once, on either root, and no smuggled parameters', async () => {
    const { back, cookie } = await decideFrom(await begin(red, 'twice'));
    const query = back.search;
    for (const bad of [
      `${query}&code=x`,
      `${query}&state=x`,
      query.replace('code=', 'code[]='),
      '?__proto__[code]=x',
    ]) {
      should((await open(`${red.adminUrl}/advisor-texting/callback${bad}`, { cookie })).status).equal(400);
    }
    const onOtherRoot = `${red.url}/api/advisor-texting/callback${query}&advisor=other`;
    should((await open(onOtherRoot, { cookie })).status).equal(200);
    should((await open(back, { cookie })).status).equal(400);
    should((await advisorsOf(red)).map(({ advisor }) => advisor)).deepEqual(['twice']);
    await red.request('DELETE', route('advisors/twice'));
  });

  it('bind an authorization to the browser that started it, by a cookie of our own page', async () => {
    const url = await begin(red, 'bound');
    const { state } = Object.fromEntries(new URL(url).searchParams);
    should(url).startWith(`${red.adminUrl}/advisor-texting/link/${state ?? ''}?`);
    const page = await open(url);
    should(page.status).equal(302);
    should(page.headers.get('set-cookie')).match(
      /^advisor-texting=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    should(page.headers.get('location')).startWith(simulator.authUrl);
    should(new URL(page.headers.get('location') ?? '').search).equal(new URL(url).search);
    should((await open(url)).status).equal(400);
    const [own = ''] = (page.headers.get('set-cookie') ?? '').split(';');
    const back = await decide(page.headers.get('location') ?? '');
    for (const other of [
      {},
      { cookie: `advisor-texting=${'A'.repeat(43)}` },
      { cookie: 'advisor-texting=' },
    ]) {
      const refused = await open(back, other);
      should(refused.status).equal(400);
      should(refused.text).containEql('Return to the browser you started in');
    }
    should((await open(back, { cookie: `other=1; ${own}` })).status).equal(200);
    await red.request('DELETE', route('advisors/bound'));
  });

  it('give a browser that authorizes twice at a time one cookie for both', async () => {
    const first = await enter(await begin(red, 'one'));
    const page = await open(await begin(red, 'two'), { cookie: first.cookie });
    should(page.headers.get('set-cookie')).startWith(`${first.cookie};`);
    for (const address of [first.address, page.headers.get('location') ?? '']) {
      should((await open(await decide(address), { cookie: first.cookie })).status).equal(200);
    }
    for (const advisor of ['one', 'two']) await red.request('DELETE', route(`advisors/${advisor}`));
  });

  it('redirect to the authorization page, bound by the state alone, if that redirects elsewhere', async () => {
    const elsewhere = 'http://127.0.0.1:1/advisor-texting/callback';
    await deployOn(red, sandboxFlow(red, simulator, { redirectUri: elsewhere }));
    const url = await begin(red, 'away');
    should(url).startWith(simulator.authUrl);
    const back = await decide(url);
    should(back.href).startWith(elsewhere);
    should((await open(`${red.adminUrl}/advisor-texting/callback${back.search}`)).status).equal(200);
    await deployOn(red, sandboxFlow(red, simulator));
    await red.request('DELETE', route('advisors/away'));
  });

  it("learn this server's name behind a proxy from the browser", async () => {
    const redirectUri = 'https://red.example/red/advisor-texting/callback';
    const [, form] = sandboxFlow(red, simulator, { redirectUri });
    const ask = async (headers: Record<string, string>): Promise<string> => {
      const body = { advisor: 'x', form: { ...form, ...simulator.credentials } };
      return ((await red.request('POST', route('authorize'), body, headers)).json as { url: string }).url;
    };
    const url = await ask({ origin: 'https://red.example' });
    should(url).startWith('https://red.example/red/advisor-texting/link/');
    const page = await open(url.replace('https://red.example/red', red.adminUrl));
    should(page.headers.get('set-cookie')).match(/^__Host-advisor-texting=.*; Secure$/);
    should(await ask({ origin: 'http://red.example' })).startWith(simulator.authUrl);
    should(await ask({})).startWith(simulator.authUrl);
  });

  it('use the configured redirect address, whatever host the request names', async () => {
    const spoofed = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    };
    const answer = await red.request('POST', route('authorize'), { advisor: 'default' }, spoofed);
    const { url } = answer.json as { url: string };
    should(new URL(url).searchParams.get('redirect_uri')).equal(`${red.adminUrl}/advisor-texting/callback`);
    const link = await red.request('POST', route('link'), { advisor: 'default' }, spoofed);
    should((link.json as { url: string }).url).startWith(`${red.adminUrl}/advisor-texting/link/`);
  });

  it('let an advisor without a login authorize by a link', async () => {
    const { url } = (await red.request('POST', route('link'), { advisor: 'carol' })).json as { url: string };
    should((await open(url)).status).equal(302);
    const { back, cookie } = await decideFrom(url, 'Carol');
    should((await open(back)).status).equal(400);
    should((await open(back, { cookie })).status).equal(200);
    should((await advisorsOf(red)).map(({ advisor }) => advisor)).deepEqual(['carol']);
    const spent = await open(url);
    should(spent.status).equal(400);
    should(spent.text).containEql('no longer works');
    await red.request('DELETE', route('advisors/carol'));
  });

  it('finish from a pasted address, for the environment it belongs to', async () => {
    const address = (await decideFrom(await begin(red, 'dave'))).back.href;
    should((await red.request('POST', 'advisor-texting/other/complete', { address })).status).equal(400);
    const answer = await red.request('POST', route('complete'), { address });
    should(answer.json).deepEqual({ advisor: 'dave', state: 'authorized' });
    should((await red.request('POST', route('complete'), { address: 'nonsense' })).status).equal(400);
    await red.request('DELETE', route('advisors/dave'));
  });

  it('wait for a confirmation when another person authorizes', async () => {
    await authorizeOn(red, 'erin', 'Erin');
    should((await authorizeOn(red, 'erin', 'Frank')).text).match(/confirm/);
    should((await advisorsOf(red))[0]).containEql({ state: 'confirm' });
    should((await red.request('POST', route('advisors/erin/confirm'), {})).json).deepEqual({
      advisor: 'erin',
      state: 'authorized',
    });
    should((await advisorsOf(red))[0]).containEql({ state: 'authorized' });
    should((await red.request('POST', route('advisors/erin/confirm'), {})).status).equal(404);
    await red.request('DELETE', route('advisors/erin'));
  });

  it('keep the authorization of the deployed service while a form that is not deployed has another', async () => {
    await authorizeOn(red, 'ivan', 'Ivan');
    const [, form] = sandboxFlow(red, simulator, { service: 'production' });
    await authorizeOn(red, 'ivan', 'Judy', { ...form, ...simulator.credentials });
    const listed = async (): Promise<unknown[]> =>
      (await advisorsOf(red)).map(({ identity, state }) => [identity, state]);
    should(await listed()).deepEqual([['Ivan', 'authorized']]);
    await authorizeOn(red, 'ivan', 'Ken', { ...form, ...simulator.credentials });
    const confirm = async (query = ''): Promise<number> =>
      (await red.request('POST', route(`advisors/ivan/confirm${query}`), {})).status;
    should([await confirm(), await confirm('?service=production')]).deepEqual([404, 200]);
    await deployOn(red, sandboxFlow(red, simulator, { service: 'production' }));
    should(await listed()).deepEqual([['Ken', 'authorized']]);
    await deployOn(red, sandboxFlow(red, simulator));
    should(await listed()).deepEqual([['Ivan', 'authorized']]);
    await red.request('DELETE', route('advisors/ivan'));
    should(await advisorsOf(red)).be.empty();
  });

  it('log in the audit log who authorized, linked, confirmed, tested and disconnected whom, and no secret', async () => {
    const from = red.lines.length;
    await authorizeOn(red, 'grace', 'Grace');
    await authorizeOn(red, 'grace', 'Heidi');
    await red.request('POST', route('advisors/grace/confirm'), {});
    await red.request('POST', route('test'), { advisor: 'grace' });
    const { url } = (await red.request('POST', route('link'), { advisor: 'grace' })).json as { url: string };
    const { back } = await decideFrom(await begin(red, 'grace'), 'Heidi');
    await red.request('POST', route('complete'), { address: back.href });
    // What is rejected did not happen.
    should((await red.request('POST', route('advisors/nobody/confirm'), {})).status).equal(404);
    await red.request('DELETE', route('advisors/grace'));
    await red.logged(/advisor-texting\.disconnect/, { from });
    const told = auditIn(red, from);
    should(told.map(({ event, advisor }) => [event, advisor])).deepEqual(
      ['authorize', 'authorize', 'confirm', 'test', 'link', 'authorize', 'complete', 'disconnect'].map(
        (event) => [event, 'grace'],
      ),
    );
    for (const each of told) should(each).containEql({ username: 'admin', environment: environmentId });
    const { code, state } = Object.fromEntries(back.searchParams);
    const lines = red.lines.slice(from).join('\n');
    for (const secret of [url.split('/').at(-1), code, state, simulator.credentials.clientSecret])
      should(lines).not.containEql(secret);
  });

  it('send no stored secret to an address that only the form names', async () => {
    const [, form] = sandboxFlow(red, simulator, { tokenUrl: 'http://127.0.0.1:9/token' });
    const answer = await red.request('POST', route('authorize'), {
      advisor: 'default',
      form: { ...form, clientId: 'x', clientSecret: '__PWRD__', apiKey: '__PWRD__' },
    });
    should(answer.status).equal(400);
    should(answer.text).match(/enter the secrets again/);
    const moved = { baseUrl: 'http://127.0.0.1:9/v1' };
    const tried = await red.request('POST', route('test'), { advisor: 'default', form: moved });
    should(tried.status).equal(400);
    should(tried.text).match(/enter the secrets again/);
  });

  it('send no secret of a disabled environment either', async () => {
    await deployOn(red, sandboxFlow(red, simulator, { d: true }));
    const [, form] = sandboxFlow(red, simulator, { tokenUrl: 'http://127.0.0.1:9/token' });
    const hidden = { clientId: 'x', clientSecret: '__PWRD__', apiKey: '__PWRD__' };
    const answer = await red.request('POST', route('authorize'), {
      advisor: 'default',
      form: { ...form, credentials: undefined, ...hidden },
    });
    should(answer.status).equal(400);
    should(answer.text).match(/enter the secrets again/);
    await deployOn(red, sandboxFlow(red, simulator));
  });

  it('say what is missing', async () => {
    const answer = await red.request('POST', 'advisor-texting/undeployed/authorize', {
      advisor: 'default',
      form: {
        service: 'production',
        name: 'Live',
        redirectUri: 'http://office.example/x#y',
        clientId: '${NOT_SET}',
      },
    });
    should(answer.status).equal(400);
    should(answer.json).containEql({ code: 'not_configured' });
    should((await red.request('POST', 'advisor-texting/undeployed/link', {})).text).match(/not deployed/);
  });

  it('ask for a deploy before a link, whatever the dialog has filled in since', async () => {
    const half = { type: 'advisor-environment', service: 'production', baseUrl: simulator.baseUrl };
    await deployOn(red, [
      ...sandboxFlow(red, simulator),
      { ...half, id: 'e4e4e4e4e4e4e4e4' },
      { ...half, id: 'e5e5e5e5e5e5e5e5', service: 'simulator' },
    ]);
    for (const id of ['e4e4e4e4e4e4e4e4', 'e5e5e5e5e5e5e5e5']) {
      const { status, text } = await red.request('POST', `advisor-texting/${id}/link`, { advisor: 'ann' });
      should([status, /deploy it first/.test(text)]).eql([400, true]);
    }
    await deployOn(red, sandboxFlow(red, simulator));
  });

  it('send nobody from a link to sign in where nobody has to: at the simulator, and with client credentials', async () => {
    const answer = await red.request('POST', route('link'), { advisor: 'late' });
    const link = (answer.json as { url: string }).url;
    for (const changes of [{ service: 'simulator' }, { grant: 'client_credentials', redirectUri: '' }]) {
      await deployOn(red, sandboxFlow(red, simulator, changes));
      const from = red.lines.length;
      const page = await open(link);
      should(page.status).equal(400);
      should(page.text).match(/Not ready yet/);
      should(red.lines.slice(from).join()).not.match(/error/);
    }
    await deployOn(red, sandboxFlow(red, simulator));
    should((await open(link)).status).equal(302);
  });

  it('have no simulator page while no environment uses the simulator', async () => {
    should((await red.request('POST', 'advisor-texting/simulator/open', {})).status).equal(409);
  });

  it('show the phones page to people who open it from the editor, and to nobody else', async () => {
    const id = 'e3e3e3e3e3e3e3e3';
    await deployOn(red, [
      ...sandboxFlow(red, simulator),
      { id, type: 'advisor-environment', service: 'simulator' },
    ]);
    const { url } = (await red.request('POST', 'advisor-texting/simulator/open', {})).json as {
      url: string;
    };
    const entered = await open(`${red.adminUrl}/${url}`);
    should(entered.status).equal(200);
    const cookie = entered.headers.get('set-cookie') ?? '';
    should(cookie).match(/HttpOnly; SameSite=Strict/);
    // Cookies do not distinguish ports, so a browser sends the one of another Node-RED on this host.
    const before = `advisor-texting-simulator=${'A'.repeat(32)}`;
    const again = (await red.request('POST', 'advisor-texting/simulator/open', {})).json as { url: string };
    const beside = await open(`${red.adminUrl}/${again.url}`, { cookie: before });
    should(beside.headers.get('set-cookie')).startWith(`${before}.`);
    const both = { cookie: beside.headers.get('set-cookie')?.split(';')[0] ?? '' };
    const page = `${red.adminUrl}/advisor-texting/simulator/`;
    should((await open(page, both)).status).equal(200);
    const session = { cookie: cookie.split(';')[0] ?? '' };
    should((await open(page, session)).status).equal(200);
    should((await open(`${page}control/state`, session)).status).equal(200);
    should((await open(`${page}control/state`, { ...session, origin: 'https://evil.example' })).status).equal(
      403,
    );
    for (const address of [`${red.adminUrl}/${url}`, page, `${page}control/state`]) {
      should((await open(address)).status).equal(401);
    }
    const { json } = await red.request('GET', `advisor-texting/${id}/advisors`);
    should(json).containDeep([{ advisor: 'default', state: 'authorized' }]);
  });
});
