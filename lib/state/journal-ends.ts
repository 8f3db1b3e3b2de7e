import type { EndsRecord } from './journal-records';

/** A record of ends, which goes with the last of its messages. */
export interface Shared {
  readonly key: string;
  /** The keys of those that are on record. */
  readonly holders: Set<string>;
}

/** The ends that an earlier node left on record, by the key of the message. */
export class FoundEnds<O> {
  readonly #outcomes = new Map<string, O>();
  readonly #sharedBy = new Map<string, Shared[]>();
  readonly #records: Shared[] = [];

  add(node: string, key: string, { ends }: EndsRecord<O>): void {
    const record: Shared = { key, holders: new Set() };
    this.#records.push(record);
    for (const [id, outcome] of ends) {
      const message = `${node}/${id}`;
      this.#outcomes.set(message, outcome);
      this.#sharedBy.set(message, [...(this.#sharedBy.get(message) ?? []), record]);
    }
  }

  of(message: string): O | undefined {
    return this.#outcomes.get(message);
  }

  /** For a message that is still on record. */
  hold(message: string): readonly Shared[] {
    const shared = this.#sharedBy.get(message) ?? [];
    this.#sharedBy.delete(message);
    for (const record of shared) record.holders.add(message);
    return shared;
  }

  /** Messages that nobody has asked for. */
  get unheld(): readonly string[] {
    return [...this.#sharedBy.keys()];
  }

  /** The keys of records that no message needs any more. */
  get orphaned(): readonly string[] {
    return this.#records.flatMap(({ key, holders }) => (holders.size === 0 ? [key] : []));
  }
}
