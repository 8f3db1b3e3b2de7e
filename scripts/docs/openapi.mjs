/** What each scope allows. */
export const scopeMeanings = {
  'text.messaging.write': 'Send and schedule texts, send consent requests',
  'text.messaging.read': 'Read texting status',
  'core.contacts.read': 'Read contacts and contact groups',
  'core.contacts.write': 'Create, update and delete contacts and groups',
  'core.content.read': 'Read content library items',
  openid: 'Identity claims in the token: required where an advisor authorizes',
  offline_access: 'Returns a refresh token',
};

const problemSchema = (codes) => ({
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'traceId', 'retryable'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: codes },
    traceId: { type: 'string' },
    retryable: { type: 'boolean' },
    details: {},
  },
});

/** Unknown fields are never rejected: requests drop them (contract, *Errors*, rule 1), answers keep them. */
const open = (schema) => {
  if (Array.isArray(schema)) return schema.map(open);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(
        ([key, value]) => key !== '$schema' && !(key === 'additionalProperties' && typeof value !== 'string'),
      )
      // The bounds of a JavaScript integer are not a rule of the contract.
      .filter(([, value]) => Math.abs(value) !== Number.MAX_SAFE_INTEGER)
      .map(([key, value]) => [key, open(value)]),
  );
};

const pathParameters = (path) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'integer' },
  }));

const queryParameters = (schema) =>
  Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    in: 'query',
    required: schema.required?.includes(name) ?? false,
    schema: property,
  }));

const json = (schema) => ({ 'application/json': { schema } });

/** The schemas of all bodies and answers, and their names in the document: as in `schemas.ts`, with a capital. */
const namesOf = (endpoints, schemas) => {
  const keys = new Map(Object.entries(schemas).map(([key, schema]) => [schema, key]));
  return new Map(
    Object.values(endpoints)
      .flatMap(({ body, response }) => [body, response])
      .filter((schema) => keys.has(schema))
      .map((schema) => [schema, keys.get(schema).replace(/^./, (first) => first.toUpperCase())]),
  );
};

/** The OpenAPI 3.1 document of the whole service. */
export const openApi = ({ endpoints, operationScopes, schemas, serviceCodes, z, version }) => {
  const { contractForms } = schemas;
  /** The schema as the contract has it, without what we tolerate beside it. */
  const inContract = (schema, io) =>
    z.toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      override({ zodSchema, jsonSchema: made }) {
        const form = contractForms.get(zodSchema)?.form;
        if (form !== undefined) {
          for (const key of Object.keys(made)) delete made[key];
          Object.assign(made, inContract(form, io));
        }
        const required = Object.entries(zodSchema._zod.def.shape ?? {})
          .filter(([, property]) => contractForms.get(property)?.isRequired)
          .map(([name]) => name);
        if (required.length > 0) made.required = [...new Set([...(made.required ?? []), ...required])];
      },
    });
  const jsonSchema = (schema, io) => open(inContract(schema, io));
  const names = namesOf(endpoints, schemas);
  const refer = (schema) => ({ $ref: `#/components/schemas/${names.get(schema)}` });

  const statuses = [...new Set(Object.values(serviceCodes).map(({ status }) => status))].sort(
    (a, b) => a - b,
  );
  const codesOf = (wanted) => Object.entries(serviceCodes).filter(([, { status }]) => status === wanted);
  const errors = Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: codesOf(status)
          .map(([code]) => code)
          .join(' or '),
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );

  const operation = (name, { path, scope, summary, query, body, response }) => ({
    operationId: name,
    summary,
    tags: [path.split('/')[1] === 'text' ? 'Texting' : 'Address book and content'],
    security: [{ oauth: [scope], apiKey: [] }],
    parameters: [...pathParameters(path), ...(query ? queryParameters(jsonSchema(query, 'input')) : [])],
    ...(body ? { requestBody: { required: true, content: json(refer(body)) } } : {}),
    responses: {
      ...(names.has(response)
        ? { 200: { description: 'Done', content: json(refer(response)) } }
        : { '2XX': { description: 'Done; with or without a body' } }),
      ...errors,
    },
  });

  const paths = {};
  for (const [name, endpoint] of Object.entries(endpoints)) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method.toLowerCase()]: operation(name, endpoint),
    };
  }
  const unsaid = operationScopes.filter((scope) => !(scope in scopeMeanings));
  if (unsaid.length > 0) throw new Error(`scripts/docs/openapi.mjs does not say what ${unsaid[0]} allows.`);
  const scopes = { ...scopeMeanings };
  // The contract declares this flow on the texting surface (*Authentication*, 2).
  const texting = Object.fromEntries(Object.entries(scopes).filter(([scope]) => scope.startsWith('text.')));
  // Whether it is needed here is not shown (*Authentication*, Gaps).
  texting.openid = 'Identity claims in the token: only where the service requires it';
  const requests = new Set(Object.values(endpoints).map(({ body }) => body));

  return {
    openapi: '3.1.0',
    info: {
      title: 'Partner texting and address book',
      version: '1.0.0',
      description: `The service's contract, as @advisor-texting/node-red ${version} reads it. Query parameter names that the contract does not show are ours.`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '{base_url}', variables: { base_url: { default: 'http://localhost:8100/v1' } } }],
    tags: [{ name: 'Texting' }, { name: 'Address book and content' }],
    paths,
    components: {
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          flows: {
            authorizationCode: {
              authorizationUrl: 'http://localhost:8100/oauth/authorize',
              tokenUrl: 'http://localhost:8100/oauth/token',
              refreshUrl: 'http://localhost:8100/oauth/token',
              scopes,
            },
            clientCredentials: {
              tokenUrl: 'http://localhost:8100/oauth/token',
              scopes: texting,
            },
          },
        },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      schemas: {
        ...Object.fromEntries(
          [...names].map(([schema, name]) => [
            name,
            jsonSchema(schema, requests.has(schema) ? 'input' : 'output'),
          ]),
        ),
        Problem: problemSchema(Object.keys(serviceCodes)),
      },
    },
  };
};
