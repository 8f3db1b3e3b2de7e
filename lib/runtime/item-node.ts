import { setImmediate as nextTick } from 'node:timers/promises';
import { minute, second } from '../durations';
import type { Mutable } from '../mutable';
import { countReturn, handOver, leftOtherService, noReturns, oneMore } from '../outbox/hand-over';
import type { Item, Items, QueuedMessage } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import { Later, Queue, QueueFull, type Reason } from '../outbox/queue';
import { pendingIn } from '../outbox/queue-reader';
import type { ItemData, Shared } from '../outbox/records';
import { readable, removeUnreadable } from '../outbox/storable-message';
import { closeLimit, systemClock, within } from '../service/clock';
import { serviceError, ServiceError } from '../service/errors';
import { processMemory } from '../process-memory';
import { ageClock, TakenOver, type Store } from '../state/store';
import { activityOf, isCancelling } from './activity';
import { alreadySentIn, Job, setAt, Tally, withoutList, type Part } from './delivery';
import type { Environment } from './environment';
import { environmentOf, isAuthorized, toolsOf, whenAdded, type Tools } from './flow-node';
import { failedOutcome, problemOf } from './errors';
import { noSource, pathIn, type Source } from './inputs';
import type { Message, RunningNode } from './red';
import type { Config, NodeRuntime } from './register';
import type { NodeSpec } from './spec';
import { Searches, type PrepareSearch } from './searches';
import { look, loopLook, outcomeStatus, unauthorizedLook, type StatusTexts } from './status';

export interface Batch<D extends ItemData = ItemData, S extends Shared = Shared> extends Items<D, S> {
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  readonly source: Source;
  /** Completes what the items share. A throw fails each of them. */
  check?(): void;
}

export type ItemOf<D extends ItemData, S extends Shared> = Pick<Item<D, S>, 'data' | 'shared' | 'entry'>;

export interface Guard<D extends ItemData = ItemData, S extends Shared = Shared> {
  /** Passes an item on with `next`, or returns its outcome, or throws: `Later` if it has another turn. */
  pass(item: Item<D, S>, next: () => Promise<Outcome>): Promise<Outcome>;
  /** Called when an item ends without reaching this guard; without a reason, an earlier guard has stopped it. */
  endsWithout?(item: Item<D, S>, reason: Reason | undefined): Promise<void>;
  /** Whether items may be held: they are saved even without `journal` then. */
  readonly mayHold?: boolean;
  close?(): void;
}

export interface GuardTools {
  readonly environment: Environment;
  readonly node: string;
  /** Gives the held items of a number their turn. */
  readonly recheck: (phone: string) => void;
}

/** For a node whose items may wait: what they share has a pace then. */
export interface NodeWaits<D extends ItemData, S extends Shared> {
  /** All items are saved, even without `journal`. */
  readonly isOn: boolean;
  /** Called when a wait has changed. */
  readonly draw: () => void;
  /** Called for each queue of the node; the result is called when it has closed. */
  opened(queue: Queue<D, S>): Promise<() => void>;
}

export interface ItemNodeOptions<D extends ItemData, S extends Shared> {
  read(msg: Message): Batch<D, S> | Promise<Batch<D, S>>;
  /** In the order in which they are asked, at each turn of an item. */
  guards?(tools: GuardTools): readonly Guard<D, S>[];
  /** Gives the outcome of an item; a throw becomes a failure. */
  work(item: Item<D, S>): Promise<Outcome>;
  /** Adds the message fields of an outcome; `index` is that of the item, or of a duplicate. */
  fields(outcome: Outcome, item: ItemOf<D, S>, index: number): Outcome;
  failedFields?(failure: Outcome, msg: Message): Outcome;
  /** The numbers that a reset is for; undefined means all. */
  phonesOf?(msg: Message): readonly string[] | undefined;
  /** The outcome of an item that ends without its work; undefined if that is a failure. */
  endedBy?(item: Item<D, S>, reason: Reason): Outcome | undefined | Promise<Outcome | undefined>;
  readonly statusTexts: StatusTexts;
  readonly waits?: NodeWaits<D, S>;
  /** With it, every message is a search. */
  readonly search?: PrepareSearch | undefined;
  /** The work makes no request: its items belong to the simulator, or to all real services. */
  readonly isLocal?: boolean;
}

const isControl = (msg: Message, name: 'reset' | 'flush'): boolean =>
  Object.hasOwn(msg, name) && msg[name] !== false && msg[name] !== undefined && msg[name] !== null;

const indexesOf = ({ index, duplicates }: ItemData): readonly number[] =>
  duplicates ? [index, ...duplicates.map((each) => each.index)] : [index];

const failures = {
  reset: ['cancelled', 'cancelled'],
  moved: ['cancelled', 'environment_changed'],
  retyped: ['cancelled', 'node_changed'],
  stale: ['stale', 'stale'],
  crashes: ['outcome_unknown', 'unknown_after_crashes'],
  unknown: ['outcome_unknown', 'unknown_after_restart'],
  taken_over: ['outcome_unknown', 'unknown_after_restart'],
  refused: ['network_error', 'not_saved'],
} as const satisfies Record<Reason, unknown>;

const failureBy = (reason: Reason): Outcome => {
  const [code, key] = failures[reason];
  const attempts = code === 'outcome_unknown' ? 1 : 0;
  return failedOutcome(serviceError(code, key, {}, { attempts }).problem);
};

const warningsOfWork: Partial<Record<Reason, string>> = { moved: 'movedWork', retyped: 'retypedWork' };
const warningsOfWaits: Partial<Record<Reason, string>> = { moved: 'moved' };

/** A message may come back to a node this often within a minute. */
const mostReturns = 20;

/** Delays messages that run in a circle: a flow that is wired so would send thousands of requests a minute. */
const brakeFor = (
  { node, clock, status, words }: Tools,
  /** One message becomes very many, which are counted together. */
  multiplies: boolean,
  enter: (job: Job) => void,
) => {
  const delayed = new Map<Job, { readonly until: number; readonly forget: () => void }>();
  let all = noReturns;
  let hasWarned = false;

  const show = (): void => {
    const [{ until } = { until: 0 }] = delayed.values();
    const { size } = delayed;
    status.show(() => loopLook(words, size, until, clock.now()));
    if (hasWarned) return;
    hasWarned = true;
    const { name = '' } = node;
    const warning = name === '' ? 'warning.loopHere' : 'warning.loop';
    node.warn(words.say(warning, { node: name, count: words.number(mostReturns) }));
  };

  /** Delays a message that has come back too often: it enters when its minute is over. False for any other. */
  const delays = (job: Job): boolean => {
    let returns = countReturn(job.msg, node.id, clock, minute);
    if (returns && multiplies) returns = all = oneMore(all, clock.now(), minute);
    if (!returns || returns.count <= mostReturns) return false;
    const until = returns.since + minute;
    const forget = clock.after(until - clock.now(), () => {
      delayed.delete(job);
      if (!delays(job)) enter(job);
    });
    delayed.set(job, { until, forget });
    show();
    return true;
  };

  return {
    delays,
    /** Lets all delayed messages enter now: before a close, so that none is lost, and before a reset, which is for them too. */
    release(): void {
      for (const [job, { forget }] of [...delayed]) {
        forget();
        delayed.delete(job);
        enter(job);
      }
    },
  };
};

const longestLine = 10_000;

interface Unaccepted {
  readonly space: string | undefined;
  readonly at: number;
  readonly msg: Message;
}
/** By type and id of a node, the messages that could not be accepted before it closed: the next start takes them. */
const unaccepted = processMemory('unaccepted', new Map<string, readonly Unaccepted[]>());

/**
 * The `create` of a flow node. Its items are saved before they start, and their outcomes before they are emitted. The
 * next node of the same id resumes work that a close, a kill or a deploy interrupts. No rejection may escape: it would
 * end all of Node-RED.
 */
export const itemNode = <D extends ItemData, S extends Shared>(
  spec: NodeSpec,
  optionsOf: (tools: Tools, config: Config) => ItemNodeOptions<D, S>,
): NodeRuntime['create'] => {
  const create: NodeRuntime['create'] = (RED, created, config) => {
    const node = created as RunningNode;
    const environment = environmentOf(RED, config['environment']);
    if (!environment) whenAdded(RED, node, config['environment'], () => create(RED, node, config));
    const release = environment?.keepStoreOpen();
    const tools = toolsOf(RED, node, spec, config);
    const { words, status, outputs, activity, clock, closed, fault } = tools;
    const hasAdvisor = tools.advisorSource !== noSource;
    const changed = (): void => activity?.changed();
    const options = optionsOf(tools, config);
    const { waits, isLocal = false } = options;

    /** The queue that messages enter; while it is missing, `unopened` is the reason. */
    let queue: Queue<D, S> | undefined;
    let unopened: unknown;
    /** All queues: this one, and one in the store of each process that ended. */
    const queues = new Map<Store, Queue<D, S>>();
    const closes = new Map<Store, Promise<() => Promise<void>>>();
    /** Those that are closed with their queue: no running environment may have them. */
    const borrowed = new Set<Store>();
    let guards: readonly Guard<D, S>[] = [];
    /** While it is pending, messages wait until the store is open. */
    let opening: Promise<void> | undefined;
    /** Settles when all messages that take time to read are accepted. */
    let accepting: Promise<void> | undefined;
    /** Those that wait until the node, or its environment, is open. */
    const line = new Set<Job>();
    /** Messages in line, and searches. */
    const underWay = new Set<Promise<void>>();
    let hasWarnedOfDropped = false;
    const shown = outcomeStatus(tools, options.statusTexts, queues);
    /** Of items that are cancelled at a start, which are found page by page. */
    const cancelled = new Map<string, number>();
    const warnOfCancelled = (): void => {
      for (const [warning, count] of cancelled)
        node.warn(words.say(`warning.${warning}`, { count: words.number(count) }));
      cancelled.clear();
    };

    const pass = (item: Item<D, S>, reached: { guards: number }): Promise<Outcome> => {
      const guard = guards[reached.guards];
      reached.guards += 1;
      return guard ? guard.pass(item, () => pass(item, reached)) : options.work(item);
    };

    const outcomeBy = async (item: Item<D, S>, reason: Reason): Promise<Outcome> => {
      const warning = (item.isWait ? warningsOfWaits : warningsOfWork)[reason];
      if (warning !== undefined) {
        if (cancelled.size === 0) systemClock.after(second, warnOfCancelled);
        cancelled.set(warning, (cancelled.get(warning) ?? 0) + 1);
      }
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

    /** The job of a message, made again if the message was read from the store. */
    const jobOf = (message: QueuedMessage<S>, startId: string): Job => {
      if (message.attachment) return message.attachment as Job;
      const { message: msg, entries, dropped } = message.input;
      const { record } = message;
      const { list } = record.shared;
      // A Complete node gets the message as it came in, and only from the start that accepted it.
      if (list?.at && entries) setAt(msg, list.at, entries);
      const isOwn = record.startId === startId;
      const complete = (error?: Error): void => node._complete(msg, error);
      const job = new Job(RED, node, outputs, msg, isOwn ? complete : undefined);
      if (list) job.asList(record.count, { listAt: list.at, id: list.id });
      if (dropped && !hasWarnedOfDropped) node.warn(words.say('warning.dropped'));
      hasWarnedOfDropped ||= dropped;
      message.attachment = job;
      return job;
    };

    const emit = (
      { startId, space }: { readonly startId: string; readonly space: string },
      item: Item<D, S>,
      outcome: Outcome,
      offer: number | undefined,
    ): Promise<boolean> => {
      const { message, data, shared, isRepeated } = item;
      const { count } = message.record;
      const kinds = outputs.kindsOf(outcome);
      const counts = item.count(kinds);
      const isLast = counts['total'] === count;
      const summary = isLast && shared.list ? outputs.summaryOf(count, counts) : undefined;
      const { entries } = message.input;
      const indexes = indexesOf(data);
      const parts = indexes.map((index): Part => {
        const entry = entries?.[index];
        const whole = options.fields(outcome, { data, shared, entry }, index);
        return {
          index,
          outcome: isRepeated ? { ...whole, repeated: true } : whole,
          offer,
          summary: index === indexes.at(-1) ? summary : undefined,
          entry,
        };
      });
      const left = jobOf(message, startId).deliver(parts, closed);
      // The counts of a list from another service would read as if this one had sent its texts.
      const isList = count > 1 && message.record.space === space;
      const all = isList ? { ...counts, alreadySent: alreadySentIn(counts) } : undefined;
      shown.show(parts[0]?.outcome ?? outcome, kinds, all);
      changed();
      return left;
    };

    /** Opens a queue in a store, and resumes what is there; the result closes it. */
    const openQueue = async (from: Environment, store: Store): Promise<() => Promise<void>> => {
      const { maxConcurrent, resumeWithin } = from.settings;
      let starting: Promise<void> | undefined;
      const space = isLocal && from.service !== 'simulator' ? `${from.id}/local` : from.space;
      const opened: Queue<D, S> = new Queue<D, S>({
        store,
        node: node.id,
        type: node.type,
        space,
        width: maxConcurrent,
        resumeWithin,
        clock,
        waitClock: ageClock(from, store),
        service: from,
        work: (item, reason) => (reason ? endWithout(item, reason) : work(item)),
        emit: (item, outcome, offer) => emit({ startId: opened.startId, space }, item, outcome, offer),
        changed: () => {
          if (waits) waits.draw();
          else shown.heldChanged();
          changed();
        },
        fault,
      });
      const forget = await waits?.opened(opened);
      queues.set(store, opened);
      const ends = [
        from.addPending(node, () => pendingIn(store, node.id)),
        activityOf(from).add({ id: node.id, name: node.name ?? '' }, opened),
      ];
      const start = async (): Promise<void> => {
        await nextTick();
        // Until then, the node takes no commands. Other processes may have cancelled items while none worked here.
        while (store.peers && opening) await opening;
        await store.peers?.carryOut(isCancelling);
        // If the flows were stopped right after their start, the store is closed by now.
        if (!closed.aborted) await opened.start();
      };
      tools.whenStarted(() => {
        starting = start().catch(fault);
      });
      return async () => {
        for (const end of ends) end();
        await opened.close();
        await starting;
        forget?.();
        queues.delete(store);
      };
    };

    const openIn = (from: Environment, store: Store): Promise<unknown> => {
      const opened = openQueue(from, store);
      closes.set(store, opened);
      return opened;
    };

    const closeIn = async (store: Store): Promise<void> => {
      const opened = closes.get(store);
      closes.delete(store);
      const close = await opened?.catch(() => undefined);
      await close?.();
      if (borrowed.delete(store)) await store.close();
    };

    const failedToOpen = (thrown: unknown): void => {
      unopened = thrown instanceof TakenOver ? serviceError('network_error', 'not_saved') : thrown;
      const why = problemOf(unopened);
      if (why.code !== 'not_configured') fault(thrown);
      shown.show(failedOutcome(why), []);
    };

    const open = async (from: Environment): Promise<void> => {
      queue = unopened = undefined;
      const isSaved = from.settings.journal || waits?.isOn === true || guards.some((guard) => guard.mayHold);
      const store = await (isSaved ? from.store() : from.memory());
      if (isSaved && !store.engine.durable) status.markUnsaved();
      await openIn(from, store);
      queue = queues.get(store);
      const left = openLeft(from, isSaved ? from.memory() : from.store()).catch(() => undefined);
      // A reset is for these too. Other nodes work without a store that is in trouble.
      if (isSaved || options.guards || waits) await left;
    };

    /** What was accepted before `journal` or the hours were changed lies in the other store, and goes on there. */
    const openLeft = async (from: Environment, other: Store | Promise<Store>): Promise<void> => {
      const store = await other;
      const { items, waits } = await pendingIn(store, node.id);
      if (items + waits > 0 && !closes.has(store) && !closed.aborted) await openIn(from, store);
    };

    /** What was accepted before the node was moved to this environment lies in the store of another, and is cancelled. */
    const openFormer = async (from: Environment): Promise<void> => {
      // A store reports its own trouble, and the next start of this node finds what is left.
      const quietly = (work: Promise<void>): Promise<void> => work.catch(() => undefined);
      const borrow = async (opening: Promise<Store>): Promise<void> => {
        const store = await opening;
        borrowed.add(store);
        await quietly(openLeft(from, store));
        if (!queues.has(store)) await closeIn(store);
      };
      const { stores, onStore } = await from.elsewhere();
      for (const each of stores) void quietly(borrow(each));
      if (!closed.aborted)
        unlistenToOthers = onStore((store, kind) => {
          if (kind === 'gone') return quietly(closeIn(store));
          return kind === 'orphan' ? quietly(openLeft(from, store)) : undefined;
        });
    };

    const holdOthers = (until: Promise<void>): void => {
      const ended = until
        .catch(() => undefined)
        .then(() => {
          if (opening === ended) opening = undefined;
        });
      opening = ended;
    };

    /** The previous store now belongs to another process, which does what is left there. */
    const reopen = async (from: Environment): Promise<void> => {
      await opening;
      while (accepting) await accepting;
      const before = queue?.store;
      if (before) closeIn(before).catch(() => undefined);
      await open(from);
    };

    let unlistenToStores: (() => void) | undefined;
    let unlistenToOthers: (() => void) | undefined;
    const begin = async (): Promise<void> => {
      const from = tools.environment();
      const recheck = (phone: string): void => {
        for (const each of queues.values()) each.recheck(phone);
      };
      guards = options.guards?.({ environment: from, node: node.id, recheck }) ?? [];
      unlistenToStores = from.onStore((store, kind) => {
        if (kind === 'gone') return closeIn(store).catch(() => undefined);
        if (kind === 'orphan') openIn(from, store).catch(failedToOpen);
        else if (!closed.aborted) holdOthers(reopen(from).catch(failedToOpen));
        return undefined;
      });
      tools.whenStarted(() => void openFormer(from).catch(() => undefined));
      await open(from);
    };

    const refuse = (job: Job, { items, entries, count, shared }: Batch<D, S>, thrown: unknown): void => {
      const failure = failedOutcome(problemOf(thrown));
      const why = options.failedFields?.(failure, job.msg) ?? failure;
      // Reading a number may need the country of the environment that is missing.
      const isUnready = why.problem?.code === 'not_configured';
      const tally = new Tally(outputs);
      for (const data of items)
        for (const index of indexesOf(data)) {
          const outcome = data.wrong && !isUnready ? failedOutcome(data.wrong) : why;
          tally.add(outcome);
          const entry = entries?.[index];
          const summary = shared.list && tally.total === count ? tally.summary : undefined;
          job.emit(index, options.fields(outcome, { data, shared, entry }, index), { entry, summary });
        }
      shown.show(why, outputs.kindsOf(why), count > 1 ? tally.counts : undefined);
      job.concludeHandOver();
    };

    const accept = (job: Job, batch: Batch<D, S>): void => {
      const { msg } = job;
      const { shared } = batch;
      if (batch.list) {
        const listAt = pathIn(RED, batch.source, msg);
        const id = job.asList(batch.count, { listAt });
        (shared as Mutable<Shared>).list = listAt ? { id, at: listAt } : { id };
      }
      try {
        batch.check?.();
        if (!queue) throw unopened;
        // A consent given on a phone of the simulator does not count for a real text.
        if (!isLocal && leftOtherService(msg, outputs.origin))
          throw serviceError('cancelled', 'environment_changed');
        // The entries are saved with the items: the list is not saved twice.
        const message = batch.entries ? withoutList(msg, shared.list?.at) : msg;
        queue.accept(message, batch, job, job.handOver);
        job.handOver = undefined;
        changed();
      } catch (thrown) {
        refuse(job, batch, thrown instanceof QueueFull ? serviceError('queue_full', 'queue_full') : thrown);
      }
    };

    const searches =
      options.search &&
      new Searches(tools, options.search, (job, wrong) => {
        // All other fields of an item, and of what items share, are optional.
        const [item, shared] = [{ index: 0, wrong } as D, { advisor: '' } as S];
        accept(job, { items: [item], count: 1, list: false, source: noSource, shared });
      });

    /** Carries out a control message. `at` is when another process received it; with `orphan`, it is for that store. */
    const control = (msg: Message, at?: number, orphan?: Store): boolean => {
      const meant = [...queues.values()].filter(({ store }) => store === (orphan ?? store));
      const isReset = isControl(msg, 'reset');
      if ((orphan && meant.length === 0) || (!isReset && !(waits && isControl(msg, 'flush')))) return false;
      const phones = options.phonesOf?.(msg);
      searches?.stop();
      for (const each of meant)
        if (isReset) each.reset(phones, at);
        // A close does not wait for it, and the next start does not resume it.
        else each.flush(phones).catch(fault);
      return true;
    };

    const unlistenToControls = environment?.onControl(node.id, (message, at, orphan) => {
      if ((!queue && unopened === undefined) || closed.aborted) return false;
      try {
        return control(message, at, orphan);
      } catch {
        // The message was not valid. The process that received it has reported that.
        return true;
      }
    });

    /** Any failure in a node that is not configured is reported as that: the missing configuration has to be fixed first. */
    const unready = (thrown: unknown): unknown => {
      try {
        const from = tools.environment();
        if (hasAdvisor) from.advisors();
        else if (from.storeFault) throw from.storeFault;
        return thrown;
      } catch (fault) {
        return fault;
      }
    };

    const fail = (job: Job, thrown: unknown): void => {
      const { msg } = job;
      try {
        const unread = thrown instanceof ServiceError ? undefined : removeUnreadable(msg, true);
        const why = failedOutcome(problemOf(unready(unread ?? thrown)));
        const failure = options.failedFields?.(why, msg) ?? why;
        shown.show(failure, outputs.kindsOf(failure));
        job.fail(failure);
      } catch (fault) {
        job.raise(fault as Error);
      } finally {
        job.concludeHandOver();
      }
    };

    /** Messages are read side by side and accepted in order: a reset is for all that came before it. */
    const inOrder = <T>(job: Job, read: T | Promise<T>, act: (read: T) => void): void => {
      if (!accepting && !(read instanceof Promise)) {
        act(read);
        return;
      }
      const accepted = Promise.allSettled([read, accepting])
        .then(() => read)
        .then(act)
        .catch((thrown: unknown) => fail(job, thrown))
        .then(() => {
          if (accepting === accepted) accepting = undefined;
        });
      accepting = accepted;
    };

    const take = (job: Job): void => {
      const { msg } = job;
      try {
        const isReset = isControl(msg, 'reset');
        // A reset is for delayed messages too.
        if (isReset) brake.release();
        if (isReset || (waits && isControl(msg, 'flush')))
          inOrder(job, undefined, () => {
            control(msg);
            const { reset, flush, phone } = msg;
            environment?.tellOthers(node.id, { reset, flush, phone });
            job.settle();
            job.concludeHandOver();
          });
        else if (searches) {
          const searching = searches
            .run(job)
            .catch((thrown: unknown) => fail(job, thrown))
            .finally(() => {
              underWay.delete(searching);
              job.concludeHandOver();
            });
          underWay.add(searching);
        } else inOrder(job, options.read(msg), (batch) => accept(job, batch));
      } catch (thrown) {
        fail(job, thrown);
      }
    };

    const enter = (job: Job): void => {
      const openings = [opening, environment?.opening].filter((each) => each !== undefined);
      if (openings.length === 0) take(job);
      else if (line.size >= longestLine) fail(job, serviceError('queue_full', 'queue_full'));
      else {
        line.add(job);
        const opened = Promise.all(openings).then(() => {
          underWay.delete(opened);
          if (line.delete(job)) enter(job);
        });
        underWay.add(opened);
      }
    };

    const brake = brakeFor(tools, searches !== undefined, enter);

    /** Says that nothing can be sent before the first message comes. */
    const showUnauthorized = (): void => {
      if (!hasAdvisor || !environment || closed.aborted) return;
      try {
        const known = environment.advisors();
        if (!known.some((advisor) => environment.advisorState(advisor) === 'authorized'))
          status.show(() => unauthorizedLook(words, known.length > 0));
      } catch {
        // Another status says that it is not configured, or that authorizations cannot be read.
      }
    };

    const unlisten = environment?.onChange(() => {
      tools.forgetAdvisor();
      status.clearIfAuthorized((advisor) => isAuthorized(environment, advisor));
      showUnauthorized();
      if (environment.trouble !== undefined) {
        const key = environment.isStoreLost ? 'status.storeLost' : 'status.storeTrouble';
        status.show(() => look('red', 'ring', words.say(key)));
        return;
      }
      const until = environment.pausedUntil;
      const isSearching = underWay.size > line.size;
      const isBusy = isSearching || Array.from(queues.values()).some((each) => each.isBusy);
      if (until <= clock.now() || !isBusy) return;
      const time = (): string => words.time(until, clock.now());
      status.show(() => look('yellow', 'ring', words.say('status.paused', { time: time() })));
    });

    holdOthers(Promise.resolve().then(begin).catch(failedToOpen));
    void Promise.resolve(environment?.opening).then(showUnauthorized);

    node.on('input', (received, _send, done) => {
      const [msg, unreadable] = readable(received) as [Message, Error | undefined];
      const claim = handOver.claim(msg, node.id);
      if (claim === 'taken') {
        done();
        return;
      }
      const job = new Job(RED, node, outputs, msg, done);
      job.handOver = claim;
      const { summary, parts } = msg as { summary?: { id?: unknown }; parts?: { id?: unknown } };
      // This is the summary of the list that the message belongs to, not of this node's outcomes.
      if (summary && parts && summary.id === parts.id) delete msg.summary;
      if (unreadable) fail(job, unreadable);
      else if (!brake.delays(job)) enter(job);
    });

    const close = async (): Promise<void> => {
      // Messages that wait for the environment are accepted before the node closes.
      await environment?.opening;
      const forget = searches?.close();
      while (opening || accepting || underWay.size > 0) await Promise.all([opening, accepting, ...underWay]);
      forget?.();
      unlistenToStores?.();
      unlistenToOthers?.();
      for (const guard of guards) guard.close?.();
      await Promise.all(Array.from(closes.keys(), closeIn));
      warnOfCancelled();
    };

    const place = `${node.type} ${node.id}`;
    const { space } = outputs.origin;
    /**
     * Where the store is in trouble, messages wait for the next start of this node; returns their number. Those that
     * another of our nodes has saved are emitted by it once more.
     */
    const keepLine = (): number => {
      const kept: Unaccepted[] = [];
      for (const { handOver: claim, msg } of line)
        if (claim) claim.keep();
        else kept.push({ space, at: clock.now(), msg });
      line.clear();
      if (kept.length > 0) unaccepted.set(place, [...(unaccepted.get(place) ?? []), ...kept]);
      return kept.length;
    };

    tools.whenStarted(() => {
      const left = unaccepted.get(place) ?? [];
      unaccepted.delete(place);
      const { resumeWithin = 0 } = environment?.settings ?? {};
      for (const { space: before, at, msg } of left) {
        const job = new Job(RED, node, outputs, msg, undefined);
        if (before !== space) fail(job, serviceError('cancelled', 'environment_changed'));
        else if (clock.now() - at > resumeWithin) fail(job, serviceError('stale', 'stale'));
        else enter(job);
      }
    });

    /** Nothing else tells of these messages: they have neither an outcome nor a record. */
    const warnOfUnsaved = (closed: readonly Queue<D, S>[], kept: number): void => {
      const count = closed.reduce((sum, { unsavedCount }) => sum + unsavedCount, kept + line.size);
      if (count > 0) node.warn(words.say('warning.unsaved', { count: words.number(count) }));
    };

    node.on('close', (done: () => void) => {
      brake.release();
      tools.close();
      // The environment, which closes at the same time, interrupts texts too.
      const stopped = [...queues.values()];
      for (const each of stopped) each.stop();
      unlisten?.();
      unlistenToControls?.();
      const end = (): void => {
        release?.();
        done();
      };
      const isStuck = opening !== undefined && environment?.trouble !== undefined;
      const kept = isStuck ? keepLine() : 0;
      // A read that the store does not answer ends only with the store, which waits for its nodes.
      within(systemClock, isStuck ? 0 : closeLimit, close())
        .then(() => warnOfUnsaved(stopped, kept))
        .catch((fault: unknown) => node.warn(words.problem(problemOf(fault))))
        .finally(end);
    });
  };
  return create;
};
