import { z } from 'zod';
import { effectFields, type Effect, type Fault, type FaultTarget } from './effects';
import { endpointNames } from './endpoints';
import { rule } from './rule';

const targets: readonly FaultTarget[] = ['token', ...endpointNames];

export const faultSchema: z.ZodType<Fault> = z
  .strictObject({
    ...effectFields,
    endpoint: z.enum(targets).optional(),
    phone: z.string().optional(),
    rate: z.number().min(0).max(1).optional(),
    next: z.int().min(1).optional(),
  })
  .refine(
    (fault) => [fault.code, fault.status, fault.kind].filter((one) => one !== undefined).length === 1,
    rule('control.oneEffect'),
  )
  .refine((fault) => fault.rate === undefined || fault.next === undefined, rule('control.rateOrNext'));

/** A random source that is fast and the same on every machine: a failing run can be reproduced from its seed. */
const seededRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

export class Faults {
  private active: Fault[] = [];
  private readonly random: () => number;

  constructor(
    seed: number,
    private readonly changed: () => void,
  ) {
    this.random = seededRandom(seed);
  }

  list(): readonly Fault[] {
    return this.active;
  }

  /** Throws a ZodError when the fault is not valid. */
  add(given: Fault): Fault {
    const fault = faultSchema.parse(given);
    const complete = fault.rate === undefined && fault.next === undefined ? { ...fault, next: 1 } : fault;
    this.active = [...this.active, complete];
    this.changed();
    return complete;
  }

  clear(): void {
    this.active = [];
    this.changed();
  }

  /** The first fault that fits this request, if any. */
  meet(target: FaultTarget, phones: readonly string[]): Effect | undefined {
    if (this.active.length === 0) return undefined;
    const fault = this.active.find((one) => this.strikes(one, target, phones));
    if (fault?.next !== undefined) this.spend(fault, fault.next);
    return fault;
  }

  private strikes(fault: Fault, target: FaultTarget, phones: readonly string[]): boolean {
    if (fault.endpoint === undefined ? target === 'token' : fault.endpoint !== target) return false;
    if (fault.phone !== undefined && !phones.includes(fault.phone)) return false;
    return fault.rate === undefined || this.random() < fault.rate;
  }

  private spend(fault: Fault, next: number): void {
    this.active =
      next === 1
        ? this.active.filter((one) => one !== fault)
        : this.active.map((one) => (one === fault ? { ...fault, next: next - 1 } : one));
    this.changed();
  }
}
