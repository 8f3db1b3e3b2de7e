import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { versions } from '../../support/extent';
import { startRed, type FlowNode, type RealRed, type RedOptions } from '../../support/node-red';
import { refreshTokenFrom } from '../../support/auth/setup';
import {
  adminAuth,
  advisorsOf,
  authorizeOn,
  deployOn,
  environmentId,
  open,
  route,
  sandboxFlow,
} from '../../support/auth/real';

const phone = '+13125550150';

/** Leases come and go: a file that is gone when it is opened contained nothing. */
const contentOf = (file: string): string => {
  try {
    return readFileSync(file, 'latin1');
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw fault;
  }
};

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));

/** Plain and encoded. */
const traces = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1),
];

for (const version of versions) {
  describe(`authorizations on a real Node-RED ${String(version)}`, function () {
    this.timeout(120_000);
    let simulator: Simulator;
    let red: RealRed;

    beforeEach(async () => {
      simulator = await startSimulator({
        settings: { redirectUris: ['loopback'], rotateRefreshTokens: true, consentRequired: false },
        credentials: { clientSecret: 'canary-client-secret-7310', apiKey: 'canary-api-key-5521' },
      });
    });
    afterEach(async () => {
      await red.close();
      await simulator.close();
    });

    const start = async (options: Partial<RedOptions> = {}): Promise<void> => {
      red = await startRed({ version, ...options });
    };
    let sent = 0;
    const send = async (): Promise<void> => {
      sent = red.arrived.length;
      await red.send('in', { phone, text: 'Hello' });
      await red.messages('sent', sent + 1);
    };
    const states = async (): Promise<string[]> => (await advisorsOf(red)).map(({ state }) => state);

    it('survive a restart without a deploy, ten rotations and a kill -9, and leave no secret anywhere', async () => {
      await start();
      await deployOn(red, sandboxFlow(red, simulator));
      should((await authorizeOn(red)).status).equal(200);
      await red.restart();
      await send();
      for (let round = 0; round < 10; round += 1) {
        await simulator.advance(simulator.settings.accessTokenLifetime);
        await send();
      }
      await red.kill9();
      await red.run();
      await simulator.advance(simulator.settings.accessTokenLifetime);
      await send();
      should(red.arrived.filter(({ port }) => port === 'not sent')).be.empty();

      const exported = (await red.request('GET', 'flows')).text;
      const listed = (await red.request('GET', route('advisors'))).text;
      const readable = (await red.request('GET', `credentials/advisor-environment/${environmentId}`)).text;
      const everything = [red.log, exported, listed, readable, JSON.stringify(red.arrived)];
      everything.push(...filesIn(red.userDir).map(contentOf));
      for (const secret of [
        simulator.credentials.clientSecret,
        simulator.credentials.apiKey,
        'refresh_token',
      ]) {
        for (const trace of traces(secret))
          should(everything.filter((text) => text.includes(trace))).be.empty();
      }
      should(everything.filter((text) => /eyJ[\w-]{20,}\.[\w-]+/.test(text))).be.empty();
    });

    it('survive a credential secret that is set afterwards', async () => {
      await start({ settings: { credentialSecret: undefined } });
      await deployOn(red, sandboxFlow(red, simulator));
      await authorizeOn(red);
      await red.restart({ credentialSecret: 'chosen by the user' });
      should(await states()).deepEqual(['authorized']);
      await deployOn(red, sandboxFlow(red, simulator, { name: 'Renamed' }));
      await red.restart({ credentialSecret: 'chosen by the user' });
      should(await states()).deepEqual(['authorized']);
      await send();
    });

    it('are possible before the first deploy, from the contents of the form', async () => {
      await start({ env: { THE_SECRET: simulator.credentials.clientSecret } });
      const [, form] = sandboxFlow(red, simulator, { credentials: undefined });
      const filled = {
        ...form,
        clientId: simulator.credentials.clientId,
        clientSecret: '${THE_SECRET}',
        apiKey: 'x',
      };
      should((await authorizeOn(red, 'default', 'Alice', filled)).status).equal(200);
      should(await states()).deepEqual(['authorized']);
      await deployOn(red, sandboxFlow(red, simulator));
      await send();
    });

    it('work for an environment inside a subflow', async () => {
      await start();
      const [tab, environment, input, , output, failed] = sandboxFlow(red, simulator);
      await deployOn(red, [
        tab,
        {
          id: '5050505050505050',
          type: 'subflow',
          name: 'Text',
          in: [{ wires: [{ id: '5151515151515151' }] }],
          out: [{ wires: [{ id: '5151515151515151', port: 0 }] }],
        },
        { ...environment, z: '5050505050505050' },
        {
          id: '5151515151515151',
          type: 'advisor-send-text',
          z: '5050505050505050',
          environment: environmentId,
          wires: [[], [], []],
        },
        { ...input, wires: [['5252525252525252']] },
        {
          id: '5252525252525252',
          type: 'subflow:5050505050505050',
          z: 'f1f1f1f1f1f1f1f1',
          wires: [['c1c1c1c1c1c1c1c1']],
        },
        output,
        failed,
      ] as FlowNode[]);
      await authorizeOn(red);
      await send();
    });

    it('need no editor: a refresh token from a variable is enough', async () => {
      await start();
      await deployOn(red, sandboxFlow(red, simulator));
      const seed = await refreshTokenFrom(simulator, {
        scopes: ['openid', 'offline_access', 'text.messaging.write'],
      });
      const credentials = { ...simulator.credentials, refreshToken: '${SEED}' };
      await deployOn(red, sandboxFlow(red, simulator, { credentials }));
      const { userDir } = red;
      await red.stop();
      const headless = await startRed({
        version,
        userDir,
        env: { SEED: seed },
        settings: { httpAdminRoot: false },
      });
      try {
        await headless.send('in', { phone, text: 'Hello' });
        await headless.messages('sent', 1);
        await simulator.advance(simulator.settings.accessTokenLifetime);
        await headless.restart();
        await headless.send('in', { phone, text: 'Hello again' });
        await headless.messages('sent', 2);
      } finally {
        await headless.close();
      }
    });

    // The rest depends on our own code, whatever the version.
    if (version === 4) return;

    it('are kept when the secret is changed, and decrypted again with the previous one', async () => {
      await start();
      await deployOn(red, sandboxFlow(red, simulator));
      await authorizeOn(red);
      await red.restart({ credentialSecret: 'another' });
      should(await states()).be.empty();
      should(red.log).match(/secret has changed.*ADVISOR_TEXTING_PREVIOUS_SECRET/);
      await red.restart({
        credentialSecret: 'another',
        advisorTexting: { previousCredentialSecret: 'only for tests' },
      });
      should(await states()).deepEqual(['authorized']);
    });

    it('are kept while the environment is disabled, and when it is deleted and restored', async () => {
      await start();
      const flow = sandboxFlow(red, simulator);
      await deployOn(red, flow);
      await authorizeOn(red);
      await deployOn(red, sandboxFlow(red, simulator, { d: true }));
      should(await states()).deepEqual(['authorized']);
      await deployOn(
        red,
        flow.filter(({ id }) => id !== environmentId),
      );
      await deployOn(red, flow);
      await send();
    });

    it('show the phones page to people who open it from the editor, and to nobody else', async () => {
      await start({ settings: { httpAdminRoot: '/red', adminAuth } });
      await red.login('admin', 'admin');
      await deployOn(red, [{ id: environmentId, type: 'advisor-environment', service: 'simulator' }]);
      const { url } = (await red.request('POST', 'advisor-texting/simulator/open', {})).json as {
        url: string;
      };
      const entered = await open(`${red.adminUrl}/${url}`);
      should(entered.status).equal(200);
      const cookie = entered.headers.get('set-cookie') ?? '';
      should(cookie).match(/HttpOnly; SameSite=Strict/);
      const page = `${red.adminUrl}/advisor-texting/simulator/`;
      const session = { cookie: cookie.split(';')[0] ?? '' };
      should((await open(page, session)).status).equal(200);
      should((await open(`${page}control/state`, session)).status).equal(200);
      should(
        (await open(`${page}control/state`, { ...session, origin: 'https://evil.example' })).status,
      ).equal(403);
      for (const address of [`${red.adminUrl}/${url}`, page, `${page}control/state`]) {
        should((await open(address)).status).equal(401);
      }
      should((await advisorsOf(red))[0]).containEql({ advisor: 'default', state: 'authorized' });
    });

    it('require no key for the phones page if Node-RED requires no login', async () => {
      await start();
      await deployOn(red, [{ id: environmentId, type: 'advisor-environment', service: 'simulator' }]);
      const page = await open(`${red.adminUrl}/advisor-texting/simulator/`);
      should(page.status).equal(200);
      should(page.text).match(/<!doctype html>/);
    });
  });
}
