import { scopeMeanings } from './openapi.mjs';
import { table } from './table.mjs';

const repeats = {
  safe: 'Repeated at will: doing it twice changes nothing.',
  delete: 'Repeated at will; a 404 to a repeated request counts as done.',
  once: 'Not repeated when it may have been carried out, unless `repeatSends` says so.',
};

const typeOf = (schema) => {
  if (schema.$ref) return linkTo(schema.$ref);
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.map(typeOf).join(' or ');
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {})}`;
  if (schema.type === undefined) return 'anything';
  return [schema.type].flat().join(' or ');
};

const anchor = (text) =>
  text
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
const linkTo = (ref) => {
  const name = ref.split('/').at(-1);
  return `[${name}](#${anchor(name)})`;
};

const limits = (schema) =>
  [
    schema.pattern && 'a plus sign, a digit 1-9, then 7 to 14 more digits',
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
    schema.minItems !== undefined && `at least ${schema.minItems} item`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
  ]
    .filter(Boolean)
    .join('; ');

/** The fields of a schema, each followed by the fields of its objects with their path. */
const fieldRows = (schema, prefix = '') =>
  Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const path = `${prefix}${name}`;
    const present =
      [property, ...(property.anyOf ?? [])].find((one) => one.items ?? one.properties) ?? property;
    const inner = present.items?.properties
      ? fieldRows(present.items, `${path}[].`)
      : present.properties
        ? fieldRows(present, `${path}.`)
        : [];
    const items = limits(present.items ?? {});
    const rules = [limits(property), items && `each: ${items}`].filter(Boolean).join('; ');
    return [[`\`${path}\``, typeOf(property), schema.required?.includes(name) ? 'yes' : '', rules], ...inner];
  });

const endpointSection = (name, endpoint, operation) => {
  const parameters = operation.parameters.map((parameter) => [
    `\`${parameter.name}\``,
    parameter.in,
    typeOf(parameter.schema),
    parameter.required ? 'yes' : '',
    limits(parameter.schema),
  ]);
  const request = operation.requestBody?.content['application/json'].schema;
  const response = operation.responses[200]?.content['application/json'].schema;
  return [
    `### ${endpoint.summary}`,
    '',
    `\`${endpoint.method} ${endpoint.path}\` · scope \`${endpoint.scope}\` · in code \`${name}\``,
    '',
    ...(parameters.length === 0
      ? []
      : [table(['parameter', 'in', 'type', 'required', 'rules'], parameters), '']),
    `Request: ${request ? linkTo(request.$ref) : 'no body'}. Answer: ${
      response ? linkTo(response.$ref) : 'any 2xx, with or without a body'
    }. ${repeats[endpoint.repeat]}`,
    '',
  ];
};

const grouped = (endpoints, document) => {
  const sections = new Map(document.tags.map(({ name }) => [name, []]));
  for (const [name, endpoint] of Object.entries(endpoints)) {
    const operation = document.paths[endpoint.path][endpoint.method.toLowerCase()];
    sections.get(operation.tags[0]).push(...endpointSection(name, endpoint, operation));
  }
  return [...sections].flatMap(([title, lines]) => [`## ${title}`, '', ...lines]);
};

/** The API page: the same facts as in the OpenAPI document, for people. */
export const apiPage = ({ endpoints, serviceCodes }, document) => {
  const schemas = Object.entries(document.components.schemas).flatMap(([name, schema]) => [
    `### ${name}`,
    '',
    table(['field', 'type', 'required', 'rules'], fieldRows(schema)),
    '',
  ]);
  return [
    '# The service, endpoint by endpoint',
    '',
    'Generated from `lib/service/endpoints.ts` by `npm run docs`: change that table, not this page. The same as a machine reads it: [openapi.json](openapi.json) (in the repository).',
    '',
    'Paths are relative to the service address, which ends with `v1`. Every request carries `Authorization: Bearer …` and `x-api-key`. Bodies are JSON. Fields this page does not know are kept in answers and dropped from requests.',
    '',
    ...grouped(endpoints, document),
    '## Scopes',
    '',
    table(
      ['scope', 'grants', 'needed for'],
      Object.entries(scopeMeanings).map(([scope, meaning]) => [
        `\`${scope}\``,
        meaning,
        Object.values(endpoints)
          .filter((endpoint) => endpoint.scope === scope)
          .map((endpoint) => endpoint.summary.toLowerCase())
          .join('; '),
      ]),
    ),
    '',
    '## Problem codes',
    '',
    table(
      ['code', 'status', 'retryable'],
      Object.entries(serviceCodes).map(([code, { status, retryable }]) => [
        `\`${code}\``,
        status,
        retryable ? 'yes' : 'no',
      ]),
    ),
    '',
    '## Bodies',
    '',
    'This is the shape that the contract shows; a field is marked as required where the contract says so, or where nothing can be done without it.',
    '',
    "**What is tolerated beside it.** In answers, only `state`, `data`, the `contactId` of a contact, and an entry in `successes` or `failures` must be there: everything else may be missing or null, also `successes` and `failures` themselves. Ids that come as strings are passed on, and an integer beyond 2^53, which JavaScript would round, is given as a string of its digits. Unknown fields are kept. In requests, a contact's `phone` that cannot be read, because it has no + and the environment has no country, is sent as it is: the service decides.",
    '',
    ...schemas,
  ].join('\n');
};
