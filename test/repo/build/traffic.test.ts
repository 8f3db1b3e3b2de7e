import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import OpenAPIBackend, { type Document } from 'openapi-backend';
import 'should';
import { createClient } from '../../../lib/service/client';
import { endpoints } from '../../../lib/service/endpoints';
import { ServiceError } from '../../../lib/service/errors';
import type { Client } from '../../../lib/service/client';
import { type Simulator, startSimulator } from '../../../simulator';
import { root } from '../../support/installation';

const document = JSON.parse(readFileSync(join(root, 'docs', 'openapi.json'), 'utf8')) as Document;
const advisor = { advisor: 'default' };

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
  return text;
};

describe('the traffic between our client and the simulator', () => {
  const complaints: string[] = [];
  const seen = new Set<string>();
  const api = new OpenAPIBackend({
    definition: document,
    // It supports only 3.0 documents; the validator of the docs test supports 3.1.
    quick: true,
    apiRoot: '/v1',
    coerceTypes: true,
    ajvOpts: { strict: false },
  });
  let simulator: Simulator;
  let between: Server;
  let client: Client;

  /** Forwards a request, and validates it and its answer against the document with a validator from npm. */
  const validate = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await bodyOf(request);
    const { method = '', url = '' } = request;
    const headers = Object.entries(request.headers).filter(
      ([name]) => !['host', 'connection'].includes(name),
    );
    const answer = await fetch(`${simulator.url}${url}`, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
      ...(text === '' ? {} : { body: text }),
    });
    const answered = await answer.text();
    const { pathname, searchParams } = new URL(url, simulator.url);
    const asked = {
      method,
      path: pathname,
      headers: Object.fromEntries(headers) as Record<string, string>,
      query: Object.fromEntries(searchParams),
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    };
    const operation = api.matchOperation(asked);
    seen.add(operation?.operationId ?? `${method} ${pathname}`);
    const verdicts = [api.validateRequest(asked, operation)];
    if (answered !== '') {
      verdicts.push(api.validateResponse(JSON.parse(answered) as unknown, operation ?? '', answer.status));
    }
    for (const { errors } of verdicts) {
      if (errors) complaints.push(`${method} ${url} → ${String(answer.status)}: ${JSON.stringify(errors)}`);
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    response.end(answered);
  };

  before(async () => {
    await api.init();
    simulator = await startSimulator();
    between = createServer((request, response) => {
      validate(request, response).catch((fault: unknown) => {
        complaints.push(String(fault));
        response.destroy();
      });
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const { port } = between.address() as AddressInfo;
    client = createClient({
      baseUrl: `http://127.0.0.1:${String(port)}/v1`,
      apiKey: simulator.credentials.apiKey,
      token: (key) => simulator.accessToken(key),
      retries: 0,
    });
  });

  after(async () => {
    await client.close();
    between.close();
    await simulator.close();
  });

  it('is accepted by a request validator from npm, for every endpoint', async () => {
    const phone = '+15125550199';
    await client.call('sendMessage', { body: { phone, text: 'Hello' } }, advisor);
    await client.call(
      'sendMessage',
      {
        body: {
          phone,
          text: 'Later',
          scheduleDelivery: true,
          deliveryDate: simulator.clock.now() + 1e6,
          frequency: 1,
        },
      },
      advisor,
    );
    await client.call('requestConsent', { body: { phoneNumbers: [phone] } }, advisor);
    await client.call('getConsent', { query: { phone } }, advisor);
    const created = await client.call('createContact', { body: { firstName: 'Ann', gender: 0 } }, advisor);
    const params = { contactId: created.data.id ?? 0 };
    await client.call('updateContact', { params, body: { firstName: 'Anne', city: 'Austin' } }, advisor);
    await client.call('getContact', { params }, advisor);
    const query = { page: 1, pageSize: 200, sortDirection: 'desc' } as const;
    await client.call('searchContacts', { query: { ...query, sortBy: 'fullName' } }, advisor);
    const group = await client.call(
      'createGroup',
      { body: { name: 'Friends', externalGroupId: 'f-1' } },
      advisor,
    );
    await client.call('setContactGroups', { params, body: { groupIds: [group.data.id ?? 0] } }, advisor);
    await client.call('searchGroups', { query }, advisor);
    await client.call('deleteGroup', { params: { groupId: group.data.id ?? 0 } }, advisor);
    await client.call('deleteContact', { params }, advisor);
    await client.call(
      'searchContent',
      { query: { contentType: 'All', searchText: 'a', page: 1, pageSize: 5 } },
      advisor,
    );
    complaints.should.eql([]);
    [...seen].sort().should.eql(Object.keys(endpoints).sort());
  });

  it('is accepted when the answer is a problem', async () => {
    const calls = [
      client.call('getContact', { params: { contactId: 999_999_999 } }, advisor),
      client.call('getConsent', { query: { phone: '+15125550188' } }, advisor),
    ];
    for (const call of calls) await call.should.be.rejectedWith(ServiceError);
    complaints.should.eql([]);
  });

  it('would be rejected if a body or an answer violated the document', () => {
    const operation = api.getOperation('requestConsent');
    const request = {
      method: 'post',
      path: '/v1/text/messaging/consent-requests',
      headers: {},
      body: { phoneNumbers: [] },
    };
    (api.validateRequest(request, operation).errors ?? []).should.not.be.empty();
    (
      api.validateResponse({ successes: ['+12025550123'] }, operation ?? '', 200).errors ?? []
    ).should.not.be.empty();
  });
});
