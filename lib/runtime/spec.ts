import type { endpoints } from '../service/endpoints';
import { largestPage } from '../contract-values';
import type { FieldKinds } from '../kinds';

/**
 * A node as data: its runtime, form, validation and docs all read its spec. This file and the specs import types and
 * plain values alone, so that they cost nothing at the start and the editor and the build can use them too.
 */

/** The types of a value that names where to look. */
export const lookupTypes = ['msg', 'flow', 'global', 'env', 'jsonata'] as const;
/** The last two have no value beside them: nothing, and the text itself. */
export const valueTypes = [...lookupTypes, 'str', 'num', 'bool', 'json', 'date', 'off', 'text'] as const;
export type ValueType = (typeof valueTypes)[number];

/**
 * The field is shown and checked only while other fields have one of these values. A `${VARIABLE}`, whose value the
 * editor does not know, counts as any of them.
 */
export type When = Readonly<Record<string, readonly (string | boolean)[]>>;

interface Common {
  readonly name: string;
  readonly when?: When;
  /** Shown under *Advanced*, which is closed at first. */
  readonly advanced?: boolean;
  /** Shown under a heading of this name, together with its neighbours of the same section. */
  readonly section?: string;
}

export interface TypedField extends Common {
  readonly kind: 'typed';
  /** `fields` stands for the rows of a `rows` field beside this one. */
  readonly types: readonly (ValueType | 'fields')[];
  readonly default: string;
  readonly defaultType: ValueType | 'fields';
  /** The form shows an empty value as an error. */
  readonly required?: boolean;
  /** While other fields have one of these values, the value may be empty after all. */
  readonly optional?: When;
  /** The kind of a literal, and of each entry of a list in JSON. */
  readonly literal?: 'phone' | 'template' | 'date' | 'whole' | 'id' | 'group' | 'record';
  /** While other fields have one of these values, a `group` must be an id and not a name. */
  readonly idOnly?: When;
  readonly record?: FieldKinds;
  /** A bare text means a `record` with this name, and every record needs a name. */
  readonly isNameEnough?: boolean;
  /** A literal may have several lines; the form counts its segments as a text message. */
  readonly lines?: boolean;
  /** The most characters that a literal may have. */
  readonly longest?: number;
  readonly lookup?: 'contacts' | 'groups' | 'content';
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
  /** The format of a text that is neither empty nor a `${VARIABLE}`. */
  readonly format?: 'url' | 'country' | 'pattern' | 'prefix' | 'proxy' | 'time_zone' | 'time';
  /** The field with the time at which a span begins that ends at this time: both are set, or neither. */
  readonly endOf?: string;
}

export interface JsonField extends Common {
  readonly kind: 'json';
  readonly default: unknown;
}

/** An array of strings: any number of the options, and others that were typed in. */
export interface TicksField extends Common {
  readonly kind: 'ticks';
  readonly options: readonly string[];
  readonly default: readonly string[];
}

/** One typed input for each row, saved as `[{ field, value, valueType }]` without the empty rows. */
export interface RowsField extends Common {
  readonly kind: 'rows';
  /** The name of each row, and the type of its literal. */
  readonly rows: FieldKinds;
  readonly default: readonly FieldRow[];
}

export interface FieldRow {
  readonly field: string;
  readonly value: string;
  readonly valueType: ValueType;
}

/** Saved among the node's credentials, never among its properties. */
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

/** An endpoint that a node may call, as its messages say: always, or while its fields have one of these values. */
export interface Use {
  readonly endpoint: keyof typeof endpoints;
  readonly when?: When;
}

export interface NodeSpec {
  /** The registered type, which also names its files: `advisor-send-text`. */
  readonly type: string;
  readonly category: 'advisor texting' | 'config';
  readonly color: string;
  readonly icon: string;
  readonly inputs: 0 | 1;
  /** The names of the outputs, in order; the second is always the failures. Their labels are in the locales. */
  readonly outputs: readonly string[];
  readonly uses: readonly Use[];
  readonly fields: readonly Field[];
}

export type Registered = ReturnType<typeof registeredOf>;

/**
 * What Node-RED learns of a node type when it starts, in the shape that `registerType` takes. The build writes it to a
 * file, so that no spec is loaded at the start.
 */
export const registeredOf = ({ type, fields }: NodeSpec) => {
  const credentials = fields.filter((field) => field.kind === 'credential');
  const kinds = credentials.map(
    ({ name, secret }) => [name, { type: secret ? 'password' : 'text' }] as const,
  );
  return { type, credentials: Object.fromEntries(kinds) };
};

/** `name`, `environment` and `advisor`/`advisorType`: every flow node begins with these fields. */
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

/** One number, or a list of numbers, and where the objects of a list have theirs: the same in all texting nodes. */
export const phoneFields = (when?: When): readonly Field[] => [
  {
    kind: 'typed',
    name: 'phone',
    types: ['msg', 'str', 'json', 'flow', 'global', 'env', 'jsonata'],
    default: 'phone',
    defaultType: 'msg',
    required: true,
    literal: 'phone',
    ...(when && { when }),
  },
  // A number that is typed in has no fields.
  {
    kind: 'text',
    name: 'phoneField',
    default: 'phone',
    when: { ...when, phoneType: ['msg', 'json', 'flow', 'global', 'env', 'jsonata'] },
  },
];

/** How a search pages and what it emits: the same fields in all three searching nodes. */
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

/** Words to search for; empty finds everything. */
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
