import { EventEmitter } from 'node:events';

/** Deeper than any message that means something; a guard for the stack. */
const deepest = 100;

/** Belong to a connection that is gone after a restart, whatever they hold. */
const ofAConnection = new Set(['req', 'res']);

const keptWhole = (value: object): boolean =>
  value instanceof Date ||
  value instanceof RegExp ||
  value instanceof Error ||
  value instanceof ArrayBuffer ||
  (ArrayBuffer.isView(value) && !(value.buffer instanceof SharedArrayBuffer));

const isLive = (value: unknown): boolean =>
  value instanceof EventEmitter || value instanceof Promise || value instanceof WeakMap;

export interface Storable {
  readonly copy: Record<string, unknown>;
  /** Something could not be kept: a function, a connection, a part that contains itself. */
  readonly dropped: boolean;
}

/** What of a message can be kept on disk. */
export const storable = (message: Readonly<Record<string, unknown>>): Storable => {
  let dropped = false;
  const path: object[] = [];
  const drop = (): void => {
    dropped = true;
  };

  const inside = <T>(value: object, work: () => T): T | undefined => {
    if (path.length >= deepest || path.includes(value)) {
      drop();
      return undefined;
    }
    path.push(value);
    try {
      return work();
    } finally {
      path.pop();
    }
  };

  const copyOf = (value: unknown): unknown => {
    if (typeof value === 'function' || typeof value === 'symbol' || isLive(value)) {
      drop();
      return undefined;
    }
    if (typeof value !== 'object' || value === null || keptWhole(value)) return value;
    return inside(value, () => {
      if (Array.isArray(value)) return value.map((item) => copyOf(item) ?? null);
      if (value instanceof Map) return new Map([...value].map(([key, item]) => [copyOf(key), copyOf(item)]));
      if (value instanceof Set) return new Set([...value].map(copyOf));
      return fieldsOf(value as Record<string, unknown>);
    });
  };

  const fieldsOf = (value: Record<string, unknown>): Record<string, unknown> => {
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const kept = copyOf(value[key]);
      if (kept === undefined) continue;
      // An own property of this name must not become the prototype.
      if (key === '__proto__')
        Object.defineProperty(copy, key, { value: kept, enumerable: true, writable: true });
      else copy[key] = kept;
    }
    return copy;
  };

  const top: Record<string, unknown> = {};
  for (const key of Object.keys(message)) {
    if (ofAConnection.has(key) && typeof message[key] === 'object') dropped = true;
    else top[key] = message[key];
  }
  return { copy: inside(message, () => fieldsOf(top)) ?? {}, dropped };
};

const live = new Map<string, Record<string, unknown>>();

/** Messages that lose something on disk, as they came: they outlive a deploy, but not the process. */
export const liveMessages = {
  keep(key: string, message: Record<string, unknown>): void {
    live.set(key, message);
  },
  get: (key: string): Record<string, unknown> | undefined => live.get(key),
  forget(key: string): void {
    live.delete(key);
  },
};
