import { minute, second } from '../../lib/durations';
import { randomUUID } from 'node:crypto';
import type { Node, NodeAPI } from 'node-red';
import { atNextStart } from '../../lib/runtime/delivery';
import type { AdvisorItem } from '../../lib/runtime/activity-items';
import type { Environment } from '../../lib/runtime/environment';
import { environmentOf, whenAdded } from '../../lib/runtime/flow-node';
import { wordsOf, type Words } from '../../lib/runtime/language';
import { problemOf } from '../../lib/runtime/errors';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { createStatus, look, type Fill, type Status } from '../../lib/runtime/status';
import { atTime, closeLimit, systemClock, within } from '../../lib/service/clock';
import { serviceError } from '../../lib/service/errors';
import { key, pagesUnder, type Store } from '../../lib/state/store';

type AdvisorState = AdvisorItem['state'];
type Topic = AdvisorState | 'paused' | 'resumed' | 'store';

/** What was last reported about an advisor, or about pauses. */
interface Reported {
  readonly advisor: string;
  /** Null before anything was reported. */
  readonly state: AdvisorState | 'paused' | null;
  /** An instance that is about to report this state. */
  readonly claim?: { readonly by: string; readonly state: Reported['state']; readonly until: number };
}

/** The least milliseconds between two checks of the authorizations. */
const leastInterval = second;
/** The most milliseconds between two checks: an authorization may expire without any event. */
const longestInterval = minute;
const eventsAtOnce = 500;
const table = 'work';
/** Milliseconds after which an instance that has claimed and not reported counts as dead. */
const claimFor = 30 * second;
/** The name for what was reported about pauses: no advisor has an empty key. */
const ofPauses = '';

const fills: Readonly<Record<Topic, Fill>> = {
  authorize_again: 'red',
  authorized: 'green',
  confirm: 'yellow',
  paused: 'yellow',
  resumed: 'green',
  store: 'yellow',
};

/**
 * Sends events to a flow. An event is saved after it was sent: after a crash it may be sent again, but is never left
 * out. Of several instances, the one that has saved its claim sends it.
 */
class EventsNode {
  /** What is saved as reported, as far as this instance knows. */
  private readonly reported = new Map<string, Reported['state']>();
  private readonly life = randomUUID();
  private readonly createdAt = systemClock.now();
  private looking: Promise<void> = Promise.resolve();
  private hasBegun = false;
  private isLookDue = false;
  private isLooking = false;
  private lastLook = -Infinity;
  private cancelLook = (): void => undefined;
  private cancelResume = (): void => undefined;
  /** The end of the latest pause; 0 when its end was reported. */
  private pauseUntil = 0;
  private pausesToldUntil: number;
  private trouble: string | undefined;
  private isClosed = false;

  constructor(
    private readonly node: RunningNode,
    private readonly environment: Environment,
    private readonly words: Words,
    private readonly status: Status,
  ) {
    this.pausesToldUntil = environment.clock.now();
  }

  start(): void {
    // The problem is reported before the store is opened, which may take long.
    this.lookAtStore();
    this.looking = this.warned(() => this.readReported());
  }

  private async readReported(): Promise<void> {
    const store = await this.environment.store();
    this.hasBegun = (await store.get(table, this.marker)) !== undefined;
    for await (const page of pagesUnder<Reported>(store, table, this.prefix, eventsAtOnce))
      for (const { value } of page) this.reported.set(value.advisor, value.state);
    this.changed();
  }

  changed(): void {
    if (this.isClosed) return;
    this.lookAtStore();
    // The pause may be over before the next check, so its end is noted now.
    const until = this.environment.pausedUntil;
    if (until > this.pausesToldUntil) this.pauseUntil = Math.max(this.pauseUntil, until);
    if (this.isLookDue) return;
    this.isLookDue = true;
    if (!this.isLooking) this.schedule();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.cancelLook();
    this.cancelResume();
    await this.looking;
  }

  private get prefix(): Buffer {
    return key('event-told', this.node.id);
  }

  private get marker(): Buffer {
    return key('event-first', this.node.id);
  }

  private keyOf(store: Store, advisor: string): Buffer {
    return key(this.prefix, store.hash(advisor));
  }

  /** A store that closes with the node is no problem. */
  private async warned(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (fault) {
      if (!this.isClosed) this.node.warn(this.words.problem(problemOf(fault)));
    }
  }

  private schedule(): void {
    this.cancelLook();
    const rest = this.lastLook + leastInterval - systemClock.now();
    const wait = this.isLookDue ? Math.min(Math.max(rest, 0), leastInterval) : longestInterval;
    this.cancelLook = systemClock.after(wait, () => (this.looking = this.lookNow()));
  }

  private async lookNow(): Promise<void> {
    this.isLooking = true;
    this.isLookDue = false;
    this.lastLook = systemClock.now();
    await this.warned(async () => {
      const store = await this.environment.store();
      await this.lookAtPause(store);
      await this.lookAtAdvisors(store);
    });
    this.isLooking = false;
    if (!this.isClosed) this.schedule();
  }

  private async lookAtAdvisors(store: Store): Promise<void> {
    // Not if the environment is not configured yet, or the store is unavailable, which has its own event: what was
    // reported about the advisors stays saved.
    const advisors = await this.environment.advisorList().catch(() => undefined);
    if (!advisors) return;
    if (!this.hasBegun) await this.begin(store, advisors);
    for (const item of advisors) {
      if (this.isClosed) return;
      const { advisor, state } = item;
      if (this.reported.get(advisor) !== state)
        await this.reportOnce(store, { advisor, state }, () => this.emitState(item));
    }
    await this.forget(store, new Set(advisors.map(({ advisor }) => advisor)));
  }

  /** For a new node, existing authorizations are no event; missing ones are. */
  private async begin(store: Store, advisors: readonly AdvisorItem[]): Promise<void> {
    const known = advisors.filter(
      ({ state, refreshedAt }) => state === 'authorized' && (refreshedAt ?? 0) <= this.createdAt,
    );
    for (let from = 0; from < known.length; from += eventsAtOnce)
      await store.write(
        known.slice(from, from + eventsAtOnce).map(({ advisor, state }) => ({
          table,
          put: this.keyOf(store, advisor),
          value: { advisor, state } satisfies Reported,
        })),
      );
    await store.write([{ table, put: this.marker, value: 0 }]);
    for (const { advisor, state } of known) this.reported.set(advisor, state);
    this.hasBegun = true;
  }

  /** Reports a state, unless it is saved as reported, or another instance is about to report it. */
  private async reportOnce(store: Store, news: Reported, emit: () => Promise<void> | void): Promise<void> {
    const { advisor, state } = news;
    const place = this.keyOf(store, advisor);
    const found = await store.get<Reported>(table, place);
    if (found?.value.state === state) {
      this.reported.set(advisor, state);
      return;
    }
    const before = found?.value.claim;
    const isClaimed = store.peers !== undefined && before?.state === state && before.by !== this.life;
    if (isClaimed && before.until > store.now()) {
      // A later check finds out whether the other instance has reported it or died.
      this.isLookDue = true;
      return;
    }
    const claim = { by: this.life, state, until: store.now() + claimFor };
    const value: Reported = { advisor, state: found?.value.state ?? null, claim };
    const condition = { table, key: place, ...(found && { version: found.version }) } as const;
    if (!(await store.write([{ table, put: place, value }], [condition]))) {
      this.isLookDue = true;
      return;
    }
    await emit();
    await store.write([{ table, put: place, value: news }]);
    this.reported.set(advisor, state);
  }

  /** Forgets advisors who were disconnected, so that their next authorization is an event. */
  private async forget(store: Store, known: ReadonlySet<string>): Promise<void> {
    const gone = [...this.reported.keys()].filter((advisor) => advisor !== ofPauses && !known.has(advisor));
    if (gone.length === 0) return;
    await store.write(gone.map((advisor) => ({ table, remove: this.keyOf(store, advisor) })));
    for (const advisor of gone) this.reported.delete(advisor);
  }

  private async emitState({ advisor, state }: AdvisorItem): Promise<void> {
    const isEnded = state === 'authorize_again';
    const link = isEnded ? await this.environment.authorizationLink(advisor) : undefined;
    const { name } = this.environment;
    const message =
      isEnded && link === undefined
        ? this.words.problem(
            serviceError('authorization_required', 'authorization_ended', { advisor, name }).problem,
          )
        : this.words.say(`event.${state}`, { advisor, environment: name });
    this.emit(state, message, { advisor, ...(link !== undefined && { link }) });
  }

  private async lookAtPause(store: Store): Promise<void> {
    const { clock, name } = this.environment;
    const until = this.pauseUntil;
    const isOver = until <= clock.now();
    this.cancelResume();
    if (!isOver) this.cancelResume = atTime(clock, until, () => this.changed());
    if (until > 0 && this.reported.get(ofPauses) !== 'paused')
      await this.reportOnce(store, { advisor: ofPauses, state: 'paused' }, () => {
        const time = this.words.time(until, clock.now());
        this.emit('paused', this.words.say('event.paused', { environment: name, time }), { until });
      });
    if (!isOver || this.reported.get(ofPauses) !== 'paused') return;
    await this.reportOnce(store, { advisor: ofPauses, state: null }, () => {
      this.emit('resumed', this.words.say('event.resumed', { environment: name }), {});
    });
    if (this.reported.get(ofPauses) !== null) return;
    this.pausesToldUntil = until;
    if (this.pauseUntil === until) this.pauseUntil = 0;
  }

  private lookAtStore(): void {
    const { trouble, name, isStoreLost } = this.environment;
    if ((trouble === undefined) === (this.trouble === undefined)) return;
    this.trouble = trouble;
    const isWell = trouble === undefined;
    const said = isWell
      ? this.words.say('event.storeWell', { environment: name })
      : isStoreLost
        ? this.words.say('event.storeLost', { environment: name })
        : this.words.say('event.store', { environment: name, reason: trouble });
    this.emit('store', said, { ok: isWell });
  }

  private emit(topic: Topic, message: string, more: Readonly<Record<string, unknown>>): void {
    const { id, name } = this.environment;
    this.node.send({ topic, payload: { environment: { id, name }, message, ...more } });
    const { clock } = this.environment;
    const at = clock.now();
    this.status.show(() => {
      const time = this.words.time(at, clock.now());
      return look(fills[topic], 'dot', this.words.say(`eventStatus.${topic}`, { time }));
    });
  }
}

export const create = (RED: NodeAPI, created: Node, config: Config): void => {
  const node = created as RunningNode;
  const words = wordsOf(RED);
  const environment = environmentOf(RED, config['environment']);
  if (!environment) {
    node.status({ fill: 'red', shape: 'ring', text: words.say('status.notConfigured') });
    whenAdded(RED, node, config['environment'], () => create(RED, created, config));
    return;
  }
  const release = environment.keepStoreOpen();
  const status = createStatus(node, words, environment);
  const events = new EventsNode(node, environment, words, status);
  let unlisten = (): void => undefined;
  // The nodes that receive the events must have started.
  const forgetStart = atNextStart(RED, () => {
    unlisten = environment.onChange(() => events.changed());
    events.start();
  });
  node.on('close', (done: () => void) => {
    forgetStart();
    unlisten();
    status.close();
    // A read that an unavailable store does not answer ends only with the store, and that waits for its nodes.
    void within(systemClock, closeLimit, events.close()).finally(() => {
      release();
      done();
    });
  });
};
