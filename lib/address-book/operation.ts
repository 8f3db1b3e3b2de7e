import { endpoints, type EndpointName, type Id, type RequestOf, type ResponseOf } from '../service/endpoints';
import { closeLimit, systemClock } from '../service/clock';
import { onAbort } from '../service/concurrency';
import { anyAdvisor } from '../runtime/advisor';
import type { Environment } from '../runtime/environment';
import type { Source } from '../runtime/inputs';
import { isControl, type Tools } from '../runtime/flow-node';
import type { Job } from '../runtime/job';
import { nodeError } from '../runtime/errors';
import { type Problem, ServiceError } from '../service/errors';
import type { Item, Order } from '../runtime/outbox-node';
import { RequestNode, type Turn } from '../runtime/request-node';
import { failedOutcome, problemOf, type Outcome } from '../runtime/outcomes';
import type { Message } from '../runtime/red';
import { failureLook, progressLook, searchLook } from '../runtime/status';

/** Message fields of one outcome, filled in as they become known. */
export type Fields = Record<string, unknown>;

/** The service, on behalf of the message's advisor. */
export interface Caller {
  readonly environment: Environment;
  readonly advisor: string;
  /** A request that changes something is saved before it leaves. */
  call<N extends EndpointName>(name: N, request: RequestOf<N>, signal?: AbortSignal): Promise<ResponseOf<N>>;
}

/** An error about an answer says how many requests that took. */
const withAttempts = (thrown: unknown, attempts: number): unknown =>
  thrown instanceof ServiceError && thrown.problem.attempts === 0 && attempts > 0
    ? new ServiceError({ ...thrown.problem, attempts }, { cause: thrown.cause })
    : thrown;

/** What a message is about: one item, or a list of them. */
export interface Given<D> {
  readonly items: readonly unknown[];
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  /** What all items share; saved with them, so it must be plain data. */
  readonly data: D;
}

/** One item whose work starts. */
export interface OperationTurn<D> {
  readonly caller: Caller;
  readonly item: unknown;
  readonly index: number;
  readonly list: boolean;
  readonly data: D;
  /** What the operation finds out is added here. */
  readonly known: Fields;
  /** Finds something out once for all items of a message. */
  readonly once: <T>(find: () => Promise<T>) => Promise<T>;
}

/** An operation on single records: each has its own outcome. */
export interface ItemOperation<D = unknown> {
  readonly kind: 'items';
  /** The source of the list. */
  readonly source: Source;
  readonly read: (msg: Message) => Promise<Given<D>>;
  /** Message fields of every outcome, including failures. */
  readonly carries: (item: unknown, list: boolean) => Fields;
  /** Returns the payload. */
  readonly work: (turn: OperationTurn<D>) => Promise<unknown>;
}

/** An operation that finds records: its outcomes are what it finds. */
export interface SearchOperation {
  readonly kind: 'search';
  /** The operation makes no request. An advisor narrows its results; an empty one means all. */
  readonly isLocal?: true;
  readonly run: (stream: Stream) => Promise<void>;
}

export type BookOperation = ItemOperation | SearchOperation;

interface OperationOrder extends Order {
  readonly operation: string;
  readonly data: unknown;
}

/** All nodes that read and then write a contact use this key. */
export const contactKey = ({ environment, advisor }: Caller, contactId: Id): string =>
  JSON.stringify([environment.id, advisor, String(contactId)]);

/** The search for one input message. */
export class Stream<C = Caller> {
  private readonly halt = new AbortController();
  private readonly cut = new AbortController();
  /** Set while the node is closing: an interrupted search then settles nothing. */
  closing = false;

  constructor(
    private readonly tools: Tools,
    readonly msg: Message,
    readonly job: Job,
    readonly caller: C,
  ) {}

  /** Aborted when nothing new may start. */
  get stopped(): AbortSignal {
    return this.halt.signal;
  }

  /** Aborted when requests in flight must be given up too. */
  get givenUp(): AbortSignal {
    return this.cut.signal;
  }

  stop(isClosing: boolean): void {
    this.closing = isClosing;
    this.halt.abort();
  }

  giveUp(): void {
    this.cut.abort();
  }

  progress(done: number, total: number | undefined): void {
    const { status, words } = this.tools;
    status.show(() => progressLook(words, done, total));
  }

  show(result: Parameters<typeof searchLook>[1], count = 0): void {
    const { status, words, now } = this.tools;
    const at = now();
    status.show(() => searchLook(words, result, count, at, now()));
  }
}

/** The searches of a node that are in progress. */
export class Streams<C = Caller> {
  private readonly running = new Map<Stream<C>, Promise<void>>();
  private isClosed = false;

  /** `breakOff` saves that a deploy or a stop has ended a search; its failure is emitted when the flows have started. */
  constructor(
    private readonly tools: Tools,
    private readonly breakOff: (stream: Stream<C>, why: Problem) => void,
  ) {}

  get isBusy(): boolean {
    return this.running.size > 0;
  }

  async run(stream: Stream<C>, search: (stream: Stream<C>) => Promise<void>): Promise<void> {
    if (this.isClosed) stream.stop(true);
    const settled = this.settle(stream, search);
    this.running.set(stream, settled);
    await settled;
  }

  stop(): void {
    for (const stream of this.running.keys()) stream.stop(false);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const stream of this.running.keys()) stream.stop(true);
    const giveUp = systemClock.after(closeLimit, () => {
      for (const stream of this.running.keys()) stream.giveUp();
    });
    await Promise.all(this.running.values());
    giveUp();
  }

  private async settle(stream: Stream<C>, search: (stream: Stream<C>) => Promise<void>): Promise<void> {
    let forget = (): void => undefined;
    // A search may wait for as long as the store is unavailable.
    const givenUp = new Promise<void>((resolve) => {
      forget = onAbort(stream.givenUp, resolve);
    });
    try {
      await Promise.race([search(stream), givenUp]);
    } catch (thrown) {
      const why = problemOf(thrown);
      const at = this.tools.now();
      this.tools.status.show(() => failureLook(this.tools.words, why, at, this.tools.now()));
      stream.job.fail(failedOutcome(why));
    } finally {
      forget();
      this.running.delete(stream);
    }
    if (stream.closing && !stream.job.isSettled)
      this.breakOff(stream, nodeError('cancelled', 'cancelled_by_close').problem);
  }
}

/** The handler of a node that keeps contacts, groups or content. */
export class OperationHandler extends RequestNode<Item, OperationOrder> {
  private readonly streams: Streams;
  private readonly found = new WeakMap<object, Promise<unknown>>();

  /**
   * `operations` holds all operations of the node: an item is carried out by the one it was accepted for, even if the
   * node was changed since.
   */
  constructor(
    tools: Tools,
    private readonly operations: Readonly<Record<string, BookOperation>>,
    private readonly operation = tools.plain.text('operation'),
  ) {
    super(tools, { statusTexts: { first: 'status.done' } });
    this.streams = new Streams(tools, (stream, why) => this.breakOff(stream, why));
  }

  control(msg: Message, at?: number): boolean {
    if (!isControl(msg, 'reset')) return false;
    this.streams.stop();
    this.reset(undefined, at);
    return true;
  }

  async input(msg: Message, job: Job): Promise<void> {
    const operation = this.operations[this.operation];
    if (!operation) {
      this.tools.checkSettings();
      throw new Error(`there is no operation ${this.operation}`);
    }
    if (operation.kind === 'search') await this.search(operation, msg, job);
    else await this.takeItems(operation, msg, job);
  }

  override isBusy(): boolean {
    return this.streams.isBusy || super.isBusy();
  }

  override async close(): Promise<void> {
    await this.streams.close();
    await super.close();
  }

  private async takeItems(operation: ItemOperation, msg: Message, job: Job): Promise<void> {
    const { source } = operation;
    const [advisor, given] = await Promise.all([this.tools.advisorSource.read(msg), operation.read(msg)]);
    const { items, list, data } = given;
    const taken = items.map((_, index): Item => ({ index }));
    await this.accept(
      msg,
      job,
      { items: taken, count: items.length, entries: items, list, source },
      (shared) => {
        shared.operation = this.operation;
        shared.data = data;
        this.tools.checkSettings();
        shared.advisor = this.tools.advisor(this.tools.environment(), advisor, msg);
      },
    );
  }

  protected async workOn(turn: Turn<Item, OperationOrder>): Promise<Outcome> {
    const { shared, item, entry, message } = turn;
    const operation = this.operations[shared.operation];
    if (operation?.kind !== 'items') throw nodeError('cancelled', 'cancelled');
    const list = shared.list !== undefined;
    const known = operation.carries(entry, list);
    let attempts = 0;
    try {
      const payload = await operation.work({
        caller: this.callerOf(turn, (made) => (attempts = made)),
        item: entry,
        index: item.index,
        list,
        data: shared.data,
        known,
        once: <T>(find: () => Promise<T>) => this.once(message, find),
      });
      return { port: 0, payload, set: known };
    } catch (thrown) {
      const why = problemOf(withAttempts(thrown, attempts));
      if (why.code === 'cancelled') throw thrown;
      return failedOutcome(why, known);
    }
  }

  private once<T>(job: object, find: () => Promise<T>): Promise<T> {
    const finding = (this.found.get(job) as Promise<T> | undefined) ?? find();
    this.found.set(job, finding);
    return finding;
  }

  private callerOf(
    { client, environment, shared: { advisor }, signal, begin, undo }: Turn<Item, OperationOrder>,
    answered: (attempts: number) => void,
  ): Caller {
    const lane = this.tools.node.id;
    return {
      environment,
      advisor,
      async call(name, request, stop = signal) {
        const steps = endpoints[name].method === 'GET' ? {} : { begin, undo };
        const { data, attempts } = await client.call(name, request, {
          advisor,
          lane,
          signal: stop,
          ...steps,
        });
        answered(attempts);
        return data;
      },
    };
  }

  protected completeOutcome(
    outcome: Outcome,
    shared: OperationOrder,
    _item: Item,
    _index: number,
    entry: unknown,
  ): Outcome {
    if (outcome.set) return outcome;
    const operation = this.operations[shared.operation];
    const set = operation?.kind === 'items' ? operation.carries(entry, shared.list !== undefined) : {};
    return { ...outcome, set };
  }

  private async search(operation: SearchOperation, msg: Message, job: Job): Promise<void> {
    const { tools } = this;
    this.tools.checkSettings();
    const environment = tools.environment();
    const given = await tools.advisorSource.read(msg);
    const advisor = operation.isLocal
      ? anyAdvisor(tools.advisorSource, given, msg)
      : tools.advisor(environment, given, msg);
    const client = operation.isLocal ? undefined : await environment.client();
    let attempts = 0;
    const caller: Caller = {
      environment,
      advisor,
      async call(name, request, signal) {
        if (!client) throw new Error('this operation asks the service for nothing');
        const options = { advisor, lane: tools.node.id, ...(signal && { signal }) };
        const answer = await client.call(name, request, options);
        ({ attempts } = answer);
        return answer.data;
      },
    };
    const run = (stream: Stream): Promise<void> =>
      operation.run(stream).catch((thrown: unknown) => {
        throw withAttempts(thrown, attempts);
      });
    await this.streams.run(new Stream(tools, msg, job, caller), run);
  }

  private breakOff({ msg, job }: Stream, why: Problem): void {
    this.refuse(msg, job, why, (shared) => {
      shared.operation = this.operation;
      shared.data = null;
    });
  }
}
