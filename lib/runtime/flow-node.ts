import { minute } from '../durations';
import { countReturn, handOver, noReturns, oneMore } from '../outbox/hand-over';
import type { ItemData } from '../outbox/records';
import { readable, removeUnreadable } from '../outbox/storable-message';
import { closeLimit, systemClock, within, type Clock } from '../service/clock';
import type { Mutable } from '../mutable';
import { serviceError, ServiceError, type Problem } from '../service/errors';
import type { Store } from '../state/store';
import { activityOf } from './activity';
import type { Environment } from './environment';
import { faultInSettings, plainSettings, noSource, source, type Source } from './inputs';
import { invalidInput, nodeError } from './errors';
import { asText } from './kinds';
import { metrics } from './metrics';
import type { Outcome } from '../outbox/outcome';
import { problemOf } from './outcomes';
import type { Message, Red, RunningNode } from './red';
import type { NodeSpec } from './spec';
import { atNextStart, Job, madeLate, outputsOf, type Outputs } from './delivery';
import { createStatus, heldLook, look, simulatorMark, unauthorizedLook, type Status } from './status';
import { type Words, wordsOf } from './language';
import { processMemory } from '../process-memory';

/** What `flowNode` gives a node's own part to work with. */
export interface Tools {
  readonly RED: Red;
  readonly node: RunningNode;
  readonly words: Words;
  readonly status: Status;
  readonly outputs: Outputs;
  source(name: string): Source;
  readonly plain: ReturnType<typeof plainSettings>;
  /** Throws `not_configured` when the node has no environment, or a disabled one. */
  environment(): Environment;
  /** The environment's clock, by which statuses show times; a simulator's can be moved. */
  readonly clock: Clock;
  /** Throws `invalid_input` when a setting of this node has a wrong value: nothing is done then. */
  checkSettings(): void;
  /**
   * The advisor that a message is for. Checks the settings first. Where the advisor cannot be determined, only items
   * without one of their own fail, if there are others.
   */
  advisor(
    value: unknown,
    msg: Message,
    items?: readonly Mutable<Pick<ItemData, 'advisor' | 'wrong'>>[],
  ): string;
  readonly advisorSource: Source;
  /** From here on, every status says that waits and records do not outlive the process. */
  markUnsaved(): void;
  /** Runs the task when all nodes of the flows can be sent to. */
  whenStarted(task: () => void): void;
  /** Warns, once for each node, that parts of a message could not be stored and were dropped. */
  warnOfDropped(): void;
  /** Aborted when the node closes. */
  readonly closed: AbortSignal;
  /** Resolves when the messages that have come are read: one whose fields are read asynchronously is accepted then. */
  allRead(): Promise<void>;
  /**
   * Makes a job from a message in the store. Complete nodes are notified of its end only if this very node accepted it.
   */
  resumed(msg: Message, isOwn: boolean): Job;
}

/** A node's own part: from an input message to outcomes. */
export interface Handler {
  /** While it is pending, messages wait in line, so that earlier work is read from the store first. */
  readonly opening: Promise<void> | undefined;
  input(msg: Message, job: Job): void | Promise<void>;
  /**
   * True when the message was a control message (`reset`, `flush`) and is carried out. `at` is the time when another
   * process received it; with `orphan`, it is for the work in that store.
   */
  control(msg: Message, at?: number, orphan?: Store): boolean;
  /** Returns the failure of a whole message, and shows it in the status. */
  failed(why: Problem, msg: Message): Outcome;
  /** Whether the node has work that a pause of the service holds up. */
  isBusy(): boolean;
  /** Whether one message may leave as very many. */
  readonly multiplies: boolean;
  close(): Promise<void>;
}

export const isControl = (msg: Message, name: 'reset' | 'flush'): boolean =>
  Object.hasOwn(msg, name) && msg[name] !== false && msg[name] !== undefined && msg[name] !== null;

export const environmentOf = (RED: Red, id: unknown): Environment | undefined => {
  const found = typeof id === 'string' && id !== '' ? (RED.nodes.getNode(id) as unknown) : undefined;
  return (found as { environment?: Environment } | null | undefined)?.environment;
};

/**
 * Makes a node again whose environment was missing, once it is there: Node-RED restarts the nodes of an environment that
 * is removed or changed by a deploy of modified nodes, but not those of one that is added.
 */
export const whenAdded = (RED: Red, node: RunningNode, environment: unknown, make: () => void): void => {
  let closes = 0;
  const look = (): void => {
    if (!environmentOf(RED, environment)) {
      forget = atNextStart(RED, look);
      return;
    }
    void node.close(false).then(() => {
      // A deploy may have closed the node meanwhile.
      if (closes > 1) return;
      node.removeAllListeners('close');
      make();
      madeLate(RED);
    });
  };
  let forget = atNextStart(RED, look);
  node.on('close', () => {
    closes += 1;
    forget();
  });
};

/** The end of a pause that the service or its token endpoint has asked for. A client that is not loaded has no pause. */
export const pausedUntil = (environment: Environment): number => {
  try {
    const client = environment.client();
    // A text meets this failure itself. An environment that is not configured has no pause to show.
    if (client instanceof Promise) client.catch(() => undefined);
    const byService = client instanceof Promise ? 0 : client.pausedUntil;
    return Math.max(byService, environment.tokensPausedUntil ?? 0);
  } catch {
    return 0;
  }
};

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

const theOnlyOne = (environment: Environment): string => {
  const known = environment.advisors();
  const [only] = known;
  if (only === undefined) {
    throw nodeError('authorization_required', 'nobody_authorized', { environment: environment.name });
  }
  if (known.length > 1) {
    throw invalidInput('several_advisors');
  }
  return only;
};

/** Throws `authorization_required`. */
const authorized = (environment: Environment, advisor: string): string => {
  const { name } = environment;
  switch (environment.advisorState(advisor)) {
    case 'authorized':
      return advisor;
    case 'authorize_again':
      throw serviceError('authorization_required', 'authorization_ended', { advisor, name });
    case 'unknown':
      throw nodeError('authorization_required', 'advisor_unauthorized', { advisor, environment: name });
  }
};

/** The advisor that a recipient's object names; undefined when it names none. Throws when it is not authorized. */
export const ownAdvisor = (environment: Environment, value: unknown): string | undefined => {
  if (isEmpty(value)) return undefined;
  const key = asText(value)?.trim();
  if (key === undefined) throw invalidInput('advisor_own');
  return authorized(environment, key);
};

/** The advisor of the chosen source, else `msg.advisor`; empty when neither names one. */
export const anyAdvisor = (chosen: Source, value: unknown, msg: Message): string => {
  const isChosen = !isEmpty(chosen.value);
  const given = isChosen ? value : msg.advisor;
  const where = isChosen ? chosen.where : 'msg.advisor';
  if (isChosen && isEmpty(given)) throw invalidInput('advisor_empty', { where });
  const key = isEmpty(given) ? '' : asText(given)?.trim();
  if (key === undefined) throw invalidInput('advisor_value', { where });
  return key;
};

/** Whether the advisor is authorized, or anybody when it is empty; false when the environment is not configured. */
const isAuthorized = (environment: Environment, advisor: string): boolean => {
  try {
    const known = advisor === '' ? environment.advisors() : [advisor];
    return known.some((each) => environment.advisorState(each) === 'authorized');
  } catch {
    return false;
  }
};

const shownFor = processMemory('statuses', new Map<string, string>());

/** A message may come back to a node this often within a minute. */
const mostReturns = 20;

/** Delays messages that run in a circle: a flow that is wired so would send thousands of requests a minute. */
class Brake {
  /** Until when each is delayed, by its `enter`. */
  private readonly delayed = new Map<() => void, { readonly until: number; readonly forget: () => void }>();
  private returns = noReturns;

  /** `onDelay` is called with the number of delayed messages, and the time until which the first is. */
  constructor(
    private readonly node: string,
    private readonly clock: Clock,
    private readonly onDelay: (count: number, until: number) => void,
  ) {}

  /**
   * Calls `enter` at once; for a message that has come back too often, when its minute is over. Where one message
   * becomes very many, they are counted together.
   */
  admit(msg: Message, enter: () => void, together: boolean): void {
    let returns = countReturn(msg, this.node, this.clock, minute);
    if (returns && together) returns = this.returns = oneMore(this.returns, this.clock.now(), minute);
    if (!returns || returns.count <= mostReturns) {
      enter();
      return;
    }
    const until = returns.since + minute;
    const forget = this.clock.after(until - this.clock.now(), () => {
      this.delayed.delete(enter);
      this.admit(msg, enter, together);
    });
    this.delayed.set(enter, { until, forget });
    const [first] = this.delayed.values();
    this.onDelay(this.delayed.size, first?.until ?? until);
  }

  /** Lets all delayed messages enter now: before a close, so that none is lost, and before a reset, which is for them too. */
  release(): void {
    for (const [enter, { forget }] of [...this.delayed]) {
      forget();
      this.delayed.delete(enter);
      enter();
    }
  }
}

/** The most messages that wait until the store is open; further ones fail with `queue_full`. */
const longestLine = 10_000;

/**
 * A flow node, with the one `input` handler. No rejection may escape it: it would end the whole of Node-RED. `start`
 * makes the node's own part.
 */
export const flowNode = (
  RED: Red,
  node: RunningNode,
  config: Record<string, unknown>,
  spec: NodeSpec,
  start: (tools: Tools) => Handler,
): void => {
  const words = wordsOf(RED);
  const environment = environmentOf(RED, config.environment);
  if (!environment) whenAdded(RED, node, config.environment, () => flowNode(RED, node, config, spec, start));
  let isUnsaved = false;
  const prefix = (): string =>
    simulatorMark(words, environment?.service) + (isUnsaved ? `${words.say('status.unsaved')} ` : '');
  const status = createStatus(node, prefix, systemClock, environment?.clock, shownFor.has(node.id));
  let hasWarned = false;
  let forgetStart = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    forgetStart = atNextStart(RED, resolve);
  });
  const activity = environment && activityOf(environment);
  const space = activity?.space ?? '';
  if ((shownFor.get(node.id) ?? space) !== space) node.status({});
  shownFor.set(node.id, space);
  const closing = new AbortController();
  const underWay = new Set<Promise<void>>();
  const release = environment?.keepStoreOpen();
  const measured = metrics();
  const outputs = outputsOf(RED, node, spec.outputs, words.problem, (msg, outcome, problem) => {
    const said = problem ?? (msg.payload as { dryRun?: unknown } | null | undefined);
    // A dry run is neither a failure nor a text.
    if (said?.dryRun === true) return;
    measured?.outcome(spec.type, outcome, problem?.code);
    if (problem) activity?.failed({ node: { id: node.id, name: node.name ?? '' }, problem, msg });
  });
  // Not every node acts for an advisor.
  const hasAdvisor = spec.fields.some(({ name }) => name === 'advisor');
  const advisorSource = hasAdvisor ? source(RED, node, spec, config, 'advisor') : noSource;

  const fault = faultInSettings(spec, config);
  const checkSettings = (): void => {
    if (fault) throw fault;
  };

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

  const clock = environment?.clock ?? systemClock;
  /** The last advisor that was found authorized. A request for a token notices what has ended since. */
  let lastAdvisor: { readonly asked: string; readonly found: string } | undefined;

  /** The advisor of a message: the chosen source, else `msg.advisor`, else the environment's only advisor. Never a guess. */
  const advisorOf = (from: Environment, value: unknown, msg: Message): string => {
    const asked = anyAdvisor(advisorSource, value, msg);
    if (lastAdvisor?.asked !== asked)
      lastAdvisor = { asked, found: authorized(from, asked || theOnlyOne(from)) };
    return lastAdvisor.found;
  };

  const tools: Tools = {
    RED,
    node,
    words,
    status,
    outputs,
    advisorSource,
    source: (name) => source(RED, node, spec, config, name),
    plain: plainSettings(spec, config),
    environment() {
      if (environment) return environment;
      throw nodeError('not_configured', 'no_environment');
    },
    clock,
    checkSettings,
    advisor(value, msg, items = []) {
      const from = tools.environment();
      checkSettings();
      try {
        return advisorOf(from, value, msg);
      } catch (thrown) {
        if (!(thrown instanceof ServiceError) || thrown.code === 'not_configured') throw thrown;
        if (!items.some(({ advisor }) => advisor !== undefined)) throw thrown;
        for (const item of items) if (item.advisor === undefined) item.wrong ??= thrown.problem;
        return '';
      }
    },
    markUnsaved() {
      isUnsaved = true;
    },
    whenStarted(task) {
      void started.then(task);
    },
    warnOfDropped() {
      if (!hasWarned) node.warn(words.say('warning.dropped'));
      hasWarned = true;
    },
    closed: closing.signal,
    allRead: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
    resumed: (msg, isOwn) =>
      new Job(RED, node, outputs, msg, isOwn ? (error) => node._complete(msg, error) : undefined),
  };
  let hasWarnedOfLoop = false;
  const brake = new Brake(node.id, clock, (count, until) => {
    status.show(() => heldLook(words, count, until, clock.now()));
    if (hasWarnedOfLoop) return;
    hasWarnedOfLoop = true;
    const name = node.name ?? '';
    node.warn(
      words.say('warning.loop', {
        node: name === '' ? node.id : name,
        count: words.number(mostReturns),
      }),
    );
  });
  let handler = start(tools);
  /** The number of messages that wait until the store is open. */
  let inLine = 0;
  const unlistenToStores = environment?.onStore?.((_, kind) => {
    if (kind !== 'own' || closing.signal.aborted) return;
    // The store of the handler before belongs to another process now, which does all that is left there.
    const before = handler;
    handler = start(tools);
    before.close().catch(() => undefined);
  });

  const unlistenToControls = environment?.onControl?.(node.id, (message, at, orphan) => {
    if (handler.opening || closing.signal.aborted) return false;
    try {
      return handler.control(message, at, orphan);
    } catch {
      // The message was not valid. The process that received it has reported that.
      return true;
    }
  });

  /** Says that nothing can be sent before the first message comes. */
  const showUnauthorized = (): void => {
    if (!hasAdvisor || !environment || closing.signal.aborted) return;
    try {
      const known = environment.advisors();
      if (!known.some((advisor) => environment.advisorState(advisor) === 'authorized'))
        status.show(() => unauthorizedLook(words, known.length > 0));
    } catch {
      // Where it is not configured, or the authorizations cannot be read, other statuses say so.
    }
  };
  void Promise.resolve(environment?.opening).then(showUnauthorized);

  const unlisten = environment?.onChange(() => {
    lastAdvisor = undefined;
    status.clearIfAuthorized((advisor) => isAuthorized(environment, advisor));
    showUnauthorized();
    if (environment.trouble !== undefined) {
      const key = environment.isStoreLost ? 'status.storeLost' : 'status.storeTrouble';
      status.show(() => look('red', 'ring', words.say(key)));
      return;
    }
    const until = pausedUntil(environment);
    if (until <= clock.now() || !handler.isBusy()) return;
    status.show(() =>
      look('yellow', 'ring', words.say('status.paused', { time: words.time(until, clock.now()) })),
    );
  });

  node.on('input', (received, _send, done) => {
    const [msg, unreadable] = readable(received) as [Message, Error | undefined];
    const job = new Job(RED, node, outputs, msg, done);
    job.handOver = handOver.claim(msg);
    /** Saves that the message has arrived, unless that was saved with its items. */
    const taken = (): void => {
      if (job.handOver) job.takeHandOver()?.();
    };
    const { summary, parts } = msg as { summary?: { id?: unknown }; parts?: { id?: unknown } };
    // This summary is that of the list which the message belongs to, not of this node's outcomes.
    if (summary && parts && summary.id === parts.id) delete msg.summary;
    const fail = (thrown: unknown): void => {
      try {
        const unread = thrown instanceof ServiceError ? undefined : removeUnreadable(msg, true);
        job.fail(handler.failed(problemOf(unready(unread ?? thrown)), msg));
        taken();
      } catch (fault) {
        if (!job.isSettled) done(fault as Error);
      }
    };
    const take = (): void => {
      try {
        // A reset is also for what is delayed.
        const isReset = isControl(msg, 'reset');
        if (isReset) brake.release();
        if (handler.opening) {
          enter();
          return;
        }
        if ((isReset || isControl(msg, 'flush')) && handler.control(msg)) {
          const { reset, flush, phone } = msg;
          environment?.tellOthers?.(node.id, { reset, flush, phone });
          job.end();
          taken();
          return;
        }
        const working = handler.input(msg, job);
        if (working) {
          const read = working.catch(fail).finally(() => {
            underWay.delete(read);
            taken();
          });
          underWay.add(read);
        } else taken();
      } catch (thrown) {
        fail(thrown);
      }
    };
    const enter = (): void => {
      const openings = [handler.opening, environment?.opening].filter((each) => each !== undefined);
      if (openings.length === 0) take();
      else if (inLine >= longestLine) fail(nodeError('queue_full', 'queue_full'));
      else {
        inLine += 1;
        // A message before this one may be a long list, for which this one waits once more.
        const opened = Promise.all(openings).then(() => {
          inLine -= 1;
          underWay.delete(opened);
          enter();
        });
        underWay.add(opened);
      }
    };
    if (unreadable) fail(unreadable);
    else brake.admit(msg, enter, handler.multiplies);
  });

  node.on('close', (closed: () => void) => {
    brake.release();
    closing.abort();
    status.close();
    forgetStart();
    unlisten?.();
    unlistenToStores?.();
    unlistenToControls?.();
    const end = (): void => {
      release?.();
      closed();
    };
    // Messages that wait for the environment are accepted before the node closes.
    const opened = environment?.opening ?? Promise.resolve();
    const ended = opened.then(() => handler.close());
    const isWaiting = inLine === 0 && handler.opening !== undefined && environment?.trouble !== undefined;
    // If the store does not answer a read, the read ends only with the store, which waits for its nodes.
    within(systemClock, isWaiting ? 0 : closeLimit, ended).then(end, (fault: unknown) => {
      node.warn(words.problem(problemOf(fault)));
      end();
    });
  });
};
