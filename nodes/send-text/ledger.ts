import type { Outcome } from '../../lib/runtime/outcomes';
import type { Environment } from '../../lib/runtime/environment';
import { Journal } from '../../lib/state/journal';
import { liveJournal } from '../../lib/state/live-journal';
import type { Text } from './prepare';
import type { Delivery } from './schedule';

/** What holds for all texts of one message. */
export interface Order {
  readonly advisor: string;
  readonly delivery?: Delivery;
  /** An array came in: the id of its sequence, and the message property that holds the list. */
  readonly list?: { readonly id: string; readonly shared?: string };
}

/**
 * An outcome on record. One that came while the node was closing has certainly not been told; a text that had begun and
 * was certainly not carried out when the node closed is to be sent again.
 */
export type Kept = { readonly outcome: Outcome; readonly untold?: true } | { readonly again: true };

export type Ledger = Pick<Journal<Text, Kept>, 'accept' | 'resume' | 'settle'>;

/** Where the texts of a node are on record, and whether that outlives the process. */
export const openLedger = async (
  environment: Environment,
): Promise<{ readonly ledger: Ledger; readonly isUnsaved: boolean }> => {
  if (!environment.settings.journal) return { ledger: liveJournal<Text, Kept>(), isUnsaved: false };
  const store = await environment.store();
  return { ledger: new Journal<Text, Kept>(store, () => environment.clock.now()), isUnsaved: !store.durable };
};
