import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { versions } from '../../support/extent';
import { startRed, type FlowNode, type RealRed } from '../../support/node-red';
import { refreshTokenFrom } from '../../support/auth/setup';
import {
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

    // All but one share a Node-RED, and each continues where the one before left it.
    before(async () => {
      simulator = await startSimulator({
        settings: { redirectUris: ['loopback'], rotateRefreshTokens: true, consentRequired: false },
        credentials: { clientSecret: 'canary-client-secret-7310', apiKey: 'canary-api-key-5521' },
      });
      red = await startRed({ version, env: { THE_SECRET: simulator.credentials.clientSecret } });
    });
    after(async () => {
      await red.close();
      await simulator.close();
    });

    const send = async (on = red): Promise<void> => {
      const sent = on.arrived.filter(({ port }) => port === 'sent').length;
      await on.send('in', { phone, text: 'Hello' });
      await on.messages('sent', sent + 1);
    };
    const states = async (on = red): Promise<string[]> => (await advisorsOf(on)).map(({ state }) => state);

    it('are possible before the first deploy, from the contents of the form', async () => {
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

    it('survive a restart without a deploy, a rotation and a kill -9, and leave no secret anywhere', async () => {
      await red.restart();
      await send();
      await simulator.advance(simulator.settings.accessTokenLifetime);
      await send();
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

    it('work for an environment inside a subflow', async () => {
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

    it('are kept while the environment is disabled, and when it is deleted and restored', async () => {
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

    it('require no key for the phones page if Node-RED requires no login', async () => {
      await deployOn(red, [{ id: 'e3e3e3e3e3e3e3e3', type: 'advisor-environment', service: 'simulator' }]);
      const page = await open(`${red.adminUrl}/advisor-texting/simulator/`);
      should(page.status).equal(200);
      should(page.text).match(/<!doctype html>/);
    });

    it('need no editor: a refresh token from a variable is enough', async () => {
      const seed = await refreshTokenFrom(simulator, {
        scopes: ['openid', 'offline_access', 'text.messaging.write'],
      });
      const credentials = { ...simulator.credentials, refreshToken: '${SEED}' };
      const seeded = JSON.stringify(sandboxFlow(red, simulator, { credentials }));
      const [, authorized] = sandboxFlow(red, simulator);
      await deployOn(red, [
        ...(JSON.parse(seeded.replaceAll(environmentId, 'e2e2e2e2e2e2e2e2')) as FlowNode[]),
        authorized as FlowNode,
      ]);
      const { userDir } = red;
      await red.stop();
      const headless = await startRed({
        version,
        userDir,
        env: { SEED: seed },
        settings: { httpAdminRoot: false },
      });
      try {
        await send(headless);
        await simulator.advance(simulator.settings.accessTokenLifetime);
        await headless.restart();
        await send(headless);
      } finally {
        await headless.close();
      }
    });

    it('are kept when the secret is changed, and decrypted again with the previous one', async () => {
      await red.restart({ credentialSecret: 'another' });
      await states().catch(() => undefined);
      should(red.log).match(/another credentialSecret.*nothing is sent.*ADVISOR_TEXTING_PREVIOUS_SECRET/);
      await red.restart({
        credentialSecret: 'another',
        advisorTexting: { previousCredentialSecret: 'only for tests' },
      });
      should(await states()).deepEqual(['authorized']);
    });

    it('survive a credential secret that is set afterwards', async () => {
      const other = await startRed({ version, settings: { credentialSecret: undefined } });
      try {
        await deployOn(other, sandboxFlow(other, simulator));
        await authorizeOn(other);
        await other.restart({ credentialSecret: 'chosen by the user' });
        should(await states(other)).deepEqual(['authorized']);
        await deployOn(other, sandboxFlow(other, simulator, { name: 'Renamed' }));
        await other.restart({ credentialSecret: 'chosen by the user' });
        should(await states(other)).deepEqual(['authorized']);
        await send(other);
      } finally {
        await other.close();
      }
    });
  });
}
