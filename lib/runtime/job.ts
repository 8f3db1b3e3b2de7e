import { failedOutcome, problemOf, type Exit, type Leave, type Outcome, type Parts } from './outcomes';
import type { Message, Red, RunningNode } from './red';

type Done = (error?: Error) => void;

/** Properties that cannot be copied, and that Node-RED itself passes on as they are. */
const neverCopied = new Set(['req', 'res']);

/** Makes the messages of a list: each gets the properties of the input, and its own copy of those that can change. */
const copier = (RED: Red, msg: Message, shared: string | undefined): (() => Message) => {
  const { _msgid = '', ...others } = msg;
  const isSafe = ([key, value]: [string, unknown]): boolean =>
    typeof value !== 'object' || value === null || key === shared || neverCopied.has(key);
  const safe = Object.entries(others).filter(isSafe);
  const own = Object.entries(others).filter((property) => !isSafe(property));
  return () => {
    // Property by property: what is spread into a new object is slow to add to on Node 20.
    const copy: Message = { _msgid };
    for (const [key, value] of safe) copy[key] = value;
    for (const [key, value] of own) copy[key] = RED.util.cloneMessage({ value }).value;
    return copy;
  };
};

/** The same of a job. */
export interface Departure extends Leave {
  /** The sum of an array, with its last outcome. */
  readonly summary?: Readonly<Record<string, unknown>> | undefined;
}

/** What the outcomes of an array have in common. */
interface List {
  readonly id: string;
  /** Unknown until the first page of a stream has told it. */
  readonly count: number | undefined;
  readonly copy: () => Message;
}

/**
 * One input message on its way through a node: each of its recipients leaves exactly once, and `done` is settled
 * exactly once, when the last has left.
 */
export class Job {
  /** Puts on record that the outcome this message came with was told; see `lib/outbox/hand-over`. */
  handOver: (() => void) | undefined;
  private left = 0;
  private expected = 1;
  private list: List | undefined;
  private raised: Error | undefined;
  private settled = false;

  constructor(
    private readonly RED: Red,
    private readonly node: RunningNode,
    private readonly exit: Exit,
    readonly msg: Message,
    private readonly done: Done | undefined,
  ) {}

  get isSettled(): boolean {
    return this.settled;
  }

  /** For whoever puts this message on record, and the outcome it came with as told in the same commit. */
  takeHandOver(): (() => void) | undefined {
    const { handOver } = this;
    this.handOver = undefined;
    return handOver;
  }

  /**
   * An array came in: each outcome gets its own message with `parts`. The list itself, under the message property
   * `shared`, is not copied for each: that would cost the square of its length. Gives the id of the sequence.
   */
  asList(count: number | undefined, shared?: string, id: string = this.RED.util.generateId()): string {
    this.expected = count ?? Infinity;
    this.list = { id, count, copy: copier(this.RED, this.msg, shared) };
    return id;
  }

  /** The same message and sequence once more, for what has to leave again though all had left. */
  anew(): Job {
    const job = new Job(this.RED, this.node, this.exit, this.msg, undefined);
    job.expected = this.expected;
    job.list = this.list;
    return job;
  }

  /** The total of a stream, once its first page has told it. */
  setCount(count: number): void {
    if (this.list) this.list = { ...this.list, count };
  }

  leave(index: number, outcome: Outcome, about: Departure = {}): void {
    if (this.settled) return;
    const msg = this.list ? this.partOf(this.list, index) : this.msg;
    if (about.summary && this.list) {
      this.conclude(about.summary);
      msg.summary = this.msg.summary;
    }
    const error = this.exit.leave(msg, outcome, about);
    if (error && this.list) this.node.error(error, msg);
    else if (error) this.raised = error;
    this.left += 1;
    if (this.left >= this.expected) this.settle();
  }

  /** The sum of a sequence, for Complete nodes. */
  conclude(summary: Readonly<Record<string, unknown>>): void {
    if (this.list) this.msg.summary = { id: this.list.id, ...summary };
  }

  /** The whole input comes to one failure; what has left already has left. */
  fail(thrown: unknown): void {
    if (this.settled) return;
    const error = this.exit.leave(this.msg, failedOutcome(problemOf(thrown)));
    this.raised = error;
    this.settle();
  }

  /** The end of a stream. */
  end(): void {
    this.settle();
  }

  private settle(): void {
    if (this.settled) return;
    this.settled = true;
    if (this.done) this.done(this.raised);
    else if (this.raised) this.node.error(this.raised, this.msg);
  }

  private partOf({ id, count, copy }: List, index: number): Message {
    const msg = copy();
    const outer = this.msg.parts;
    const parts: Parts & { parts?: unknown } =
      count === undefined ? { id, type: 'array', index } : { id, type: 'array', index, count };
    if (outer !== undefined) parts.parts = outer;
    msg.parts = parts;
    return msg;
  }
}
