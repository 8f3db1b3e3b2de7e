const escape = (value) =>
  String(value).replace(
    /[&<>"]/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign],
  );

/** i18next reads a dot as a level, and an empty option needs a name. */
export const optionKey = (field, option) =>
  `option.${field}.${option === '' ? 'none' : option.replaceAll('.', '_')}`;

/** Icons of Font Awesome 4, by field, as in the labels of core nodes. */
const icons = {
  name: 'tag',
  environment: 'globe',
  advisor: 'user',
  phone: 'phone',
  phoneField: 'columns',
  text: 'commenting-o',
  schedule: 'clock-o',
  deliveryDate: 'calendar',
  frequency: 'repeat',
  hours: 'moon-o',
  onceKey: 'key',
  onceFor: 'hourglass-o',
  maxSegments: 'compress',
  every: 'clock-o',
  limit: 'hand-paper-o',
  by: 'search',
  memberId: 'id-badge',
  mode: 'hourglass-half',
  pollEvery: 'step-forward',
  pollFor: 'clock-o',
  thenEvery: 'fast-forward',
  giveUpAfter: 'stop-circle-o',
  operation: 'tasks',
  matchBy: 'search',
  isSelectAllGroup: 'check-square-o',
  contactId: 'hashtag',
  groupId: 'users',
  groupIds: 'users',
  itemId: 'hashtag',
  contact: 'address-card-o',
  fields: 'list',
  group: 'users',
  filter: 'filter',
  page: 'file-o',
  pageSize: 'files-o',
  sortBy: 'sort',
  sortDirection: 'sort-amount-asc',
  emit: 'share',
  search: 'search',
  contentType: 'folder-o',
  reason: 'comment-o',
  service: 'cloud',
  baseUrl: 'link',
  authUrl: 'link',
  tokenUrl: 'link',
  redirectUri: 'reply',
  grant: 'handshake-o',
  clientId: 'id-card-o',
  clientSecret: 'lock',
  apiKey: 'lock',
  refreshToken: 'lock',
  scopes: 'check-square-o',
  country: 'flag-o',
  timeZone: 'map-marker',
  textFrom: 'sun-o',
  textUntil: 'moon-o',
  outsideHours: 'bed',
  maxConcurrent: 'sliders',
  requestsPerSecond: 'tachometer',
  timeout: 'clock-o',
  retries: 'repeat',
  repeatSends: 'repeat',
  resumeWithin: 'play',
  deliveryDateUnit: 'calendar',
  names: 'exchange',
  corePrefix: 'terminal',
  textPrefix: 'terminal',
  consentPattern: 'asterisk',
  proxy: 'random',
  store: 'database',
  storeUrl: 'link',
};

const iconOf = ({ name }) => {
  if (!Object.hasOwn(icons, name))
    throw new Error(`scripts/build/form.mjs has no icon for the field ${name}.`);
  return `<i class="fa fa-${icons[name]}" aria-hidden="true"></i>`;
};

/** The strings that a spec needs. */
export const stringsOf = (spec) => [
  'title',
  ...spec.outputs.map((output) => `output.${output}`),
  ...spec.fields.flatMap((field) => [
    `label.${field.name}`,
    ...(field.section ? [`section.${field.section}`] : []),
    ...(field.kind === 'choice' || field.kind === 'ticks'
      ? field.options.map((option) => optionKey(field.name, option))
      : []),
    ...(field.kind === 'rows' ? Object.keys(field.rows).map((row) => `row.${row}`) : []),
  ]),
];

/**
 * The form of a node, from its fields. `said` says whether a string exists, because hints and units are optional;
 * `needs` says which nodes need a scope.
 */
export const formOf = (spec, said, needs) => {
  const prefix = spec.category === 'config' ? 'node-config-input' : 'node-input';

  const words = (field) => `<span data-i18n="label.${field.name}"></span>`;
  const label = (field, id) =>
    `<label for="${id}" id="${id}-label">${field.kind === 'flag' ? '' : iconOf(field)}${words(field)}</label>`;
  const placeholder = (field) =>
    said(`placeholder.${field.name}`) ? ` data-i18n="[placeholder]placeholder.${field.name}"` : '';
  const optional = (part, field, id) =>
    said(`${part}.${field.name}`)
      ? `<span class="advisor-${part}" id="${id}-${part}" data-i18n="${part}.${field.name}"></span>`
      : '';
  const text = (field, id, more = '') => `<input type="text" id="${id}"${placeholder(field)}${more}>`;
  const options = (field) =>
    field.options
      .map(
        (option) =>
          `<option value="${escape(option)}" data-i18n="${optionKey(field.name, option)}"></option>`,
      )
      .join('');

  const controls = {
    environment: (field, id) => text(field, id),
    text: (field, id) => text(field, id),
    number: (field, id) => text(field, id, ' inputmode="decimal"'),
    credential: (field, id) =>
      `<input type="${field.secret ? 'password' : 'text'}" id="${id}" autocomplete="off"${placeholder(field)}>`,
    typed: (field, id) => `${text(field, id)}<input type="hidden" id="${id}Type">`,
    json: (field, id) => text(field, id),
    choice: (field, id) =>
      `<select id="${id}">${options(field)}${
        field.variable
          ? '<option class="advisor-variable" value="${}" data-i18n="option.variable"></option>'
          : ''
      }</select>${
        field.variable
          ? `<input type="text" id="${id}-variable" class="advisor-below" data-i18n="[placeholder]placeholder.variable;[aria-label]option.variable">`
          : ''
      }`,
    ticks: (field, id) =>
      `<div class="advisor-ticks" id="${id}" role="group" aria-labelledby="${id}-label">${field.options
        .map(
          (option) =>
            `<label><input type="checkbox" value="${escape(option)}"> <span data-i18n="${optionKey(
              field.name,
              option,
            )}"></span> <code>${escape(option)}</code><small data-nodes="${needs(option).join(' ')}"></small></label>`,
        )
        .join('')}<input type="text" id="${id}-others" data-i18n="[placeholder]placeholder.${
        field.name
      };[aria-label]placeholder.${field.name}"></div>`,
    rows: (field, id) =>
      Object.keys(field.rows)
        .map(
          (row) =>
            `<div class="advisor-row"><label for="${id}-${row}" id="${id}-${row}-label" data-i18n="row.${row}"></label><input type="text" id="${id}-${row}"><input type="hidden" id="${id}-${row}Type"></div>`,
        )
        .join(''),
  };

  /** The values of these fields are arrays and objects: the editor must not find an input by their name and save its text. */
  const idOf = (field) =>
    `${prefix}-${field.name}${['json', 'ticks', 'rows'].includes(field.kind) ? '-entry' : ''}`;

  const row = (field) => {
    const id = idOf(field);
    const after = `${optional('unit', field, id)}${optional('hint', field, id)}`;
    if (field.kind === 'flag') {
      return `<div class="form-row advisor-flag" data-field="${field.name}"><input type="checkbox" id="${id}">${label(field, id)}${after}</div>`;
    }
    const caption =
      field.kind === 'ticks' || field.kind === 'rows'
        ? `<span class="advisor-caption" id="${id}-label">${iconOf(field)}${words(field)}</span>`
        : label(field, id);
    return `<div class="form-row" data-field="${field.name}">${caption}${controls[field.kind](field, id)}${after}</div>`;
  };

  const heading = ({ section }, before) =>
    section && section !== before?.section
      ? [`<h4 class="advisor-section" data-i18n="section.${section}"></h4>`]
      : [];
  const plain = spec.fields.filter((field) => !field.advanced);
  const shown = plain.flatMap((field, at) => [...heading(field, plain[at - 1]), row(field)]);
  const advanced = spec.fields.filter((field) => field.advanced).map(row);
  return [
    `<div class="advisor-form" data-type="${spec.type}">`,
    ...shown,
    '<div class="advisor-more"></div>',
    ...(advanced.length === 0
      ? []
      : [
          '<details class="advisor-advanced"><summary data-i18n="advanced"></summary>',
          ...advanced,
          '</details>',
        ]),
    '</div>',
  ].join('\n');
};
