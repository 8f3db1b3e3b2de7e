import { minute } from '../durations';
import { Listeners } from '../listeners';
import { orMake } from '../process-memory';
import { wokenBy } from '../service/concurrency';
import { key, type Store } from '../state/store';

const tooManyCrashes = 3;
/** Milliseconds after which no item is suspected of crashing the process. */
const calmAfter = minute;

interface Note {
  /** The item whose turn it is. */
  readonly noted?: string;
  /** Items whose turn it was at a crash, once for each crash. */
  readonly suspects: readonly string[];
}

const table = 'work';
const place = key('careful');

/**
 * Keeps an item whose work ends the process from doing so at each start. After three crashes in a row, items of all
 * nodes are taken one at a time, and each is noted before its turn, until a minute has passed. The one that is noted at
 * the next crash is a suspect: it ends without its work. In normal times nothing is written.
 */
export class CarefulTurns {
  /** Items are taken one at a time. */
  isOn: boolean;
  /** Items whose turn it was at a crash, once for each crash. */
  suspects: readonly string[] = [];
  private before: Promise<void> = Promise.resolve();
  private reading: Promise<void> | undefined;
  private readonly listeners = new Listeners();
  readonly onCalm = this.listeners.add;

  constructor(private readonly store: Store) {
    this.isOn = store.engine.crashes >= tooManyCrashes;
  }

  ready(): Promise<void> {
    if (!this.isOn) return Promise.resolve();
    this.reading ??= this.read().catch((fault: unknown) => {
      this.reading = undefined;
      throw fault;
    });
    return this.reading;
  }

  async turn<T>(item: string, work: () => Promise<T>): Promise<T> {
    const { before } = this;
    let end = (): void => undefined;
    this.before = new Promise((resolve) => {
      end = resolve;
    });
    try {
      // Work may wait for other work, such as a text for the first one with its key: that ends when items run side by
      // side again.
      await wokenBy(before, this.onCalm);
      if (this.isOn) await this.note({ noted: item, suspects: this.suspects });
      let result: T | undefined;
      try {
        result = await work();
        return result;
      } finally {
        // An item with another turn later is not to blame for what happens until then.
        if (this.isOn && result === undefined) await this.note({ suspects: this.suspects });
      }
    } finally {
      end();
    }
  }

  private async read(): Promise<void> {
    const { noted, suspects = [] } = (await this.store.get<Note>(table, place))?.value ?? {};
    this.suspects = noted === undefined ? suspects : [...suspects, noted];
    await this.note({ suspects: this.suspects });
    setTimeout(() => {
      this.isOn = false;
      this.listeners.call();
      // The next crashes replace what cannot be removed now.
      this.store.write([{ table, remove: place }]).catch(() => undefined);
    }, calmAfter).unref();
  }

  private note(value: Note): Promise<boolean> {
    return this.store.write([{ table, put: place, value }]);
  }
}

const all = new WeakMap<object, CarefulTurns>();

/** One for all handles of a store. */
export const carefulTurnsOf = (store: Store): CarefulTurns =>
  orMake(all, store.engine, () => new CarefulTurns(store));
