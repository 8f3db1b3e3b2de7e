import type { Answer } from '../service/client';
import type { EndpointName, Id, RequestOf, ResponseOf } from '../service/endpoints';
import type { Environment } from '../runtime/environment';
import { oneOrList, type Source } from '../runtime/inputs';
import type { Tools } from '../runtime/flow-node';
import { orMake } from '../process-memory';
import type { Item } from '../outbox/item';
import type { ItemData, Shared } from '../outbox/records';
import { itemNode } from '../runtime/item-node';
import { failedOutcome, problemOf } from '../runtime/errors';
import { serviceError, ServiceError } from '../service/errors';
import type { Message } from '../runtime/red';
import type { Config, NodeRuntime } from '../runtime/register';
import type { NodeSpec } from '../runtime/spec';
import type { PrepareSearch, Stream } from '../runtime/searches';

/** Message fields of one outcome, filled in as they become known. */
export type Fields = Record<string, unknown>;

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
    ? thrown.after(attempts)
    : thrown;

export interface OperationTurn {
  readonly caller: Caller;
  readonly item: unknown;
  /** All that came with it. */
  readonly entries: readonly unknown[];
  readonly index: number;
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  readonly data: unknown;
  /** What the operation finds out is added here. */
  readonly known: Fields;
  /** Finds something out once for all items of a message: it goes on if one of them is cancelled. */
  readonly once: <T>(find: (caller: Caller) => Promise<T>) => Promise<T>;
}

/** An operation on single records: each has its own outcome. */
export interface ItemOperation {
  readonly kind: 'items';
  readonly source: Source;
  readonly warn?: (items: readonly unknown[]) => void;
  /** What all items of a message share; saved with them, so it must be plain data. */
  readonly data?: (msg: Message) => unknown;
  /** Message fields of every outcome, including failures. */
  readonly carries: (item: unknown, list: boolean) => Fields;
  readonly work: (turn: OperationTurn) => Promise<unknown>;
}

/** An operation that finds records: its outcomes are what it finds. */
export interface SearchOperation {
  readonly kind: 'search';
  readonly prepare: PrepareSearch;
}

export type BookOperation = ItemOperation | SearchOperation;

interface OperationShared extends Shared {
  readonly operation: string;
  readonly data: unknown;
}

/** All nodes that read and then write a contact use this key. */
export const contactKey = ({ environment, advisor }: Caller, contactId: Id): string =>
  JSON.stringify([environment.id, advisor, String(contactId)]);

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

export const searchAtService = (
  tools: Tools,
  run: (stream: Stream, caller: Caller) => Promise<void>,
): SearchOperation => ({
  kind: 'search',
  async prepare(msg) {
    tools.checkSettings();
    const environment = tools.environment();
    const advisor = tools.advisor(await tools.advisorSource.read(msg), msg);
    const client = await environment.client();
    const caller = callerOf(environment, advisor, (name, request, signal) =>
      client.call(name, request, { advisor, lane: tools.node.id, ...(signal && { signal }) }),
    );
    return (stream) =>
      run(stream, caller).catch((thrown: unknown) => {
        throw withAttempts(thrown, caller.attempts);
      });
  },
});

/** An item is carried out by the operation that it was accepted for, even if the node was changed since. */
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
      search: operation?.kind === 'search' ? operation.prepare : undefined,
      async read(msg) {
        if (operation?.kind !== 'items') {
          tools.checkSettings();
          throw new Error(`there is no operation ${chosen}`);
        }
        const { source, warn } = operation;
        const reading = [tools.advisorSource.read(msg), source.read(msg), operation.data?.(msg)];
        const [advisor, value, data] = await Promise.all(reading);
        const { items: entries, list } = oneOrList(value, source.where);
        warn?.(entries);
        const shared = { advisor: '', operation: chosen, data };
        const items = entries.map((_, index) => ({ index }));
        const check = (): void => {
          shared.advisor = tools.advisor(advisor, msg);
        };
        return { items, count: entries.length, entries, list, source, shared, check };
      },
      async work(item: Item<ItemData, OperationShared>) {
        const { shared, data, entry, message } = item;
        const of = itemsOf(shared);
        if (!of) throw serviceError('cancelled', 'cancelled');
        const list = shared.list !== undefined;
        const known = of.carries(entry, list);
        const callerUntil = (end?: AbortSignal): Caller =>
          callerOf(tools.environment(), item.advisor, (name, request, signal = end) =>
            item.call(name, request, { signal }),
          );
        const caller = callerUntil();
        try {
          const payload = await of.work({
            caller,
            item: entry,
            entries: message.input.entries ?? [],
            index: data.index,
            list,
            data: shared.data,
            known,
            once: (find) =>
              orMake(found, message, () => find(callerUntil(tools.closed))) as ReturnType<typeof find>,
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
