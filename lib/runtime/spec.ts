import type { endpoints } from '../service/endpoints';
import type { pageSizeLimit } from '../service/schemas';
import type { FieldKinds } from './kinds';

/**
 * What a node is, as data: its runtime, its form, its validation and its docs all read this. Types are all it and the
 * nodes' own specs import, so that it costs nothing at start and the editor and the build can use it too.
 */
export type ValueType =
  | 'msg'
  | 'flow'
  | 'global'
  | 'env'
  | 'jsonata'
  | 'str'
  | 'num'
  | 'bool'
  | 'json'
  | 'date'
  /** Have no value beside them: nothing, and the text itself. */
  | 'off'
  | 'text';

/**
 * Shown (and checked) only while other fields have one of these values. A value that is a `${VARIABLE}` is not known
 * in the editor and counts as any of them.
 */
export type When = Readonly<Record<string, readonly (string | boolean)[]>>;

interface Common {
  readonly name: string;
  readonly when?: When;
  /** Under the closed *Advanced*. */
  readonly advanced?: boolean;
  /** Under a heading of this name, with its neighbours of the same section. */
  readonly section?: string;
}

export interface TypedField extends Common {
  readonly kind: 'typed';
  /** `fields` stands for the rows of a `rows` field beside this one. */
  readonly types: readonly (ValueType | 'fields')[];
  readonly default: string;
  readonly defaultType: ValueType | 'fields';
  /** An empty value is a mistake that the form shows. */
  readonly required?: boolean;
  /** May be empty after all while other fields have one of these values. */
  readonly optional?: When;
  /** What a literal must be, and each entry of a list in JSON. */
  readonly literal?: 'phone' | 'template' | 'date' | 'whole' | 'id' | 'group' | 'record';
  /** While other fields have one of these values, the name of a `group` will not do. */
  readonly idOnly?: When;
  /** What a `record` has in it. */
  readonly record?: FieldKinds;
  /** A text alone is a `record` of this name; none of the kind goes without a name. */
  readonly named?: boolean;
  /** A literal may have several lines, and is counted as a text message. */
  readonly lines?: boolean;
  /** The most characters a literal may have. */
  readonly longest?: number;
  /** What the editor offers to choose the value from. */
  readonly lookup?: 'contacts' | 'groups' | 'content';
  /** Several of them may be chosen. */
  readonly several?: boolean;
}

export interface ChoiceField extends Common {
  readonly kind: 'choice';
  readonly options: readonly string[];
  readonly default: string;
  /** A `${VARIABLE}` may stand in for one of the options. */
  readonly variable?: boolean;
}

export interface NumberField extends Common {
  readonly kind: 'number';
  readonly default: number;
  readonly min?: number;
  readonly max?: number;
  readonly whole?: boolean;
}

export interface FlagField extends Common {
  readonly kind: 'flag';
  readonly default: boolean;
}

export interface TextField extends Common {
  readonly kind: 'text';
  readonly default: string;
  readonly required?: boolean;
  /** What the text must look like when it is neither empty nor a `${VARIABLE}`. */
  readonly format?: 'url' | 'country' | 'pattern' | 'prefix' | 'proxy' | 'timeZone' | 'time';
}

export interface JsonField extends Common {
  readonly kind: 'json';
  readonly default: unknown;
}

/** Any number of options ticked, and others typed in: an array of strings. */
export interface TicksField extends Common {
  readonly kind: 'ticks';
  readonly options: readonly string[];
  readonly default: readonly string[];
}

/** One typed input per row, kept as `[{ field, value, valueType }]`; a row left empty is not in it. */
export interface RowsField extends Common {
  readonly kind: 'rows';
  /** Each row's name, and the type its literal has. */
  readonly rows: FieldKinds;
  readonly default: readonly FieldRow[];
}

export interface FieldRow {
  readonly field: string;
  readonly value: string;
  readonly valueType: ValueType;
}

/** Kept among the node's credentials, never among its properties. */
export interface CredentialField extends Common {
  readonly kind: 'credential';
  readonly secret: boolean;
  readonly required?: boolean;
}

export interface EnvironmentField extends Common {
  readonly kind: 'environment';
}

export type Field =
  | TypedField
  | ChoiceField
  | NumberField
  | FlagField
  | TextField
  | JsonField
  | TicksField
  | RowsField
  | CredentialField
  | EnvironmentField;

export interface NodeSpec {
  /** The registered type, also the name of its files: `advisor-send-text`. */
  readonly type: string;
  readonly category: 'advisor texting' | 'config';
  readonly color: string;
  readonly icon: string;
  readonly inputs: 0 | 1;
  /** Output names, in order; the second is always the failures. Their labels are in the locales. */
  readonly outputs: readonly string[];
  /** The endpoints its work may call; the dialog of the environment tells from them which permissions a node needs. */
  readonly uses: readonly (keyof typeof endpoints)[];
  readonly fields: readonly Field[];
}

export type Credentials = Record<string, { type: 'text' | 'password' }>;

/** As `registerType` wants them. */
const credentialsOf = (spec: NodeSpec): Credentials =>
  Object.fromEntries(
    spec.fields
      .filter((field) => field.kind === 'credential')
      .map(({ name, secret }) => [name, { type: secret ? 'password' : 'text' }]),
  );

/** What Node-RED is told of a node when it starts. The build writes it down, so that no specification is loaded for it. */
export interface Registered {
  readonly type: string;
  readonly credentials: Credentials;
}

export const registeredOf = (spec: NodeSpec): Registered => ({
  type: spec.type,
  credentials: credentialsOf(spec),
});

/** `name`, `environment`, `advisor`/`advisorType`: every flow node begins with them. */
export const commonFields = [
  { kind: 'text', name: 'name', default: '' },
  { kind: 'environment', name: 'environment' },
  {
    kind: 'typed',
    name: 'advisor',
    types: ['str', 'msg', 'flow', 'global', 'env', 'jsonata'],
    default: '',
    defaultType: 'str',
  },
] as const satisfies readonly Field[];

/** One number, or a list of them: the same in all three texting nodes. */
export const phoneField = {
  kind: 'typed',
  name: 'phone',
  types: ['msg', 'str', 'json', 'flow', 'global', 'env', 'jsonata'],
  default: 'phone',
  defaultType: 'msg',
  required: true,
  literal: 'phone',
} as const satisfies Field;

const largestPage: typeof pageSizeLimit = 200;

/** How a search pages and what it emits: the same in all three searching nodes. */
export const searchFields = (when?: When, sorting: readonly Field[] = []): readonly Field[] => [
  { kind: 'flag', name: 'all', default: false, ...(when && { when }) },
  { kind: 'number', name: 'page', default: 1, min: 1, whole: true, when: { ...when, all: [false] } },
  {
    kind: 'number',
    name: 'pageSize',
    default: 50,
    min: 1,
    max: largestPage,
    whole: true,
    ...(when && { when }),
  },
  ...sorting.map((field) => ({ ...field, ...(when && { when }) })),
  { kind: 'choice', name: 'emit', options: ['page', 'item'], default: 'page', ...(when && { when }) },
];

/** Words to look for; empty finds everything. */
export const filterField = (when: When): Field => ({
  kind: 'typed',
  name: 'filter',
  types: ['str', 'msg', 'flow', 'global', 'env', 'jsonata'],
  default: '',
  defaultType: 'str',
  when,
});

/** Empty leaves the order to the service. */
export const sortDirectionField = {
  kind: 'choice',
  name: 'sortDirection',
  options: ['', 'asc', 'desc'],
  default: '',
} as const satisfies Field;
