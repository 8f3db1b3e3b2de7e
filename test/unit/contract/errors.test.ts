import should from 'should';
import { endpoints } from '../../../lib/service/endpoints';
import { type ServiceCode, serviceCodes } from '../../../lib/service/errors';
import { numbers } from '../../support/numbers';
import { shouldBeProblem } from '../../support/contract/problem';
import {
  call,
  contract,
  habits,
  phones,
  scopeOf,
  send,
  simulated,
  simulator,
} from '../../support/contract/service';

const pathOf = (path: string): string => path.replace(/\{\w+\}/g, '1001');
const everything = Object.entries(endpoints);

contract('credentials, scopes and errors', () => {
  for (const [name, { method, path }] of everything) {
    it(`answers 401 to ${name} without a bearer token and with a wrong one`, async () => {
      for (const authorization of [null, 'Bearer nonsense', 'Basic x']) {
        const answer = await call(method, pathOf(path), { headers: { authorization } });
        shouldBeProblem(answer, 'unauthorized');
      }
    });

    it(`rejects ${name} without an API key or with a wrong one`, async () => {
      for (const key of [null, 'wrong']) {
        const answer = await call(method, pathOf(path), { headers: { 'x-api-key': key } });
        if (habits.badKey === 'problem') shouldBeProblem(answer, 'unauthorized');
        else should([answer.status, answer.text]).eql([403, '']);
      }
    });
  }

  for (const [name, { method, path, scope }] of everything) {
    simulated(`answers 403 to ${name} without the scope ${scope}, and names it`, async () => {
      const others = simulator().settings.scopes.filter((one) => one !== scope);
      const headers = { authorization: `Bearer ${simulator().accessToken('default', others)}` };
      const answer = await call(method, pathOf(path), { headers });
      shouldBeProblem(answer, 'forbidden');
      should(answer.body['detail']).match(new RegExp(scopeOf(scope).replaceAll('.', '\\.')));
    });
  }

  simulated('answers 401 once the access token has expired', async () => {
    const headers = { authorization: `Bearer ${simulator().accessToken('default')}` };
    await simulator().advance(3599);
    should((await call('GET', '/core/contact/groups', { headers })).status).equal(200);
    await simulator().advance(1);
    shouldBeProblem(await call('GET', '/core/contact/groups', { headers }), 'unauthorized');
  });

  it('answers 400 for malformed JSON, and for a body that is not an object', async () => {
    for (const raw of ['{"phone":', 'null', '[]', '"x"', '']) {
      shouldBeProblem(
        await call('POST', '/text/messaging/messages', {
          raw,
          headers: { 'content-type': 'application/json' },
        }),
        'invalid_request',
      );
    }
  });

  it('answers 415 for a body that is not JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml']) {
      const headers = { 'content-type': type };
      const raw = JSON.stringify({ phone: phones.consented, text: 'x' });
      shouldBeProblem(
        await call('POST', '/text/messaging/messages', { raw, headers }),
        'unsupported_media_type',
      );
    }
  });

  it('accepts JSON with a charset', async () => {
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    const raw = JSON.stringify({ phone: phones.consented, text: 'Grüße' });
    should((await call('POST', '/text/messaging/messages', { raw, headers })).status).equal(200);
  });

  simulated('answers 413 for a body above 256 KiB, and takes one below', async () => {
    shouldBeProblem(await send(phones.consented, 'x'.repeat(256 * 1024)), 'payload_too_large');
    should((await send(phones.consented, 'x'.repeat(255 * 1024))).status).equal(200);
  });

  it('answers 404 for a path outside the contract', async () => {
    shouldBeProblem(await call('GET', '/core/nothing'), 'not_found');
    shouldBeProblem(await call('GET', '/contacts'), 'not_found');
  });

  it('answers 405 for a method that a path does not support', async () => {
    const answer = await call('DELETE', '/text/messaging/messages');
    shouldBeProblem(answer, 'invalid_request', 405);
    should(answer.headers.get('allow')).equal('POST');
  });

  it('answers 400 for an id that is not an integer', async () => {
    shouldBeProblem(await call('GET', '/core/contact/contacts/abc'), 'invalid_request');
  });

  for (const code of Object.keys(serviceCodes) as ServiceCode[]) {
    simulated(`has a whole problem body for ${code}`, async () => {
      simulator().faults.add({ endpoint: 'requestConsent', code });
      const answer = await call('POST', '/text/messaging/consent-requests', {
        body: { phoneNumbers: [numbers.unasked] },
      });
      shouldBeProblem(answer, code);
      if (code !== 'rate_limited') return;
      const after = answer.headers.get('retry-after') ?? '';
      if (habits.retryAfter === 'seconds') should(after).equal('1');
      else should(Date.parse(after) - simulator().clock.now()).be.within(1000, 2000);
    });
  }

  it('gives every problem its own trace id', async () => {
    const [one, other] = [await call('GET', '/core/nothing'), await call('GET', '/core/nothing')];
    should(one.body['traceId']).not.equal(other.body['traceId']);
  });
});
