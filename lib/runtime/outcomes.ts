import { serviceError, type Problem, ServiceError } from '../service/errors';
import { mostLevels, TooDeep, UnreadableProperty } from '../outbox/storable-message';
import { largestWrite, TooLarge } from '../state/store';
import { visible } from '../visible';
import { hideNumbers } from './log';
import { nodeError } from './errors';
import type { Message, Red, RunningNode } from './red';

/** How one recipient (contact, group, item) leaves the node. */
export interface Outcome {
  readonly port: 0 | 1 | 2;
  /** The result, on the first and third outputs; a failure leaves `msg.payload` as it was. */
  readonly payload?: unknown;
  /** Message fields that this outcome writes. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Message fields for the third output alone. */
  readonly carry?: Readonly<Record<string, unknown>>;
  /** On the second output, the failure. On the third, the failure that the outcome becomes when nothing is wired to it. */
  readonly problem?: Problem;
  /** The outcome may have been told before the process was killed. */
  readonly repeated?: boolean;
  /** The text was sent before, and is counted so in `msg.summary`. */
  readonly alreadySent?: true;
  /** The offset from UTC with which the planned time was written, in milliseconds. */
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

/** Turns anything that was thrown into the problem for `msg.error`. */
export const problemOf = (thrown: unknown): Problem => {
  if (thrown instanceof ServiceError) return thrown.problem;
  if (thrown instanceof TooLarge)
    return nodeError('invalid_input', 'message_large', { megabytes: largestWrite / 2 ** 20 }).problem;
  if (thrown instanceof UnreadableProperty)
    return nodeError('invalid_input', 'message_unreadable', { property: thrown.message }).problem;
  if (thrown instanceof TooDeep)
    return nodeError('invalid_input', 'message_deep', { levels: mostLevels }).problem;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return nodeError('internal_error', 'unexpected', { reason }).problem;
};

/** The service's words may quote the text or the recipient: they are for the flow, not for the log. */
const unquoted = (why: Problem): Problem => {
  if (why.wording?.key === 'rejected') return nodeError('rejected', 'rejected_plain').problem;
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

/** What goes with an outcome that is emitted. */
export interface Emission {
  /** Called with the message before it is sent. */
  readonly mark?: (msg: object) => void;
  /**
   * Called with the function that counts the outcome, which is to be called on its arrival. Without it, the outcome
   * counts at once.
   */
  readonly toCount?: (count: () => void) => void;
}

/** The outputs of a node. */
export interface Outputs {
  /** As in `msg.outcome`. */
  readonly names: readonly string[];
  /** Sends the outcome by its output; returns the error to raise when nothing is wired to any output for it. */
  emit(msg: Message, outcome: Outcome, about?: Emission): Error | undefined;
  /**
   * The name of the output that an outcome leaves by, as in `msg.outcome`: a third output without wires counts as
   * `failed`.
   */
  nameOf(outcome: Outcome): string;
}

const atOnce = (count: () => void): void => {
  count();
};

export const outputsOf = (
  RED: Red,
  node: RunningNode,
  names: readonly string[],
  translate: (why: Problem) => string,
  /** Called once with each outcome that leaves; a failure comes with its problem. */
  onEmitted?: (msg: Message, outcome: string, why?: Problem) => void,
): Outputs => {
  const isWired = (port: number): boolean =>
    (node.wires[port] ?? []).some((id) => (RED.nodes.getNode(id) as unknown) != null);

  const portOf = ({ port }: Outcome): number => (port === 2 && !isWired(2) ? 1 : port);

  const send = (msg: Message, port: number, mark: ((msg: object) => void) | undefined): void => {
    msg.outcome = names[port];
    mark?.(msg);
    node.send(port === 0 ? msg : port === 1 ? [null, msg] : [null, null, msg]);
  };

  return {
    names,
    nameOf: (outcome) => names[portOf(outcome)] ?? '',
    emit(msg, outcome, { mark, toCount = atOnce } = {}) {
      writeFields(msg, outcome.set);
      if (outcome.repeated) msg.repeated = true;
      else if ('repeated' in msg) delete msg.repeated;
      const port = portOf(outcome);
      if (port !== 1) {
        msg.payload = outcome.payload;
        writeFields(msg, outcome.carry);
        if ('error' in msg) delete msg.error;
        if (!outcome.repeated) toCount(() => onEmitted?.(msg, names[port] ?? ''));
        send(msg, port, mark);
        return undefined;
      }
      const why = outcome.problem;
      if (!why) throw new Error('a failure without a problem');
      if (!outcome.repeated) toCount(() => onEmitted?.(msg, names[1] ?? '', why));
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
