import should from 'should';
import { missingScopes } from '../../../lib/auth/vault';
import { createClient } from '../../../lib/service/client';
import { ServiceError } from '../../../lib/service/errors';
import type { Client } from '../../../lib/service/client';
import {
  connectionOf,
  requestSettingsOf,
  serviceAddressOf,
  type EnvironmentValues,
} from '../../../nodes/environment/config';
import { environmentFor, profiles, startSimulator, type Simulator } from '../../../simulator';
import { numbers } from '../../support/numbers';
import {
  authorize,
  callbackUri,
  freshFolder,
  removeFolders,
  startProcess,
  type Process,
} from '../../support/auth/setup';

const { consented } = numbers;

describe('an environment for a service with its own names', () => {
  let simulator: Simulator;
  let red: Process;
  let values: EnvironmentValues;
  let client: Client;

  before(async () => {
    simulator = await startSimulator({ profile: 'foreign' });
    red = await startProcess(freshFolder());
    values = {
      service: 'sandbox',
      baseUrl: simulator.baseUrl,
      authUrl: simulator.authUrl,
      tokenUrl: simulator.tokenUrl,
      redirectUri: callbackUri,
      ...simulator.credentials,
      ...environmentFor(profiles.foreign),
    };
    const connection = connectionOf('env', values);
    await authorize(red, connection);
    client = createClient({
      ...requestSettingsOf(values),
      ...serviceAddressOf(values),
      token: (advisor, rejected) => red.tokens.token(connection, advisor, rejected),
    });
  });
  after(async () => {
    await client.close();
    await simulator.close();
    removeFolders();
  });

  const advisor = { advisor: 'default' };

  it("requests permissions under the service's names, and knows them by the contract's", async () => {
    const connection = connectionOf('env', values);
    const url = new URL(await red.authorizations.begin(connection, 'default'));
    should(url.searchParams.get('scope')).equal(
      'openid sms.messaging.write sms.messaging.read crm.contacts.read crm.contacts.write crm.content.read offline_access',
    );
    const grant = red.vault.get(connection, 'default')?.grant;
    should(grant?.scopes).containDeep(['text.messaging.write', 'core.contacts.read']);
    should(missingScopes(connection.scopes, grant?.scopes ?? [])).be.empty();
  });

  it('recognizes a permission that was copied from the service', () => {
    const { scopes } = connectionOf('env', {
      ...values,
      scopes: ['crm.contacts.read', 'core.contacts.read', 'own.scope'],
    });
    should(scopes).eql(['openid', 'core.contacts.read', 'own.scope']);
  });

  it('texts, and reads every page that it requests', async () => {
    const sent = await client.call('sendMessage', { body: { phone: consented, text: 'Hi' } }, advisor);
    should(sent.data.successes).have.length(1);
    for (const page of [1, 2]) {
      const query = { page, pageSize: 5, sortDirection: 'desc' } as const;
      const contacts = await client.call('searchContacts', { query: { ...query, sortBy: 'email' } }, advisor);
      should(contacts.data.pageInfo?.page).equal(page);
      should((await client.call('searchGroups', { query }, advisor)).data.pageInfo?.page).equal(page);
      const content = await client.call('searchContent', { query: { page, pageSize: 2 } }, advisor);
      should(content.data.pageInfo?.page).equal(page);
    }
  });

  it('names the key and the address when a gateway rejects the key', async () => {
    const other = createClient({
      ...requestSettingsOf(values),
      baseUrl: simulator.baseUrl,
      apiKey: 'wrong',
      token: () => simulator.accessToken('default'),
    });
    const fault: unknown = await other
      .call('getConsent', { query: { phone: consented } }, advisor)
      .catch((error: unknown) => error);
    await other.close();
    if (!(fault instanceof ServiceError)) throw new Error('it was not refused');
    should(fault.code).equal('forbidden');
    should(fault.hasProblemBody).be.false();
    should(fault.message).match(/API key and the service address.* sms\.messaging\.read/);
  });
});

describe('the settings of an environment', () => {
  const complete = {
    service: 'sandbox',
    baseUrl: 'https://service.example/v1',
    authUrl: 'https://login.example/a',
    tokenUrl: 'https://login.example/t',
    redirectUri: 'https://red.example/advisor-texting/callback',
    clientId: 'id',
    clientSecret: 'secret',
    apiKey: 'key',
  };
  const refused = (values: EnvironmentValues): [code: string, key: string | undefined] => {
    try {
      requestSettingsOf({ ...complete, ...values });
      serviceAddressOf({ ...complete, ...values });
      connectionOf('env', { ...complete, ...values });
    } catch (fault) {
      if (fault instanceof ServiceError) return [fault.code, fault.problem.wording?.key];
      throw fault;
    }
    throw new Error('it was not refused');
  };

  it('name a variable among the scopes that is not set', () => {
    should(refused({ scopes: ['openid', '${SCOPES_OF_NOBODY}'] })).eql(['not_configured', 'variables_unset']);
  });

  it("default to the contract's prefixes when they are missing or empty, as in an old flow", () => {
    for (const values of [{}, { corePrefix: '', textPrefix: ' ' }])
      should(requestSettingsOf({ ...complete, ...values }).prefixes).eql({ core: 'core', text: 'text' });
    should(requestSettingsOf({ ...complete, textPrefix: ' sms ' }).prefixes).eql({
      core: 'core',
      text: 'sms',
    });
  });

  it('name the unset variable of a prefix', () => {
    should(refused({ corePrefix: '${UNSET}' })).eql(['not_configured', 'variables_unset']);
  });

  for (const prefix of ['a/b', 'a.b', '..', 'a b']) {
    it(`reject ${prefix} as a prefix`, () => {
      should(refused({ corePrefix: prefix })).eql(['not_configured', 'setting_prefix']);
      should(refused({ textPrefix: prefix })).eql(['not_configured', 'setting_prefix']);
    });
  }

  it('accept a proxy whose user and password come from variables', () => {
    const proxy = 'http://ann:secret@proxy.example:3128';
    for (const proxyAsWritten of [
      '${PROXY}',
      'http://${USER}:${PASSWORD}@proxy.example:3128',
      'http://${USER}@proxy.example',
      'http://${LOGIN}:@proxy.example',
      undefined,
    ]) {
      const values = { ...complete, proxy, proxyAsWritten };
      should(requestSettingsOf(values).proxy).equal(proxy);
      should(connectionOf('env', values).proxy).equal(proxy);
    }
    should(requestSettingsOf(complete).proxy).equal('');
  });

  it('reject a variable that is no text as a proxy, rather than go around it', () => {
    for (const proxy of [{ host: 'proxy.example' }, ['http://proxy.example'], 3128, true])
      should(refused({ proxy, proxyAsWritten: '${PROXY}' })).eql(['not_configured', 'setting_proxy']);
  });

  it('reject a proxy that is invalid, is not set, or contains a password in plain text', () => {
    for (const proxy of ['proxy.example:3128', 'socks5://proxy.example', 'x'])
      should(refused({ proxy, proxyAsWritten: proxy })).eql(['not_configured', 'setting_proxy']);
    for (const proxy of [
      'http://ann:secret@proxy.example',
      'http://ann@proxy.example',
      'http://${USER}:secret@proxy.example',
      'http://ann:${PASSWORD}@proxy.example',
    ]) {
      const resolved = proxy.replaceAll(/\$\{\w+\}/g, 'x');
      should(refused({ proxy: resolved, proxyAsWritten: proxy })).eql([
        'not_configured',
        'setting_proxy_password',
      ]);
    }
    should(refused({ proxy: 'http://${HOST}', proxyAsWritten: 'http://${HOST}' })).eql([
      'not_configured',
      'variables_unset',
    ]);
  });
});
