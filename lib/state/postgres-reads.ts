import type { Pool } from 'pg';
import { schema } from './postgres-leases';
import { asName, type Table } from './store';

/** Lookups of one kind, and their answers in the same order. */
interface Lookups<A> {
  readonly all: A[];
  readonly found: Promise<readonly (Buffer | undefined)[]>;
}

/** The most lookups in one query. */
const most = 500;

interface Bounds {
  readonly from: Buffer;
  readonly to: Buffer;
}

/**
 * All lookups of one turn of the event loop are one query. A poll looks up its record and its neighbour, and many polls
 * begin in one turn: a query for each would take longer than the poll itself.
 */
export class GatheredReads {
  private readonly waiting = new Map<string, Lookups<unknown>>();

  constructor(private readonly pool: () => Pool) {}

  value(table: Table, key: Buffer): Promise<Buffer | undefined> {
    return this.add<Buffer>(`value ${table}`, key, async (keys) => {
      const { rows } = await this.pool().query<{ key: Buffer; value: Buffer }>({
        name: `advisor_texting_values_${table}`,
        text: `select key, value from ${schema}.${table} where key = any($1::bytea[])`,
        values: [keys],
      });
      const found = new Map(rows.map((row) => [asName(row.key), row.value]));
      return keys.map((each) => found.get(asName(each)));
    });
  }

  /** The first key from `from` up to `to`, exclusive; with `isReverse`, the last. */
  firstKey(table: Table, bounds: Bounds, isReverse: boolean): Promise<Buffer | undefined> {
    const direction = isReverse ? 'desc' : 'asc';
    return this.add<Bounds>(`first ${table} ${direction}`, bounds, async (all) => {
      const { rows } = await this.pool().query<{ place: string; key: Buffer }>({
        name: `advisor_texting_first_${table}_${direction}`,
        text: `select place, key from unnest($1::bytea[], $2::bytea[]) with ordinality x(a, b, place)
          cross join lateral
            (select key from ${schema}.${table} where key >= a and key < b order by key ${direction} limit 1) f`,
        values: [all.map(({ from }) => from), all.map(({ to }) => to)],
      });
      const found: (Buffer | undefined)[] = all.map(() => undefined);
      for (const { place, key } of rows) found[Number(place) - 1] = key;
      return found;
    });
  }

  /** `ask` gives one answer for each lookup, in the same order. */
  private async add<A>(
    kind: string,
    of: A,
    ask: (all: readonly A[]) => Promise<readonly (Buffer | undefined)[]>,
  ): Promise<Buffer | undefined> {
    let lookups = this.waiting.get(kind) as Lookups<A> | undefined;
    if (!lookups || lookups.all.length === most) {
      const all: A[] = [];
      const found = new Promise((resolve) => setImmediate(resolve)).then(() => {
        this.waiting.delete(kind);
        return ask(all);
      });
      lookups = { all, found };
      this.waiting.set(kind, lookups);
    }
    const place = lookups.all.push(of) - 1;
    return (await lookups.found)[place];
  }
}
