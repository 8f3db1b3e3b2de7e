import { promisify } from 'node:util';
import { second } from '../durations';
import { late, systemClock, within } from '../service/clock';
import type { ServiceError, MessageValue } from '../service/errors';
import { invalidInput } from './errors';
import type { Message, Red, RunningNode } from './red';
import { withDefaults, wrongSetting } from './settings';
import { lookupTypes, type NodeSpec, type TypedField } from './spec';
import type { Id } from '../service/endpoints';
import { anyId, isNothing, isRecord, tried } from '../kinds';

/** Reads a property of a node for one message: the value, or a promise of it. */
export type Getter = (msg: Message) => unknown;

const simpleName = /^[A-Za-z_$][\w$]*$/;

/** JSONata throws plain objects, and quotes the value that it could not work with: that may be somebody's text or number. */
const expressionFault = (cause: unknown): string => {
  const { message, value } = Object(cause) as { message?: unknown; value?: unknown };
  if (typeof message !== 'string') return String(cause);
  return value === undefined ? message : message.replaceAll(JSON.stringify(value), () => '…');
};

interface Target {
  readonly RED: Red;
  readonly node: RunningNode;
  /** Names it for sentences, which call it what the form calls it. */
  readonly about: { readonly property: { readonly field: string } };
}

const unreadable = ({ about }: Target, cause: unknown): ServiceError =>
  (Object(cause) as { code?: unknown }).code === 'INVALID_EXPR'
    ? // The value is not quoted: somebody may have typed a text in place of a name.
      invalidInput('property_name', about)
    : invalidInput('property_unreadable', { ...about, reason: expressionFault(cause) });

const constant = (make: () => unknown, wrong: (cause: unknown) => ServiceError): Getter => {
  let value: unknown;
  try {
    value = make();
  } catch (cause) {
    const error = wrong(cause);
    return () => {
      throw error;
    };
  }
  return () => value;
};

/** Something with a `then` would be awaited, perhaps forever, so it is not a value. */
const withoutPromise = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
    ? undefined
    : value;

const fromMessage = (target: Target, path: string): Getter => {
  if (simpleName.test(path)) return (msg) => withoutPromise(msg[path]);
  return (msg) => {
    try {
      return withoutPromise(target.RED.util.getMessageProperty(msg, path));
    } catch (cause) {
      if (cause instanceof TypeError) return undefined;
      throw unreadable(target, cause);
    }
  };
};

/** Less than a node has to close. */
const answerLimit = 10 * second;

/** A context store that never answers must not keep a message forever, with all that wait behind it. */
const answered = async (
  { about }: Target,
  ask: (done: (fault: Error | null, value: unknown) => void) => void,
  faultIn: (cause: unknown) => ServiceError,
): Promise<unknown> => {
  const asking = promisify(ask)().catch((cause: unknown) => {
    throw faultIn(cause);
  });
  const value = await within(systemClock, answerLimit, asking);
  if (value !== late) return value;
  throw invalidInput('property_unreadable', { ...about, reason: { reason: 'timeout' } });
};

const fromExpression = (target: Target, written: string): Getter => {
  const { RED, node, about } = target;
  const faultIn =
    (key: 'property_expression' | 'property_evaluation') =>
    (cause: unknown): ServiceError =>
      invalidInput(key, { ...about, reason: expressionFault(cause) });
  const prepared = constant(
    () => RED.util.prepareJSONataExpression(written, node),
    faultIn('property_expression'),
  );
  return (msg) => {
    const expression = prepared(msg) as ReturnType<typeof RED.util.prepareJSONataExpression>;
    const evaluate = (done: (fault: Error | null, value: unknown) => void): void =>
      RED.util.evaluateJSONataExpression(expression, msg, done);
    return answered(target, evaluate, faultIn('property_evaluation'));
  };
};

const fromContext =
  (target: Target, value: string, type: 'flow' | 'global' | 'env' | 'date'): Getter =>
  (msg) =>
    answered(
      target,
      (done) => target.RED.util.evaluateNodeProperty(value, type, target.node, msg, done),
      (cause) => unreadable(target, cause),
    );

const written = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

export const excerpt = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
};

const looksUp = new Set<string>(lookupTypes);

export const compile = (RED: Red, node: RunningNode, field: string, value: unknown, type: string): Getter => {
  const text = written(value);
  const about = { property: { field: `${node.type}.${field}` } };
  const target: Target = { RED, node, about };
  // A property that was cleared looks up nothing: its value is missing, and that is no fault.
  if (text === '' && looksUp.has(type)) return () => undefined;
  switch (type) {
    case 'msg':
      return fromMessage(target, text);
    case 'jsonata':
      return fromExpression(target, text);
    case 'flow':
    case 'global':
    case 'env':
    case 'date':
      return fromContext(target, text, type);
    case 'num':
      return () => (text.trim() === '' ? undefined : Number(text));
    case 'bool':
      return () => value === true || text === 'true';
    case 'json':
      return constant(
        () => (typeof value === 'string' ? JSON.parse(value) : value) as unknown,
        () => invalidInput('property_json', about),
      );
    case 'str':
      return () => value;
    default:
      return () => {
        throw invalidInput('property_source', { ...about, source: type });
      };
  }
};

export interface Source {
  readonly value: unknown;
  readonly type: string;
  readonly read: Getter;
  /**
   * Where the value is looked for, for sentences such as "msg.text is missing": a message property, or a field of the
   * form.
   */
  readonly where: MessageValue;
}

/** The source of a field that the node does not have, or that is switched off. */
export const noSource: Source = { value: '', type: 'str', where: '', read: () => undefined };

/** A missing `x` or `xType` means its default, so flows of older versions open unchanged. */
export const source = (
  RED: Red,
  node: RunningNode,
  spec: NodeSpec,
  config: Record<string, unknown>,
  name: string,
): Source => {
  const field = spec.fields.find((f): f is TypedField => f.kind === 'typed' && f.name === name);
  if (!field) throw new Error(`${spec.type} has no typed property ${name}`);
  const type = excerpt(config[`${name}Type`] ?? field.defaultType);
  const value = config[name] ?? (type === field.defaultType ? field.default : '');
  const path = written(value);
  const { key, store } = RED.util.parseContextStore(path);
  const where =
    ['msg', 'flow', 'global'].includes(type) && path !== ''
      ? `${type}.${store === undefined ? key : `${key} (${store})`}`
      : { field: `${spec.type}.${name}`, isQuoted: true };
  return { value, type, where, read: compile(RED, node, name, value, type) };
};

/** The `invalid_input` for the first wrong setting of a node; undefined when all are right. */
export const faultInSettings = (
  { type, fields }: NodeSpec,
  config: Readonly<Record<string, unknown>>,
): ServiceError | undefined => {
  const wrong = wrongSetting(fields, config);
  if (!wrong) return undefined;
  const property = { field: `${type}.${wrong.field.name}` };
  if ('value' in wrong) return invalidInput('setting_choice', { property, value: excerpt(wrong.value) });
  const { min = 0, max = 0 } = wrong.field;
  return invalidInput(`setting_${wrong.fault}`, { property, min, max });
};

/** Properties that are the same for every message. Their values are checked before a message is read. */
export const plainSettings = ({ fields }: NodeSpec, config: Readonly<Record<string, unknown>>) => {
  const values = withDefaults(fields, config);
  return {
    text: (name: string): string => written(values[name]),
    number: (name: string): number => Number(values[name]),
    flag: (name: string): boolean => values[name] === true,
  };
};

/** The steps from a message to one of its values. */
export type PropertyPath = readonly (string | number)[];

const isPlain = (value: unknown): value is Record<string | number, unknown> => {
  if (Array.isArray(value)) return true;
  if (!isRecord(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of a Function node have a prototype of their own context.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/** Where in a message the source finds its value; undefined when that is elsewhere, or in something that cannot be copied. */
export const pathIn = (RED: Red, { type, value }: Source, msg: Message): PropertyPath | undefined => {
  if (type !== 'msg') return undefined;
  const name = written(value);
  if (simpleName.test(name)) return [name];
  return tried(() => {
    const path = RED.util.normalisePropertyExpression(name, msg);
    let holder: unknown = msg;
    for (const step of path.slice(0, -1)) {
      holder = (holder as Record<string | number, unknown>)[step];
      if (!isPlain(holder)) return undefined;
    }
    return path;
  });
};

/** Values of several sources for one message; a promise only when one of them is a promise. */
export const readAll = (
  sources: readonly Source[],
  msg: Message,
): readonly unknown[] | Promise<readonly unknown[]> => {
  const values = sources.map((s) => s.read(msg));
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : values;
};

const ownField = (record: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined;

/** Reads `a.b.c` in plain data; undefined where a step is missing. */
export const pick = (from: unknown, path: string, step = ownField): unknown => {
  let value: unknown = from;
  for (const name of path.split('.')) {
    if (Array.isArray(value)) value = (value as readonly unknown[])[Number(name)];
    else if (isRecord(value)) value = step(value, name);
    else return undefined;
  }
  return value;
};

/** The id in a value, or an error that says where the id was looked for. */
export const idFrom = (value: unknown, where: MessageValue): Id => {
  const id = anyId(value);
  if (id !== undefined) return id;
  throw invalidInput(isNothing(value) ? 'id_missing' : 'id_kind', { where });
};

/** The most entries of one list: what is read of more would not fit into memory. */
const mostEntries = 2_000_000;

/**
 * The entries of a list, each read once and holes as undefined. Throws `invalid_input` for a list that is too long, such
 * as a sparse array of billions.
 */
export const entriesOf = (list: readonly unknown[], where: MessageValue): readonly unknown[] => {
  const { length } = list;
  if (length > mostEntries) throw invalidInput('list_long', { where, count: length, most: mostEntries });
  const entries: unknown[] = [];
  for (let index = 0; index < length; index++) entries.push(withoutMark(list[index]));
  return entries;
};

const byteOrderMark = '\ufeff';

/** The entry without the byte-order mark that Excel puts before the first column of a CSV file: no flow could name that. */
const withoutMark = (entry: unknown): unknown => {
  if (!isRecord(entry)) return entry;
  const [first] = Object.keys(entry);
  if (!first?.startsWith(byteOrderMark)) return entry;
  const { [first]: value, ...others } = entry;
  return { [first.slice(1)]: value, ...others };
};

/** One value, or a list of values; an empty list is an error. */
export const oneOrList = (
  value: unknown,
  where: MessageValue,
): { readonly list: boolean; readonly items: readonly unknown[] } => {
  if (!Array.isArray(value)) return { list: false, items: [value] };
  const items = entriesOf(value, where);
  if (items.length === 0) throw invalidInput('list_empty', { where });
  return { list: true, items };
};
