import { Column, Few, none } from './columns';
import type { ConsentStatus } from './verdict';

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** What was last seen of each of very many numbers, if anything. */
export class SeenColumn {
  private readonly known = new Few<string | null>();
  private readonly states = new Column(Int32Array, none);
  private readonly members = new Column(Float64Array, NaN);
  private readonly changes = new Column(Float64Array, NaN);

  get(row: number): ConsentStatus | undefined {
    const state = this.states.get(row);
    if (state === none) return undefined;
    return {
      memberId: orNull(this.members.get(row)),
      state: this.known.at(state),
      lastChanged: orNull(this.changes.get(row)),
    };
  }

  set(row: number, { memberId, state, lastChanged }: ConsentStatus): void {
    this.states.set(row, this.known.numberOf(state));
    this.members.set(row, typeof memberId === 'number' ? memberId : NaN);
    this.changes.set(row, lastChanged ?? NaN);
  }

  clear(row: number): void {
    this.states.set(row, none);
    this.members.set(row, NaN);
  }

  isOf(row: number, memberId: number): boolean {
    return this.members.get(row) === memberId;
  }
}
