import { randomUUID } from 'node:crypto';
import type { Node, NodeAPI } from 'node-red';
import { atNextStart } from '../../lib/runtime/delivery';
import type { AdvisorItem, Environment } from '../../lib/runtime/environment';
import { environmentOf, pausedUntil } from '../../lib/runtime/flow-node';
import { wordsOf, type Words } from '../../lib/runtime/language';
import { problemOf } from '../../lib/runtime/outcomes';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { createStatus, look, type Fill, type Status } from '../../lib/runtime/status';
import { systemClock } from '../../lib/service/clock';
import { endOf, key, type Store } from '../../lib/state/store';

type State = AdvisorItem['state'];
type Topic = State | 'paused' | 'resumed' | 'store';

/** What was told last of an advisor, or of pauses. */
interface Told {
  readonly advisor: string;
  /** Null before anything was told. */
  readonly state: State | 'paused' | null;
  /** Somebody is about to tell this. */
  readonly claim?: { readonly by: string; readonly state: Told['state']; readonly until: number };
}

/** Authorizations are looked at no more often than this. */
const leastInterval = 1000;
/** And at least this often: one may end by its age alone. */
const longestInterval = 60_000;
const readAtOnce = 500;
const table = 'work';
/** To tell takes a moment; whoever has not done so after this has died. */
const claimFor = 30_000;
/** Under this name lies what was told of pauses: no advisor has an empty one. */
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
 * Tells a flow what somebody should know of. What was told is on record after it was told: over a crash it is told again,
 * never not at all. Of several instances that work together, the one tells it that has put on record that it will.
 */
class Events {
  /** What is on record as told, as far as this instance knows. */
  private readonly told = new Map<string, Told['state']>();
  private readonly life = randomUUID();
  private looking: Promise<void> = Promise.resolve();
  private hasBegun = false;
  private isLookDue = false;
  private isLooking = false;
  private lastLook = -Infinity;
  private cancelLook = (): void => undefined;
  private cancelResume = (): void => undefined;
  /** The end of the latest pause; 0 when that was told. */
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

  async start(): Promise<void> {
    // A store that is away now may be away for long.
    this.lookAtStore();
    const store = await this.environment.store();
    this.hasBegun = (await store.get(table, this.marker)) !== undefined;
    for (let from = this.prefix; ;) {
      const page = await store.page<Told>(table, { from, to: endOf(this.prefix), limit: readAtOnce });
      for (const { value } of page) this.told.set(value.advisor, value.state);
      const last = page.at(-1);
      if (!last) break;
      from = Buffer.concat([last.key, Buffer.alloc(1)]);
    }
    this.changed();
  }

  /** Something in the environment has changed. */
  changed(): void {
    if (this.isClosed) return;
    this.lookAtStore();
    // It may be over before anybody looks.
    const until = pausedUntil(this.environment);
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

  private schedule(): void {
    this.cancelLook();
    const rest = this.lastLook + leastInterval - systemClock.now();
    const wait = this.isLookDue ? Math.min(Math.max(rest, 0), leastInterval) : longestInterval;
    this.cancelLook = systemClock.after(wait, () => {
      this.looking = this.lookNow();
    });
  }

  private async lookNow(): Promise<void> {
    this.isLooking = true;
    this.isLookDue = false;
    this.lastLook = systemClock.now();
    try {
      const store = await this.environment.store();
      await this.lookAtPause(store);
      await this.lookAtAdvisors(store);
    } catch (fault) {
      if (!this.isClosed) this.node.warn(this.words.problem(problemOf(fault)));
    }
    this.isLooking = false;
    if (!this.isClosed) this.schedule();
  }

  /** Undefined while nobody can say who they are: what was told of them stays as it is. */
  private async advisors(): Promise<readonly AdvisorItem[] | undefined> {
    try {
      return await this.environment.advisorList();
    } catch {
      // The environment is not filled in yet, or the store is away, which is told as such.
      return undefined;
    }
  }

  private async lookAtAdvisors(store: Store): Promise<void> {
    const advisors = await this.advisors();
    if (!advisors) return;
    if (!this.hasBegun) await this.begin(store, advisors);
    for (const item of advisors) {
      if (this.isClosed) return;
      const { advisor, state } = item;
      if (this.told.get(advisor) !== state)
        await this.tellOnce(store, { advisor, state }, () => this.tellOf(item));
    }
    await this.forget(store, new Set(advisors.map(({ advisor }) => advisor)));
  }

  /** Who is authorized when a node is new is no news; who has to authorize is. */
  private async begin(store: Store, advisors: readonly AdvisorItem[]): Promise<void> {
    const known = advisors.filter(({ state }) => state === 'authorized');
    for (let from = 0; from < known.length; from += readAtOnce)
      await store.write(
        known.slice(from, from + readAtOnce).map(({ advisor, state }) => ({
          table,
          put: this.keyOf(store, advisor),
          value: { advisor, state } satisfies Told,
        })),
      );
    await store.write([{ table, put: this.marker, value: 0 }]);
    for (const { advisor, state } of known) this.told.set(advisor, state);
    this.hasBegun = true;
  }

  /** Tells it, unless it is on record as told, or another instance is about to tell it. */
  private async tellOnce(store: Store, news: Told, tell: () => Promise<void> | void): Promise<void> {
    const { advisor, state } = news;
    const place = this.keyOf(store, advisor);
    const found = await store.get<Told>(table, place);
    if (found?.value.state === state) {
      this.told.set(advisor, state);
      return;
    }
    const before = found?.value.claim;
    const isClaimed = store.isShared === true && before?.state === state && before.by !== this.life;
    if (isClaimed && before.until > store.now()) {
      // It is looked at again, whether that has told it or died.
      this.isLookDue = true;
      return;
    }
    const claim = { by: this.life, state, until: store.now() + claimFor };
    const value: Told = { advisor, state: found?.value.state ?? null, claim };
    const condition = { table, key: place, ...(found && { version: found.version }) } as const;
    if (!(await store.write([{ table, put: place, value }], [condition]))) {
      this.isLookDue = true;
      return;
    }
    await tell();
    await store.write([{ table, put: place, value: news }]);
    this.told.set(advisor, state);
  }

  /** Who was disconnected and authorizes again is news. */
  private async forget(store: Store, known: ReadonlySet<string>): Promise<void> {
    const gone = [...this.told.keys()].filter((advisor) => advisor !== ofPauses && !known.has(advisor));
    if (gone.length === 0) return;
    await store.write(gone.map((advisor) => ({ table, remove: this.keyOf(store, advisor) })));
    for (const advisor of gone) this.told.delete(advisor);
  }

  private async tellOf({ advisor, state }: AdvisorItem): Promise<void> {
    const link = state === 'authorize_again' ? await this.environment.authorizationLink(advisor) : undefined;
    const { name } = this.environment;
    this.tell(state, this.words.say(`event.${state}`, { advisor, environment: name }), {
      advisor,
      ...(link !== undefined && { link }),
    });
  }

  private async lookAtPause(store: Store): Promise<void> {
    const { clock, name } = this.environment;
    const until = this.pauseUntil;
    const isOver = until <= clock.now();
    this.cancelResume();
    if (!isOver)
      this.cancelResume = clock.after(until - clock.now(), () => {
        this.changed();
      });
    if (until > 0 && this.told.get(ofPauses) !== 'paused')
      await this.tellOnce(store, { advisor: ofPauses, state: 'paused' }, () => {
        const time = this.words.time(until, clock.now());
        this.tell('paused', this.words.say('event.paused', { environment: name, time }), { until });
      });
    if (!isOver || this.told.get(ofPauses) !== 'paused') return;
    await this.tellOnce(store, { advisor: ofPauses, state: null }, () => {
      this.tell('resumed', this.words.say('event.resumed', { environment: name }), {});
    });
    if (this.told.get(ofPauses) !== null) return;
    this.pausesToldUntil = until;
    if (this.pauseUntil === until) this.pauseUntil = 0;
  }

  private lookAtStore(): void {
    const { trouble, name } = this.environment;
    if ((trouble === undefined) === (this.trouble === undefined)) return;
    this.trouble = trouble;
    const isWell = trouble === undefined;
    const said = isWell
      ? this.words.say('event.storeWell', { environment: name })
      : this.words.say('event.store', { environment: name, reason: trouble });
    this.tell('store', said, { ok: isWell });
  }

  private tell(topic: Topic, message: string, more: Readonly<Record<string, unknown>>): void {
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
    return;
  }
  const release = environment.hold();
  const prefix = (): string => (environment.service === 'simulator' ? `${words.say('status.sim')} ` : '');
  const status = createStatus(node, prefix, systemClock, environment.clock);
  const events = new Events(node, environment, words, status);
  const fault = (thrown: unknown): void => {
    node.warn(words.problem(problemOf(thrown)));
  };
  let unlisten = (): void => undefined;
  let starting: Promise<void> = Promise.resolve();
  // Whoever it tells must be there.
  const forgetStart = atNextStart(RED, () => {
    unlisten = environment.onChange(() => {
      events.changed();
    });
    starting = events.start().catch(fault);
  });
  node.on('close', (done: () => void) => {
    forgetStart();
    unlisten();
    status.close();
    starting
      .then(() => events.close())
      .catch(fault)
      .finally(() => {
        release();
        done();
      });
  });
};
