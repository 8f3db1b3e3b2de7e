import type { CancelRecord, ItemData } from './records';

/** A cancellation and its arrival. */
export type Cancel = readonly [arrival: Buffer, record: CancelRecord];

const everything = 'all';
const ofPhone = (phone: string): string => `phone ${phone}`;
const ofList = (arrival: Buffer, index?: number): string =>
  `list ${arrival.toString('latin1')} ${index ?? ''}`;

/** The names of what a cancellation is for. */
const targetsOf = ({ phones, list, index }: CancelRecord): readonly string[] => {
  if (list) return [ofList(list, index)];
  return phones ? phones.map(ofPhone) : [everything];
};

/** The cancellations that may still apply to something in the store. */
export class Cancels {
  private known: Cancel[] = [];
  /** The arrival of the latest cancellation of everything, of each number, of each list and of each item. */
  private readonly latest = new Map<string, Buffer>();

  constructor(...cancels: readonly Cancel[]) {
    this.add(...cancels);
  }

  add(...cancels: readonly Cancel[]): void {
    for (const cancel of cancels) {
      this.known.push(cancel);
      this.note(cancel);
    }
  }

  /** Forgets those that have cancelled everything that arrived before them. */
  forget(met: readonly Cancel[]): void {
    const gone = new Set(met);
    this.known = this.known.filter((cancel) => !gone.has(cancel));
    this.latest.clear();
    for (const cancel of this.known) this.note(cancel);
  }

  get all(): readonly Cancel[] {
    return [...this.known];
  }

  get isEmpty(): boolean {
    return this.known.length === 0;
  }

  /** Whether an item of the message that came with this arrival was cancelled afterwards. */
  isMeant(arrival: Buffer, { phone, index }: ItemData): boolean {
    return (
      !this.isEmpty &&
      (this.isBefore(arrival, everything) ||
        (phone !== undefined && this.isBefore(arrival, ofPhone(phone))) ||
        this.isBefore(arrival, ofList(arrival)) ||
        this.isBefore(arrival, ofList(arrival, index)))
    );
  }

  private isBefore(arrival: Buffer, target: string): boolean {
    const cancelled = this.latest.get(target);
    return cancelled !== undefined && Buffer.compare(arrival, cancelled) < 0;
  }

  private note([arrival, record]: Cancel): void {
    for (const target of targetsOf(record)) {
      const before = this.latest.get(target);
      if (!before || Buffer.compare(before, arrival) < 0) this.latest.set(target, arrival);
    }
  }
}
