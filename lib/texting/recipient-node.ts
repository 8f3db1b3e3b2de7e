import { doNotTextOf, type BlockedBy, type DoNotText } from '../guards/do-not-text';
import { onceIn, type End, type OnceKey, type OnceTime, type OwnClaim } from '../guards/once';
import { allowedFrom, spreadFrom, type Whose } from '../guards/text-hours';
import type { Mutable } from '../mutable';
import { readAll, type Source } from '../runtime/inputs';
import { Held } from '../outbox/request-outbox';
import { isTimeZone } from '../runtime/dates';
import type { Environment, EnvironmentSettings } from '../runtime/environment';
import { invalidInput, nodeError } from '../runtime/errors';
import { isOrder, type Handler, type Tools } from '../runtime/flow-node';
import type { Job } from '../runtime/job';
import { NodeOutbox, type Order, type Turn } from '../runtime/node-outbox';
import { outcomeStatus, type Said } from '../runtime/outcome-status';
import { problemOf, type Outcome } from '../runtime/outcomes';
import type { Message } from '../runtime/red';
import { fieldOf, isNothing, isRecord } from '../runtime/kinds';
import { look } from '../runtime/status';
import { ServiceError, type Problem } from '../service/errors';
import { ageClock, type Operation, type Store } from '../state/store';
import { isDryRun, phonesOrdered, withUsedFields, type Recipient, type Recipients } from './recipients';

/** The recipients of a message, and what holds for all of them. */
export interface Reading<T extends Recipient, O extends Order> extends Recipients<T> {
  /** Completes the order; if it throws, each recipient fails. */
  readonly complete: (order: Mutable<O>) => void;
}

/** One recipient whose work begins. */
export interface GuardedTurn<T, O> extends Turn<T, O> {
  /** For `client.call`: asks before each attempt whether it may be made. */
  readonly permit?: () => Promise<() => void>;
  /** In a dry run: the text would be held until then, in epoch milliseconds. */
  readonly notBefore?: number;
  /** The delivery date of a scheduled text, moved into the recipient's hours; in epoch milliseconds. */
  readonly movedTo?: number;
}

export interface RecipientNodeOptions<T extends Recipient, O extends Order> {
  /** The property that names the recipients. */
  readonly source: Source;
  /** If it throws, the message fails. */
  readonly read: (msg: Message, country: string) => Reading<T, O> | Promise<Reading<T, O>>;
  /** For nodes that text people: the guards that are asked. With `any`, the text hours are not. */
  readonly guards?: { readonly hours: 'environment' | 'any' };
  /** Throws `invalid_input` for a text that may not be sent as it is. */
  readonly check?: (recipient: T) => void;
  /** The node makes no request, and needs no service. */
  readonly isLocal?: true;
  /** The outcome where no request is needed, whatever the hours; undefined when one is. */
  readonly known?: (turn: GuardedTurn<T, O>) => Promise<Outcome | undefined>;
  /** From a recipient to an outcome; a throw becomes a failure. */
  readonly work: (turn: GuardedTurn<T, O>) => Promise<Outcome>;
  /** As `work`, for `msg.dryRun`: makes no request that sends or asks anything. */
  readonly dryRun?: (turn: GuardedTurn<T, O>) => Promise<Outcome>;
  /** The key of a text that is to be sent once, and for how many milliseconds; undefined for none. */
  readonly onceOf?: (order: O, recipient: T) => { readonly key: string; readonly within: number } | undefined;
  /** The delivery date of a text that the service schedules, in epoch milliseconds. */
  readonly deliveryDateOf?: (order: O, environment: Environment) => number | undefined;
  readonly cancelled: () => Outcome;
  readonly said: Said;
  /** Adds what else this node's outcomes carry; `index` is the place of the recipient, or of a duplicate, in the list. */
  readonly complement?: (
    outcome: Mutable<Outcome>,
    order: O,
    recipient: T,
    index: number,
    entry: unknown,
  ) => Outcome;
}

/** The turn of a plain recipient with a plain order. */
export type RecipientTurn = GuardedTurn<Recipient, Order>;

/** `read` for nodes that need only the advisor and the recipients from a message. */
export const readWith =
  <O extends Order>(
    tools: Tools,
    source: Source,
    recipientsIn: (value: unknown, country: string) => Recipients,
    complete?: (order: Mutable<O>, msg: Message) => void,
  ): RecipientNodeOptions<Recipient, O>['read'] =>
  (msg, country) => {
    const reading = ([advisor, who]: readonly unknown[]): Reading<Recipient, O> => ({
      ...recipientsIn(who, country),
      complete(order) {
        order.advisor = tools.advisor(tools.environment(), advisor, msg);
        complete?.(order, msg);
      },
    });
    const values = readAll([tools.advisorSource, source], msg);
    return values instanceof Promise ? values.then(reading) : reading(values);
  };

const refusalBy = (by: BlockedBy): ServiceError =>
  by === 'unreadable' ? nodeError('blocked', 'blocked_unreadable') : nodeError('blocked', 'blocked');

/** The recipient's own zone, as it was given: that of a list's object, or for a single number that of the message. */
export const zoneOf = ({ timeZone }: Order, entry: unknown): unknown => {
  const own = isRecord(entry) ? fieldOf(entry, 'timeZone') : undefined;
  return isNothing(own) ? timeZone : own;
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

/** An unreadable 2xx was probably carried out. */
const mayHaveSent = (problem: Problem | undefined): boolean =>
  problem?.code === 'outcome_unknown' || problem?.code === 'invalid_response';

/** What becomes of a text's key, by the outcome of the text or its error. */
const endOfKey = (
  ended: { readonly outcome: Outcome } | { readonly thrown: unknown },
  isReset: boolean,
): End => {
  if ('thrown' in ended) {
    if (mayHaveSent(problemOf(ended.thrown))) return { state: 'unknown' };
    return { state: isReset ? 'cancelled' : 'none' };
  }
  const { port, payload, problem } = ended.outcome;
  if (port === 0) return { state: 'sent', payload };
  return { state: mayHaveSent(problem) ? 'unknown' : 'none' };
};

const timeOf = (environment: Environment, store: Store): OnceTime => {
  const ages = ageClock(environment, store);
  return { now: () => environment.clock.now(), age: () => ages.now() };
};

/** Puts on record how far a text has come. */
type Steps = Pick<Turn<unknown, unknown>, 'begin' | 'undo'>;

const quiet = (notBefore: number): ServiceError => nodeError('quiet_hours', 'quiet_hours', {}, { notBefore });

/**
 * The zone of a single number. A recipient of a list who needed consent comes back alone, with the zone that it had there,
 * and with none if it had none: `msg.timeZone` says nothing of a list.
 */
const zoneIn = ({ resend, phone, timeZone }: Message): unknown =>
  isRecord(resend) && resend.phone === phone ? resend.timeZone : timeZone;

/** The way of a message through a texting node: to its recipients, onto the record, and to one outcome for each. */
export class RecipientNode<T extends Recipient = Recipient, O extends Order = Order> implements Handler {
  private readonly outbox: NodeOutbox<T, O>;
  private list: DoNotText | undefined;
  /** The outcomes of dry runs under way, by their keys. */
  private readonly foreseen = new WeakMap<object, Map<string, Promise<Outcome>>>();
  private unlisten: (() => void) | undefined;
  readonly show: (outcome: Outcome, counts?: Readonly<Record<string, number>>) => void;

  constructor(
    private readonly tools: Tools,
    private readonly options: RecipientNodeOptions<T, O>,
  ) {
    this.show = outcomeStatus(tools, options.said, () => this.outbox.progress());
    this.outbox = new NodeOutbox<T, O>(tools, {
      work: (turn) => this.work(turn),
      addUsedFields: (outcome, order, recipient, index, entry) => {
        const whole = withUsedFields(outcome, order, recipient, entry);
        return options.complement?.(whole, order, recipient, index, entry) ?? whole;
      },
      cancelled: options.cancelled,
      phoneOf: ({ phone }) => phone,
      isLocal: options.isLocal,
      ...(options.onceOf && {
        dropped: (order, item, name, reason, space) => this.dropped(order, item, name, reason, space),
      }),
      ...(options.guards && {
        held: (count, notBefore) => this.showHeld(count, notBefore),
        opened: (environment) => {
          // Items that are held from an earlier start leave as soon as their number is blocked.
          this.listOf(environment).catch(() => undefined);
        },
      }),
      emitted: this.show,
    });
  }

  get opening(): Promise<void> | undefined {
    return this.outbox.opening;
  }

  control(msg: Message, at?: number): boolean {
    if (!isOrder(msg, 'reset')) return false;
    this.reset(this.phonesOf(msg), at);
    return true;
  }

  /** `begin` takes the place of `work`, for a node that waits. */
  input(
    msg: Message,
    job: Job,
    begin?: (order: O, recipients: Recipients<T>) => Promise<void>,
  ): void | Promise<void> {
    const isDry = this.isDry(msg);
    const fail = (thrown: unknown): never => {
      throw isDry ? new ServiceError({ ...problemOf(thrown), dryRun: true }) : thrown;
    };
    let reading;
    try {
      reading = this.options.read(msg, this.country);
    } catch (thrown) {
      return fail(thrown);
    }
    // A dry run never does anything else.
    const instead = isDry ? undefined : begin;
    return reading instanceof Promise
      ? reading.then((read) => this.take(msg, job, read, instead), fail)
      : this.take(msg, job, reading, instead);
  }

  /** Ends a whole message with one failure, which is put on record as any outcome is. */
  refuse(msg: Message, job: Job, why: Problem): void {
    const items = [{ index: 0, wrong: why } as T];
    const { source } = this.options;
    void this.outbox.take(msg, job, { items, count: 1, list: false, source }, () => undefined);
  }

  isBusy(): boolean {
    return this.outbox.isBusy;
  }

  /** The numbers that a control message is for; undefined means all. */
  phonesOf(msg: Message): readonly string[] | undefined {
    return phonesOrdered(msg, this.country);
  }

  reset(phones: readonly string[] | undefined, at?: number): void {
    this.outbox.reset(phones, at);
  }

  close(): Promise<void> {
    this.unlisten?.();
    return this.outbox.close();
  }

  /** Nodes that text nobody ignore `msg.dryRun`. */
  private isDry(msg: Message): boolean {
    return this.options.dryRun !== undefined && isDryRun(msg);
  }

  private get country(): string {
    return this.outbox.environment?.settings.country ?? '';
  }

  private async work(turn: Turn<T, O>): Promise<Outcome> {
    const progress = { isOnceAsked: false };
    try {
      return await this.guarded(turn, progress);
    } catch (thrown) {
      // The text may have claimed its key in an earlier turn, before it was held.
      const { order, item, name, environment } = turn;
      if (this.options.onceOf && !progress.isOnceAsked && !order.dryRun)
        await this.dropped(order, item, name, 'refused', environment.space).catch(() => undefined);
      throw thrown;
    }
  }

  /** Asks the guards in their order: the input, the do-not-text list, whether the text was sent before, the hours. */
  private async guarded(turn: Turn<T, O>, progress: { isOnceAsked: boolean }): Promise<Outcome> {
    const { options } = this;
    const { item, order, environment } = turn;
    options.check?.(item);
    if (!options.guards) return order.dryRun && options.dryRun ? options.dryRun(turn) : options.work(turn);
    // With an invalid setting nobody is texted, also not what was accepted before.
    if (environment.fault) throw environment.fault;
    const hours = this.hoursFor(turn);
    const { phone = '' } = item;
    const list = await this.listOf(environment);
    const judged = { isAsked: false };
    const ask = async (): Promise<void> => {
      judged.isAsked = true;
      const by = await list.judge(phone);
      if (by) throw refusalBy(by);
    };
    // Without other guards, `permit` asks early enough, immediately before the request.
    if (order.dryRun ?? this.hasOtherGuards(turn)) await ask();
    const permit = async (): Promise<() => void> => {
      judged.isAsked = true;
      const ended = await list.begin(phone);
      if (typeof ended === 'function') return ended;
      throw refusalBy(ended);
    };
    progress.isOnceAsked = true;
    try {
      return await this.once(turn, (steps) => this.withinHours(turn, hours, steps, permit));
    } finally {
      // The text ended without a request: that its number is blocked takes precedence all the same.
      if (!judged.isAsked && !turn.signal.aborted) await ask();
    }
  }

  private hasOtherGuards({ environment, order, item }: Turn<T, O>): boolean {
    return environment.settings.textHours !== undefined || this.options.onceOf?.(order, item) !== undefined;
  }

  private async withinHours(
    turn: Turn<T, O>,
    hours: RecipientHours | undefined,
    { begin, undo }: Steps,
    permit: () => Promise<() => void>,
  ): Promise<Outcome> {
    const { options } = this;
    const { order, environment } = turn;
    const known = hours && (await options.known?.(turn));
    if (known) return known;
    const deliveryDate = options.deliveryDateOf?.(order, environment);
    if (order.dryRun && options.dryRun) return options.dryRun({ ...turn, ...hours?.foresee(deliveryDate) });
    const moved = deliveryDate === undefined ? undefined : hours?.move(deliveryDate);
    if (deliveryDate === undefined) hours?.check();
    return options.work({
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
  private async once(turn: Turn<T, O>, send: (steps: Steps) => Promise<Outcome>): Promise<Outcome> {
    const { order, item, environment, name, since, signal } = turn;
    const wanted = this.options.onceOf?.(order, item);
    if (!wanted) return send(turn);
    const store = await environment.store();
    const guard = onceIn(store);
    const time = timeOf(environment, store);
    const onceKey = this.onceKeyOf(environment.space, order, item, wanted.key);
    if (order.dryRun) {
      const foreseen = await guard.foresee(onceKey, wanted.within, time);
      if (foreseen?.kind === 'unknown') throw nodeError('outcome_unknown', 'once_unknown');
      if (foreseen?.kind === 'sent') return alreadySent(foreseen.payload);
      const outcome = await this.onceInDryRun(turn.job, onceKey, () => send(turn));
      // The text would wait for the first one with its key, and leave as that does.
      return foreseen?.kind === 'wait' && outcome.port === 0 ? alreadySent(outcome.payload) : outcome;
    }
    for (;;) {
      const verdict = await guard.claim(onceKey, { name, since, time }, wanted.within);
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
    const isReset = (): boolean => turn.signal.reason === 'reset';
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
    return { space, node: this.tools.node.id, advisor, phone, key };
  }

  /** A text that ends without being sent gives its key back. Those that wait for a cancelled one are cancelled too. */
  private async dropped(order: O, item: T, name: string, reason: string, space: string): Promise<void> {
    const wanted = this.options.onceOf?.(order, item);
    const environment = this.outbox.environment;
    if (!wanted || !environment) return;
    const state = reason === 'unknown' ? 'unknown' : reason === 'reset' ? 'cancelled' : 'none';
    const onceKey = this.onceKeyOf(space, order, item, wanted.key);
    const store = await environment.store();
    await onceIn(store).end(onceKey, name, { state }, wanted.within, timeOf(environment, store));
    // Those that wait for its key are held until the same time.
    if (state === 'cancelled' && item.phone !== undefined) this.outbox.release(item.phone);
  }

  private async listOf(environment: Environment): Promise<DoNotText> {
    const list = await doNotTextOf(environment);
    if (this.list !== list) {
      this.list = list;
      this.unlisten?.();
      // Texts that are held for a number leave as soon as it is blocked.
      this.unlisten = list.onBlock((phone) => {
        this.outbox.release(phone);
      });
    }
    return list;
  }

  /** Throws `invalid_input` for an unknown time zone. */
  private hoursFor({ environment, item, order, entry }: Turn<T, O>): RecipientHours | undefined {
    const { textHours, timeZone: fallback } = environment.settings;
    if (!textHours || this.options.guards?.hours === 'any') return undefined;
    const own = zoneOf(order, entry);
    if (own !== undefined && (typeof own !== 'string' || !isTimeZone(own.trim())))
      throw invalidInput('zone_unknown');
    const whose = { phone: item.phone ?? '', timeZone: own?.trim(), fallback };
    return new RecipientHours(textHours, whose, () => environment.clock.now());
  }

  private showHeld(count: number, notBefore: number): void {
    const { status, words, now } = this.tools;
    status.show(() => {
      const time = words.time(notBefore, now());
      return look('blue', 'ring', words.say('status.held', { count: words.number(count), time }));
    });
  }

  private take(
    msg: Message,
    job: Job,
    reading: Reading<T, O>,
    begin: ((order: O, recipients: Recipients<T>) => Promise<void>) | undefined,
  ): void | Promise<void> {
    const taken = { ...reading, source: this.options.source };
    return this.outbox.take(
      msg,
      job,
      taken,
      (order) => {
        if (this.isDry(msg)) order.dryRun = true;
        const timeZone = zoneIn(msg);
        if (!reading.list && !isNothing(timeZone)) order.timeZone = timeZone;
        reading.complete(order);
      },
      begin && ((order) => begin(order, reading)),
    );
  }
}
