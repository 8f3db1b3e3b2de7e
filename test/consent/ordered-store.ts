import { createHash } from 'node:crypto';
import type { Entry, Operation, Store, Table } from '../../lib/state/store';

interface Kept {
  readonly value: unknown;
  readonly version: number;
}

/** Ordered records in memory, and what was done to them. */
export class OrderedStore implements Store {
  readonly durable = false;
  readonly trouble = undefined;
  readonly unwritten = 0;
  readonly tables: Record<Table, { keys: string[]; records: Map<string, Kept> }> = {
    wait: { keys: [], records: new Map() },
    work: { keys: [], records: new Map() },
  };
  /** Writes that took effect. */
  writes = 0;
  /** What writes wait for. */
  gate: Promise<void> = Promise.resolve();
  private version = 0;

  constructor(readonly now: () => number = Date.now) {}

  onChange(): () => void {
    return () => undefined;
  }

  hash(text: string): Buffer {
    return createHash('sha256').update(text).digest().subarray(0, 16);
  }

  async get<T>(table: Table, key: Buffer): Promise<Entry<T> | undefined> {
    const kept = this.tables[table].records.get(key.toString('latin1'));
    return kept && { key, value: structuredClone(kept.value) as T, version: kept.version };
  }

  async page<T>(
    table: Table,
    { from, to, limit, reverse }: { from: Buffer; to: Buffer; limit: number; reverse?: boolean },
  ): Promise<Entry<T>[]> {
    const { keys, records } = this.tables[table];
    const first = this.placeOf(keys, from.toString('latin1'));
    const last = this.placeOf(keys, to.toString('latin1'));
    const found =
      reverse === true
        ? keys.slice(Math.max(first, last - limit), Math.max(first, last)).reverse()
        : keys.slice(first, Math.min(last, first + limit));
    return found.map((key) => {
      const kept = records.get(key);
      return {
        key: Buffer.from(key, 'latin1'),
        value: structuredClone(kept?.value) as T,
        version: kept?.version ?? 0,
      };
    });
  }

  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    const { keys } = this.tables[table];
    return this.placeOf(keys, to.toString('latin1')) - this.placeOf(keys, from.toString('latin1'));
  }

  async write(
    operations: readonly Operation[],
    conditions: readonly { table: Table; key: Buffer; version?: number | string }[] = [],
  ): Promise<boolean> {
    await this.gate;
    const names = operations.map((each) => ('put' in each ? each.put : each.remove).toString('latin1'));
    if (new Set(names).size < names.length) throw new Error('a key occurs twice');
    const holds = conditions.every(
      ({ table, key, version }) =>
        this.tables[table].records.get(key.toString('latin1'))?.version === version,
    );
    if (!holds) return false;
    this.writes += 1;
    for (const operation of operations) {
      const { keys, records } = this.tables[operation.table];
      const name = ('put' in operation ? operation.put : operation.remove).toString('latin1');
      const at = this.placeOf(keys, name);
      const isThere = keys[at] === name;
      if ('put' in operation) {
        if (!isThere) keys.splice(at, 0, name);
        records.set(name, { value: structuredClone(operation.value), version: ++this.version });
      } else if (isThere) {
        keys.splice(at, 1);
        records.delete(name);
      }
    }
    return true;
  }

  async close(): Promise<void> {
    // Nothing to give up.
  }

  private placeOf(keys: readonly string[], key: string): number {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((keys[middle] ?? '') < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
