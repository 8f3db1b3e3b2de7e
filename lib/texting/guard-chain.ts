import { doNotTextOf, type BlockedBy, type DoNotText } from '../guards/do-not-text';
import { onceIn, type End, type OnceKey, type OnceTime, type OwnClaim } from '../guards/once';
import { countText } from '../guards/segments';
import { allowedFrom, spreadFrom, type Whose } from '../guards/text-hours';
import { Held, isResetBy, type AcceptedItem, type Reason } from '../outbox/queue';
import { isTimeZone } from '../runtime/dates';
import type { Environment, EnvironmentSettings } from '../runtime/environment';
import { invalidInput, nodeError } from '../runtime/errors';
import { fieldOf, isNothing, isRecord } from '../runtime/kinds';
import type { Turn } from '../runtime/request-node';
import { problemOf, type Outcome } from '../runtime/outcomes';
import { mayBeCarriedOut, type ServiceError } from '../service/errors';
import { ageClock, StoreClosed, TakenOver, type Operation, type Store } from '../state/store';
import type { Recipient, TextingOrder } from './recipients';

/** One recipient whose work begins. */
export interface GuardedTurn<T, O> extends Turn<T, O> {
  /** For `client.call`: asks before each attempt whether it may be made. */
  readonly permit?: () => Promise<() => void>;
  /** In a dry run: the text would be held until then, in epoch milliseconds. */
  readonly notBefore?: number;
  /** The delivery date of a scheduled text, moved into the recipient's hours; in epoch milliseconds. */
  readonly movedTo?: number;
}

/** The key of a text that is to be sent once within so many milliseconds. */
interface SendOnce {
  readonly key: string;
  readonly within: number;
}

/** What the guards must know of a node that texts people. */
export interface GuardOptions<T, O> {
  /** The most SMS segments that a text may take; 0 for any. */
  readonly maxSegments?: number;
  /** With `any`, the text hours are not asked. */
  readonly hours: 'environment' | 'any';
  /** The outcome where no request is needed, whatever the hours; undefined when one is. */
  readonly outcomeWithoutRequest?: (turn: GuardedTurn<T, O>) => Promise<Outcome | undefined>;
  /** Undefined for a text that may be sent again. */
  readonly onceOf?: (shared: O, recipient: T) => SendOnce | undefined;
  /** The delivery date of a text that the service schedules, in epoch milliseconds. */
  readonly deliveryDateOf?: (shared: O, environment: Environment) => number | undefined;
}

type KeyedText<T, O> = Pick<AcceptedItem<T, O>, 'shared' | 'item' | 'name' | 'space'>;

/** From a recipient to an outcome. */
export type Work<T, O> = (turn: GuardedTurn<T, O>) => Promise<Outcome>;

/** The error of a number that is blocked. */
export const refusalBy = (by: BlockedBy): ServiceError => {
  if (by === 'unreadable') return nodeError('blocked', 'blocked_unreadable');
  return nodeError('blocked', by === 'unreadable list' ? 'blocked_list_unreadable' : 'blocked');
};

/** The recipient's own zone, as it was given: that of a list's object, or for a single number that of the message. */
export const zoneOf = ({ timeZone }: TextingOrder, entry: unknown): unknown => {
  const own = isRecord(entry) ? fieldOf(entry, 'timeZone') : undefined;
  return isNothing(own) ? timeZone : own;
};

const checkLength = ({ text = '' }: Recipient, most: number): void => {
  if (most <= 0) return;
  const { segments } = countText(text);
  if (segments > most) throw invalidInput('text_segments', { segments, most });
};

/** The text hours of one recipient. */
class RecipientHours {
  constructor(
    private readonly hours: NonNullable<EnvironmentSettings['textHours']>,
    private readonly whose: Whose,
    private readonly now: () => number,
  ) {}

  /** Throws `quiet_hours` or `Held` unless the recipient may be texted now. */
  check(): void {
    const now = this.now();
    const opening = this.allowedFrom(now);
    if (opening === now) return;
    if (this.hours.outside === 'fail') throw quiet(opening);
    throw new Held(spreadFrom(this.hours, this.whose, opening));
  }

  /** The next allowed time for a delivery date outside the hours; undefined when it is inside. Throws `quiet_hours`. */
  move(deliveryDate: number): number | undefined {
    const opening = this.allowedFrom(deliveryDate);
    if (opening === deliveryDate) return undefined;
    if (this.hours.outside === 'fail') throw quiet(opening);
    return spreadFrom(this.hours, this.whose, opening);
  }

  /** What the hours would do to a text, for a dry run. */
  foresee(deliveryDate: number | undefined): { readonly notBefore?: number; readonly movedTo?: number } {
    if (deliveryDate !== undefined) {
      const movedTo = this.move(deliveryDate);
      return movedTo === undefined ? {} : { movedTo };
    }
    try {
      this.check();
      return {};
    } catch (thrown) {
      if (!(thrown instanceof Held)) throw thrown;
      return { notBefore: thrown.notBefore };
    }
  }

  private allowedFrom(at: number): number {
    const opening = allowedFrom(this.hours, this.whose, at);
    if (opening === undefined) throw invalidInput('zone_missing');
    return opening;
  }
}

const alreadySent = (payload: unknown): Outcome => ({
  port: 0,
  payload: { ...(payload as object), alreadySent: true },
  alreadySent: true,
});

/** What becomes of a text's key, by the outcome of the text or its error. */
const endOfKey = (
  ended: { readonly outcome: Outcome } | { readonly thrown: unknown },
  isReset: boolean,
): End => {
  if ('thrown' in ended) {
    if (mayBeCarriedOut(problemOf(ended.thrown).code)) return { state: 'unknown' };
    return { state: isReset ? 'cancelled' : 'none' };
  }
  const { port, payload, problem } = ended.outcome;
  if (port === 0) return { state: 'sent', payload };
  return { state: mayBeCarriedOut(problem?.code) ? 'unknown' : 'none' };
};

const timeOf = (environment: Environment, store: Store): OnceTime => {
  const ages = ageClock(environment, store);
  return { now: () => environment.clock.now(), age: () => ages.now() };
};

/** Puts on record how far a text has come. */
type Steps = Pick<Turn<unknown, unknown>, 'begin' | 'undo'>;

const quiet = (notBefore: number): ServiceError => nodeError('quiet_hours', 'quiet_hours', {}, { notBefore });

/** Asks, for each recipient in its turn, whether it may be texted: the do-not-text list, the key, the text hours. */
export class GuardChain<T extends Recipient, O extends TextingOrder> {
  private list: DoNotText | undefined;
  /** The outcomes of dry runs under way, by their keys. */
  private readonly foreseen = new WeakMap<object, Map<string, Promise<Outcome>>>();
  private unlisten: (() => void) | undefined;

  /** `judgeAgain` has the held texts of a number judged again. */
  constructor(
    private readonly node: string,
    private readonly options: GuardOptions<T, O>,
    private readonly judgeAgain: (phone: string) => void,
  ) {}

  /** To be called when the store is open: from now on, held texts leave as soon as their number is blocked. */
  open(environment: Environment): void {
    this.listOf(environment).catch(() => undefined);
  }

  close(): void {
    this.unlisten?.();
  }

  /** Does the work for a recipient whom all guards let pass; otherwise throws, or resolves with what is known already. */
  async pass(turn: Turn<T, O>, work: Work<T, O>): Promise<Outcome> {
    const progress = { isOnceAsked: false };
    try {
      return await this.ask(turn, work, progress);
    } catch (thrown) {
      // The text may have claimed its key in an earlier turn, before it was held.
      if (this.options.onceOf && !progress.isOnceAsked && !turn.shared.dryRun)
        await this.endKey(turn.environment, turn, 'none').catch(() => undefined);
      throw thrown;
    }
  }

  /** Asks the guards in their order: the input, the do-not-text list, whether the text was sent before, the hours. */
  private async ask(
    turn: Turn<T, O>,
    work: Work<T, O>,
    progress: { isOnceAsked: boolean },
  ): Promise<Outcome> {
    const { item, shared, environment } = turn;
    checkLength(item, this.options.maxSegments ?? 0);
    // With an invalid setting nobody is texted, also not what was accepted before.
    if (environment.fault) throw environment.fault;
    if (!shared.dryRun) await environment.mayText?.(turn.signal);
    const hours = this.hoursFor(turn);
    const sendOnce = this.options.onceOf?.(shared, item);
    const { phone = '' } = item;
    const judged = { isAsked: false };
    const judge = async (): Promise<void> => {
      judged.isAsked = true;
      const by = await this.askList(environment, (list) => list.judge(phone));
      if (by) throw refusalBy(by);
    };
    // Without other guards, `permit` asks early enough, immediately before the request.
    if (shared.dryRun || sendOnce || environment.settings.textHours) await judge();
    const permit = async (): Promise<() => void> => {
      judged.isAsked = true;
      const ended = await this.askList(environment, (list) => list.begin(phone));
      if (typeof ended === 'function') return ended;
      throw refusalBy(ended);
    };
    progress.isOnceAsked = true;
    try {
      return await this.once(turn, sendOnce, (steps) =>
        this.withinHours(turn, work, hours, { ...steps, permit }),
      );
    } finally {
      // The text ended without a request: that its number is blocked takes precedence all the same.
      if (!judged.isAsked && !turn.signal.aborted) await judge();
    }
  }

  private async withinHours(
    turn: Turn<T, O>,
    work: Work<T, O>,
    hours: RecipientHours | undefined,
    { begin, undo, permit }: Steps & Required<Pick<GuardedTurn<T, O>, 'permit'>>,
  ): Promise<Outcome> {
    const { options } = this;
    const { shared, environment } = turn;
    const known = hours && (await options.outcomeWithoutRequest?.(turn));
    if (known) return known;
    const deliveryDate = options.deliveryDateOf?.(shared, environment);
    if (shared.dryRun) return work({ ...turn, ...hours?.foresee(deliveryDate) });
    const moved = deliveryDate === undefined ? undefined : hours?.move(deliveryDate);
    if (deliveryDate === undefined) hours?.check();
    return work({
      ...turn,
      begin,
      undo,
      permit: () => {
        // A scheduled text may be asked for at any hour.
        if (deliveryDate === undefined) hours?.check();
        return permit();
      },
      ...(moved !== undefined && { movedTo: moved }),
    });
  }

  /** Sends a text with a key, unless one with that key was sent. */
  private async once(
    turn: Turn<T, O>,
    wanted: SendOnce | undefined,
    send: (steps: Steps) => Promise<Outcome>,
  ): Promise<Outcome> {
    if (!wanted) return send(turn);
    const { shared, item, environment, name, acceptedAt, signal } = turn;
    const store = await environment.store();
    const guard = onceIn(store);
    const time = timeOf(environment, store);
    const onceKey = this.onceKeyOf(environment.space, shared, item, wanted.key);
    if (shared.dryRun) {
      const foreseen = await guard.foresee(onceKey, wanted.within, time);
      if (foreseen?.kind === 'unknown') throw nodeError('outcome_unknown', 'once_unknown');
      if (foreseen?.kind === 'sent') return alreadySent(foreseen.payload);
      const outcome = await this.onceInDryRun(turn.message, onceKey, () => send(turn));
      // The text would wait for the first one with its key, and leave as that does.
      return foreseen?.kind === 'wait' && outcome.port === 0 ? alreadySent(outcome.payload) : outcome;
    }
    for (;;) {
      const verdict = await guard.claim(onceKey, { name, since: acceptedAt, time }, wanted.within);
      if (verdict.kind === 'own') return this.sendClaimed(turn, store, verdict.claim, send);
      if (verdict.kind === 'sent') return alreadySent(verdict.payload);
      if (verdict.kind === 'unknown') throw nodeError('outcome_unknown', 'once_unknown');
      if (verdict.kind === 'cancelled') throw nodeError('cancelled', 'cancelled');
      if (signal.aborted) throw nodeError('cancelled', 'cancelled');
      const { notBefore = 0 } = verdict;
      if (notBefore > time.now()) throw new Held(notBefore);
      await guard.changed(onceKey, signal);
    }
  }

  /** Writes the steps of the key in one commit with those of the text: a crash leaves both or neither. */
  private async sendClaimed(
    turn: Turn<T, O>,
    store: Store,
    claim: OwnClaim,
    send: (steps: Steps) => Promise<Outcome>,
  ): Promise<Outcome> {
    const isReset = (): boolean => isResetBy(turn.signal);
    // Without a journal, the steps of a text are in memory alone.
    const isOneStore = turn.store === store;
    const steps: Steps = {
      begin: async () => {
        if (isOneStore) return turn.begin([claim.begun()]);
        await store.write([claim.begun()]);
        await turn.begin();
      },
      undo: async () => {
        if (isOneStore) return turn.undo([claim.undone()]);
        await turn.undo();
        await store.write([claim.undone()]);
      },
    };
    const end = async (operation: Operation): Promise<void> => {
      const release = (): void => {
        claim.release();
      };
      if (isOneStore) turn.atEnd([operation], release);
      else await store.write([operation]).then(release, release);
    };
    try {
      const outcome = await send(steps);
      await end(claim.ended(endOfKey({ outcome }, isReset())));
      return outcome;
    } catch (thrown) {
      if (thrown instanceof Held && !isReset()) {
        await end(claim.held(thrown.notBefore));
        throw thrown;
      }
      await end(claim.ended(endOfKey({ thrown }, isReset())));
      throw thrown instanceof Held ? nodeError('cancelled', 'cancelled') : thrown;
    }
  }

  /** A dry run claims no key: the texts of one message only know of each other. */
  private async onceInDryRun(
    job: object,
    { phone, key }: OnceKey,
    send: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const outcomes = this.foreseen.get(job) ?? new Map<string, Promise<Outcome>>();
    this.foreseen.set(job, outcomes);
    const name = JSON.stringify([phone, key]);
    const first = outcomes.get(name);
    if (first) {
      const outcome = await first.catch(() => undefined);
      if (outcome?.port === 0) return alreadySent(outcome.payload);
      return send();
    }
    const outcome = send();
    outcomes.set(name, outcome);
    return outcome;
  }

  private onceKeyOf(space: string, { advisor }: O, { phone = '' }: T, key: string): OnceKey {
    return { space, node: this.node, advisor, phone, key };
  }

  /** A text that ends without being sent gives its key back. Those that wait for a cancelled one are cancelled too. */
  releaseKey(environment: Environment, text: KeyedText<T, O>, reason: Reason): Promise<void> {
    return this.endKey(
      environment,
      text,
      reason === 'unknown' || reason === 'crashes' ? 'unknown' : reason === 'reset' ? 'cancelled' : 'none',
    );
  }

  private async endKey(
    environment: Environment,
    { shared, item, name, space }: KeyedText<T, O>,
    state: End['state'],
  ): Promise<void> {
    const wanted = this.options.onceOf?.(shared, item);
    if (!wanted) return;
    const onceKey = this.onceKeyOf(space, shared, item, wanted.key);
    const store = await environment.store();
    await onceIn(store).end(onceKey, name, { state }, wanted.within, timeOf(environment, store));
    // Those that wait for its key are held until the same time.
    if (state === 'cancelled' && item.phone !== undefined) this.judgeAgain(item.phone);
  }

  /** Asks the list as it is now: a deploy of another environment may close a store that it was kept in. */
  private async askList<R>(environment: Environment, ask: (list: DoNotText) => Promise<R>): Promise<R> {
    try {
      return await ask(await this.listOf(environment));
    } catch (fault) {
      if (!(fault instanceof StoreClosed) && !(fault instanceof TakenOver)) throw fault;
      return ask(await this.listOf(environment));
    }
  }

  private async listOf(environment: Environment): Promise<DoNotText> {
    const list = await doNotTextOf(environment);
    if (this.list !== list) {
      this.list = list;
      this.unlisten?.();
      // Texts that are held for a number leave as soon as it is blocked.
      this.unlisten = list.onBlock((phone) => {
        this.judgeAgain(phone);
      });
    }
    return list;
  }

  /** Throws `invalid_input` for an unknown time zone. */
  private hoursFor({ environment, item, shared, entry }: Turn<T, O>): RecipientHours | undefined {
    const { textHours, timeZone: fallback } = environment.settings;
    if (!textHours || this.options.hours === 'any') return undefined;
    const own = zoneOf(shared, entry);
    if (own !== undefined && (typeof own !== 'string' || !isTimeZone(own.trim())))
      throw invalidInput('zone_unknown');
    const whose = { phone: item.phone ?? '', timeZone: own?.trim(), fallback };
    return new RecipientHours(textHours, whose, () => environment.clock.now());
  }
}
