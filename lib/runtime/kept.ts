import type { Problem } from '../service/problems';
import { Journal, type Todo } from '../state/journal';
import { liveJournal } from '../state/live-journal';
import type { Environment } from './environment';
import { refuse } from './messages';
import { failure, type Outcome } from './outcomes';

/** One recipient of a message. */
export interface Item {
  readonly index: number;
  /** Why nothing can be done for it. */
  readonly wrong?: Problem;
  /** It stands earlier in this list: carried out once, told twice. */
  readonly duplicateOf?: number;
}

/** An outcome on record. */
export interface Kept {
  readonly outcome: Outcome;
  /** It has certainly not been told: the node was closing, or the flows were stopping. */
  readonly untold?: true;
}

/** An order on record, with the environment it was given for. */
export interface Filed<O> {
  readonly order: O;
  readonly environment: string;
}

export type Ledger<T> = Pick<Journal<T, Kept>, 'accept' | 'resume' | 'settle'>;

/** Where the items of a node are on record, and whether that was to outlive the process and does not. */
export const openLedger = async <T>(
  environment: Environment,
  node: string,
): Promise<{ readonly ledger: Ledger<T>; readonly isUnsaved: boolean }> => {
  if (!environment.settings.journal) return { ledger: liveJournal<T, Kept>(node), isUnsaved: false };
  const store = await environment.store();
  const now = (): number => environment.clock.now();
  return { ledger: new Journal<T, Kept>(store, node, now), isUnsaved: !store.durable };
};

/** Duplicates by the index of their original. */
export const duplicatesIn = <T extends Item>(items: readonly T[]): ReadonlyMap<number, readonly T[]> => {
  const duplicates = new Map<number, T[]>();
  for (const item of items) {
    if (item.duplicateOf === undefined) continue;
    const found = duplicates.get(item.duplicateOf);
    if (found) found.push(item);
    else duplicates.set(item.duplicateOf, [item]);
  }
  return duplicates;
};

interface LeftOver<T> {
  readonly toDo: readonly T[];
  /** On record, and perhaps told before. */
  readonly toTell: readonly { readonly item: T; readonly outcome: Outcome }[];
  /** To be put on record as this, and told. */
  readonly toSettle: readonly { readonly item: T; readonly outcome: Outcome }[];
}

/** Another version may have put on record what this one cannot tell. */
const isKnown = ({ outcome }: { readonly outcome?: Partial<Outcome> }): boolean =>
  outcome?.port !== undefined;

const unknown = (): Outcome =>
  failure(refuse('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 }).problem);

const moved = (): Outcome => failure(refuse('cancelled', 'environment_changed').problem);

/** What a restart has to do for each item of one message; nothing new in an environment it was not meant for. */
export const leftOver = <T extends Item>(open: readonly Todo<T, Kept>[], isHome: boolean): LeftOver<T> => {
  const originals = open.filter((todo) => todo.what === 'send' && todo.recipient.duplicateOf === undefined);
  const doing = new Set(originals.map(({ index }) => index));
  const toDo: T[] = [];
  const toTell: { item: T; outcome: Outcome }[] = [];
  const toSettle: { item: T; outcome: Outcome }[] = [];
  for (const todo of open) {
    const item = todo.recipient;
    if (todo.what === 'send' && !isHome) {
      toSettle.push({ item, outcome: moved() });
    } else if (todo.what === 'send') {
      // A duplicate goes with its original; without one, nobody knows any more what became of it.
      if (item.duplicateOf === undefined || doing.has(item.duplicateOf)) toDo.push(item);
      else toSettle.push({ item, outcome: unknown() });
    } else if (todo.what === 'tell' && isKnown(todo.outcome)) {
      const { outcome, untold } = todo.outcome;
      // On record as perhaps told from now on: whoever comes after a kill says that it is repeated.
      if (untold) toSettle.push({ item, outcome });
      else toTell.push({ item, outcome: { ...outcome, repeated: true } });
    } else {
      const stale = todo.what === 'stale' && failure(refuse('stale', 'stale').problem);
      toSettle.push({ item, outcome: stale || unknown() });
    }
  }
  return { toDo, toTell, toSettle };
};
