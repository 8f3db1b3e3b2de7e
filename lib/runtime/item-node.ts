import { setImmediate as nextTick } from 'node:timers/promises';
import { second } from '../durations';
import type { Mutable } from '../mutable';
import { duplicatesOf, type Item, type Items, type QueuedMessage } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import { Later, Queue, QueueFull, type Reason } from '../outbox/queue';
import { pendingIn } from '../outbox/queue-reader';
import type { ItemData, Shared } from '../outbox/records';
import { systemClock } from '../service/clock';
import { ageClock, StoreClosed, TakenOver, type Peers, type Store } from '../state/store';
import { activityOf, isCancelling, type Activity } from './activity';
import { setAt, withoutList, type Job, type Part } from './delivery';
import type { Environment } from './environment';
import { nodeError } from './errors';
import { flowNode, isControl, type Handler, type Tools } from './flow-node';
import { noSource, pathIn, type Source } from './inputs';
import { failedOutcome, problemOf } from './outcomes';
import type { Message, RunningNode } from './red';
import type { Config, NodeRuntime } from './register';
import type { NodeSpec } from './spec';
import { Searches, type PrepareSearch } from './searches';
import { outcomeStatus, type OutcomeCounts, type StatusTexts } from './status';

/** The items of a message as they were read. */
export interface Batch<D extends ItemData = ItemData, S extends Shared = Shared> extends Items<D, S> {
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  /** The property that named the items. */
  readonly source: Source;
  /** Why every item fails. */
  readonly fault?: Error | undefined;
}

/** The error that `read` throws; undefined when it throws none. */
export const faultOf = (read: () => void): Error | undefined => {
  try {
    read();
    return undefined;
  } catch (thrown) {
    return thrown as Error;
  }
};

/** What an outcome is of. */
export type ItemOf<D extends ItemData, S extends Shared> = Pick<Item<D, S>, 'data' | 'shared' | 'entry'>;

/** A rule around the work of an item. */
export interface Guard<D extends ItemData = ItemData, S extends Shared = Shared> {
  /** Passes an item on with `next`; else gives its outcome, or throws: `Later` where it has another turn later. */
  pass(item: Item<D, S>, next: () => Promise<Outcome>): Promise<Outcome>;
  /** Called before an item ends that does not reach this guard; without a reason, a guard before this one has stopped it. */
  endsWithout?(item: Item<D, S>, reason: Reason | undefined): Promise<void>;
  close?(): void;
}

/** What guards work with. */
export interface GuardTools {
  readonly environment: Environment;
  /** The id of the node. */
  readonly node: string;
  /** Gives the held items of a number their turn. */
  readonly recheck: (phone: string) => void;
}

/** What reading a message may need. */
export interface ReadingTools {
  readonly environment: Environment | undefined;
  /** Called when a list takes long to read: messages behind it wait in line, because a reset among them means it too. */
  readonly holdOthers: () => void;
}

/** For a node whose items may wait for something: what they share has a pace then. */
export interface NodeWaits<D extends ItemData, S extends Shared> {
  /** All items are saved, even without `journal`. */
  readonly isOn: boolean;
  /** Called with each queue of the node, and with a function that reports a fault. */
  opened(queue: Queue<D, S>, fault: (thrown: unknown) => void): Promise<OpenWaits>;
}

interface OpenWaits {
  /** Shows in the status that some wait, while they do. */
  draw(): void;
  close(): void;
}

/** A node that has items. */
export interface ItemNodeOptions<D extends ItemData, S extends Shared> {
  /** The items of a message; a throw fails the message as one. */
  read(msg: Message, reading: ReadingTools): Batch<D, S> | Promise<Batch<D, S>>;
  /** Asked in this order, at each turn of an item. Made when the environment is known. */
  guards?(tools: GuardTools): readonly Guard<D, S>[];
  /** From an item to its outcome; a throw becomes a failure. */
  work(item: Item<D, S>): Promise<Outcome>;
  /** Adds the message fields of an outcome; `index` is that of the item, or of a duplicate. */
  fields?(outcome: Outcome, item: ItemOf<D, S>, index: number): Outcome;
  /** The same for a message that fails as one. */
  failedFields?(failure: Outcome, msg: Message): Outcome;
  /** The numbers that a reset is for; undefined means all. */
  phonesOf?(msg: Message, reading: ReadingTools): readonly string[] | undefined;
  /** The outcome of an item that ends without its work; undefined where that is a failure. */
  endedBy?(item: Item<D, S>, reason: Reason): Outcome | undefined | Promise<Outcome | undefined>;
  readonly statusTexts: StatusTexts;
  readonly waits?: NodeWaits<D, S>;
  /** With it, every message is a search. */
  readonly search?: PrepareSearch | undefined;
  /** The work makes no request: it needs no service, and its items belong to none. */
  readonly isLocal?: boolean;
}

const codePrefix = 'code ';

/** The kinds under which `msg.summary` counts an outcome. */
export const kindsIn = (tools: Tools, outcome: Outcome): readonly string[] => {
  const name = tools.outputs.nameOf(outcome);
  if (name === 'failed' && outcome.problem) return [name, codePrefix + outcome.problem.code];
  // `alreadySent` comes first, because duplicates are counted under the first kind.
  return outcome.alreadySent ? ['alreadySent', name] : [name];
};

/** Repeats and duplicates of texts that were sent. */
const alreadySentIn = (counts: OutcomeCounts): number =>
  (counts['alreadySent'] ?? 0) + (counts[duplicatesOf('sent')] ?? 0);

/** `msg.summary` without its id. */
export const summaryOf = (tools: Tools, total: number, counts: OutcomeCounts): Record<string, unknown> => {
  // The service may send any text as a code, even `__proto__`, which an assignment would lose.
  const byCode = Object.fromEntries(
    Object.entries(counts)
      .filter(([kind, count]) => kind.startsWith(codePrefix) && count > 0)
      .map(([kind, count]) => [kind.slice(codePrefix.length), count]),
  );
  const outputs = Object.fromEntries(tools.outputs.names.map((name) => [name, counts[name] ?? 0]));
  return { total, ...outputs, ...('sent' in outputs && { alreadySent: alreadySentIn(counts) }), byCode };
};

const indexesOf = ({ index, duplicates }: ItemData): readonly number[] =>
  duplicates ? [index, ...duplicates.map((each) => each.index)] : [index];

/** The job of a message, which is made again where the message was read from the store. */
const jobOf = (tools: Tools, message: QueuedMessage, startId: string, indexes: readonly number[]): Job => {
  if (message.attachment) return message.attachment as Job;
  const { message: msg, entries, dropped } = message.input;
  const { record, remaining } = message;
  const { list } = record.shared;
  // A Complete node gets the message as it came in.
  if (list?.at && entries) setAt(msg, list.at, entries);
  const job = tools.resumed(msg, record.startId === startId);
  // Others of the list may have left long before: the job is not in memory all the time.
  if (list) job.asList(record.count, { listAt: list.at, id: list.id, remaining: remaining + indexes.length });
  if (dropped) tools.warnOfDropped();
  message.attachment = job;
  return job;
};

/** The failure of an item that ends without its work. */
const failureBy = (reason: Reason): Outcome => {
  const unknown = (key: 'unknown_after_crashes' | 'unknown_after_restart') =>
    nodeError('outcome_unknown', key, {}, { attempts: 1 });
  const errors = {
    reset: () => nodeError('cancelled', 'cancelled'),
    moved: () => nodeError('cancelled', 'environment_changed'),
    retyped: () => nodeError('cancelled', 'node_changed'),
    stale: () => nodeError('stale', 'stale'),
    crashes: () => unknown('unknown_after_crashes'),
    unknown: () => unknown('unknown_after_restart'),
    taken_over: () => unknown('unknown_after_restart'),
    refused: () => nodeError('network_error', 'not_saved'),
  };
  return failedOutcome(errors[reason]().problem);
};

/** Counts items that are cancelled at a start, which are found page by page; one warning names their number. */
class CancelledCount {
  private readonly counts = new Map<string, number>();
  private forget: (() => void) | undefined;

  constructor(private readonly tools: Tools) {}

  add(warning: 'movedWork' | 'retypedWork' | 'moved'): void {
    this.counts.set(warning, (this.counts.get(warning) ?? 0) + 1);
    this.forget ??= systemClock.after(second, () => this.warn());
  }

  warn(): void {
    const { node, words } = this.tools;
    this.forget?.();
    this.forget = undefined;
    for (const [warning, count] of this.counts)
      node.warn(words.say(`warning.${warning}`, { count: words.number(count) }));
    this.counts.clear();
  }
}

/** Held items and waits are saved even without `journal`, and continue when the settings have changed. */
const isSavedFromBefore = async (tools: Tools, environment: Environment): Promise<boolean> => {
  try {
    const { items, waits } = await pendingIn(await environment.store(), tools.node.id);
    return items + waits > 0;
  } catch {
    return false;
  }
};

/**
 * The items of a flow node: each is saved before it starts, and its outcome is saved before it is emitted. Work that a
 * close, a kill or a deploy interrupts is carried on by the next node of the same id.
 */
const itemHandler = <D extends ItemData, S extends Shared>(
  tools: Tools,
  options: ItemNodeOptions<D, S>,
): Handler => {
  const { RED, node, words } = tools;
  const { waits, isLocal = false } = options;
  let guards: readonly Guard<D, S>[] = [];
  let environment: Environment | undefined;
  let activity: Activity | undefined;
  /** The queue that messages enter. */
  let queue: Queue<D, S> | undefined;
  /** All queues: there is one more in the store of each process that ended. */
  const queues = new Map<Store, Queue<D, S>>();
  const closes = new Map<Store, Promise<() => Promise<void>>>();
  let unlisten: (() => void) | undefined;
  let opening: Promise<void> | undefined;
  /** Why there is no queue. */
  let unopened: unknown;
  const shown = outcomeStatus(tools, options.statusTexts, () => queues.values());
  const cancelled = new CancelledCount(tools);

  const changed = (): void => activity?.changed();

  /** Shows an outcome in the status; without `list`, it is that of a single message. */
  const show = (outcome: Outcome, list?: OutcomeCounts): void => {
    if (!list) shown.note(outcome);
    // While others wait, the status says so.
    if (!Array.from(queues.values()).some(({ waitCount }) => waitCount > 0)) shown.show(outcome, list);
    changed();
  };

  /** Reports a fault of the store as an error of the node. */
  const fault = (thrown: unknown): void => {
    // The next start, or the process that has taken over the store, finds the work saved and carries it on.
    if (!(thrown instanceof TakenOver || thrown instanceof StoreClosed))
      node.error(words.problem(problemOf(thrown)));
  };

  const withFields = (outcome: Outcome, data: D, shared: S, index: number, entry: unknown): Outcome =>
    options.fields?.(outcome, { data, shared, entry }, index) ?? outcome;

  const pass = (item: Item<D, S>, reached: { guards: number }): Promise<Outcome> => {
    const guard = guards[reached.guards];
    reached.guards += 1;
    return guard ? guard.pass(item, () => pass(item, reached)) : options.work(item);
  };

  const outcomeBy = async (item: Item<D, S>, reason: Reason): Promise<Outcome> => {
    if (reason === 'moved') cancelled.add(item.isWait ? 'moved' : 'movedWork');
    if (reason === 'retyped' && !item.isWait) cancelled.add('retypedWork');
    return (await options.endedBy?.(item, reason)) ?? failureBy(reason);
  };

  const work = async (item: Item<D, S>): Promise<Outcome | undefined> => {
    if (item.data.wrong) return failedOutcome(item.data.wrong);
    const reached = { guards: 0 };
    try {
      return await pass(item, reached);
    } catch (thrown) {
      if (thrown instanceof Later) throw thrown;
      for (const guard of guards.slice(reached.guards))
        await guard.endsWithout?.(item, undefined).catch(() => undefined);
      const why = problemOf(thrown);
      if (why.code !== 'cancelled') return failedOutcome(why);
      // A close interrupted it: the item stays saved as not started.
      return item.signal.aborted && !item.isReset ? undefined : outcomeBy(item, 'reset');
    }
  };

  const endWithout = async (item: Item<D, S>, reason: Reason): Promise<Outcome> => {
    const isSaved = reason !== 'refused' && reason !== 'taken_over';
    try {
      if (isSaved) for (const guard of guards) await guard.endsWithout?.(item, reason);
    } catch (thrown) {
      // The process that has taken over the store does the same.
      if (!(thrown instanceof TakenOver)) throw thrown;
    }
    return outcomeBy(item, reason);
  };

  /** Lets an outcome leave, with the duplicates of its item. */
  const emit = (item: Item<D, S>, outcome: Outcome, offer?: number): Promise<boolean> => {
    const { message, data, shared, isRepeated } = item;
    const { count } = message.record;
    const counts = item.count(kindsIn(tools, outcome));
    const isLast = counts['total'] === count;
    const summary = isLast && shared.list ? summaryOf(tools, count, counts) : undefined;
    const { entries } = message.input;
    const indexes = indexesOf(data);
    const parts = indexes.map((index): Part => {
      const entry = entries?.[index];
      const whole = withFields(outcome, data, shared, index, entry);
      return {
        index,
        outcome: isRepeated ? { ...whole, repeated: true } : whole,
        offer,
        summary: index === indexes.at(-1) ? summary : undefined,
        entry,
      };
    });
    const left = jobOf(tools, message, queue?.startId ?? '', indexes).deliver(parts, tools.closed);
    show(outcome, count === 1 ? undefined : { ...counts, alreadySent: alreadySentIn(counts) });
    return left;
  };

  /** Other processes may have cancelled items while no process worked in this part of the store. */
  const carryOutCancels = async (part: Peers): Promise<void> => {
    // Until then, the node takes no commands.
    while (opening) await opening;
    await part.carryOut(isCancelling);
  };

  /** Opens a queue in a store, and carries on what is there; the result closes it. */
  const openQueue = async (store: Store): Promise<() => Promise<void>> => {
    const from = tools.environment();
    const { maxConcurrent, resumeWithin } = from.settings;
    let started: Promise<void> | undefined;
    const opened: Queue<D, S> = new Queue<D, S>({
      store,
      node: node.id,
      type: node.type,
      space: isLocal ? `${from.id}/local` : from.space,
      width: maxConcurrent,
      resumeWithin,
      clock: from.clock,
      waitClock: ageClock(from, store),
      service: from,
      work: (item, reason) => (reason ? endWithout(item, reason) : work(item)),
      emit,
      changed: () => {
        waiting?.draw();
        shown.heldChanged();
        changed();
      },
      fault,
    });
    const waiting = await waits?.opened(opened, fault);
    queues.set(store, opened);
    const ends = [
      from.addPending(node, () => pendingIn(store, node.id)),
      activityOf(from).add({ id: node.id, name: node.name ?? '' }, opened),
    ];
    tools.whenStarted(() => {
      // The start waits one tick, because a reset may be in line.
      started = nextTick()
        .then(() => store.peers && carryOutCancels(store.peers))
        // Flows that are stopped right after their start have closed the store by now.
        .then(() => (tools.closed.aborted ? undefined : opened.start()))
        .catch(fault);
    });
    return async () => {
      for (const end of ends) end();
      await opened.close();
      await started;
      waiting?.close();
      queues.delete(store);
    };
  };

  const openIn = (store: Store): Promise<unknown> => {
    const opened = openQueue(store);
    closes.set(store, opened);
    return opened;
  };

  const closeIn = async (store: Store): Promise<void> => {
    const opened = closes.get(store);
    closes.delete(store);
    const close = await opened?.catch(() => undefined);
    await close?.();
  };

  const failedToOpen = (thrown: unknown): void => {
    unopened = thrown instanceof TakenOver ? nodeError('network_error', 'not_saved') : thrown;
    const why = problemOf(unopened);
    if (why.code !== 'not_configured') fault(thrown);
    shown.show(failedOutcome(why), {});
  };

  const open = async (): Promise<void> => {
    const from = tools.environment();
    const recheck = (phone: string): void => {
      for (const each of queues.values()) each.recheck(phone);
    };
    guards = options.guards?.({ environment: from, node: node.id, recheck }) ?? [];
    unlisten = from.onStore?.((store, kind) => {
      if (kind === 'orphan') openIn(store).catch(failedToOpen);
      return kind === 'gone' ? closeIn(store).catch(() => undefined) : undefined;
    });
    const { textHours, ...settings } = from.settings;
    const mayHold = options.guards !== undefined;
    const journal = settings.journal || waits?.isOn === true || (mayHold && textHours?.outside === 'hold');
    const isSaved = journal || ((mayHold || waits) && (await isSavedFromBefore(tools, from)));
    const store = await (isSaved ? from.store() : from.memory());
    if (journal && !store.durable) tools.markUnsaved();
    await openIn(store);
    queue = queues.get(store);
    environment = from;
    activity = activityOf(from);
  };

  const openAfter = (waited: Promise<void>): void => {
    const ended = waited
      .catch(() => undefined)
      .then(() => {
        if (opening === ended) opening = undefined;
      });
    opening = ended;
  };

  /** Every item fails, without being saved. */
  const refuse = (job: Job, { items, entries, count, shared }: Batch<D, S>, thrown: unknown): void => {
    const why = failedOutcome(problemOf(thrown));
    // Whether a number can be read may depend on the country of an environment that is missing.
    const isUnready = why.problem?.code === 'not_configured';
    const counts: Record<string, number> = {};
    let left = count;
    for (const data of items)
      for (const index of indexesOf(data)) {
        const outcome = data.wrong && !isUnready ? failedOutcome(data.wrong) : why;
        for (const kind of kindsIn(tools, outcome)) counts[kind] = (counts[kind] ?? 0) + 1;
        left -= 1;
        const entry = entries?.[index];
        const summary = shared.list && left === 0 ? summaryOf(tools, count, counts) : undefined;
        job.emit(index, withFields(outcome, data, shared, index, entry), { entry, summary });
      }
    if (count > 1) shown.show(why, counts);
    else show(why);
  };

  const save = (msg: Message, job: Job, batch: Batch<D, S>): void => {
    if (!queue) throw unopened;
    const claim = job.takeHandOver();
    try {
      // Entries are saved themselves: the list is not saved twice.
      const message = batch.entries ? withoutList(msg, batch.shared.list?.at) : msg;
      queue.accept(message, batch, job, claim);
      changed();
    } catch (thrown) {
      claim?.();
      throw thrown instanceof QueueFull ? nodeError('queue_full', 'queue_full') : thrown;
    }
  };

  const accept = (msg: Message, job: Job, batch: Batch<D, S>): void => {
    if (batch.list) {
      const listAt = pathIn(RED, batch.source, msg);
      const id = job.asList(batch.count, { listAt });
      (batch.shared as Mutable<Shared>).list = listAt ? { id, at: listAt } : { id };
    }
    try {
      if (batch.fault) throw batch.fault;
      save(msg, job, batch);
    } catch (thrown) {
      refuse(job, batch, thrown);
    }
  };

  const searches =
    options.search &&
    new Searches(tools, options.search, (msg, job, wrong) => {
      // All other fields of an item, and of what items share, are optional.
      const [item, shared] = [{ index: 0, wrong } as D, { advisor: '' } as S];
      accept(msg, job, { items: [item], count: 1, list: false, source: noSource, shared });
    });

  openAfter(Promise.resolve().then(open).catch(failedToOpen));
  // The environment, which closes at the same time, interrupts texts too.
  tools.closed.addEventListener('abort', () => {
    for (const each of queues.values()) each.stop();
  });

  return {
    get opening() {
      return opening;
    },
    input(msg, job) {
      if (searches) return searches.run(msg, job);
      const list: { isLong: boolean; accepted?: Promise<void> } = { isLong: false };
      const holdOthers = (): void => {
        list.isLong = true;
        if (list.accepted) openAfter(list.accepted);
      };
      const batch = options.read(msg, { environment, holdOthers });
      if (!(batch instanceof Promise)) {
        accept(msg, job, batch);
        return undefined;
      }
      list.accepted = batch.then((read) => accept(msg, job, read));
      if (list.isLong) openAfter(list.accepted);
      return list.accepted;
    },
    control(msg, at, orphan) {
      const meant = orphan ? queues.get(orphan) : queue;
      const isReset = isControl(msg, 'reset');
      if ((orphan && !meant) || (!isReset && !(waits && isControl(msg, 'flush')))) return false;
      const phones = options.phonesOf?.(msg, { environment, holdOthers: () => undefined });
      searches?.stop();
      if (isReset) meant?.reset(phones, at);
      // A close does not wait for it, and the next start does not continue it.
      else meant?.flush(phones).catch(fault);
      return true;
    },
    failed(why, msg) {
      const failure = failedOutcome(why);
      shown.note(failure);
      shown.show(failure);
      changed();
      return options.failedFields?.(failure, msg) ?? failure;
    },
    multiplies: searches !== undefined,
    isBusy: () => searches?.isBusy === true || Array.from(queues.values()).some((each) => each.isBusy),
    async close() {
      await searches?.close();
      // A long list may be accepted after another one.
      while (opening) await opening;
      await tools.allRead();
      unlisten?.();
      for (const guard of guards) guard.close?.();
      await Promise.all(Array.from(closes.keys(), closeIn));
      cancelled.warn();
    },
  };
};

/** The `create` of a node that has items. */
export const itemNode =
  <D extends ItemData, S extends Shared>(
    spec: NodeSpec,
    options: (tools: Tools, config: Config) => ItemNodeOptions<D, S>,
  ): NodeRuntime['create'] =>
  (RED, node, config) => {
    flowNode(RED, node as RunningNode, config, spec, (tools) => itemHandler(tools, options(tools, config)));
  };
