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
  readonly shape?: Readonly<Record<string, Defined>>;
  readonly catchall?: Defined;
}

interface Defined {
  readonly def: Definition;
}

const isText: Fit = (value) => typeof value === 'string';
const isFlag: Fit = (value) => typeof value === 'boolean';

/** What the contract does not name may hold anything, as long as it is not deeply nested. */
const deepest = 16;
export const goesDeeper = (value: object, than: number): boolean => {
  if (than === 0) return true;
  for (const key in value) {
    const inner = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof inner === 'object' && inner !== null && goesDeeper(inner, than - 1)) return true;
  }
  return false;
};

const arrayOf = (element: Defined): Fit | undefined => {
  const fits = fitOf(element);
  return (
    fits &&
    ((value) => {
      if (!Array.isArray(value)) return false;
      for (const item of value) if (!fits(item)) return false;
      return true;
    })
  );
};

/** Keeps unknown fields, but `__proto__`, which a schema leaves out. */
const looseObject = (shape: Readonly<Record<string, Defined>>): Fit | undefined => {
  const fields = new Map<string, Fit>();
  const required: string[] = [];
  for (const [name, field] of Object.entries(shape)) {
    const fits = fitOf(field);
    if (!fits) return undefined;
    fields.set(name, fits);
    if (field.def.type !== 'optional') required.push(name);
  }
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    for (const name of required) if (!Object.hasOwn(value, name)) return false;
    for (const name in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[name];
      const fits = fields.get(name);
      if (fits) {
        if (!fits(inner)) return false;
      } else if (name === '__proto__') return false;
      else if (typeof inner === 'object' && inner !== null && goesDeeper(inner, deepest)) return false;
    }
    return true;
  };
};

const fitOf = ({ def }: Defined): Fit | undefined => {
  const { type, innerType, element, shape, catchall } = def;
  if ((def.checks ?? []).length > 0) return undefined;
  if (type === 'string') return isText;
  if (type === 'boolean') return isFlag;
  if (type === 'number' && def.format === 'safeint') return Number.isSafeInteger;
  if (type === 'number' && def.format === undefined) return Number.isFinite;
  if (type === 'array' && element) return arrayOf(element);
  if (type === 'object' && shape && catchall?.def.type === 'unknown') return looseObject(shape);
  const fits = innerType && fitOf(innerType);
  if (type === 'nullable' && fits) return (value) => value === null || fits(value);
  if (type === 'optional' && fits) return (value) => value === undefined || fits(value);
  return undefined;
};

/**
 * A quick look at an answer. A schema makes a copy of all it checks, field by field; of the answers that are as the
 * contract says, which is nearly all, there is nothing to change. Whatever this does not find right goes through the
 * schema itself, which decides and says what is wrong.
 */
export const quickLook = (schema: z.ZodType): Fit => fitOf(schema) ?? (() => false);
