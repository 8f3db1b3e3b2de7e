import should from 'should';
import { spec } from '../../../nodes/environment/spec';
import { problemReply } from '../../support/service/setup';
import { closeAll } from '../../support/closing';
import { isLong } from '../../support/extent';
import {
  adminAuth,
  adminPassword,
  startRed,
  type Answer,
  type FlowNode,
  type RealRed,
} from '../../support/node-red';
import { type Received, type Scripted, startServer } from '../../support/server';
import { Canaries, place, unique, type Place } from '../../support/security/canaries';
import { keyedPath, mountedRoutes, openPaths, type MountedRoute } from '../../support/security/routes';

const password = adminAuth.users[0]?.password;
const permissionsOf = {
  nobody: undefined,
  reader: 'read',
  viewer: 'advisor-texting.read',
  writer: 'advisor-texting.write',
  clerk: ['read', 'advisor-texting.write'],
  deployer: ['advisor-texting.read', 'advisor-texting.write', 'flows.write'],
  admin: '*',
} as const;
type User = keyof typeof permissionsOf;
const users = Object.keys(permissionsOf) as User[];

const has = (user: User, permission: string): boolean => {
  const all = [permissionsOf[user]].flat() as (string | undefined)[];
  return all.some(
    (one) => one === '*' || one === permission || (one === 'read' && permission.endsWith('.read')),
  );
};

const inAllForms = isLong ? ', in all forms' : '';

const fields = ['name', ...spec.fields.map(({ name }) => name).filter((name) => name !== 'name')];
const isAddress = (field: string): boolean => /Ur[li]$/.test(field);
const isCredential = (field: string): boolean =>
  spec.fields.some(({ kind, name }) => kind === 'credential' && name === field);

const routes = mountedRoutes().filter(({ path }) => !openPaths.includes(path));
const aboutEnvironments = routes.filter(({ path }) => path.includes('/:env/'));

const filledIn = ({ path }: MountedRoute, environment: string): string =>
  path
    .replace(':env', environment)
    .replace(':advisor', 'somebody')
    .replace(':what', 'groups')
    .replace(':token', 'x')
    .slice(1);

describe('admin routes', () => {
  it('each require one of our permissions, except those that are open to all', () => {
    const isGuarded = ({ path, permission }: MountedRoute): boolean =>
      openPaths.includes(path) ||
      path === keyedPath ||
      /^advisor-texting\.(read|write)$/.test(permission ?? '');
    should(mountedRoutes().filter((route) => !isGuarded(route))).deepEqual([]);
    should(openPaths.filter((path) => mountedRoutes().every((route) => route.path !== path))).deepEqual([]);
  });

  it('let users who may only read change nothing', () => {
    const isChange = ({ method }: MountedRoute): boolean => method !== 'GET';
    const unfit = routes.filter((route) => isChange(route) && !route.permission?.endsWith('.write'));
    should(unfit).deepEqual([]);
  });
});

describe('admin routes on a real Node-RED, with every user and every variable', function () {
  this.timeout(180_000);
  const canaries = new Canaries();
  const value = (what: string): string => canaries.add('secret', what, unique());
  const variables: Record<string, string> = {};
  /** A service that echoes what it is sent. */
  let service: Scripted;
  /** Where only a form points to. */
  let elsewhere: Scripted;
  let red: RealRed;
  const tokens = new Map<User, string>();

  const echo = ({ method, url, headers, body }: Received): ReturnType<typeof problemReply> => {
    if (url.endsWith('/token'))
      return { body: { access_token: `t-${unique()}`, refresh_token: 'r', expires_in: 3600 } };
    return problemReply('invalid_request', { detail: JSON.stringify({ method, url, headers, body }) });
  };

  const nameOf = (field: string): string => `HELD_${field.toUpperCase()}`;

  /** An environment that has variables wherever a string is allowed, in addresses in the middle. */
  const held = (grant: string): FlowNode => ({
    id: `held-${grant}`,
    type: spec.type,
    service: 'sandbox',
    grant,
    name: '${HELD_NAME}',
    baseUrl: `${service.url}/\${HELD_BASEURL}/v1`,
    authUrl: `${service.url}/\${HELD_AUTHURL}/auth`,
    tokenUrl: `${service.url}/\${HELD_TOKENURL}/token`,
    redirectUri: `${service.url}/\${HELD_REDIRECTURI}/advisor-texting/callback`,
    scopes: ['offline_access', '${HELD_SCOPES}'],
    consentPattern: '${HELD_CONSENTPATTERN}',
    credentials: {
      clientId: '${HELD_CLIENTID}',
      clientSecret: '${HELD_CLIENTSECRET}',
      apiKey: '${HELD_APIKEY}',
      refreshToken: '${HELD_REFRESHTOKEN}',
    },
  });

  /** Everything is filled in, and points elsewhere, as an attacker who is after a variable would do. */
  const form = (grant: string, { url } = elsewhere): Record<string, unknown> => ({
    name: 'Form',
    service: 'sandbox',
    grant,
    baseUrl: `${url}/v1`,
    authUrl: `${url}/auth`,
    tokenUrl: `${url}/token`,
    redirectUri: 'http://127.0.0.1:1/advisor-texting/callback',
    clientId: 'client',
    clientSecret: 'secret-of-the-form',
    apiKey: 'key-of-the-form',
    scopes: ['text.messaging.read'],
  });

  const plain = (): FlowNode => {
    const { clientId, clientSecret, apiKey, ...settings } = form('authorization_code');
    const addresses = { baseUrl: `${service.url}/v1`, tokenUrl: `${service.url}/token` };
    const credentials = { clientId, clientSecret, apiKey, refreshToken: 'seed' };
    return { id: 'plain', type: spec.type, ...settings, ...addresses, credentials };
  };

  before(async () => {
    variables['UNHELD'] = value('a variable that no node refers to');
    for (const field of fields) variables[nameOf(field)] = value(`the variable in ${field}`);
    [service, elsewhere] = await Promise.all([startServer(echo), startServer(echo)]);
    red = await startRed({
      version: 5,
      env: variables,
      settings: {
        adminAuth: {
          type: 'credentials',
          users: users.flatMap((username) => {
            const permissions = permissionsOf[username];
            return permissions === undefined ? [] : { username, password, permissions };
          }),
        },
      },
    });
    for (const user of users) {
      if (permissionsOf[user] === undefined) continue;
      await red.login(user, adminPassword);
      tokens.set(user, String(red.token));
    }
    await red.deploy([
      { id: 'tab', type: 'tab', label: 'Test' },
      plain(),
      held('authorization_code'),
      held('client_credentials'),
    ]);
  });
  beforeEach(async () => {
    // So that there is an advisor to report.
    for (const id of ['plain', 'held-authorization_code'])
      await ask('admin', 'POST', `advisor-texting/${id}/test`, {});
  });
  after(async () => {
    await red.close();
    await closeAll();
  });

  const ask = (user: User, method: string, path: string, body?: unknown): Promise<Answer> => {
    red.token = tokens.get(user);
    return red.request(method, path, body);
  };

  for (const user of users) {
    it(`let ${user} (${JSON.stringify(permissionsOf[user] ?? 'no login')}) pass where the permission allows, and nowhere else`, async () => {
      for (const route of routes) {
        const { method, permission = 'advisor-texting.write' } = route;
        const { status } = await ask(
          user,
          method,
          filledIn(route, 'plain'),
          method === 'POST' ? {} : undefined,
        );
        should([method, route.path, status === 401 ? 'refused' : 'passed']).deepEqual([
          method,
          route.path,
          has(user, permission) ? 'passed' : 'refused',
        ]);
      }
    });
  }

  interface Trial {
    readonly route: MountedRoute;
    readonly field: string;
    readonly query: string;
    readonly body: unknown;
  }

  /** Every way to put a string into a field of a request. */
  const requestsWith = (
    route: MountedRoute,
    base: Record<string, unknown>,
    field: string,
    text: unknown,
  ): Trial[] => {
    const query = new URLSearchParams();
    for (const [name, given] of Object.entries({ ...base, [field]: text }))
      query.set(name, Array.isArray(given) ? given.join(' ') : String(given));
    if (route.method !== 'POST') return [{ route, field, query: `?${query.toString()}`, body: undefined }];
    const others = Object.entries(base).filter(([name]) => name !== field);
    const apart = { ...Object.fromEntries(others), credentials: { [field]: text } };
    return [
      { route, field, query: '', body: { form: { ...base, [field]: text } } },
      ...(isCredential(field) ? [{ route, field, query: '', body: { form: apart } }] : []),
    ];
  };

  const textsWith = (field: string, variable: string): unknown[] => {
    const text = `\${${variable}}`;
    if (isAddress(field)) return [text, `${elsewhere.url}/${text}/token`];
    return field === 'scopes' ? [text, `openid ${text}`, [text], [[text]]] : [text];
  };

  /** In the long run, every field of every route in three forms; else a quarter of them in one form, others each time. */
  const allTrials = (turn: number, variableIn: (field: string) => string): Trial[] => {
    const forms = [
      form('authorization_code'),
      form('client_credentials'),
      // Where the environments are deployed to, so that nothing is rejected for going elsewhere.
      form('authorization_code', service),
    ];
    const isTried = (row: number, index: number, at: number): boolean =>
      isLong || ((row + index + turn) % 4 === 0 && (index + turn) % forms.length === at);
    return aboutEnvironments.flatMap((route, row) =>
      fields.flatMap((field, index) =>
        textsWith(field, variableIn(field)).flatMap((text) =>
          forms
            .filter((_, at) => isTried(row, index, at))
            .flatMap((base) => requestsWith(route, base, field, text)),
        ),
      ),
    );
  };

  /** The answers to a user who tries all that, several at a time. */
  const told = async (user: User, environment: string, trials: readonly Trial[]): Promise<Place[]> => {
    const places: Place[] = [];
    const left = [...trials];
    const work = async (): Promise<void> => {
      for (let trial = left.pop(); trial; trial = left.pop()) {
        const { route, field, query, body } = trial;
        const path = filledIn(route, environment);
        const { text } = await ask(user, route.method, `${path}${query}`, body);
        places.push(place(`${route.method} ${path} ${field}`, text));
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    return places;
  };

  const handedOver = (): Place[] =>
    elsewhere.received.splice(0).map((request) => place(`sent elsewhere: ${request.url}`, request));

  for (const [turn, [user, environment]] of (
    [
      ['reader', 'plain'],
      ['clerk', 'plain'],
      ['clerk', 'undeployed'],
      ['clerk', 'held-authorization_code'],
    ] as const
  ).entries()) {
    it(`resolve no variable for ${user} that the deployed environment does not refer to there (${environment})${inAllForms}`, async () => {
      handedOver();
      // One that it refers to in another field is not allowed either.
      const others = [...fields.slice(1), 'name'];
      const next = (field: string): string => nameOf(others[fields.indexOf(field)] ?? '');
      const of = environment === 'held-authorization_code' ? next : (): string => 'UNHELD';
      service.received.length = 0;
      const places = await told(user, environment, allTrials(turn, of));
      should(canaries.found([...places, ...handedOver()], ['secret'])).deepEqual([]);
      const received = service.received.map((request) =>
        place(`sent to the service: ${request.url}`, request),
      );
      if (environment === 'plain') should(canaries.found(received, ['secret'])).deepEqual([]);
    });
  }

  for (const [turn, user] of (['deployer', 'admin'] as const).entries()) {
    it(`reveal none to ${user} either, who may use them${inAllForms}`, async () => {
      handedOver();
      const places = await told(
        user,
        'undeployed',
        allTrials(turn, () => 'UNHELD'),
      );
      should(canaries.found(places, ['secret'])).deepEqual([]);
      // The tests above would pass if nothing were ever resolved.
      should(canaries.found(handedOver(), ['secret'])).not.be.empty();
    });
  }

  for (const grant of ['authorization_code', 'client_credentials'] as const) {
    it(`use what the deployed environment refers to for users who may ask, and reveal it to nobody (${grant})`, async () => {
      service.received.length = 0;
      handedOver();
      const environment = `held-${grant}`;
      const { credentials, ...settings } = held(grant);
      const hidden = { clientSecret: '__PWRD__', apiKey: '__PWRD__', refreshToken: '__PWRD__' };
      const same = { ...settings, ...(credentials as object), ...hidden };
      const trials = aboutEnvironments.flatMap((route): Trial[] => [
        { route, field: 'nothing', query: '', body: route.method === 'POST' ? {} : undefined },
        ...requestsWith(route, same, 'name', '${HELD_NAME}'),
      ]);
      for (const user of ['reader', 'clerk', 'admin'] as const) {
        const places = await told(user, environment, trials);
        should(canaries.found(places, ['secret'])).deepEqual([]);
      }
      const sent = service.received.map((request) => place(request.url, request));
      should(canaries.found(sent, ['secret'])).not.be.empty();

      const { status, json } = await ask('clerk', 'POST', `advisor-texting/${environment}/authorize`, {
        form: same,
      });
      should(status).equal(grant === 'authorization_code' ? 200 : 400);
      if (grant === 'client_credentials') return;
      const link = await ask('clerk', 'POST', `advisor-texting/${environment}/link`, { advisor: 'ann' });
      const { url: linked } = link.json as { url: string };
      linked.should.match(/^advisor-texting\/link\/[\w-]+$/);
      const visit = await fetch(`${red.adminUrl}/${linked}`, { redirect: 'manual' });
      should(decodeURIComponent(visit.headers.get('location') ?? '')).containEql(
        variables['HELD_REDIRECTURI'] ?? '?',
      );
      // Our own page, which redirects to the authorization page without having revealed its address.
      const { url } = json as { url: string };
      url.should.match(/^advisor-texting\/link\/[\w-]{22}\?.*state=/);
      const page = await fetch(`${red.adminUrl}/${url}`, { redirect: 'manual' });
      should(page.headers.get('set-cookie')).be.null();
      const { searchParams, pathname, href } = new URL(page.headers.get('location') ?? '');
      should(searchParams.get('client_id')).equal(variables['HELD_CLIENTID']);
      should(pathname).containEql(variables['HELD_AUTHURL'] ?? '');
      // It contains what a browser has to bring to the authorization page (RFC 6749, section 4.1.1), and no secret.
      const written = decodeURIComponent(href);
      for (const secret of ['CLIENTSECRET', 'APIKEY', 'REFRESHTOKEN', 'BASEURL', 'TOKENURL', 'NAME', 'PROXY'])
        should(written).not.containEql(variables[`HELD_${secret}`] ?? `no HELD_${secret}`);
    });

    it(`pass what the deployed environment refers to on to no other server, for users who may not deploy (${grant})`, async () => {
      handedOver();
      const { credentials, ...settings } = held(grant);
      for (const moved of ['baseUrl', 'tokenUrl']) {
        const same = { ...settings, ...(credentials as object) };
        const typed = { clientSecret: 'typed', apiKey: 'typed', refreshToken: 'typed' };
        for (const rest of [{}, same, { ...same, ...typed }, form(grant)]) {
          const body = { form: { ...rest, [moved]: `${elsewhere.url}/token` } };
          for (const route of ['test', 'authorize'])
            await ask('clerk', 'POST', `advisor-texting/held-${grant}/${route}`, body);
        }
      }
      should(canaries.found(handedOver(), ['secret'])).deepEqual([]);
    });
  }

  it('lead users who may deploy to the authorization page by our own page, whichever field has a variable', async () => {
    const given = { ...form('authorization_code'), redirectUri: `${red.adminUrl}/advisor-texting/callback` };
    const trials = {
      clientId: '${UNHELD}',
      authUrl: `${elsewhere.url}/\${UNHELD}/auth?tenant=\${UNHELD}`,
      redirectUri: 'http://127.0.0.1:1/${UNHELD}/advisor-texting/callback',
      scopes: ['text.messaging.read', '${UNHELD}'],
      corePrefix: '${UNHELD}',
      textPrefix: '${UNHELD}',
    };
    for (const [field, text] of Object.entries(trials)) {
      const body = {
        form: { ...given, scopes: ['core.contacts.read', 'text.messaging.read'], [field]: text },
      };
      const { status, json } = await ask('deployer', 'POST', 'advisor-texting/undeployed/authorize', body);
      should(status).equal(200);
      const { url } = json as { url: string };
      should([field, canaries.found([place(field, url)], ['secret'])]).deepEqual([field, []]);
      url.should.containEql('advisor-texting/link/');
      const page = await fetch(new URL(url, `${red.adminUrl}/`), { redirect: 'manual' });
      const address = decodeURIComponent(page.headers.get('location') ?? '');
      should([field, address.includes(variables['UNHELD'] ?? '')]).deepEqual([field, true]);
      // Bound to the browser if it redirects back here.
      should([field, page.headers.has('set-cookie')]).deepEqual([field, field !== 'redirectUri']);
    }
  });

  it('say what to do to users for whom they resolve none', async () => {
    const { status, json } = await ask('clerk', 'POST', 'advisor-texting/plain/authorize', {
      form: { ...form('authorization_code'), clientId: '${UNHELD}' },
    });
    should(status).equal(400);
    should(json).containEql({ code: 'not_configured' });
    should((json as { message: string }).message).match(/UNHELD.*: deploy first, or ask someone who may/);
  });

  it('name a missing scope as it is written', async () => {
    const path = 'advisor-texting/held-authorization_code/advisors';
    const asked = new URLSearchParams({ scopes: 'core.contacts.read ${HELD_SCOPES} ${UNHELD}' });
    for (const user of ['reader', 'admin'] as const) {
      const { json } = await ask(user, 'GET', `${path}?${asked.toString()}`);
      should(json).containDeep([{ scopes: ['openid', 'offline_access', '${HELD_SCOPES}'] }]);
      should(json).containDeep([{ missingScopes: ['core.contacts.read', '${UNHELD}'] }]);
    }
  });
});
