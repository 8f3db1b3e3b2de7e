import { EventEmitter } from 'node:events';
import { processMemory } from '../process-memory';
import { checkSize, TooLarge } from '../state/store';
import { visitsIn } from './hand-over';

/** Deeper parts are not stored; the limit protects the stack. */
const deepest = 100;
/** Node-RED copies a message by recursion, which ends a little deeper. */
export const mostLevels = 1000;

/** Properties of a connection (`http in`), which Node-RED passes on uncopied and which is gone after a restart. */
export const ofAConnection = new Set(['req', 'res']);

const keptWhole = (value: object): boolean =>
  value instanceof Date ||
  value instanceof RegExp ||
  value instanceof Error ||
  value instanceof ArrayBuffer ||
  (ArrayBuffer.isView(value) && !(value.buffer instanceof SharedArrayBuffer));

const isLive = (value: unknown): boolean =>
  value instanceof EventEmitter || value instanceof Promise || value instanceof WeakMap;

const sizeOf = (value: unknown): number => {
  // A long record is written with two bytes for each sign of a text that has one outside Latin-1.
  if (typeof value === 'string')
    return Buffer.byteLength(value) > value.length ? 2 * value.length : value.length;
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer ? value.byteLength : 8;
};

/** The property cannot be read: a getter or a proxy throws. */
export class UnreadableProperty extends Error {}

/** The message has more levels than Node-RED can copy. */
export class TooDeep extends Error {}

const isRefusal = (fault: unknown): boolean =>
  fault instanceof TooLarge || fault instanceof TooDeep || fault instanceof UnreadableProperty;

/**
 * Removes the properties of a message that cannot be read, so that it can be stored and sent on. Returns why one of
 * them was removed. `isWhole` reads everything below them too.
 */
export const removeUnreadable = (message: Record<string, unknown>, isWhole = false): Error | undefined => {
  let found: Error | undefined;
  for (const key of Object.keys(message))
    try {
      const value = message[key];
      if (isWhole && !ofAConnection.has(key)) new Copier().copyOf(value);
    } catch (fault) {
      if (fault instanceof TooLarge) continue;
      found = fault instanceof TooDeep ? fault : new UnreadableProperty(key, { cause: fault });
      Reflect.deleteProperty(message, key);
    }
  return found;
};

/**
 * Every realm has its own `Object.prototype`, which has no prototype: messages of a function node come from another
 * realm.
 */
const isOfClass = (message: object): boolean => {
  const prototype = Object.getPrototypeOf(message) as object | null;
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
};

const canChange = (message: object, name: string): boolean => {
  const { writable, configurable } = Object.getOwnPropertyDescriptor(message, name) ?? {};
  return writable === true && configurable === true;
};

/** Whether an outcome could not be written to the message: it is frozen, or its class has a getter. */
const isFixed = (message: object): boolean =>
  !Object.isExtensible(message) ||
  isOfClass(message) ||
  !Object.getOwnPropertyNames(message).every((name) => canChange(message, name));

/** A message that can be read and written to, and why one of its properties is missing. */
export const readable = (
  message: Record<string, unknown>,
): [message: Record<string, unknown>, unreadable: Error | undefined] => {
  if (!isFixed(message)) return [message, removeUnreadable(message)];
  const copy: Record<string, unknown> = {};
  let unreadable: Error | undefined;
  for (const key of Object.keys(message))
    try {
      copy[key] = message[key];
    } catch (fault) {
      unreadable = new UnreadableProperty(key, { cause: fault });
    }
  return [copy, unreadable];
};

/** Copies what can be stored on disk. What two properties share is stored once. */
class Copier {
  /** Something could not be copied: a function, a connection, a part that contains itself. */
  dropped = false;
  /** Roughly the bytes that the copies take in the store. */
  bytes = 0;
  private readonly copies = new Map<object, unknown>();
  /** Parts whose depth was checked, without copying them. */
  private readonly passed = new Set<object>();
  private depth = 0;

  copyOf(value: unknown): unknown {
    if (typeof value === 'function' || typeof value === 'symbol' || isLive(value)) return this.drop();
    if (typeof value !== 'object' || value === null || keptWhole(value)) {
      this.bytes += sizeOf(value);
      checkSize(this.bytes);
      return value;
    }
    if (this.copies.has(value)) {
      const copy = this.copies.get(value);
      // An object without a copy yet contains itself.
      return copy ?? this.drop();
    }
    if (this.depth >= deepest) {
      this.checkDepth(value);
      return this.drop();
    }
    this.depth += 1;
    this.copies.set(value, undefined);
    const copy = this.whole(value);
    this.copies.set(value, copy);
    this.depth -= 1;
    return copy;
  }

  copyOfFields(
    value: Record<string, unknown>,
    isLeftOut: (key: string) => boolean = () => false,
  ): Record<string, unknown> {
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const kept = isLeftOut(key) ? this.drop() : this.field(value, key);
      if (kept === undefined) continue;
      this.bytes += key.length + 4;
      // An own property of this name must not become the prototype.
      if (key === '__proto__')
        Object.defineProperty(copy, key, { value: kept, enumerable: true, writable: true });
      else copy[key] = kept;
    }
    return copy;
  }

  private whole(value: object): unknown {
    if (Array.isArray(value)) return this.list(value);
    if (value instanceof Map)
      return new Map([...value].map(([key, item]) => [this.copyOf(key), this.copyOf(item)] as const));
    if (value instanceof Set) return new Set([...value].map((item) => this.copyOf(item)));
    return this.copyOfFields(value as Record<string, unknown>);
  }

  private field(value: Record<string, unknown>, key: string): unknown {
    try {
      return this.copyOf(value[key]);
    } catch (fault) {
      throw isRefusal(fault) ? fault : new UnreadableProperty(key, { cause: fault });
    }
  }

  private list(value: readonly unknown[]): unknown[] {
    const { length } = value;
    // A sparse array of billions would otherwise be copied hole by hole.
    checkSize(this.bytes + 8 * length);
    const copy: unknown[] = [];
    try {
      while (copy.length < length) copy.push(this.copyOf(value[copy.length]) ?? null);
    } catch (fault) {
      throw isRefusal(fault) ? fault : new UnreadableProperty(`[${String(copy.length)}]`, { cause: fault });
    }
    return copy;
  }

  private checkDepth(value: object): void {
    let level: readonly object[] = [value];
    for (let depth = this.depth; level.length > 0; depth++) {
      if (depth > mostLevels) throw new TooDeep();
      level = level
        .flatMap((each): unknown[] => Object.values(each))
        .filter((each): each is object => {
          if (typeof each !== 'object' || each === null || keptWhole(each) || isLive(each)) return false;
          const isNew = !this.passed.has(each);
          this.passed.add(each);
          return isNew;
        });
    }
  }

  private drop(): unknown {
    this.dropped = true;
    return undefined;
  }
}

/** A message, and the entries of its list. */
export interface Input {
  readonly message: Record<string, unknown>;
  readonly entries?: readonly unknown[] | undefined;
}

/** What is stored of a message, and roughly the bytes that it takes. `dropped`: a part of it cannot be stored. */
export const storable = ({ message, entries }: Input) => {
  const copier = new Copier();
  const isConnection = (key: string): boolean => ofAConnection.has(key) && typeof message[key] === 'object';
  const copy = copier.copyOfFields(message, isConnection);
  // They are in a symbol of the message, which is not stored with it.
  const visits = visitsIn(message);
  return {
    message: copy,
    ...(visits && { visits }),
    ...(entries && { entries: copier.copyOf(entries) as readonly unknown[] }),
    dropped: copier.dropped,
    bytes: copier.bytes,
  };
};

/** The originals of messages that lose something on disk: they outlive a deploy, but not the process. */
export const liveMessages = processMemory('liveMessages', new Map<string, Input>());
export const mostLive = 10_000;
