import type { z } from 'zod';

/** Whether a value is certainly as a schema would give it back; when in doubt, false. */
export type Fit = (value: unknown) => boolean;

/** The parts of a schema's definition that are read here. */
interface Definition {
  readonly type: string;
  readonly format?: string;
  readonly checks?: readonly unknown[];
  readonly innerType?: Defined;
  readonly element?: Defined;
  readonly options?: readonly Defined[];
  readonly shape?: Readonly<Record<string, Defined>>;
  readonly catchall?: Defined;
}

interface Defined {
  readonly def: Definition;
}

/** What a field may hold. Plain values are judged on the spot: they are nearly all of an answer. */
interface Rule {
  readonly text: boolean;
  readonly flag: boolean;
  readonly number: boolean;
  readonly whole: boolean;
  readonly null: boolean;
  readonly missing: boolean;
  readonly inside: Fit | undefined;
}

const nothing: Rule = {
  text: false,
  flag: false,
  number: false,
  whole: false,
  null: false,
  missing: false,
  inside: undefined,
};

const allows = (rule: Rule, value: unknown): boolean => {
  if (typeof value === 'string') return rule.text;
  if (typeof value === 'number')
    return (rule.number && Number.isFinite(value)) || (rule.whole && Number.isSafeInteger(value));
  if (typeof value === 'boolean') return rule.flag;
  if (value === null) return rule.null;
  if (value === undefined) return rule.missing;
  return rule.inside?.(value) ?? false;
};

export const goesDeeper = (value: object, than: number): boolean => {
  if (than === 0) return true;
  for (const key in value) {
    const inner = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof inner === 'object' && inner !== null && goesDeeper(inner, than - 1)) return true;
  }
  return false;
};

/** What the contract does not name may hold anything, short of deep nesting and of integers that may be rounded. */
const deepest = 16;
const isDoubtful = (value: unknown, than: number): boolean => {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (typeof value !== 'object' || value === null) return false;
  if (than === 0) return true;
  for (const key in value) {
    if (isDoubtful((value as Readonly<Record<string, unknown>>)[key], than - 1)) return true;
  }
  return false;
};

const arrayOf = (element: Defined): Fit | undefined => {
  const rule = ruleOf(element);
  return (
    rule &&
    ((value) => {
      if (!Array.isArray(value)) return false;
      for (const item of value) if (!allows(rule, item)) return false;
      return true;
    })
  );
};

/** Keeps unknown fields, but `__proto__`, which a schema leaves out. */
const looseObject = (shape: Readonly<Record<string, Defined>>): Fit | undefined => {
  const names = Object.keys(shape);
  const rules: Rule[] = [];
  for (const field of Object.values(shape)) {
    const rule = ruleOf(field);
    if (!rule) return undefined;
    rules.push(rule);
  }
  const places = new Map(names.map((name, place) => [name, place]));
  const required = rules.filter(({ missing }) => !missing).length;
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    let found = 0;
    let next = 0;
    for (const name in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[name];
      // Fields mostly come in the order of the contract, which saves looking up their names.
      if (names[next] !== name) next = places.get(name) ?? names.length;
      const rule = rules[next];
      if (rule) {
        next += 1;
        if (!allows(rule, inner)) return false;
        if (!rule.missing) found += 1;
      } else if (name === '__proto__') return false;
      else if (isDoubtful(inner, deepest)) return false;
    }
    return found === required;
  };
};

/** Any of several plain kinds. */
const unionOf = (options: readonly Defined[]): Rule | undefined => {
  let union = nothing;
  for (const option of options) {
    const rule = ruleOf(option);
    if (!rule || rule.inside) return undefined;
    union = {
      text: union.text || rule.text,
      flag: union.flag || rule.flag,
      number: union.number || rule.number,
      whole: union.whole || rule.whole,
      null: union.null || rule.null,
      missing: union.missing || rule.missing,
      inside: undefined,
    };
  }
  return union;
};

const ruleOf = ({ def }: Defined): Rule | undefined => {
  const { type, innerType, element, shape, catchall } = def;
  if ((def.checks ?? []).length > 0) return undefined;
  if (type === 'string') return { ...nothing, text: true };
  if (type === 'boolean') return { ...nothing, flag: true };
  if (type === 'number' && def.format === 'safeint') return { ...nothing, whole: true };
  if (type === 'number' && def.format === undefined) return { ...nothing, number: true };
  if (type === 'union') return unionOf(def.options ?? []);
  const rule = innerType && ruleOf(innerType);
  if (type === 'nullable') return rule && { ...rule, null: true };
  if (type === 'optional') return rule && { ...rule, missing: true };
  const isLoose = type === 'object' && catchall?.def.type === 'unknown';
  const inside =
    type === 'array' && element ? arrayOf(element) : isLoose && shape ? looseObject(shape) : undefined;
  return inside && { ...nothing, inside };
};

/**
 * A quick look at an answer. A schema makes a copy of all it checks, field by field; of the answers that are as the
 * contract says, which is nearly all, there is nothing to change. Whatever this does not find right goes through the
 * schema itself, which decides and says what is wrong.
 */
export const quickLook = (schema: z.ZodType): Fit => {
  const rule = ruleOf(schema);
  return (value) => rule !== undefined && allows(rule, value);
};
