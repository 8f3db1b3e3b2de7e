import type { Store, Table } from '../state/store';

export interface Past {
  /** Whether a wait on disk has ended with all that were begun before some moment. */
  isOver(id: string): boolean;
  /** All of those were told. */
  done(): Promise<void>;
}

/**
 * Where a node's waits are at home, and until when all that it began is over: because they were reset, or because it was
 * given another environment, which must not be asked about people who were to be waited for elsewhere. One record for
 * any number of waits, which stays until they were told, for the process may be killed, or the node closed, before.
 * Moments are ids of arrival.
 */
export class Home {
  private readonly table: Table<string>;
  private readonly homeKey: string;
  private readonly overKey: string;

  constructor(store: Store, node: string) {
    this.table = store.table('homes');
    this.homeKey = `${node}/home`;
    this.overKey = `${node}/over`;
  }

  /** From now on this environment is the node's home. */
  async moveIn(environment: string, now: string): Promise<Past | undefined> {
    const home = await this.table.get(this.homeKey);
    const hasMoved = home !== undefined && home !== environment;
    const put = { put: this.homeKey, value: environment };
    if (hasMoved) await this.table.write([put, { put: this.overKey, value: now }]);
    else if (home === undefined) await this.table.write([put]);
    const over = hasMoved ? now : await this.table.get(this.overKey);
    if (over === undefined) return undefined;
    return {
      isOver: (id) => hasMoved || id < over,
      done: () => this.table.writeSoon([{ remove: this.overKey }]),
    };
  }

  endAll(now: string): Promise<void> {
    return this.table.write([{ put: this.overKey, value: now }]);
  }
}
