import { isRecord, type Message } from '../../lib/runtime/red';
import type { Outcome } from '../../lib/runtime/outcomes';
import type { Text } from './prepare';

/** What a message that lacked consent carries on its way round the loop, for the send node it came from. */
export interface Resend {
  readonly node: string;
  readonly phone: string;
  readonly text: string;
  readonly advisor: string;
  /** It was a duplicate when it left, and is one when it comes back: its original is the one that is sent. */
  readonly duplicateOf?: number;
}

/** Takes the order to send again off the message, when it is meant for this node. */
export const takeResend = (msg: Message, node: string): Resend | undefined => {
  const { resend } = msg;
  if (!isRecord(resend) || resend.node !== node) return undefined;
  const { phone, text, advisor } = resend;
  if (typeof phone !== 'string' || typeof text !== 'string' || typeof advisor !== 'string') return undefined;
  delete msg.resend;
  return resend as unknown as Resend;
};

export const textAgain = ({ phone, text, duplicateOf }: Resend): Text => ({
  index: 0,
  phone,
  text,
  ...(duplicateOf === undefined ? { again: true } : { sentAs: duplicateOf }),
});

const mostKept = 1000;

/** What became of the latest texts that came back, for the duplicates that come after them. */
export class Returned {
  private readonly outcomes = new Map<string, Promise<Outcome>>();

  keep(advisor: string, text: Text, outcome: Promise<Outcome>): void {
    const key = keyOf(advisor, text);
    // The flow may change the payload of the message that leaves.
    const kept = outcome.then((each) => ({ ...each, payload: { ...(each.payload as object) } }));
    kept.catch(() => undefined);
    this.outcomes.delete(key);
    this.outcomes.set(key, kept);
    const [oldest] = this.outcomes.keys();
    if (this.outcomes.size > mostKept && oldest !== undefined) this.outcomes.delete(oldest);
  }

  find(advisor: string, text: Text): Promise<Outcome> | undefined {
    return this.outcomes.get(keyOf(advisor, text));
  }
}

const keyOf = (advisor: string, { phone, text }: Text): string => JSON.stringify([advisor, phone, text]);
