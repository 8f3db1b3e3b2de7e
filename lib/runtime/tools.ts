import { minute } from '../durations';
import type { Mutable } from '../mutable';
import { countReturn, noReturns, oneMore } from '../outbox/hand-over';
import type { ItemData } from '../outbox/records';
import type { Clock } from '../service/clock';
import { serviceError } from '../service/errors';
import { atNextStart, madeLate, type Job, type Outputs } from './delivery';
import type { Environment } from './environment';
import { invalidInput, nodeError } from './errors';
import type { plainSettings, Source } from './inputs';
import { asText } from './kinds';
import type { Words } from './language';
import type { Message, Red, RunningNode } from './red';
import { heldLook, type Status } from './status';

/** What a node's own part works with. */
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
  /** The country of numbers that are not written with +; empty if none is set. */
  readonly country: string;
  /** The environment's clock, by which statuses show times; a simulator's can be moved. */
  readonly clock: Clock;
  /** Throws `invalid_input` when a setting of this node is wrong. */
  checkSettings(): void;
  /**
   * The advisor that a message is for. Checks the settings first. If the advisor cannot be determined, items that name
   * their own do not fail.
   */
  advisor(
    value: unknown,
    msg: Message,
    items?: readonly Mutable<Pick<ItemData, 'advisor' | 'wrong'>>[],
  ): string;
  readonly advisorSource: Source;
  /** From now on, every status says that waits and records do not outlive the process. */
  markUnsaved(): void;
  /** Runs the task when all nodes can be sent to. */
  whenStarted(task: () => void): void;
  readonly closed: AbortSignal;
}

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

/** The end of a pause that the service or its token endpoint asked for. A client that is not loaded has none. */
export const pausedUntil = (environment: Environment): number => {
  try {
    const client = environment.client();
    // A text reports this failure itself. An environment that is not configured has no pause to show.
    if (client instanceof Promise) client.catch(() => undefined);
    const byService = client instanceof Promise ? 0 : client.limits.pausedUntil;
    return Math.max(byService, environment.tokensPausedUntil ?? 0);
  } catch {
    return 0;
  }
};

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

export const theOnlyOne = (environment: Environment): string => {
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
export const authorized = (environment: Environment, advisor: string): string => {
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
export const isAuthorized = (environment: Environment, advisor: string): boolean => {
  try {
    const known = advisor === '' ? environment.advisors() : [advisor];
    return known.some((each) => environment.advisorState(each) === 'authorized');
  } catch {
    return false;
  }
};

/** A message may come back to a node this often within a minute. */
const mostReturns = 20;

/** Delays messages that run in a circle: a flow that is wired so would send thousands of requests a minute. */
export class Brake {
  /** Until when each is delayed. */
  private readonly delayed = new Map<Job, { readonly until: number; readonly forget: () => void }>();
  private returns = noReturns;
  private hasWarned = false;

  constructor(
    private readonly tools: Pick<Tools, 'node' | 'clock' | 'status' | 'words'>,
    private readonly enter: (job: Job) => void,
    /** One message becomes very many, which are counted together. */
    private readonly multiplies: boolean,
  ) {}

  /** Delays a message that has come back too often: it enters when its minute is over. False for any other. */
  delays(job: Job): boolean {
    const { node, clock } = this.tools;
    let returns = countReturn(job.msg, node.id, clock, minute);
    if (returns && this.multiplies) returns = this.returns = oneMore(this.returns, clock.now(), minute);
    if (!returns || returns.count <= mostReturns) return false;
    const until = returns.since + minute;
    const forget = clock.after(until - clock.now(), () => {
      this.delayed.delete(job);
      if (!this.delays(job)) this.enter(job);
    });
    this.delayed.set(job, { until, forget });
    this.show();
    return true;
  }

  /** Lets all delayed messages enter now: before a close, so that none is lost, and before a reset, which is for them too. */
  release(): void {
    for (const [job, { forget }] of [...this.delayed]) {
      forget();
      this.delayed.delete(job);
      this.enter(job);
    }
  }

  private show(): void {
    const { node, clock, status, words } = this.tools;
    const [{ until } = { until: 0 }] = this.delayed.values();
    const { size } = this.delayed;
    status.show(() => heldLook(words, size, until, clock.now()));
    if (this.hasWarned) return;
    this.hasWarned = true;
    const count = words.number(mostReturns);
    node.warn(
      words.say('warning.loop', { node: node.name === '' ? node.id : (node.name ?? node.id), count }),
    );
  }
}
