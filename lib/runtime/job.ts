import { ofAConnection, removeUnreadable } from '../outbox/storable-message';
import { setVisits, withVisit, type Visits } from '../outbox/visits';
import type { PropertyPath } from './inputs';
import { type Outputs, type Emission, type Outcome, type Parts } from './outcomes';
import type { Message, Red, RunningNode } from './red';

type Done = (error?: Error) => void;

type Holder = Record<string | number, unknown>;

/** The message without the list that it holds there; what holds the list is copied, and nothing else. */
export const withoutList = (msg: Message, listAt: PropertyPath | undefined): Message => {
  if (!listAt) return msg;
  const copyOf = (holder: unknown, [step = '', ...further]: PropertyPath): unknown => {
    if (typeof holder !== 'object' || holder === null) return holder;
    const copy = (Array.isArray(holder) ? [...(holder as readonly unknown[])] : { ...holder }) as Holder;
    if (further.length === 0) Reflect.deleteProperty(copy, step);
    else copy[step] = copyOf(copy[step], further);
    return copy;
  };
  return copyOf(msg, listAt) as Message;
};

export const setAt = (msg: Message, listAt: PropertyPath, entry: unknown): void => {
  let holder: unknown = msg;
  for (const step of listAt.slice(0, -1)) holder = (holder as Holder | undefined)?.[step];
  // What held the list may be missing in a message whose record was damaged.
  if (typeof holder === 'object' && holder !== null) (holder as Holder)[listAt.at(-1) ?? ''] = entry;
};

/** Makes the messages of a list: each gets the properties of the input, and its own copy of those that can change. */
const copier = (RED: Red, msg: Message, shared: string | undefined): (() => Message) => {
  const { _msgid = '', ...others } = msg;
  const isSafe = ([key, value]: [string, unknown]): boolean =>
    typeof value !== 'object' || value === null || key === shared || ofAConnection.has(key);
  const safe = Object.entries(others).filter(isSafe);
  const own = Object.entries(others).filter((property) => !isSafe(property));
  return () => {
    // Properties are assigned one by one: adding to an object that was made by spreading is slow on Node 20.
    const copy: Message = { _msgid };
    for (const [key, value] of safe) copy[key] = value;
    for (const [key, value] of own) copy[key] = RED.util.cloneMessage({ value }).value;
    return copy;
  };
};

/** What goes with an outcome that is emitted of a job. */
export interface ListEmission extends Emission {
  /** `msg.summary` of an array, which goes with its last outcome. */
  readonly summary?: Readonly<Record<string, unknown>> | undefined;
  /** What the list held for this outcome. */
  readonly entry?: unknown;
}

/** What `asList` must know of an array beside its length. */
export interface ListOptions {
  /** Where the message holds the list: each outcome has its own entry there. */
  readonly listAt?: PropertyPath | undefined;
  /** A property that each outcome overwrites, so that it need not be copied. */
  readonly shared?: string;
  readonly id?: string;
  /** The number of outcomes that are yet to leave. */
  readonly remaining?: number;
}

/** What the outcomes of an array share. */
interface JobList {
  readonly id: string;
  /** Unknown until the first page of a stream has come. */
  readonly count: number | undefined;
  readonly listAt: PropertyPath | undefined;
  readonly copy: () => Message;
}

/**
 * One input message on its way through a node: each of its recipients leaves exactly once, and `done` is settled
 * exactly once, when the last has left.
 */
export class Job {
  /** Puts on record that the outcome in this message was told; see `lib/outbox/hand-over`. */
  handOver: (() => void) | undefined;
  private emitted = 0;
  private expected = 1;
  private list: JobList | undefined;
  private raised: Error | undefined;
  private settled = false;
  private visits: Visits | undefined;

  constructor(
    private readonly RED: Red,
    private readonly node: RunningNode,
    private readonly outputs: Outputs,
    readonly msg: Message,
    private readonly done: Done | undefined,
  ) {}

  get isSettled(): boolean {
    return this.settled;
  }

  /** Gives the hand-over to the code that puts this message on record, so that both are in one commit. */
  takeHandOver(): (() => void) | undefined {
    const { handOver } = this;
    this.handOver = undefined;
    return handOver;
  }

  /**
   * Called when an array came in: each outcome gets its own message with `parts`. The list itself is not copied for
   * each outcome, which would take time in the square of its length. Returns the id of the sequence.
   */
  asList(count: number | undefined, { listAt, shared, ...about }: ListOptions = {}): string {
    const { id = this.RED.util.generateId(), remaining = count } = about;
    this.expected = remaining ?? Infinity;
    this.list = { id, count, listAt, copy: copier(this.RED, withoutList(this.msg, listAt), shared) };
    return id;
  }

  /** A job for the same message and sequence, for an outcome that has to leave again after all had left. */
  anew(): Job {
    const job = new Job(this.RED, this.node, this.outputs, this.msg, undefined);
    job.expected = this.expected;
    job.list = this.list;
    return job;
  }

  /** Sets the total of a stream, which is known from its first page on. */
  setCount(count: number): void {
    if (this.list) this.list = { ...this.list, count };
  }

  emit(index: number, outcome: Outcome, about: ListEmission = {}): void {
    if (this.settled) return;
    const msg = this.list ? this.partOf(this.list, index, about.entry) : this.msg;
    this.markVisited(msg);
    if (about.summary && this.list) {
      this.conclude(about.summary);
      msg.summary = this.msg.summary;
    }
    const error = this.outputs.emit(msg, outcome, about);
    if (error && this.list) this.node.error(error, msg);
    else if (error) this.raised = error;
    this.emitted += 1;
    if (this.emitted >= this.expected) this.settle();
  }

  /** Sets `msg.summary` on the input message, for Complete nodes. */
  conclude(summary: Readonly<Record<string, unknown>>): void {
    if (this.list) this.msg.summary = { id: this.list.id, ...summary };
  }

  /** Ends the whole input with one failure; outcomes that have left stay as they are. */
  fail(failure: Outcome): void {
    if (this.settled) return;
    this.markVisited(this.msg);
    this.raised = this.outputs.emit(this.msg, failure);
    this.settle();
  }

  /** Called at the end of a stream. */
  end(): void {
    this.settle();
  }

  private settle(): void {
    if (this.settled) return;
    this.settled = true;
    // Complete and Catch nodes may lead back to this node, too.
    this.markVisited(this.msg);
    if (this.done) this.complete(this.done);
    else if (this.raised) this.node.error(this.raised, this.msg);
  }

  private complete(done: Done): void {
    try {
      done(this.raised);
    } catch (fault) {
      // Node-RED could not copy the message for a Complete or Catch node.
      if (!removeUnreadable(this.msg, true)) throw fault;
      done(this.raised);
    }
  }

  /** Marks a message as one that was at this node, so that it is known when it comes back. */
  private markVisited(msg: Message): void {
    this.visits ??= withVisit(this.msg, this.node.id);
    setVisits(msg, this.visits);
  }

  private partOf({ id, count, listAt, copy }: JobList, index: number, entry: unknown): Message {
    const msg = copy();
    if (listAt && entry !== undefined) setAt(msg, listAt, entry);
    const outer = this.msg.parts;
    const parts: Parts & { parts?: unknown } =
      count === undefined ? { id, type: 'array', index } : { id, type: 'array', index, count };
    if (outer !== undefined) parts.parts = outer;
    msg.parts = parts;
    return msg;
  }
}
