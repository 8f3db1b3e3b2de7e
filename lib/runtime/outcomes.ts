import { serviceError, type Problem, ServiceError } from '../service/errors';
import { hideNumbers } from './log';
import { nodeError } from './errors';
import type { Message, Red, RunningNode } from './red';

/** How one recipient (contact, group, item) leaves the node. */
export interface Outcome {
  readonly port: 0 | 1 | 2;
  /** The result, on the first and third output; a failure leaves `msg.payload` as it was. */
  readonly payload?: unknown;
  /** Message fields this outcome writes. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Fields for the third output alone. */
  readonly carry?: Readonly<Record<string, unknown>>;
  /** The failure, on the second output; on the third, the failure that it becomes when nothing is wired there. */
  readonly problem?: Problem;
  /** The outcome may have been told before the process was killed. */
  readonly repeated?: boolean;
  /** The text was sent before, and is counted as such. */
  readonly alreadySent?: true;
  /** How far ahead of UTC the clocks are by which its planned time was written, in milliseconds. */
  readonly offset?: number;
}

export interface Parts {
  readonly id: string;
  readonly type: 'array';
  readonly index: number;
  readonly count?: number;
}

export const failedOutcome = (why: Problem, set?: Outcome['set']): Outcome => ({
  port: 1,
  problem: why,
  ...(set && { set }),
});

/** Whatever was thrown, as the problem that goes into `msg.error`. */
export const problemOf = (thrown: unknown): Problem => {
  if (thrown instanceof ServiceError) return thrown.problem;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return nodeError('internal_error', 'unexpected', { reason: { reason } }).problem;
};

/** What the service said may quote the text or the person it is about: that is for the flow, and not for the log. */
const unquoted = (why: Problem): Problem => {
  if (why.code === 'rejected') return nodeError('rejected', 'rejected_plain').problem;
  return why.detail !== undefined && why.detail !== '' && why.message.includes(why.detail)
    ? serviceError('invalid_request', 'invalid_request_plain').problem
    : why;
};

/** The error for Catch and the log: our code, and the whole `msg.error` as its cause. */
class OutcomeError extends Error {
  readonly code: string;

  constructor(sentence: string, details: Problem & { source: object }) {
    super(sentence, { cause: details });
    // The debug sidebar shows a cause as text.
    Object.defineProperty(details, 'toString', { value: () => sentence });
    this.name = 'Error';
    this.code = details.code;
    // A stack of ours tells the user nothing and makes one line in the log into ten.
    this.stack = `${details.code}: ${sentence}`;
  }
}

/** One by one: `Object.assign` takes longer than the rest of an outcome. */
const write = (msg: Message, fields: Readonly<Record<string, unknown>> | undefined): void => {
  for (const name in fields) msg[name] = fields[name];
};

/** What goes with the leaving of one outcome. */
export interface Leave {
  /** Called with the message before it is sent. */
  readonly mark?: (msg: object) => void;
  /** Called with the function that counts the outcome, to be called when it has arrived; without it, it counts at once. */
  readonly toCount?: (count: () => void) => void;
}

export interface Exit {
  /** Sends the outcome where it belongs; returns the error to raise when no output takes it. */
  leave(msg: Message, outcome: Outcome, about?: Leave): Error | undefined;
  /** The output an outcome leaves by, as `msg.outcome` names it: a third output that nothing is wired to fails. */
  nameOf(outcome: Outcome): string;
}

const atOnce = (count: () => void): void => {
  count();
};

export const createExit = (
  RED: Red,
  node: RunningNode,
  outputs: readonly string[],
  translate: (why: Problem) => string,
  /** Called with each outcome that leaves, once; a failure comes with why. */
  left?: (msg: Message, outcome: string, why?: Problem) => void,
): Exit => {
  const isWired = (port: number): boolean =>
    (node.wires[port] ?? []).some((id) => (RED.nodes.getNode(id) as unknown) != null);

  const portOf = ({ port }: Outcome): number => (port === 2 && !isWired(2) ? 1 : port);

  const send = (msg: Message, port: number, mark: ((msg: object) => void) | undefined): void => {
    msg.outcome = outputs[port];
    mark?.(msg);
    node.send(port === 0 ? msg : port === 1 ? [null, msg] : [null, null, msg]);
  };

  return {
    nameOf: (outcome) => outputs[portOf(outcome)] ?? '',
    leave(msg, outcome, { mark, toCount = atOnce } = {}) {
      write(msg, outcome.set);
      if (outcome.repeated) msg.repeated = true;
      else if ('repeated' in msg) delete msg.repeated;
      const port = portOf(outcome);
      if (port !== 1) {
        msg.payload = outcome.payload;
        write(msg, outcome.carry);
        if ('error' in msg) delete msg.error;
        if (!outcome.repeated) toCount(() => left?.(msg, outputs[port] ?? ''));
        send(msg, port, mark);
        return undefined;
      }
      const why = outcome.problem;
      if (!why) throw new Error('a failure without a problem');
      if (!outcome.repeated) toCount(() => left?.(msg, outputs[1] ?? '', why));
      const { wording: _wording, ...said } = why;
      const details = {
        ...said,
        message: translate(why),
        source: { id: node.id, type: node.type, name: node.name },
      };
      if (!isWired(1)) return new OutcomeError(hideNumbers(translate(unquoted(why))), details);
      msg.error = details;
      send(msg, 1, mark);
      return undefined;
    },
  };
};
