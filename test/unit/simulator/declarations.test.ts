import should from 'should';
import { z } from 'zod';
import { declarations, endpoints, type EndpointName, type ParamNames } from '../../../lib/service/endpoints';
import { serviceCodes } from '../../../lib/service/errors';
import { fillPath } from '../../../lib/service/wire';
import { problemCodes } from '../../../simulator/codes';
import { routesOf } from '../../../simulator/contract/routes';
import { allScopes } from '../../../simulator/contract/rules';
import { endpointNames, endpoints as simulated } from '../../../simulator/endpoints';

/** Where client and simulator deliberately read the contract differently, and why. */
const intended: Readonly<Record<string, string>> = {
  'createContact body.phone': 'the client leaves checking a contact’s phone to the service',
  'updateContact body.phone': 'the client leaves checking a contact’s phone to the service',
};

interface Rules {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

const rulesOf = (schema: z.ZodType | undefined): Rules =>
  schema === undefined ? {} : z.toJSONSchema(schema, { io: 'input' });

const inWords = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

/** Each difference as `where`: the client's value and the simulator's. */
const differences = new Map<string, string>();

const compare = (where: string, ofClient: unknown, ofSimulator: unknown): void => {
  const [client, simulator] = [inWords(ofClient), inWords(ofSimulator)];
  if (client !== simulator) differences.set(where, `client ${client}, simulator ${simulator}`);
};

/** An id is an integer in the contract; the client also sends back an id that a service returned as a string. */
const clientId = '{"anyOf":[{"type":"integer"},{"type":"string","minLength":1}]}';

/** Written differently, the same: a range that is only JavaScript's, a class of digits, an id. */
const plain = (rule: unknown): unknown =>
  JSON.parse(
    inWords(rule)
      .replaceAll('[0-9]', '\\\\d')
      .replaceAll(/"(minimum|maximum)":-?9007199254740991,?/g, '')
      .replaceAll(',}', '}')
      .replaceAll(clientId, '{"type":"integer"}')
      .replace('nothing', 'null'),
  ) as unknown;

const comparePart = (
  where: string,
  ofClient: z.ZodType | undefined,
  ofSimulator: z.ZodType | undefined,
): void => {
  const [client, simulator] = [rulesOf(ofClient), rulesOf(ofSimulator)];
  const fields = { ...client.properties, ...simulator.properties };
  for (const field of Object.keys(fields).sort()) {
    compare(`${where}.${field}`, plain(client.properties?.[field]), plain(simulator.properties?.[field]));
    compare(
      `${where}.${field} required`,
      client.required?.includes(field) ?? false,
      simulator.required?.includes(field) ?? false,
    );
  }
};

describe("the client's and the simulator's readings of the contract", () => {
  before(() => {
    for (const name of Object.keys(endpoints) as EndpointName[]) {
      const { method, path, scope, search, hasIdsInBody, query, body } = declarations[name];
      const ofSimulator = simulated[name];
      compare(`${name} method`, method, ofSimulator.method);
      compare(`${name} path`, path, ofSimulator.path);
      compare(`${name} scope`, scope, ofSimulator.scope);
      compare(`${name} search`, search, ofSimulator.search);
      compare(`${name} hasIdsInBody`, hasIdsInBody, ofSimulator.hasIdsInBody);
      comparePart(`${name} query`, query, ofSimulator.query);
      comparePart(`${name} body`, body, ofSimulator.body);
    }
  });

  it('name the same endpoints', () => {
    should([...endpointNames].sort()).eql(Object.keys(endpoints).sort());
  });

  it('differ in method, path, scope, search, ids, fields and limits only on purpose', () => {
    const found = [...differences].filter(([where]) => !Object.hasOwn(intended, where));
    should(found.map(([where, what]) => `${where}: ${what}`)).eql([]);
  });

  it('still differ where they should', () => {
    should(Object.keys(intended).filter((where) => !differences.has(where))).eql([]);
  });

  it('have the same codes, with the same status and retryability', () => {
    const bare = Object.entries(problemCodes).map(([code, { status, retryable }]) => [
      code,
      { status, retryable },
    ]);
    should(bare).eql(Object.entries(serviceCodes));
  });

  it('provision every scope that an endpoint needs, openid and offline_access', () => {
    const needed = Object.values(endpoints).map(({ scope }) => scope);
    should([...allScopes].sort()).eql([...new Set([...needed, 'openid', 'offline_access'])].sort());
  });
});

describe('a path with two parameters', () => {
  const path = '/core/contact/contacts/{contactId}/groups/{groupId}';
  const find = routesOf({
    removeMember: { method: 'DELETE', path },
    clear: { method: 'DELETE', path: '/core/contact/contacts/all/groups/all' },
  });

  it('is written by the client and read by the simulator, each id under its name', () => {
    const params: Record<ParamNames<typeof path>, string | number> = { contactId: 12, groupId: 'a/b' };
    const written = fillPath(path, params);
    should(written).equal('/core/contact/contacts/12/groups/a%2Fb');
    const route = find('DELETE', written);
    should(route?.name).equal('removeMember');
    should({ ...route?.params }).eql({ contactId: '12', groupId: 'a%2Fb' });
  });

  it('needs both', () => {
    // @ts-expect-error a missing one does not compile
    const params: Record<ParamNames<typeof path>, number> = { contactId: 12 };
    should(() => fillPath(path, params)).throw({ code: 'invalid_input', message: /groupId/ });
    should(find('DELETE', '/core/contact/contacts/12/groups/')).equal(undefined);
    should(find('GET', '/core/contact/contacts/12/groups/7')).equal(undefined);
  });

  it('comes after a path without parameters', () => {
    should(find('DELETE', '/core/contact/contacts/all/groups/all')).eql({ name: 'clear', params: {} });
  });
});
