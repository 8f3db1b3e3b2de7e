import type { OutboxItem } from './open-job';
import type { ResetRecord } from './layout';

/** A reset and its arrival. */
export type Reset = readonly [arrival: Buffer, record: ResetRecord];

const everything = 'all';
const ofPhone = (phone: string): string => `phone ${phone}`;
const ofJob = (arrival: Buffer, index?: number): string => `job ${arrival.toString('latin1')} ${index ?? ''}`;

/** The names of what a reset is for. */
const targetsOf = ({ phones, job, index }: ResetRecord): readonly string[] => {
  if (job) return [ofJob(job, index)];
  return phones ? phones.map(ofPhone) : [everything];
};

/** The resets that something on record may not have met yet. */
export class Resets {
  private known: Reset[] = [];
  /** The arrival of the latest reset of everything, of each number, of each job and of each item. */
  private readonly latest = new Map<string, Buffer>();

  add(...resets: readonly Reset[]): void {
    for (const reset of resets) {
      this.known.push(reset);
      this.note(reset);
    }
  }

  /** Forgets resets that have cancelled everything that arrived before them. */
  forget(met: readonly Reset[]): void {
    const gone = new Set(met);
    this.known = this.known.filter((reset) => !gone.has(reset));
    this.latest.clear();
    for (const reset of this.known) this.note(reset);
  }

  get all(): readonly Reset[] {
    return [...this.known];
  }

  get isEmpty(): boolean {
    return this.known.length === 0;
  }

  /** Whether an item of the job that came with this arrival was cancelled afterwards. */
  isReset(arrival: Buffer, { phone, index }: OutboxItem): boolean {
    return (
      !this.isEmpty &&
      (this.isBefore(arrival, everything) ||
        (phone !== undefined && this.isBefore(arrival, ofPhone(phone))) ||
        this.isBefore(arrival, ofJob(arrival)) ||
        this.isBefore(arrival, ofJob(arrival, index)))
    );
  }

  private isBefore(arrival: Buffer, target: string): boolean {
    const reset = this.latest.get(target);
    return reset !== undefined && Buffer.compare(arrival, reset) < 0;
  }

  private note([arrival, record]: Reset): void {
    for (const target of targetsOf(record)) {
      const before = this.latest.get(target);
      if (!before || Buffer.compare(before, arrival) < 0) this.latest.set(target, arrival);
    }
  }
}
