/**
 * What a node is, as data: its runtime, its form, its validation and its docs all read this. No imports, so that the
 * editor and the build can use it as well as the runtime.
 */
export type ValueType = 'msg' | 'flow' | 'global' | 'env' | 'jsonata' | 'str' | 'num' | 'bool' | 'json' | 'date';

/** Shown (and checked) only while other fields have one of these values. */
export type When = Readonly<Record<string, readonly (string | boolean)[]>>;

interface Common {
  readonly name: string;
  readonly when?: When;
  /** Under the closed *Advanced*. */
  readonly advanced?: boolean;
}

export type Field = Common &
  (
    | {
        readonly kind: 'typed';
        readonly types: readonly ValueType[];
        readonly default: string;
        readonly defaultType: ValueType | 'fields';
        /** An empty value is a mistake that the form shows. */
        readonly required?: boolean;
      }
    | { readonly kind: 'choice'; readonly options: readonly string[]; readonly default: string }
    | {
        readonly kind: 'number';
        readonly default: number;
        readonly min?: number;
        readonly max?: number;
        readonly whole?: boolean;
      }
    | { readonly kind: 'flag'; readonly default: boolean }
    | { readonly kind: 'text'; readonly default: string; readonly required?: boolean }
    | { readonly kind: 'json'; readonly default: unknown }
    | { readonly kind: 'environment' }
  );

export interface NodeSpec {
  /** The registered type, also the name of its files: `advisor-send-text`. */
  readonly type: string;
  readonly category: 'advisor texting' | 'config';
  readonly color: string;
  readonly icon: string;
  readonly inputs: 0 | 1;
  /** Output names, in order; the second is always the failures. Their labels are in the locales. */
  readonly outputs: readonly string[];
  readonly fields: readonly Field[];
  readonly credentials?: Readonly<Record<string, { readonly type: 'text' | 'password' }>>;
}

/** `name`, `environment`, `advisor`/`advisorType`: every flow node has them. */
export const commonFields = [
  { kind: 'text', name: 'name', default: '' },
  { kind: 'environment', name: 'environment' },
] as const satisfies readonly Field[];

export const advisorField = {
  kind: 'typed',
  name: 'advisor',
  types: ['str', 'msg', 'flow', 'global', 'env', 'jsonata'],
  default: '',
  defaultType: 'str',
} as const satisfies Field;
