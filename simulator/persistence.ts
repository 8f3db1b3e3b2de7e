import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { asName, key, pagesUnder, type Operation, type Store } from '../lib/state/store';
import { tokensSchema } from './oauth/tokens';
import type { Simulation } from './simulation';
import { stateSchema } from './state/state';
import { second } from '../lib/durations';

const snapshotSchema = z.object({
  version: z.literal(1),
  /** How far the clock is ahead of real time, in milliseconds. */
  ahead: z.number(),
  state: stateSchema,
  tokens: tokensSchema,
});

type Snapshot = z.output<typeof snapshotSchema>;

const ahead = ({ clock }: Simulation): number => clock.now() - Date.now();

const take = (simulation: Simulation): Snapshot => ({
  version: 1,
  ahead: ahead(simulation),
  state: simulation.state.record(),
  tokens: simulation.tokens.record(),
});

/** Where the state is kept over restarts. */
export interface SnapshotStorage {
  /** The name of the place for people, such as a path. */
  readonly name: string;
  /** Undefined when nothing is stored. */
  read(): Promise<unknown>;
  write(snapshot: Snapshot): Promise<void>;
  /** Moves a state that could not be read out of the way; resolves with its new place. */
  setAside(): Promise<string>;
}

/** A file that is whole at every moment: it is written under another name, then renamed. */
export const inFile = (file: string): SnapshotStorage => {
  mkdirSync(dirname(file), { recursive: true });
  return {
    name: file,
    read: () =>
      Promise.resolve(existsSync(file) ? readFileSync(file, 'utf8') : undefined).then((text) =>
        text === undefined ? undefined : parsed(text),
      ),
    async write(snapshot) {
      const beside = `${file}.${String(process.pid)}.new`;
      const handle = await open(beside, 'w', 0o600);
      try {
        await handle.writeFile(JSON.stringify(snapshot));
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(beside, file);
    },
    setAside() {
      const aside = `${file}.damaged-${String(Date.now())}`;
      renameSync(file, aside);
      return Promise.resolve(aside);
    },
  };
};

/** A text that is not JSON is returned unchanged, which is not a snapshot. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const table = 'work';
const baseKey = key('simulator', 'base');
const accounts = key('simulator', 'account');
const recordsAtOnce = 100;

type AccountSnapshot = Snapshot['state']['accounts'][number];

/** One record for each advisor's account and one for what accounts share, so that only changed records are written. */
export const inStore = (store: Store): SnapshotStorage => {
  /** The hash of each record that is stored. */
  const written = new Map<string, string>();
  const keyOf = ({ advisor }: AccountSnapshot): Buffer => key(accounts, store.hash(advisor));
  const hashOf = (value: unknown): string =>
    createHash('sha256').update(JSON.stringify(value)).digest('base64');
  const allAccounts = async (): Promise<{ key: Buffer; value: AccountSnapshot }[]> => {
    const found: { key: Buffer; value: AccountSnapshot }[] = [];
    for await (const page of pagesUnder<AccountSnapshot>(store, table, accounts, recordsAtOnce))
      found.push(...page);
    return found;
  };
  return {
    name: 'the stored state',
    async read() {
      const base = await store.get<Omit<Snapshot, 'state'> & { state: object }>(table, baseKey);
      if (!base) return undefined;
      const found = await allAccounts();
      for (const { key: place, value } of found) written.set(asName(place), hashOf(value));
      return { ...base.value, state: { ...base.value.state, accounts: found.map(({ value }) => value) } };
    },
    async write({ state: { accounts: all, ...state }, ...rest }) {
      const records = new Map<string, readonly [put: Buffer, value: unknown]>();
      for (const account of all) records.set(asName(keyOf(account)), [keyOf(account), account]);
      records.set(asName(baseKey), [baseKey, { ...rest, state }]);
      const operations: Operation[] = [];
      const hashes = new Map<string, string>();
      for (const [name, [put, value]] of records) {
        const hash = hashOf(value);
        hashes.set(name, hash);
        if (written.get(name) !== hash) operations.push({ table, put, value });
      }
      for (const name of written.keys())
        if (!records.has(name)) operations.push({ table, remove: Buffer.from(name, 'latin1') });
      if (operations.length > 0) await store.write(operations);
      written.clear();
      for (const [name, hash] of hashes) written.set(name, hash);
    },
    async setAside() {
      const base = await store.get(table, baseKey);
      const found = [...(base ? [base] : []), ...(await allAccounts())];
      await store.write(
        found.flatMap(({ key: place, value }): Operation[] => [
          { table, remove: place },
          { table, put: key('damaged simulator', Date.now(), place), value },
        ]),
      );
      written.clear();
      return 'records named "damaged simulator"';
    },
  };
};

/**
 * Restores the stored state, if there is one. A state that cannot be read is set aside, and the result names its place:
 * damage must not keep the simulator from starting.
 */
export const restore = async (
  simulation: Simulation,
  keeping: SnapshotStorage,
): Promise<string | undefined> => {
  const kept = await keeping.read();
  if (kept === undefined) return undefined;
  const { data: snapshot } = snapshotSchema.safeParse(kept);
  if (!snapshot) {
    const aside = await keeping.setAside();
    return `The simulator's data in ${keeping.name} could not be read. It was renamed to ${aside}; the simulator starts empty.`;
  }
  simulation.state.restore(snapshot.state);
  simulation.tokens.restore(snapshot.tokens);
  // The clock must not run backwards for waits and tokens that started when it had been moved.
  const behind = snapshot.ahead - ahead(simulation);
  if (behind > second) await simulation.clock.move(behind);
  return undefined;
};

/** Milliseconds after the first change until all are written together; more for a large state. */
const shortestPause = 200;

/** Stores the state as it changes. */
export class Keeper {
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private pause = shortestPause;
  private stale = false;

  constructor(
    private readonly simulation: Simulation,
    private readonly keeping: SnapshotStorage,
    private readonly warn: (message: string) => void,
  ) {}

  changed(): void {
    this.stale = true;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.write();
    }, this.pause).unref();
  }

  /** Resolves when all changes so far are on disk. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.write();
  }

  private write(): Promise<void> {
    this.writing = this.writing.then(async () => {
      if (!this.stale) return;
      this.stale = false;
      const began = performance.now();
      try {
        await this.keeping.write(take(this.simulation));
      } catch (error) {
        this.stale = true;
        this.warn(`The simulator's data cannot be written to ${this.keeping.name}: ${String(error)}`);
      }
      this.pause = Math.max(shortestPause, 10 * (performance.now() - began));
    });
    return this.writing;
  }
}
