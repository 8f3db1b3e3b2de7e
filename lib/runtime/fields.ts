import { invalid } from './messages';
import { isRecord, type Message, type Red, type RunningNode } from './red';
import type { Field, NodeSpec } from './spec';

/** A property as the user set it, ready to be read from each message: the value, or a promise of it. */
export type Getter = (msg: Message) => unknown;

type TypedField = Extract<Field, { kind: 'typed' }>;

const simpleName = /^[A-Za-z_$][\w$]*$/;

/** JSONata throws plain objects, and quotes the value it could not work with: that may be somebody's text or number. */
const reasonOf = (cause: unknown): string => {
  const { message, value } = Object(cause) as { message?: unknown; value?: unknown };
  if (typeof message !== 'string') return String(cause);
  return value === undefined ? message : message.replaceAll(JSON.stringify(value), () => '…');
};

const unreadable = (field: string, cause: unknown) =>
  invalid('property_unreadable', { field, reason: reasonOf(cause) });

const constant = (field: string, make: () => unknown): Getter => {
  let value: unknown;
  try {
    value = make();
  } catch (cause) {
    const error = unreadable(field, cause);
    return () => {
      throw error;
    };
  }
  return () => value;
};

const fromMessage = (RED: Red, field: string, path: string): Getter => {
  if (simpleName.test(path)) return (msg) => msg[path];
  return (msg) => {
    try {
      return RED.util.getMessageProperty(msg, path) as unknown;
    } catch (cause) {
      if (cause instanceof TypeError) return undefined;
      throw unreadable(field, cause);
    }
  };
};

const fromExpression = (RED: Red, node: RunningNode, field: string, source: string): Getter => {
  const prepared = constant(field, () => RED.util.prepareJSONataExpression(source, node));
  return (msg) => {
    const expression = prepared(msg) as ReturnType<typeof RED.util.prepareJSONataExpression>;
    return new Promise((resolve, reject) => {
      RED.util.evaluateJSONataExpression(expression, msg, (error: Error | null, value: unknown) => {
        if (error) reject(unreadable(field, error));
        else resolve(value);
      });
    });
  };
};

const fromContext = (
  RED: Red,
  node: RunningNode,
  field: string,
  value: string,
  type: 'flow' | 'global' | 'env' | 'date',
): Getter => {
  return (msg) =>
    new Promise((resolve, reject) => {
      try {
        RED.util.evaluateNodeProperty(value, type, node, msg, (error, result: unknown) => {
          if (error) reject(unreadable(field, error));
          else resolve(result);
        });
      } catch (cause) {
        reject(unreadable(field, cause));
      }
    });
};

const written = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

const looksUp = new Set(['msg', 'flow', 'global', 'env', 'jsonata']);

/** How to read a value of this type, made ready once. */
export const compile = (RED: Red, node: RunningNode, field: string, value: unknown, type: string): Getter => {
  const text = written(value);
  // A property that was cleared names no place to look in: there is nothing there, and nothing wrong with it.
  if (text === '' && looksUp.has(type)) return () => undefined;
  switch (type) {
    case 'msg':
      return fromMessage(RED, field, text);
    case 'jsonata':
      return fromExpression(RED, node, field, text);
    case 'flow':
    case 'global':
    case 'env':
    case 'date':
      return fromContext(RED, node, field, text, type);
    case 'num':
      return constant(field, () => (text.trim() === '' ? undefined : Number(text)));
    case 'bool':
      return constant(field, () => value === true || text === 'true');
    case 'json':
      return constant(field, () => (typeof value === 'string' ? JSON.parse(value) : value) as unknown);
    case 'str':
      return constant(field, () => value);
    default:
      return constant(field, () => {
        throw new Error(`"${type}" is not a source this version knows`);
      });
  }
};

/** What the user chose for a typed property: where its value comes from, and how to read it. */
export interface Source {
  readonly value: unknown;
  readonly type: string;
  readonly read: Getter;
  /** The property of the message that holds it, for sentences such as "msg.text is missing". */
  readonly where: string;
}

/** A missing `xType` means its default, and so does a missing `x`: flows of older versions open as they were. */
export const source = (
  RED: Red,
  node: RunningNode,
  spec: NodeSpec,
  config: Record<string, unknown>,
  name: string,
): Source => {
  const field = spec.fields.find((f): f is TypedField => f.kind === 'typed' && f.name === name);
  if (!field) throw new Error(`${spec.type} has no typed property ${name}`);
  const type =
    typeof config[`${name}Type`] === 'string' ? (config[`${name}Type`] as string) : field.defaultType;
  const value = config[name] ?? (type === field.defaultType ? field.default : '');
  const where = ['msg', 'flow', 'global'].includes(type) ? `${type}.${written(value)}` : `"${name}"`;
  return { value, type, where, read: compile(RED, node, name, value, type) };
};

/** Properties that are the same for every message, or their defaults where an older flow does not have them. */
export interface Plain {
  text(name: string): string;
  number(name: string): number;
  flag(name: string): boolean;
}

export const plain = (spec: NodeSpec, config: Record<string, unknown>): Plain => {
  const fallback = (name: string): unknown => {
    const field = spec.fields.find((f) => f.name === name);
    if (!field || !('default' in field)) throw new Error(`${spec.type} has no property ${name}`);
    return field.default;
  };
  const read = (name: string): unknown => {
    const given = config[name];
    return given === undefined || given === null || given === '' ? fallback(name) : given;
  };
  return {
    text: (name) => written(read(name)),
    number(name) {
      const number = Number(read(name));
      return Number.isFinite(number) ? number : Number(fallback(name));
    },
    flag: (name) => written(read(name)) === 'true',
  };
};

/** The message property a source reads from: a list there need not be copied for each of its outcomes. */
export const sharedBy = ({ type, value }: Source): string | undefined =>
  type === 'msg' ? /^[\w$]+/.exec(written(value))?.[0] : undefined;

/** Values of several sources for one message; a promise only when one of them is. */
export const readAll = (
  sources: readonly Source[],
  msg: Message,
): readonly unknown[] | Promise<readonly unknown[]> => {
  const values = sources.map((s) => s.read(msg));
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : values;
};

/** Reads `a.b.c` in plain data; undefined where any step is missing. */
export const pick = (from: unknown, path: string): unknown => {
  let value: unknown = from;
  for (const step of path.split('.')) {
    if (Array.isArray(value)) value = (value as readonly unknown[])[Number(step)];
    else if (isRecord(value) && Object.hasOwn(value, step)) value = value[step];
    else return undefined;
  }
  return value;
};
