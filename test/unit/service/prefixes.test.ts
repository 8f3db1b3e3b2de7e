import should from 'should';
import { contractScope, prefixPattern, scopeNames, wirePath, wireScope } from '../../../lib/service/prefixes';
import { endpoints } from '../../../lib/service/endpoints';
import { closeAll } from '../../support/closing';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { clientOf, problemOf, problemReply, text } from '../../support/service/setup';

const advisor = { advisor: 'ann' };
const acme = { core: 'acme-crm', text: 'acme_sms' };

describe('the prefixes of a service', () => {
  afterEach(closeAll);

  it('are the first segment of every path', async () => {
    const server = await startServer(({ url }) => ({
      body: url.includes('messages') ? sent : { contactId: 5, data: [] },
    }));
    const client = clientOf(server.url, { prefixes: acme });
    await client.call('sendMessage', text, advisor);
    await client.call('getContact', { params: { contactId: 5 } }, advisor);
    await client.call('searchContacts', { query: { page: 2 } }, advisor);
    should(server.received.map(({ url }) => url)).eql([
      '/v1/acme_sms/messaging/messages',
      '/v1/acme-crm/contact/contacts/5',
      '/v1/acme-crm/contact/contacts?page=2',
    ]);
  });

  it('are part of the error for a missing permission, whether or not the service wrote them', async () => {
    const details = ['The token lacks acme-crm.contacts.write.', 'No.'];
    const server = await startServer(({ index }) =>
      problemReply('forbidden', { detail: details[index] ?? '' }),
    );
    const client = clientOf(server.url, { prefixes: acme });
    const read = (): Promise<unknown> => client.call('getContact', { params: { contactId: 5 } }, advisor);
    should((await problemOf(read())).message).match(/with acme-crm\.contacts\.write selected/);
    should((await problemOf(read())).message).match(/with acme-crm\.contacts\.read selected/);
  });

  for (const prefixes of [
    acme,
    { core: 'api', text: 'api' },
    { core: 'text', text: 'core' },
    { core: 'core', text: 'text' },
  ]) {
    it(`are removed from every scope (${prefixes.core}, ${prefixes.text})`, () => {
      for (const { scope, path } of Object.values(endpoints)) {
        const wire = wireScope(scope, prefixes);
        should(wire.split('.')[0]).equal(wirePath(path, prefixes).split('/')[1]);
        should(contractScope(wire, prefixes)).equal(scope);
        should(scopeNames(prefixes).exec(`Requires "${wire}".`)?.[0]).equal(wire);
      }
      for (const other of ['openid', 'offline_access', 'something.else', 'coreish.read']) {
        should(wireScope(other, prefixes)).equal(other);
        should(contractScope(other, prefixes)).equal(other);
      }
    });
  }

  it('are one segment, without a slash or a dot', () => {
    for (const fine of ['core', 'acme-crm', 'v2:crm', 'x']) should(prefixPattern.test(fine)).be.true();
    for (const bad of ['', 'a/b', 'a.b', '..', 'a b', 'a?b', 'a#b', 'a%2fb', 'ä'])
      should(prefixPattern.test(bad)).be.false();
  });
});

describe('query names', () => {
  afterEach(closeAll);

  it('are renamed for all searches, and one search can override that', async () => {
    const server = await startServer(() => ({ body: { data: [] } }));
    const names = { page: 'p', 'contacts.page': 'page number', 'content.searchText': 'q', pageSize: 'size' };
    const client = clientOf(server.url, { names });
    const query = { page: 3, pageSize: 10 };
    await client.call('searchContacts', { query: { ...query, sortBy: 'email' } }, advisor);
    await client.call('searchGroups', { query }, advisor);
    await client.call('searchContent', { query: { ...query, searchText: 'tax' } }, advisor);
    const queries = server.received.map(({ url }) => new URL(url, server.url).searchParams);
    should(queries.map((each) => Object.fromEntries(each))).eql([
      { 'page number': '3', size: '10', sortBy: 'email' },
      { p: '3', size: '10' },
      { q: 'tax', p: '3', size: '10' },
    ]);
  });
});
