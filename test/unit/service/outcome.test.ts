import fc from 'fast-check';
import should from 'should';
import type { Result } from '../../../lib/service/transport';
import {
  ownCodes,
  sentences,
  type Problem,
  type ServiceCode,
  serviceCodes,
} from '../../../lib/service/errors';
import { assess, type Assessment, endAs, type Plan, planEndpoint } from '../../../lib/service/wire';
import { endpoints } from '../../../lib/service/endpoints';
import type { EndpointName } from '../../../lib/service/endpoints';
import { sent } from '../../support/sent';
import { problemReply } from '../../support/service/setup';

const plan = (name: EndpointName): Plan => planEndpoint(name);
const answered = (status: number, body: unknown = ''): Result => ({
  state: 'answered',
  status,
  text: typeof body === 'string' ? body : JSON.stringify(body),
  retryAfter: undefined,
});
const meaningOf = (name: EndpointName, result: Result): Assessment =>
  assess(plan(name), 5, result, { now: () => 0 }, ['SECRET-1', 'at', 'token']);
const failed = (name: EndpointName, result: Result): Problem =>
  endAs('answered', meaningOf(name, result), 1).problem;

describe('the meaning of an answer', () => {
  describe('success', () => {
    it('is any 2xx whose body is valid, and unknown fields are kept', () => {
      for (const status of [200, 201, 202]) {
        const { happened, data } = meaningOf('sendMessage', answered(status, { ...sent, later: [1] }));
        should(happened.what).equal('done');
        should(data).eql({ ...sent, later: [1] });
      }
    });

    it('is a delete with any body or none', () => {
      for (const body of ['', '{"id":5}', 'gone', '<html>']) {
        should(meaningOf('deleteContact', answered(204, body)).happened.what).equal('done');
      }
    });

    it('is an update without a body, identified by the id it was sent to', () => {
      should(meaningOf('updateContact', answered(204)).data).eql({ id: 5 });
      should(meaningOf('setContactGroups', answered(200)).data).eql({ id: 5 });
      should(meaningOf('updateContact', answered(200, ' null\n')).data).eql({ id: 5 });
    });

    it('is a create without a body or an id, and has no id', () => {
      for (const name of ['createContact', 'createGroup'] as const) {
        for (const [body, data] of [
          ['', {}],
          ['null', {}],
          ['{}', {}],
          ['{"id":null}', { id: null }],
        ]) {
          const { happened, data: given } = meaningOf(name, answered(201, body));
          should(happened.what).equal('done');
          should(given).eql(data);
        }
      }
    });

    it('is a send or consent request with entries on only one side', () => {
      const success = { successes: [{ messageId: 1 }] };
      const refusal = { failures: ['no'], successes: null };
      for (const name of ['sendMessage', 'requestConsent'] as const) {
        for (const body of [success, { ...success, failures: null }, refusal]) {
          const { happened, data } = meaningOf(name, answered(200, body));
          should(happened.what).equal('done');
          should(data).eql(body);
        }
      }
    });

    it('that echoes the token is redacted', () => {
      const token = 'eyJhbGciOiJub25lIn0.e30.x/y';
      const body = `{"successes":[{"messageId":"${token} ${token.replace('/', '\\/')}"}]}`;
      const { data } = assess(plan('sendMessage'), 5, answered(200, body), { now: () => 0 }, [token]);
      should(data).eql({ successes: [{ messageId: '… …' }] });
    });

    it('keeps failure details of any shape unchanged', () => {
      for (const failureDetails of [null, 'x', 7, {}, ['a'], [{ code: 5 }], { items: [{ reason: {} }] }]) {
        const body = { successes: [], failures: ['no'], failureDetails };
        should(meaningOf('sendMessage', answered(200, body)).data).eql(body);
      }
    });

    it('keeps ids as they are: strings, and integers beyond 2^53 as strings of digits', () => {
      const send = (id: string): unknown =>
        meaningOf('sendMessage', answered(200, `{"successes":[{"messageId":${id},"memberId":${id}}]}`)).data;
      for (const [written, id] of [
        ['7', 7],
        ['"m-7"', 'm-7'],
        ['9007199254740991', 9007199254740991],
        ['9007199254740993', '9007199254740993'],
        ['123456789012345678901234567890', '123456789012345678901234567890'],
        ['"9007199254740993"', '9007199254740993'],
      ] as const) {
        should(send(written)).eql({ successes: [{ messageId: id, memberId: id }] });
      }
      const contact = `{"groupIds":[12,9007199254740993], "contactId":9007199254740995,"note":"id \\"9007199254740993\\" 1","later":{"n":[-9007199254740993,0.1234567890123456,1e300]}}`;
      should(meaningOf('getContact', answered(200, contact)).data).eql({
        groupIds: [12, '9007199254740993'],
        contactId: '9007199254740995',
        note: 'id "9007199254740993" 1',
        later: { n: ['-9007199254740993', 0.1234567890123456, 1e300] },
      });
      const page = '{"data":[{"contactId":"c-1","fullName":"A"}],"cursor":9007199254740993}';
      should(meaningOf('searchContacts', answered(200, page)).data).eql({
        data: [{ contactId: 'c-1', fullName: 'A' }],
        cursor: '9007199254740993',
      });
    });

    it('keeps numbers as numbers, even beside a long id', () => {
      const ticks = 638_980_000_000_000_000;
      for (const memberId of ['7', '"m-7"', '9007199254740993']) {
        const body = `{"memberId":${memberId},"state":"accepted","lastChanged":638980000000000000,"row":9007199254740995}`;
        const { happened, data } = meaningOf('getConsent', answered(200, body));
        should(happened.what).equal('done');
        should(data).containEql({ state: 'accepted', lastChanged: ticks, row: '9007199254740995' });
      }
    });

    it('accepts null and missing fields that the contract does not require', () => {
      const lookup = meaningOf('getConsent', answered(200, { state: 'pending', memberId: null }));
      should(lookup.happened.what).equal('done');
      const asked = { successes: [{ memberId: null, consentState: null }], failures: [] };
      should(meaningOf('requestConsent', answered(200, asked)).happened.what).equal('done');
    });

    it('passes on what it only shows as the service writes it, and reads the numbers of a page from texts too', () => {
      const changed = '2026-11-01T09:00:00Z';
      const contact = {
        contactId: 7,
        source: 'CRM',
        emailStatus: 'ok',
        isCrmLinkedContact: 1,
        customFields: {},
      };
      const summary = {
        contactId: 7,
        emailStatus: 3,
        status: 1,
        groupCount: '2',
        dateTimeCreated: 1_750_000_000,
      };
      for (const [name, body, data] of [
        ['getConsent', { state: 'accepted', lastChanged: changed }, { lastChanged: changed }],
        ['getContact', contact, contact],
        [
          'searchContacts',
          { data: [summary], pageInfo: { page: '1', pageSize: '50', totalRecord: '450', sortDirection: 1 } },
          { data: [summary], pageInfo: { page: 1, pageSize: 50, totalRecord: 450, sortDirection: 1 } },
        ],
      ] as const) {
        const { happened, data: given } = meaningOf(name, answered(200, body));
        should(happened.what).equal('done');
        should(given).containEql(data);
      }
    });

    it('takes an empty text in place of a number, a flag or a list as nothing, and keeps other empty texts', () => {
      for (const [name, body, data] of [
        ['getConsent', { state: 'accepted', lastChanged: '' }, { state: 'accepted', lastChanged: null }],
        ['sendMessage', { successes: [{ messageId: 7 }], failures: '' }, { failures: null }],
        ['requestConsent', { successes: '', failures: ['no'] }, { successes: null, failures: ['no'] }],
        [
          'getContact',
          { contactId: 7, gender: '', source: '', disableEmailStatus: '', groupIds: '', phone: '', city: '' },
          { gender: null, source: null, disableEmailStatus: null, groupIds: null, phone: '', city: '' },
        ],
        ['searchGroups', { data: [{ groupId: 7, contactCount: '' }], pageInfo: '' }, { pageInfo: null }],
      ] as const) {
        const { happened, data: given } = meaningOf(name, answered(200, body));
        should(happened.what).equal('done');
        should(given).containEql(data);
      }
    });
  });

  describe('invalid_response', () => {
    const cases: [string, EndpointName, Result][] = [
      ['a send without a body', 'sendMessage', answered(200)],
      ['HTML', 'getContact', answered(200, '<html>Welcome</html>')],
      ['truncated JSON', 'searchContacts', answered(200, '{"data":[{"contactId":1')],
      ['JSON of another kind', 'getConsent', answered(200, '"accepted"')],
      ['null', 'getConsent', answered(200, 'null')],
      ['a required field missing', 'getConsent', answered(200, { memberId: 1 })],
      ['a negative id', 'createGroup', answered(200, { id: -1 })],
      ['failures that are not texts', 'sendMessage', answered(200, { successes: [], failures: [{}] })],
      ['an answer over the limit', 'searchContent', { ...answered(200), text: undefined } as Result],
      [
        'an answer nested without end',
        'getContact',
        answered(200, `{"contactId":1,"x":${'['.repeat(90)}${']'.repeat(90)}}`),
      ],
      [
        'a long answer nested without end',
        'getContact',
        answered(200, `{"contactId":1,"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`),
      ],
      [
        'an answer nested in objects without end',
        'getContact',
        answered(200, `{"contactId":1,"x":${'{"__proto__":'.repeat(90)}1${'}'.repeat(90)}}`),
      ],
      [
        'an answer of very many values, which would block the event loop',
        'searchContacts',
        answered(200, `{"data":[${'{},'.repeat(300_000)}{}]}`),
      ],
      ['a redirect', 'sendMessage', answered(307)],
      ['not modified', 'getContact', answered(304)],
      ['a status nobody knows', 'getContact', answered(799)],
    ];
    for (const [title, name, result] of cases) {
      it(title, () => {
        const problem = failed(name, result);
        should(problem.code).equal('invalid_response');
        should(problem.retryable).equal(false);
      });
    }
  });

  describe('a success that cannot be read', () => {
    const unreadable = ['<html>', '{"successes":', '7', '{"id":-1,"successes":[],"failures":[{}]}'];
    for (const name of [
      ...(['sendMessage', 'requestConsent', 'createContact', 'createGroup'] as const),
      ...(['updateContact', 'setContactGroups'] as const),
    ]) {
      it(`says that ${name} was probably carried out`, () => {
        for (const body of unreadable) {
          const problem = failed(name, answered(200, body));
          should(problem.code).equal('invalid_response');
          should(problem.message)
            .match(/probably carried out/)
            .and.not.match(/address/);
        }
        const tooLarge = { ...answered(200), text: undefined } as Result;
        should(failed(name, tooLarge).message).match(/probably carried out/);
      });
    }

    it('is a problem body, which says that nothing was carried out, or only a part', () => {
      const { body } = problemReply('internal_error');
      for (const name of ['createContact', 'updateContact', 'deleteContact', 'sendMessage'] as const)
        should(failed(name, answered(200, body)).code).equal('invalid_response');
    });

    it('says to check the address of a read', () => {
      should(failed('getContact', answered(200, '<html>')).message).match(/check the service address/);
    });
  });

  describe('a problem body', () => {
    for (const code of Object.keys(serviceCodes) as ServiceCode[]) {
      it(`${code} keeps its code, its fields and the service's opinion on retrying`, () => {
        const { status = 0, body } = problemReply(code, { details: { field: 'phone' } });
        const problem = failed('requestConsent', answered(status, body));
        should(problem).containEql({
          code,
          status: serviceCodes[code].status,
          retryable: serviceCodes[code].retryable,
          title: code,
          detail: `About ${code}`,
          traceId: 'trace-1',
          instance: '/here',
          type: `https://example.test/${code}`,
          details: { field: 'phone' },
          attempts: 1,
        });
        should(problem.wording?.key).equal(code === 'not_found' ? 'not_found_path' : code);
      });
    }

    it('with an unknown code is passed on', () => {
      const problem = failed(
        'sendMessage',
        answered(422, { code: 'quota_spent', retryable: true, title: 'x' }),
      );
      should(problem).containEql({ code: 'quota_spent', retryable: true, status: 422 });
      should(problem.message).match(/quota_spent/);
    });

    for (const own of ownCodes)
      it(`with ${own}, a code of ours, has the code of its status`, () => {
        for (const [status, code] of [
          [400, 'invalid_request'],
          [409, 'conflict'],
          [422, 'invalid_request'],
          [503, 'internal_error'],
        ] as const) {
          const body = { code: own, retryable: false, detail: 'Why', traceId: 't' };
          should(failed('sendMessage', answered(status, body))).containEql({
            code,
            detail: 'Why',
            traceId: 't',
          });
        }
      });

    it('with a code that is a JavaScript keyword is still just a code', () => {
      for (const code of ['__proto__', 'constructor', 'toString']) {
        should(failed('sendMessage', answered(400, { code, retryable: false })).code).equal(code);
      }
    });

    it('that names a scope says which permission to select', () => {
      const { body } = problemReply('forbidden', { detail: 'Requires scope core.contacts.write.' });
      should(failed('getContact', answered(403, body)).message).match(/with core\.contacts\.write selected/);
    });

    it('says whom to contact when consent cannot be collected', () => {
      const { body } = problemReply('conflict');
      should(failed('requestConsent', answered(409, body)).message).match(/contact the operator/);
    });

    it('that echoes a secret is redacted', () => {
      const { body } = problemReply('unauthorized', { detail: 'Bearer SECRET-1 is not valid' });
      should(JSON.stringify(failed('sendMessage', answered(401, body)))).not.match(/SECRET/);
    });

    it('is kept whole when the token of a test is a word that occurs in it', () => {
      const { status = 0, body } = problemReply('unauthorized', { detail: 'The token ended at noon.' });
      should(failed('sendMessage', answered(status, body))).containEql({
        code: 'unauthorized',
        detail: 'The token ended at noon.',
        traceId: 'trace-1',
      });
    });
  });

  describe('an error without a problem body', () => {
    const codes: [number, string][] = [
      [400, 'invalid_request'],
      [401, 'unauthorized'],
      [403, 'forbidden'],
      [404, 'not_found'],
      [409, 'conflict'],
      [413, 'payload_too_large'],
      [415, 'unsupported_media_type'],
      [418, 'invalid_request'],
      [429, 'rate_limited'],
    ];
    for (const [status, code] of codes) {
      for (const body of ['', '<html>', '{"message":"no"}', '{"code":"x"}', '[', 'null']) {
        it(`${String(status)} with ${body === '' ? 'nothing' : body} is ${code}, not retryable`, () => {
          should(failed('searchGroups', answered(status, body))).containEql({
            code,
            status,
            retryable: false,
          });
        });
      }
    }

    it('is blamed on a gateway or firewall, for every status', () => {
      for (const status of [302, 400, 401, 403, 404, 409, 413, 415, 418, 429]) {
        should(failed('sendMessage', answered(status, '<html>')).message).match(
          /gateway or firewall, not the/,
        );
      }
      for (const as of ['outcome_unknown', 'network_error'] as const) {
        const { message } = endAs(as, meaningOf('sendMessage', answered(502)), 1).problem;
        should(message).match(/gateway or firewall answered/);
      }
      const after = endAs('outcome_unknown', meaningOf('sendMessage', answered(403)), 2).problem;
      should(after).containEql({ code: 'outcome_unknown', retryable: false, status: 403, attempts: 2 });
      should(after.message).match(/gateway or firewall answered/);
    });

    it('403 names the API key and the address before the permission', () => {
      should(failed('getContact', answered(403)).message).match(
        /API key and the service address.* core\.contacts\.read/,
      );
    });

    it('404 names the address, even for a number', () => {
      should(failed('getConsent', answered(404, '<html>')).message).match(
        /check the service address and the prefixes/,
      );
    });

    it('is distinguished from an answer of the service', () => {
      const error = (name: EndpointName, result: Result): boolean =>
        endAs('answered', meaningOf(name, result), 1).hasProblemBody;
      for (const code of Object.keys(serviceCodes) as ServiceCode[]) {
        const { status = 0, body } = problemReply(code);
        should(error('getConsent', answered(status, body))).be.true();
      }
      should(error('getConsent', answered(404, { code: 'not_found' }))).be.true();
      const byService = { what: 'problem', status: 404, retryable: false };
      should(meaningOf('getConsent', answered(404, { code: 'not_found' })).happened).eql(byService);
      for (const body of ['', '<html>', '{"message":"no"}', '{"code":"x"}', 'null']) {
        for (const status of [307, 400, 401, 403, 404, 429, 503]) {
          should(error('getConsent', answered(status, body))).be.false();
        }
      }
      should(error('getConsent', answered(200, '{}'))).be.false();
    });

    it("4xx still shows the contract's code that it names, and its other details", () => {
      const body = { code: 'version_mismatch', detail: 'Version 2 is expected', traceId: null };
      const problem = failed('sendMessage', answered(400, body));
      should(problem).containEql({ code: 'version_mismatch', detail: body.detail, retryable: false });
      should(problem).not.have.property('traceId');
    });

    it('5xx leaves the outcome unknown, even if the gateway answers in JSON', () => {
      for (const body of [
        '',
        '<html>',
        '{"message":"Bad Gateway"}',
        '{"code":"ECONNREFUSED"}',
        '{"code":"internal_error"}',
        '{"retryable":true}',
      ]) {
        should(meaningOf('sendMessage', answered(502, body)).happened.what).equal('gateway');
      }
      const page = { ...answered(500), text: undefined } as Result;
      should(meaningOf('sendMessage', page).happened.what).equal('gateway');
    });
  });

  it('is an outcome for any answer, never a crash', () => {
    const names = Object.keys(endpoints) as EndpointName[];
    const body = fc.oneof(
      fc.string(),
      fc.json(),
      fc.jsonValue().map((value) => JSON.stringify({ ...sent, id: 1, data: value, state: value })),
      fc
        .record({
          code: fc.oneof(fc.string(), fc.jsonValue()),
          retryable: fc.oneof(fc.boolean(), fc.jsonValue()),
          detail: fc.jsonValue(),
          details: fc.jsonValue(),
        })
        .map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.integer({ min: 200, max: 999 }),
        body,
        (name, status, text) => {
          const assessment = meaningOf(name, answered(status, text));
          if (assessment.happened.what === 'done') return;
          for (const as of ['answered', 'network_error', 'outcome_unknown'] as const) {
            const { problem } = endAs(as, assessment, 2);
            should(problem.code).be.a.String().and.not.be.empty();
            should(problem.message).be.a.String().and.not.be.empty();
            should(problem.retryable).be.a.Boolean();
            should(problem.attempts).equal(2);
          }
        },
      ),
      { numRuns: 2000, seed: 20250115 },
    );
  });
});

describe('error sentences', () => {
  it('end with a full stop and say what to do', () => {
    for (const [key, sentence] of Object.entries(sentences)) {
      should(sentence).match(/^(?:[A-Z"]|__|msg\.).*(\.|__)$/, key);
      should(sentence).match(/: |again|\. [A-Z]/, key);
    }
  });
});
