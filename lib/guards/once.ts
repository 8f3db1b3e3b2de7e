import { randomBytes } from 'node:crypto';
import { Listeners } from '../listeners';
import type { Item } from '../outbox/item';
import type { Environment } from '../runtime/environment';
import { problemOf } from '../runtime/errors';
import type { Guard, GuardTools } from '../runtime/item-node';
import type { Outcome } from '../outbox/outcome';
import { Later } from '../outbox/queue';
import type { ItemData, Shared } from '../outbox/records';
import { serviceError, mayBeCarriedOut } from '../service/errors';
import { systemClock, type Clock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import { rememberedKey, serviceIn, sweepRemembered, table, type Remembered } from '../state/remembered';
import { ageClock, changeRecord, unchanged, type Operation, type Store } from '../state/store';
import { orMake, processMemory } from '../process-memory';

/**
 * Identifies a text with a key: it counts at one service, in one send node, for one advisor and number. Another
 * environment of the service changes nothing, since a node may get one in the middle of a campaign.
 */
export interface OnceKey {
  readonly space: string;
  readonly node: string;
  readonly advisor: string;
  readonly phone: string;
  readonly key: string;
}

/** The holder of a key, and how far its text has come. It changes in one commit with the steps of the text. */
interface Claim extends Remembered {
  readonly item: string;
  readonly holder: string;
  /** When it was claimed or sent, by the clock by which keys age; when it was cancelled, by the store's time. */
  readonly at: number;
  /** While it is open, no request has left; after that, one may have. */
  readonly state: 'open' | 'started' | 'sent' | 'unknown' | 'cancelled';
  /** The text of an open claim is held until then. */
  readonly notBefore?: number;
  readonly payload?: unknown;
}

/** How the text of a claim ended: `none` means that nothing was sent, and releases the key. */
export interface End {
  readonly state: 'sent' | 'unknown' | 'cancelled' | 'none';
  readonly payload?: unknown;
}

/** The result for a text that claims a key. */
export type OnceVerdict =
  | { readonly kind: 'own'; readonly claim: Claim }
  | { readonly kind: 'sent'; readonly payload: unknown }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'cancelled' }
  /** The first text with the key is held, or in flight. */
  | { readonly kind: 'wait'; readonly notBefore: number | undefined };

const run = randomBytes(9).toString('base64url');
/** Texts with a key that this process is sending, until their outcome is saved. */
const atWork = processMemory('onceKeys', new Set<string>());
/** Repeats that wait for the first text with their key: called with each key that is released. */
const released = processMemory('onceKeys', new Listeners<[key: Buffer]>());
/** Milliseconds after which a key is read again: another process may have changed it. */
const lookAgainAfter = 500;

/** Whether a text with this key has been sent, according to the store: across restarts and instances. */
export class Once {
  readonly at: Buffer;
  private readonly of: string;
  /** The id of the environment. */
  private readonly own: string;
  private readonly holder: string;
  /** The clock by which keys age. */
  private readonly ages: Clock;

  /** A claim lasts for `within` milliseconds after its text was sent. */
  constructor(
    readonly store: Store,
    { space, node, advisor, phone, key }: OnceKey,
    private readonly within: number,
    private readonly environment: Pick<Environment, 'service' | 'clock'>,
  ) {
    this.ages = ageClock(environment, store);
    this.of = JSON.stringify([advisor, phone, key]);
    this.at = rememberedKey(store, serviceIn(space), ['once', node], this.of);
    this.own = space.slice(0, space.indexOf('/'));
    this.holder = store.peers?.processName ?? run;
  }

  /** Claims the key for a text, unless another has it. `since` is when its item was accepted, by the store's time. */
  async claim(item: string, since: number): Promise<OnceVerdict> {
    const { store, holder, at, of } = this;
    // Before the record is read, so that a text that reads it later finds this one at work.
    atWork.add(item);
    try {
      for (;;) {
        const entry = await store.get<Claim>(table, at);
        const verdict = await this.check(entry?.value, item, since);
        if (verdict) {
          atWork.delete(item);
          return verdict;
        }
        const until = store.now() + this.within;
        const claimed = { of, environment: this.own, item, holder, at: this.ages.now() };
        const value: Claim = { ...claimed, until, state: 'open' };
        if (!(await store.write([{ table, put: at, value }], [unchanged(table, at, entry)]))) continue;
        sweepRemembered(store).catch(() => undefined);
        return { kind: 'own', claim: value };
      }
    } catch (fault) {
      atWork.delete(item);
      throw fault;
    }
  }

  /** The result of `claim`, without claiming. */
  async foresee(): Promise<OnceVerdict | undefined> {
    const entry = await this.store.get<Claim>(table, this.at);
    return this.check(entry?.value, '', Infinity);
  }

  /** Ends the claim of a text that is not being sent. */
  async end(item: string, end: End): Promise<void> {
    await changeRecord<Claim>(this.store, table, this.at, (claim) =>
      claim?.item === item && ['open', 'started'].includes(claim.state) ? this.ended(claim, end) : claim,
    );
    this.release(item);
  }

  /** What is written with the steps of the text that holds the key. */
  step(value: Claim | undefined): Operation {
    return value ? { table, put: this.at, value } : { table, remove: this.at };
  }

  held(claim: Claim, notBefore: number): Claim {
    const until = this.store.now() + Math.max(0, notBefore - this.environment.clock.now()) + this.within;
    return { ...claim, notBefore, until };
  }

  ended(claim: Claim, { state, payload }: End): Claim | undefined {
    if (state === 'none') return undefined;
    const now = this.store.now();
    const at = state === 'cancelled' ? now : this.ages.now();
    const { of, environment, item, holder } = claim;
    // A repeat that waits for a held text has its turn when that would have left, and is cancelled with it then.
    const until = Math.max(now + this.within, state === 'cancelled' ? claim.until : 0);
    return { of, environment, item, holder, at, until, state, payload };
  }

  /** Called when the last step is written, or cannot be: repeats that wait for the key read it again. */
  release(item: string): void {
    atWork.delete(item);
    released.call(this.at);
  }

  /** Resolves when a key was released, or after a moment: another process may hold it. */
  changed(signal: AbortSignal): Promise<void> {
    return wokenBy(
      (wake) =>
        released.add((key) => {
          if (key.equals(this.at)) wake();
        }),
      (wake) => systemClock.after(lookAgainAfter, wake),
      signal,
    );
  }

  /** Undefined when the key is free. */
  private async check(
    claim: Claim | undefined,
    name: string,
    since: number,
  ): Promise<OnceVerdict | undefined> {
    if (!claim) return undefined;
    const isOver = this.ages.now() - claim.at >= this.within;
    switch (claim.state) {
      case 'sent':
        return isOver ? undefined : { kind: 'sent', payload: claim.payload };
      case 'unknown':
        return isOver ? undefined : { kind: 'unknown' };
      case 'cancelled':
        // A repeat that came while the first waited is cancelled with it.
        return since <= claim.at && claim.item !== name ? { kind: 'cancelled' } : undefined;
      case 'open': {
        const { item, notBefore } = claim;
        if (item === name) return undefined;
        if ((notBefore ?? 0) > this.environment.clock.now() || (await this.isAtWork(claim)))
          return { kind: 'wait', notBefore };
        // Its turn has not come, perhaps not before a restart. The text that comes first is sent, and the other is the
        // repeat.
        return undefined;
      }
      case 'started':
        if (claim.item !== name && (await this.isAtWork(claim)))
          return { kind: 'wait', notBefore: undefined };
        // The process of the first text was killed while that was in flight.
        return isOver ? undefined : { kind: 'unknown' };
    }
  }

  private async isAtWork({ holder, item }: Claim): Promise<boolean> {
    if (holder === this.holder) return atWork.has(item);
    return (await this.store.peers?.isAlive(holder)) ?? false;
  }
}

const alreadySent = (payload: unknown): Outcome => ({
  port: 0,
  payload: { ...(payload as object), alreadySent: true },
  alreadySent: true,
});

/** What happens to a text's key, by the outcome of the text. */
const endOfSent = ({ port, payload, problem }: Outcome): End => {
  if (port === 0) return { state: 'sent', payload };
  return { state: mayBeCarriedOut(problem?.code) ? 'unknown' : 'none' };
};

/** The same by what was thrown. */
const endOfThrown = (thrown: unknown, isReset: boolean): End => {
  if (mayBeCarriedOut(problemOf(thrown).code)) return { state: 'unknown' };
  return { state: isReset ? 'cancelled' : 'none' };
};

/** Writes the steps of the key in one commit with those of the text: a crash leaves both or neither. */
const sendClaimed = async (
  item: Item,
  once: Once,
  claim: Claim,
  next: () => Promise<Outcome>,
): Promise<Outcome> => {
  const { store } = once;
  // Without a journal, the steps of a text are only in memory.
  const saved = (value: Claim) =>
    item.isSavedIn(store) ? [once.step(value)] : store.write([once.step(value)]);
  const end = (value: Claim | undefined): Promise<void> =>
    item.atEnd(store, once.step(value), () => once.release(item.id));
  item.add({ start: () => saved({ ...claim, state: 'started' }), undo: () => saved(claim) });
  try {
    const outcome = await next();
    await end(once.ended(claim, endOfSent(outcome)));
    return outcome;
  } catch (thrown) {
    const isLater = thrown instanceof Later;
    await end(
      isLater ? once.held(claim, thrown.notBefore) : once.ended(claim, endOfThrown(thrown, item.isReset)),
    );
    throw thrown;
  }
};

/** The key of a text, and for how many milliseconds it lasts. */
interface Wanted {
  readonly key: string;
  readonly within: number;
}

/** Sends a text with a key, unless one with that key was sent. */
export const sendOnce = <D extends ItemData, S extends Shared>(
  { environment, node, recheck }: GuardTools,
  onceOf: (data: D, shared: S) => Wanted | undefined,
): Guard<D, S> => {
  /** The outcomes of dry runs in progress, by their keys. */
  const foreseen = new WeakMap<object, Map<string, Promise<Outcome>>>();

  const onceFor = async (item: Item<D, S>, { key, within }: Wanted): Promise<Once> => {
    const store = await item.savedIn(environment);
    const { message, advisor, data } = item;
    const onceKey = { space: message.record.space, node, advisor, phone: data.phone ?? '', key };
    return new Once(store, onceKey, within, environment);
  };

  /** A dry run claims no key: the texts of one message only know of each other. */
  const foresee = async (
    { message, data }: Item<D, S>,
    key: string,
    next: () => Promise<Outcome>,
  ): Promise<Outcome> => {
    const outcomes = orMake(foreseen, message, () => new Map<string, Promise<Outcome>>());
    const name = JSON.stringify([data.phone, key]);
    const first = outcomes.get(name);
    if (first) {
      const outcome = await first.catch(() => undefined);
      return outcome?.port === 0 ? alreadySent(outcome.payload) : next();
    }
    const outcome = next();
    outcomes.set(name, outcome);
    return outcome;
  };

  const passWith = async (
    item: Item<D, S>,
    wanted: Wanted,
    next: () => Promise<Outcome>,
  ): Promise<Outcome> => {
    const once = await onceFor(item, wanted);
    if (item.shared.dryRun) {
      const verdict = await once.foresee();
      if (verdict?.kind === 'unknown') throw serviceError('outcome_unknown', 'once_unknown');
      if (verdict?.kind === 'sent') return alreadySent(verdict.payload);
      const outcome = await foresee(item, wanted.key, next);
      // The text would wait for the first one with its key, and leave as that does.
      return verdict?.kind === 'wait' && outcome.port === 0 ? alreadySent(outcome.payload) : outcome;
    }
    for (;;) {
      // The item's own store may have another time.
      const verdict = await once.claim(item.id, once.store.now() - item.age);
      if (verdict.kind === 'own') return sendClaimed(item, once, verdict.claim, next);
      if (verdict.kind === 'sent') return alreadySent(verdict.payload);
      if (verdict.kind === 'unknown') throw serviceError('outcome_unknown', 'once_unknown');
      if (verdict.kind === 'cancelled' || item.signal.aborted) throw serviceError('cancelled', 'cancelled');
      const { notBefore = 0 } = verdict;
      if (notBefore > environment.clock.now()) throw new Later(notBefore);
      await once.changed(item.signal);
    }
  };

  return {
    pass(item, next) {
      const wanted = onceOf(item.data, item.shared);
      return wanted ? passWith(item, wanted, next) : next();
    },
    /** The text may have claimed its key in an earlier turn, before it was held: it releases the key. */
    async endsWithout(item, reason) {
      const { data, shared, id } = item;
      const wanted = shared.dryRun ? undefined : onceOf(data, shared);
      if (!wanted) return;
      const isUnknown = reason === 'unknown' || reason === 'crashes';
      const state = isUnknown ? 'unknown' : reason === 'reset' ? 'cancelled' : 'none';
      await (await onceFor(item, wanted)).end(id, { state });
      // Those that wait for its key are held until the same time, and are cancelled too.
      if (state === 'cancelled' && data.phone !== undefined) recheck(data.phone);
    },
  };
};
