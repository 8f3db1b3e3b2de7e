import type { Pool } from 'pg';
import { schema } from './postgres-leases';
import { asName, type Table } from './store';

interface Lookups {
  readonly keys: Buffer[];
  readonly found: Promise<ReadonlyMap<string, Buffer>>;
}

/** The most lookups in one query. */
const most = 500;

/** All lookups of one tick in a table are one query: many polls begin in one tick. */
export class GatheredReads {
  private readonly waiting = new Map<Table, Lookups>();

  constructor(private readonly pool: () => Pool) {}

  async value(table: Table, key: Buffer): Promise<Buffer | undefined> {
    let lookups = this.waiting.get(table);
    if (!lookups || lookups.keys.length === most) {
      const keys: Buffer[] = [];
      const found = new Promise((resolve) => setImmediate(resolve)).then(() => this.read(table, keys));
      lookups = { keys, found };
      this.waiting.set(table, lookups);
    }
    lookups.keys.push(key);
    return (await lookups.found).get(asName(key));
  }

  private async read(table: Table, keys: readonly Buffer[]): Promise<ReadonlyMap<string, Buffer>> {
    this.waiting.delete(table);
    const { rows } = await this.pool().query<{ key: Buffer; value: Buffer }>({
      name: `advisor_texting_values_${table}`,
      text: `select key, value from ${schema}.${table} where key = any($1::bytea[])`,
      values: [keys],
    });
    return new Map(rows.map(({ key, value }) => [asName(key), value]));
  }
}
