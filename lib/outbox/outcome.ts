import type { Problem } from '../service/errors';

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
  /** The outcome may have been emitted before the process was killed. */
  readonly repeated?: boolean;
  /** The text was sent, or the person asked, before: it is counted apart, and in `msg.summary` for a text. */
  readonly alreadySent?: true;
  /** The offset from UTC with which the planned time was written, in milliseconds. */
  readonly offset?: number;
}
