import type { Answer } from '../service/client';
import type { EndpointName, Id, RequestOf, ResponseOf } from '../service/endpoints';
import { closeLimit, systemClock } from '../service/clock';
import { abortOf, wokenBy } from '../service/concurrency';
import type { Environment } from '../runtime/environment';
import type { Source } from '../runtime/inputs';
import { anyAdvisor, type Tools } from '../runtime/flow-node';
import { orMake } from '../process-memory';
import type { Item } from '../outbox/item';
import type { ItemData, Shared } from '../outbox/records';
import { faultOf, itemNode } from '../runtime/item-node';
import type { Job } from '../runtime/delivery';
import { nodeError } from '../runtime/errors';
import { type Problem, ServiceError } from '../service/errors';
import { failedOutcome, problemOf } from '../runtime/outcomes';
import type { Message } from '../runtime/red';
import type { Config, NodeRuntime } from '../runtime/register';
import type { NodeSpec } from '../runtime/spec';
import { failureLook, progressLook, searchLook } from '../runtime/status';

/** Message fields of one outcome, filled in as they become known. */
export type Fields = Record<string, unknown>;

/** The service, on behalf of the message's advisor. */
export interface Caller {
  readonly environment: Environment;
  readonly advisor: string;
  /** How many requests its last answer took. */
  attempts: number;
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

interface OperationShared extends Shared {
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
  /** Aborted when nothing new may start. */
  readonly stopped = this.halt.signal;
  /** Aborted when requests in flight must be given up too. */
  readonly givenUp = this.cut.signal;
  /** Set while the node is closing: an interrupted search then settles nothing. */
  closing = false;

  constructor(
    private readonly tools: Tools,
    readonly msg: Message,
    readonly job: Job,
    readonly caller: C,
  ) {}

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
    const { status, words, clock } = this.tools;
    const at = clock.now();
    status.show(() => searchLook(words, result, count, at, clock.now()));
  }
}

/** The searches of a node. `prepare` gives what a search is made with. */
export class Searches<C = Caller> {
  private readonly running = new Map<Stream<C>, Promise<void>>();
  private isClosed = false;
  private stops = 0;

  constructor(
    private readonly tools: Tools,
    private readonly prepare: (msg: Message) => Promise<C>,
    private readonly search: (stream: Stream<C>) => Promise<void>,
  ) {}

  get isBusy(): boolean {
    return this.running.size > 0;
  }

  async run(msg: Message, job: Job, breakOff: (why: Problem) => void): Promise<void> {
    const { stops } = this;
    const stream = new Stream(this.tools, msg, job, await this.prepare(msg));
    if (this.stops > stops) throw nodeError('cancelled', 'cancelled');
    if (this.isClosed) stream.stop(true);
    const settled = this.settle(stream, breakOff);
    this.running.set(stream, settled);
    await settled;
  }

  stop(): void {
    this.stops += 1;
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

  private async settle(stream: Stream<C>, breakOff: (why: Problem) => void): Promise<void> {
    try {
      const searching = this.search(stream);
      // A search may wait for as long as the store is unavailable.
      await wokenBy(searching, abortOf(stream.givenUp));
      if (!stream.givenUp.aborted) await searching;
    } catch (thrown) {
      const why = problemOf(thrown);
      const at = this.tools.clock.now();
      this.tools.status.show(() => failureLook(this.tools.words, why, at, this.tools.clock.now()));
      stream.job.fail(failedOutcome(why));
    } finally {
      this.running.delete(stream);
    }
    if (stream.closing && !stream.job.isSettled)
      breakOff(nodeError('cancelled', 'cancelled_by_close').problem);
  }
}

type Ask = <N extends EndpointName>(
  name: N,
  request: RequestOf<N>,
  signal?: AbortSignal,
) => Promise<Answer<N>>;

const callerOf = (environment: Environment, advisor: string, ask: Ask): Caller => {
  const caller: Caller = {
    environment,
    advisor,
    attempts: 0,
    async call(name, request, signal) {
      const { data, attempts } = await ask(name, request, signal);
      caller.attempts = attempts;
      return data;
    },
  };
  return caller;
};

const searchesOf = (tools: Tools, { isLocal, run }: SearchOperation): Searches => {
  const prepare = async (msg: Message): Promise<Caller> => {
    tools.checkSettings();
    const environment = tools.environment();
    const given = await tools.advisorSource.read(msg);
    const advisor = isLocal ? anyAdvisor(tools.advisorSource, given, msg) : tools.advisor(given, msg);
    const client = isLocal ? undefined : await environment.client();
    return callerOf(environment, advisor, (name, request, signal) => {
      if (!client) throw new Error('this operation asks the service for nothing');
      return client.call(name, request, { advisor, lane: tools.node.id, ...(signal && { signal }) });
    });
  };
  return new Searches(tools, prepare, (stream) =>
    run(stream).catch((thrown: unknown) => {
      throw withAttempts(thrown, stream.caller.attempts);
    }),
  );
};

/**
 * A node that keeps contacts, groups or content. `operationsOf` gives all its operations: an item is carried out by the
 * one it was accepted for, even if the node was changed since.
 */
export const operationNode = (
  spec: NodeSpec,
  operationsOf: (tools: Tools, config: Config) => Readonly<Record<string, BookOperation>>,
): NodeRuntime['create'] =>
  itemNode<ItemData, OperationShared>(spec, (tools, config) => {
    const operations = operationsOf(tools, config);
    const names = Object.keys(operations);
    const chosen = names.length === 1 ? (names[0] ?? '') : tools.plain.text('operation');
    const operation = operations[chosen];
    const found = new WeakMap<object, Promise<unknown>>();
    const itemsOf = ({ operation: name }: OperationShared): ItemOperation | undefined => {
      const of = operations[name];
      return of?.kind === 'items' ? of : undefined;
    };
    return {
      statusTexts: { first: 'status.done' },
      searches: operation?.kind === 'search' ? searchesOf(tools, operation) : undefined,
      async read(msg) {
        if (operation?.kind !== 'items') {
          tools.checkSettings();
          throw new Error(`there is no operation ${chosen}`);
        }
        const [advisor, given] = await Promise.all([tools.advisorSource.read(msg), operation.read(msg)]);
        const { items: entries, list, data } = given;
        const shared = { advisor: '', operation: chosen, data };
        const fault = faultOf(() => {
          shared.advisor = tools.advisor(advisor, msg);
        });
        const items = entries.map((_, index) => ({ index }));
        return { items, count: entries.length, entries, list, source: operation.source, shared, fault };
      },
      async work(item: Item<ItemData, OperationShared>) {
        const { shared, data, entry, message } = item;
        const of = itemsOf(shared);
        if (!of) throw nodeError('cancelled', 'cancelled');
        const list = shared.list !== undefined;
        const known = of.carries(entry, list);
        const caller = callerOf(tools.environment(), item.advisor, (name, request, signal) =>
          item.call(name, request, { signal }),
        );
        try {
          const payload = await of.work({
            caller,
            item: entry,
            index: data.index,
            list,
            data: shared.data,
            known,
            once: (find) => orMake(found, message, find) as ReturnType<typeof find>,
          });
          return { port: 0, payload, set: known };
        } catch (thrown) {
          const why = problemOf(withAttempts(thrown, caller.attempts));
          if (why.code === 'cancelled') throw thrown;
          return failedOutcome(why, known);
        }
      },
      fields(outcome, { shared, entry }) {
        if (outcome.set) return outcome;
        return { ...outcome, set: itemsOf(shared)?.carries(entry, shared.list !== undefined) ?? {} };
      },
    };
  });
