import { nodeCloseTime, second } from '../durations';
import { Listeners } from '../listeners';
import { ofAConnection, removeUnreadable } from '../outbox/storable-message';
import { handOver, type Claim } from '../outbox/hand-over';
import { duplicatesOf } from '../outbox/item';
import { processMemory } from '../process-memory';
import { elapsedBy, systemClock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import { serviceError, type Problem } from '../service/errors';
import { visible } from '../visible';
import type { Activity } from './activity';
import type { PropertyPath } from './inputs';
import { hideNumbers } from './log';
import { metrics } from './metrics';
import type { Outcome } from '../outbox/outcome';
import type { Message, Red, RunningNode } from './red';

/** The service's words may quote the text or the recipient: they are for the flow, not for the log. */
const unquoted = (why: Problem): Problem => {
  if (why.wording?.key === 'rejected') return serviceError('rejected', 'rejected_plain').problem;
  return why.detail !== undefined && why.detail !== '' && why.message.includes(visible(why.detail))
    ? serviceError('invalid_request', 'invalid_request_plain').problem
    : why;
};

/** The error for Catch nodes and the log: it has our code, and the whole `msg.error` as its cause. */
class OutcomeError extends Error {
  readonly code: string;

  constructor(sentence: string, details: Problem & { source: object }) {
    super(sentence, { cause: details });
    // The debug sidebar shows a cause as text.
    Object.defineProperty(details, 'toString', { value: () => sentence });
    this.name = 'Error';
    this.code = details.code;
    // A stack tells the user nothing, and turns one line of the log into ten.
    this.stack = `${visible(details.code)}: ${sentence}`;
  }
}

/** Fields are assigned one by one: `Object.assign` takes longer than the rest of an outcome. */
const writeFields = (msg: Message, fields: Readonly<Record<string, unknown>> | undefined): void => {
  for (const name in fields) msg[name] = fields[name];
};

export type Outputs = ReturnType<typeof outputsOf>;

/** Whether an outcome, with its message fields, is that of a dry run. */
export const isOfDryRun = ({ problem, payload }: Pick<Outcome, 'problem' | 'payload'>): boolean =>
  (problem ?? (payload as { dryRun?: unknown } | null | undefined))?.dryRun === true;

/** How many outcomes left, by the names of the outputs; `alreadySent` are among those of the first. */
export type OutcomeCounts = Readonly<Record<string, number>>;

/** Before the code of a failure, in the kinds by which outcomes are counted. */
export const codePrefix = 'code ';

export const alreadySentIn = (counts: OutcomeCounts): number =>
  (counts['alreadySent'] ?? 0) + (counts[duplicatesOf('sent')] ?? 0);

export const outputsOf = (
  RED: Red,
  node: RunningNode,
  names: readonly string[],
  translate: (why: Problem) => string,
  activity: Pick<Activity, 'failed' | 'space'> | undefined,
) => {
  const measured = metrics();
  const isWired = (port: number): boolean =>
    (node.wires[port] ?? []).some((id) => (RED.nodes.getNode(id) as unknown) != null);

  const portOf = ({ port }: Outcome): number => (port === 2 && !isWired(2) ? 1 : port);

  const send = (msg: Message, port: number): void => {
    msg.outcome = names[port];
    node.send(port === 0 ? msg : port === 1 ? [null, msg] : [null, null, msg]);
  };

  return {
    names,
    origin: { id: node.id, space: activity?.space },
    /** The kinds under which `msg.summary` counts an outcome: a third output without wires counts as `failed`. */
    kindsOf(outcome: Outcome): readonly string[] {
      const name = names[portOf(outcome)] ?? '';
      if (name === 'failed' && outcome.problem) return [name, codePrefix + outcome.problem.code];
      // `alreadySent` comes first, because duplicates are counted under the first kind.
      return outcome.alreadySent ? ['alreadySent', name] : [name];
    },
    /** `msg.summary` without its id. */
    summaryOf(total: number, counts: OutcomeCounts): Record<string, unknown> {
      // The service may send any text as a code, even `__proto__`, which an assignment would lose.
      const byCode = Object.fromEntries(
        Object.entries(counts)
          .filter(([kind, count]) => kind.startsWith(codePrefix) && count > 0)
          .map(([kind, count]) => [kind.slice(codePrefix.length), count]),
      );
      const outputs = Object.fromEntries(names.map((name) => [name, counts[name] ?? 0]));
      return { total, ...outputs, ...('sent' in outputs && { alreadySent: alreadySentIn(counts) }), byCode };
    },
    /** A dry run is neither a failure nor a text. */
    count(msg: Message, outcome: Outcome): void {
      if (outcome.repeated || isOfDryRun(outcome)) return;
      const port = portOf(outcome);
      const problem = port === 1 ? outcome.problem : undefined;
      measured?.outcome(node.type, names[port] ?? '', problem?.code);
      if (problem) activity?.failed({ node: { id: node.id, name: node.name ?? '' }, problem, msg });
    },
    receivers: (outcome: Outcome): number => node.wires[portOf(outcome)]?.length ?? 0,
    /** Sends the outcome by its output; returns the error to raise when nothing is wired to any output for it. */
    emit(msg: Message, outcome: Outcome): Error | undefined {
      writeFields(msg, outcome.set);
      if (outcome.repeated) msg.repeated = true;
      else if ('repeated' in msg) delete msg.repeated;
      const port = portOf(outcome);
      if (port !== 1) {
        msg.payload = outcome.payload;
        writeFields(msg, outcome.carry);
        if ('error' in msg) delete msg.error;
        send(msg, port);
        return undefined;
      }
      const why = outcome.problem;
      if (!why) throw new Error('a failure without a problem');
      const { wording: _wording, ...said } = why;
      const details = {
        ...said,
        message: translate(why),
        source: { id: node.id, type: node.type, name: node.name },
      };
      if (!isWired(1)) return new OutcomeError(hideNumbers(translate(unquoted(why))), details);
      msg.error = details;
      send(msg, 1);
      return undefined;
    },
  };
};

/** Counts the outcomes of a list that no queue keeps. */
export class Tally {
  readonly counts: Record<string, number> = {};
  total = 0;

  constructor(private readonly outputs: Pick<Outputs, 'kindsOf' | 'summaryOf'>) {}

  add(outcome: Outcome): void {
    this.total += 1;
    for (const kind of this.outputs.kindsOf(outcome)) this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }

  get summary(): Record<string, unknown> {
    return this.outputs.summaryOf(this.total, this.counts);
  }
}

/** The part of a flow that Node-RED's type declarations lack. */
interface Completing {
  handleComplete(node: RunningNode, msg: object): void;
}

type Done = (error?: Error) => void;

type Holder = Record<string | number, unknown>;

/** The message without the list that it holds there; what holds the list is copied, and nothing else. */
export const withoutList = (msg: Message, listAt: PropertyPath | undefined): Message => {
  if (!listAt) return msg;
  const copy = { ...msg };
  let holder: Holder = copy;
  for (const step of listAt.slice(0, -1)) {
    const held = Object(holder[step]) as Holder;
    holder = holder[step] = (Array.isArray(held) ? [...(held as unknown[])] : { ...held }) as Holder;
  }
  Reflect.deleteProperty(holder, listAt.at(-1) ?? '');
  return copy;
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

/** An outcome of an item, or of a duplicate of it. */
export interface Part {
  readonly index: number;
  readonly outcome: Outcome;
  /** Marks the message; see `lib/outbox/hand-over`. */
  readonly offer?: number | undefined;
  /** `msg.summary` of an array, which only its last outcome has. */
  readonly summary?: Readonly<Record<string, unknown>> | undefined;
  readonly entry?: unknown;
}

/** What `asList` must know of an array beside its length. */
export interface ListOptions {
  /** Where the message holds the list: each outcome has its own entry there. */
  readonly listAt?: PropertyPath | undefined;
  /** A property that each outcome overwrites, so that it need not be copied. */
  readonly shared?: string;
  readonly id?: string;
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
  /** Saves that the outcome in this message was emitted; see `lib/outbox/hand-over`. */
  handOver: Claim | undefined;
  /** The outcomes of a stream that fails. */
  tally: Tally | undefined;
  private list: JobList | undefined;
  private raised: Error | undefined;
  isSettled = false;

  constructor(
    private readonly RED: Red,
    private readonly node: RunningNode,
    private readonly outputs: Outputs,
    readonly msg: Message,
    private readonly done: Done | undefined,
  ) {}

  /** Saves the hand-over, unless that is saved in one commit with the items of this message. */
  concludeHandOver(): void {
    this.handOver?.conclude();
    this.handOver = undefined;
  }

  /**
   * Called when an array came in: each outcome gets its own message with `parts`. The list itself is not copied for
   * each outcome, which would take time in the square of its length. Returns the id of the sequence.
   */
  asList(
    count: number | undefined,
    { listAt, shared, id = this.RED.util.generateId() }: ListOptions = {},
  ): string {
    this.list = { id, count, listAt, copy: copier(this.RED, withoutList(this.msg, listAt), shared) };
    return id;
  }

  /** Sets the total of a stream, which is known from its first page on. */
  setCount(count: number): void {
    if (this.list) this.list = { ...this.list, count };
  }

  emit(index: number, outcome: Outcome, about: Partial<Part> = {}): void {
    if (!this.isSettled) this.outputs.count(this.send({ ...about, index, outcome }), outcome);
  }

  /**
   * Lets the outcomes of an item leave. When a deploy or a shutdown was in the way, they leave again after the next
   * start of the flows, and count then. False when the node closed first.
   */
  async deliver(parts: readonly Part[], closed: AbortSignal): Promise<boolean> {
    const { RED, node, outputs } = this;
    const isClosed = (): boolean => closed.aborted;
    for (let isFirst = true; !isClosed(); isFirst = false) {
      if (!isFirst || flowsOf(RED).isStopping) await wokenBy((wake) => atNextStart(RED, wake), closed);
      if (isClosed()) break;
      const arriving = arrival(RED, node, parts[0]?.outcome.port ?? 0);
      const sent = parts.map((part) => ({ msg: this.send(part), outcome: part.outcome }));
      if (!(await arriving)) continue;
      for (const { msg, outcome } of sent) outputs.count(msg, outcome);
      return true;
    }
    return false;
  }

  /** Sets `msg.summary` on the input message, for Complete nodes. */
  conclude(summary: Readonly<Record<string, unknown>>): void {
    if (this.list) this.msg.summary = { id: this.list.id, ...summary };
  }

  /** Ends the whole input with one failure; outcomes that have left stay as they are. */
  fail(failure: Outcome): void {
    if (this.isSettled) return;
    this.mark();
    if (this.tally && this.tally.total > 0) {
      this.tally.add(failure);
      this.conclude(this.tally.summary);
    }
    this.raised = this.outputs.emit(this.msg, failure);
    this.outputs.count(this.msg, failure);
    this.settle();
  }

  /** For a fault in a failure itself. */
  raise(fault: Error): void {
    if (!this.isSettled) this.done?.(fault);
  }

  private send({ index, outcome, offer, summary, entry }: Part): Message {
    const msg = this.list ? this.partOf(this.list, index, entry) : this.msg;
    handOver.mark(msg, this.msg, this.outputs.origin, offer, this.outputs.receivers(outcome));
    if (summary && this.list) {
      this.conclude(summary);
      msg.summary = this.msg.summary;
    }
    const error = this.outputs.emit(msg, outcome);
    // An outcome may leave again after the input has settled.
    if (error && (this.list || this.isSettled)) this.node.error(error, msg);
    else if (error) this.raised = error;
    if (!this.list || summary) this.settle();
    return msg;
  }

  settle(): void {
    if (this.isSettled) return;
    this.isSettled = true;
    // Complete and Catch nodes may lead back to this node, too.
    this.mark();
    if (this.done) this.complete(this.done);
    else if (this.raised) this.node.error(this.raised, this.msg);
  }

  private complete(done: Done): void {
    try {
      done(this.raised);
    } catch (fault) {
      // Node-RED could not copy the message for a Complete or Catch node. `done` must not be called twice.
      if (!removeUnreadable(this.msg, true)) this.node.error(fault);
      else if (this.raised) this.node.error(this.raised, this.msg);
      else (this.node._flow as Partial<Completing>).handleComplete?.(this.node, this.msg);
    }
  }

  /** Marks the message as one that was at this node, so that it is known when it comes back. */
  private mark(): void {
    handOver.mark(this.msg, this.msg, this.outputs.origin);
  }

  private partOf({ id, count, listAt, copy }: JobList, index: number, entry: unknown): Message {
    const msg = copy();
    if (listAt && entry !== undefined) setAt(msg, listAt, entry);
    const parts: Record<string, unknown> = { id, type: 'array', index };
    if (count !== undefined) parts.count = count;
    if (this.msg.parts !== undefined) parts.parts = this.msg.parts;
    msg.parts = parts;
    return msg;
  }
}

type RuntimeEvents = Red['events'];

/**
 * After this time, the flows were stopped and not deployed: all nodes have closed, or the runtime no longer waits for
 * them.
 */
const longestDeploy = nodeCloseTime + second;

interface Flows {
  /** True from the moment a deploy or a shutdown begins to close nodes until the flows have started again. */
  isStopping: boolean;
  /** By the monotonic clock. */
  stoppedAt: number;
  readonly tasks: Set<() => void>;
  /** Called when a deploy is over, or the flows were only stopped. */
  readonly rested: Listeners;
}

/** What Node-RED emits when the flows have stopped; `deploy` when they start again at once. */
interface StateEvent {
  readonly id: string;
  readonly payload?: { readonly state?: string; readonly deploy?: boolean };
}

const flowsByEvents = processMemory('flows', new WeakMap<RuntimeEvents, Flows>());

/** One listener serves all nodes: the runtime warns when there are more than ten. */
const flowsOf = ({ events }: Red): Flows => {
  const found = flowsByEvents.get(events);
  if (found) return found;
  const flows: Flows = { isStopping: false, stoppedAt: 0, tasks: new Set(), rested: new Listeners() };
  flowsByEvents.set(events, flows);
  events.on('flows:stopping', () => {
    flows.isStopping = true;
    flows.stoppedAt = elapsedBy(systemClock);
  });
  events.on('flows:started', () => {
    flows.isStopping = false;
    runTasks(flows);
    flows.rested.call();
  });
  events.on('runtime-event', ({ id, payload }: StateEvent) => {
    if (id !== 'runtime-state' || payload?.state !== 'stop' || payload.deploy) return;
    flows.stoppedAt = -Infinity;
    flows.rested.call();
  });
  return flows;
};

const runTasks = ({ tasks }: Flows): void => {
  const due = [...tasks];
  tasks.clear();
  for (const each of due) each();
};

/** Calls `task` at the next start of the flows, when every node can be sent to. The result cancels it. */
export const atNextStart = (RED: Red, task: () => void): (() => void) => {
  const { tasks } = flowsOf(RED);
  tasks.add(task);
  return () => {
    tasks.delete(task);
  };
};

/** For a node that was made while the flows run: what waits for their start need not. */
export const madeLate = (RED: Red): void => {
  const flows = flowsOf(RED);
  if (!flows.isStopping) runTasks(flows);
};

export const deployEnd = async (RED: Red): Promise<void> => {
  const { isStopping, stoppedAt, rested } = flowsOf(RED);
  const left = stoppedAt + longestDeploy - elapsedBy(systemClock);
  if (!isStopping || left <= 0) return;
  await wokenBy(rested.add, (wake) => systemClock.after(left, wake));
};

/** Node-RED keeps a node's input handler in one of these members, until it closes the node. */
const isListening = (node: unknown): boolean => {
  const { _inputCallback, _inputCallbacks } = Object(node) as Record<string, unknown>;
  return Boolean(_inputCallback) || Boolean(_inputCallbacks);
};

/**
 * Whether a message that leaves by `port` directly after this call arrives. Node-RED delivers it in the next turn of
 * the event loop, and silently drops it when the receiver is closed before. So the receivers are checked just before
 * the delivery, of each message on its own; afterwards is too late, for a receiver may itself stop the flows.
 */
const arrival = async (RED: Red, node: RunningNode, port: number): Promise<boolean> => {
  const receiversAt = (output: number): unknown[] =>
    (node.wires[output] ?? []).map((id): unknown => RED.nodes.getNode(id)).filter(isListening);
  const direct = receiversAt(port);
  const receivers = direct.length === 0 && port === 2 ? receiversAt(1) : direct;
  await new Promise((resolve) => setImmediate(resolve));
  return receivers.length === 0 || receivers.some(isListening);
};
