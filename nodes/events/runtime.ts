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

/** The state of an advisor that was told last. */
interface Told {
  readonly advisor: string;
  readonly state: State;
}

/** Authorizations are looked at no more often than this. */
const leastInterval = 1000;
/** And at least this often: one may end by its age alone. */
const longestInterval = 60_000;
const readAtOnce = 500;
const table = 'work';

const fills: Readonly<Record<Topic, Fill>> = {
  authorize_again: 'red',
  authorized: 'green',
  confirm: 'yellow',
  paused: 'yellow',
  resumed: 'green',
  store: 'yellow',
};

/**
 * Tells a flow what somebody should know of. What was told of an advisor is on record after it was told: over a crash it
 * is told again, never not at all.
 */
class Events {
  private readonly told = new Map<string, State>();
  private looking: Promise<void> = Promise.resolve();
  private isLookDue = false;
  private isLooking = false;
  private lastLook = -Infinity;
  private cancelLook = (): void => undefined;
  private cancelResume = (): void => undefined;
  private isPaused = false;
  private trouble: string | undefined;
  private isClosed = false;

  constructor(
    private readonly node: RunningNode,
    private readonly environment: Environment,
    private readonly words: Words,
    private readonly status: Status,
  ) {
    this.trouble = environment.trouble;
  }

  async start(): Promise<void> {
    const store = await this.environment.store();
    const isNew = (await store.get(table, this.marker)) === undefined;
    for (let from = this.prefix; ;) {
      const page = await store.page<Told>(table, { from, to: endOf(this.prefix), limit: readAtOnce });
      for (const { value } of page) this.told.set(value.advisor, value.state);
      const last = page.at(-1);
      if (!last) break;
      from = Buffer.concat([last.key, Buffer.alloc(1)]);
    }
    if (isNew) await this.begin(store);
    this.changed();
  }

  /** Something in the environment has changed. */
  changed(): void {
    if (this.isClosed) return;
    this.lookAtPause();
    this.lookAtStore();
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
    return key('event', this.node.id);
  }

  private get marker(): Buffer {
    return key('events', this.node.id);
  }

  /** Who is authorized when a node is new is no news; who has to authorize is. */
  private async begin(store: Store): Promise<void> {
    const known = (await this.advisors()).filter(({ state }) => state === 'authorized');
    for (let from = 0; from < known.length; from += readAtOnce)
      await store.write(known.slice(from, from + readAtOnce).map((each) => this.putting(store, each)));
    await store.write([{ table, put: this.marker, value: 0 }]);
    for (const { advisor, state } of known) this.told.set(advisor, state);
  }

  private putting(store: Store, { advisor, state }: Told) {
    const value: Told = { advisor, state };
    return { table, put: this.keyOf(store, advisor), value } as const;
  }

  private keyOf(store: Store, advisor: string): Buffer {
    return key(this.prefix, store.hash(advisor));
  }

  private async advisors(): Promise<readonly AdvisorItem[]> {
    try {
      return await this.environment.advisorList();
    } catch {
      // An environment that is not filled in yet has nobody to tell of.
      return [];
    }
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
      await this.look();
    } catch (fault) {
      if (!this.isClosed) this.node.warn(this.words.problem(problemOf(fault)));
    }
    this.isLooking = false;
    if (!this.isClosed) this.schedule();
  }

  private async look(): Promise<void> {
    const advisors = await this.advisors();
    const store = await this.environment.store();
    for (const item of advisors) {
      if (this.isClosed) return;
      const { advisor, state } = item;
      if (this.told.get(advisor) === state) continue;
      // Another instance of these flows may have told it.
      const onRecord = await store.get<Told>(table, this.keyOf(store, advisor));
      if (onRecord?.value.state !== state) {
        await this.tellOf(item);
        await store.write([this.putting(store, item)]);
      }
      this.told.set(advisor, state);
    }
    await this.forget(store, new Set(advisors.map(({ advisor }) => advisor)));
  }

  /** Who was disconnected and authorizes again is news. */
  private async forget(store: Store, known: ReadonlySet<string>): Promise<void> {
    const gone = [...this.told.keys()].filter((advisor) => !known.has(advisor));
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

  private lookAtPause(): void {
    const { clock, name } = this.environment;
    const until = pausedUntil(this.environment);
    const isPaused = until > clock.now();
    if (isPaused) {
      this.cancelResume();
      this.cancelResume = clock.after(until - clock.now(), () => {
        this.changed();
      });
    }
    if (isPaused === this.isPaused) return;
    this.isPaused = isPaused;
    const time = this.words.time(until, clock.now());
    if (isPaused) this.tell('paused', this.words.say('event.paused', { environment: name, time }), { until });
    else this.tell('resumed', this.words.say('event.resumed', { environment: name }), {});
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
  const status = createStatus(node, () =>
    environment.service === 'simulator' ? `${words.say('status.sim')} ` : '',
  );
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
