import { systemClock } from '../service/clock';
import type { EndpointName, Id, RequestOf, ResponseOf } from '../service/endpoints';
import type { Problem } from '../service/problems';
import { callerFor, type Caller } from './caller';
import { isOrder, type Handler, type Tools } from './flow-node';
import type { Job } from './job';
import { refuse } from './messages';
import { closeLimit } from './landings';
import { failureLook } from './outcome-status';
import { failure, problemOf, type Outcome } from './outcomes';
import { eachOf } from './queue';
import type { Message } from './red';
import { look } from './status';

/** Message fields of one outcome, filled in as they become known. */
export type Known = Record<string, unknown>;

export interface Each {
  readonly items: readonly unknown[];
  /** An array came in, even of one. */
  readonly list: boolean;
  /** The message property that holds the list. */
  readonly shared: string | undefined;
  /** What an outcome carries whatever becomes of it. */
  readonly carries: (item: unknown) => Known;
  /** Gives the payload; what it learns on the way goes into `known`. */
  readonly work: (item: unknown, index: number, known: Known) => Promise<unknown>;
}

/** From one input message to its outcomes. */
export type Run = (task: Task) => Promise<void>;

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** One input message at work in an address-book node. */
export class Task {
  private readonly halt = new AbortController();
  private readonly cut = new AbortController();
  private failed = 0;
  /** The node is closing: what is interrupted now settles nothing. */
  closing = false;

  constructor(
    private readonly tools: Tools,
    readonly msg: Message,
    readonly job: Job,
    /** Whose service it is, or why that cannot be said. */
    private readonly reached: Caller | Error,
  ) {}

  /** Throws where no service can be asked: each item of the message fails with that. */
  get caller(): Caller {
    if (this.reached instanceof Error) throw this.reached;
    return this.reached;
  }

  /** Aborts when nothing new is to be begun. */
  get stopped(): AbortSignal {
    return this.halt.signal;
  }

  /** Aborts when requests under way are to be given up too. */
  get givenUp(): AbortSignal {
    return this.cut.signal;
  }

  stop(): void {
    this.halt.abort();
  }

  giveUp(): void {
    this.cut.abort();
  }

  call<N extends EndpointName>(name: N, request: RequestOf<N>): Promise<ResponseOf<N>> {
    return this.caller.call(name, request, this.cut.signal);
  }

  /** Each item leaves with its own outcome, as it settles. */
  async each({ items, list, shared, carries, work }: Each): Promise<void> {
    if (list) this.job.asList(items.length, shared);
    let left = 0;
    const width = this.reached instanceof Error ? 1 : this.reached.environment.settings.maxConcurrent;
    await eachOf(items, width, async (item, index) => {
      const known = carries(item);
      const outcome = await this.outcomeOf(known, () => work(item, index, known));
      left += 1;
      this.job.leave(index, outcome);
      if (left < items.length) this.progress(left, items.length);
    });
    if (this.failed === 0) this.show('green', 'dot', 'done');
    // What keeps all of them from being done says more than how many they are.
    else if (list && !(this.reached instanceof Error)) this.show('yellow', 'dot', 'someFailed', this.failed);
  }

  progress(done: number, total: number | undefined): void {
    const { status, words } = this.tools;
    status.show(() => {
      const read = words.number(done);
      const values = { done: read, count: read, total: total === undefined ? '' : words.number(total) };
      return look('blue', 'dot', words.say(total === undefined ? 'status.read' : 'status.progress', values));
    });
  }

  show(fill: 'green' | 'yellow' | 'grey', shape: 'dot' | 'ring', key: string, count = 0): void {
    const { status, words } = this.tools;
    const time = words.time(this.tools.now());
    status.show(() => look(fill, shape, words.say(`status.${key}`, { time, count: words.number(count) })));
  }

  private async outcomeOf(known: Known, work: () => Promise<unknown>): Promise<Outcome> {
    try {
      if (this.reached instanceof Error) throw this.reached;
      if (this.stopped.aborted) throw refuse('cancelled', this.closing ? 'cancelled_by_close' : 'cancelled');
      return { port: 0, payload: await work(), set: known };
    } catch (thrown) {
      const why = problemOf(thrown);
      this.failed += 1;
      showFailure(this.tools, why);
      return failure(why, known);
    }
  }
}

/** Whatever reads and then writes a contact does so under this key, in all nodes. */
export const contactKey = ({ environment, advisor }: Caller, contactId: Id): string =>
  JSON.stringify([environment.id, advisor, contactId]);

const showFailure = ({ status, words, now }: Tools, why: Problem): void => {
  const at = now();
  status.show(() => failureLook(words, why, at));
};

/** The handler of an address-book node. */
export const taskHandler = (tools: Tools, run: Run): Handler => {
  const underWay = new Map<Task, Promise<void>>();
  let isClosed = false;

  const halt = (task: Task): void => {
    task.closing = isClosed;
    task.stop();
  };

  const settle = async (task: Task): Promise<void> => {
    try {
      await run(task);
    } catch (thrown) {
      showFailure(tools, problemOf(thrown));
      task.job.fail(thrown);
    } finally {
      underWay.delete(task);
    }
  };

  return {
    control(msg) {
      if (!isOrder(msg, 'reset')) return false;
      for (const task of underWay.keys()) halt(task);
      return true;
    },
    async input(msg, job) {
      const task = new Task(tools, msg, job, await callerFor(tools, msg).catch(asError));
      if (isClosed) halt(task);
      const settled = settle(task);
      underWay.set(task, settled);
      await settled;
    },
    isBusy: () => underWay.size > 0,
    async close() {
      isClosed = true;
      for (const task of underWay.keys()) halt(task);
      const giveUp = systemClock.after(closeLimit, () => {
        for (const task of underWay.keys()) task.giveUp();
      });
      await Promise.all(underWay.values());
      giveUp();
    },
  };
};

/** The handler of a node whose `operation` says what it does. */
export const operationHandler = <C>(
  tools: Tools,
  operations: Readonly<Record<string, (tools: Tools, config: C) => Run>>,
  config: C,
): Handler => {
  const operation = tools.plain.text('operation');
  const start = Object.hasOwn(operations, operation) ? operations[operation] : undefined;
  const unknown: Run = () =>
    Promise.resolve().then(() => {
      tools.checkSettings();
      throw new Error(`there is no operation ${operation}`);
    });
  return taskHandler(tools, start?.(tools, config) ?? unknown);
};
