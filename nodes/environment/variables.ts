import type { Values } from './config';

export type Lookup = (variable: string) => unknown;

/** Fills in `${VARIABLE}`, anywhere in a value. One that is not set stays as written, so that it can be named. */
const resolveText = (value: string, lookup: Lookup): unknown => {
  const whole = /^\$\{([^}]+)\}$/.exec(value)?.[1];
  if (whole !== undefined) return lookup(whole) ?? value;
  return value.replaceAll(/\$\{([^}]+)\}/g, (written, variable: string) => {
    const found = lookup(variable);
    return typeof found === 'string' || typeof found === 'number' ? String(found) : written;
  });
};

const resolve = (value: unknown, lookup: Lookup): unknown => {
  if (typeof value === 'string') return resolveText(value, lookup);
  return Array.isArray(value) ? value.map((item) => resolve(item, lookup)) : value;
};

/** Node-RED has done this for values that are nothing but a variable; not for `https://${HOST}/v1`, nor for a form. */
export const resolveValues = (values: Values, lookup: Lookup): Values =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, resolve(value, lookup)]));
