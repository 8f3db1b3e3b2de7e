import { defaultAdvisor } from '../../lib/default-advisor';
import { mailedLinkLifetime } from '../../lib/auth/authorization';
import type { Connection } from '../../lib/auth/connection';
import { isGrantFor, isOver } from '../../lib/auth/vault';
import { consentIn, type AcceptedCommand } from '../../lib/consent/consent';
import { activityOf, type ItemCommand } from '../../lib/runtime/activity';
import type { AdvisorItem } from '../../lib/runtime/activity-items';
import type {
  Environment,
  EnvironmentSettings,
  ControlListener,
  StoreListener,
} from '../../lib/runtime/environment';
import { metrics } from '../../lib/runtime/metrics';
import { lazy } from '../../lib/runtime/lazy';
import { tried } from '../../lib/kinds';
import { processMemory } from '../../lib/process-memory';
import { elapsedBy, late, systemClock, within, type Clock } from '../../lib/service/clock';
import { wokenBy } from '../../lib/service/concurrency';
import { serviceError, type ServiceError } from '../../lib/service/errors';
import { sumOfPending, type Pending } from '../../lib/outbox/queue-reader';
import type { Client, ClientOptions } from '../../lib/service/client';
import type { CommitQueue } from '../../lib/state/commit-queue';
import { lostTrouble } from '../../lib/state/recognition';
import { forgetRemembered } from '../../lib/state/remembered';
import { storeClosed, type Store, type StoreCommand } from '../../lib/state/store';
import { doNotTextOf, forgetLists, ownListOf, type BlockCommand } from '../../lib/guards/do-not-text';
import { listAdvisors } from './advisor-list';
import {
  addressBeside,
  connectionIn,
  connectionOf,
  faultInValues,
  grantOf,
  environmentName,
  requestSettingsOf,
  serviceAddressOf,
  serviceOf,
  settingsOf,
  storeUrlOf,
  type Service,
  type EnvironmentValues,
} from './config';
import { moveToDatabase, unfinishedIn } from './moving';
import type { Services, SharedServices } from './services';
import { SharedStore, type SharedStoreHost } from './shared-store';
import type { VariableValue } from './variables';
import { minute, second } from '../../lib/durations';
import { Listeners } from '../../lib/listeners';

/** A control message to a node, for all instances. */
interface ControlCommand extends StoreCommand {
  readonly kind: 'control';
  readonly node: string;
  readonly order: Readonly<Record<string, unknown>>;
}

interface PauseCommand extends StoreCommand {
  readonly kind: 'pause';
  readonly ms: number;
}

type Command = BlockCommand | PauseCommand | ItemCommand | AcceptedCommand | ControlCommand;

interface Complete {
  readonly address: ReturnType<typeof serviceAddressOf>;
  readonly connection: Connection;
}

/** Milliseconds to wait for a token at a close: the store is closed after that, within `nodeCloseTime`. */
const longestClose = 8 * second;

/** Milliseconds for which messages wait for a store that is being opened at a close: else they would fail. */
const longestOpening = 2 * second;

/** Milliseconds for which a database is looked into after the close of its environment: later, it may be gone on purpose. */
const formerFor = minute;

/** By the service and environment, the monotonic time until which the service had asked for a pause at the last close. */
const pauses = processMemory('pauses', new Map<string, number>());

/** Whether the id of a running node is that of one of these nodes, or of a node inside one of these subflow instances. */
export const isOf =
  (ids: readonly string[] | undefined) =>
  (node: string): boolean =>
    ids?.some((id) => `-${node}-`.includes(`-${id}-`)) ?? true;

/** An `advisor-environment` that is deployed. */
export class RunningEnvironment implements SharedStoreHost {
  readonly name: string;
  readonly service: Service;
  readonly clock: Clock;
  readonly settings: EnvironmentSettings;
  private ownServices: Services;
  /** The monotonic time. */
  private readonly elapsed: () => number;
  private readonly shared: SharedServices | undefined;
  /** For an environment with a database. */
  readonly sharedStore: SharedStore | undefined;
  /** Until it is known whether the state is in the database or still in the user directory. */
  private placing: Promise<void> | undefined;
  load = (): number => 0;
  private announcedPause = -Infinity;
  /** Listeners by the id of their node. */
  private readonly controlListeners = new Map<string, ControlListener>();
  private readonly listeners = new Listeners();
  readonly onChange = this.listeners.add;
  readonly changed = this.listeners.call;
  private readonly pendingCounts = new Set<{
    readonly path: readonly string[];
    readonly count: () => Promise<Pending>;
  }>();
  private readonly held = new Set<Promise<void>>();
  private readonly endings: (() => unknown)[] = [];
  private storeTrouble: string | undefined;
  private isStoreGone = false;
  private readonly needsVault: boolean;
  private isVaultOpen = false;
  private isClosing = false;
  readonly fault: ServiceError | undefined;
  readonly storeFault: ServiceError | undefined;
  private read: Complete | undefined;
  private openClient: Client | Promise<Client> | undefined;
  private openedStore: Promise<Store> | undefined;
  private commits: CommitQueue | undefined;
  /** Stops waiting for a database that has not been reached yet. */
  private giveUpStore: (() => void) | undefined;

  constructor(
    private readonly inFile: Services,
    readonly id: string,
    readonly values: EnvironmentValues,
    readonly variableValue: VariableValue,
    /** All running environments. */
    private readonly running: ReadonlySet<RunningEnvironment> = new Set(),
    /** The id of the node that runs: in a subflow, each use has its own. */
    readonly nodeId = id,
  ) {
    forgetLists();
    this.name = environmentName(values);
    // An unknown service must do nothing until it is corrected, least of all pretend to send: `sandbox` is never simulated.
    this.service = serviceOf(values) ?? 'sandbox';
    this.clock = this.service === 'simulator' ? inFile.simulator.clock : inFile.clock;
    this.elapsed = () => elapsedBy(inFile.clock);
    this.settings = settingsOf(values);
    this.fault = faultInValues(values);
    this.needsVault = !this.fault && this.service !== 'simulator' && grantOf(values) !== 'client_credentials';
    // The fault may lie in the choice of the database, so no store is used.
    if (this.service !== 'simulator' && (values['store'] ?? 'embedded') !== 'embedded')
      this.storeFault = this.fault;
    const url = this.fault || this.service === 'simulator' ? '' : storeUrlOf(values);
    this.shared = url === '' ? undefined : inFile.inDatabase(url, id);
    this.ownServices = this.shared ?? inFile;
    this.sharedStore = this.shared && new SharedStore(this);
    if (this.service === 'simulator') {
      this.endings.push(inFile.simulator.use(() => this.forget(), this.changed));
      return;
    }
    this.placing = this.shared && this.place(this.shared);
    if (!this.shared) this.useServices();
    if (this.shared || this.needsVault) void this.store().catch(() => undefined);
  }

  /** Authorizations are in the store, even without `journal`. */
  private useServices(): void {
    if (this.isClosing) return;
    const { vault, endpoints, recognition } = this.ownServices;
    for (const listen of [vault.onChange, recognition.onChange, endpoints.onPause])
      this.endings.push(listen(this.changed));
    if (this.needsVault) this.endings.push(vault.keepOpen());
  }

  /** The state of all uses of a subflow is in one place. */
  private async place(shared: SharedServices): Promise<void> {
    const other = this.otherUses().find((use) => use.shared);
    await other?.placing;
    if (other ? !other.isInDatabase : await this.staysInFile(shared)) this.ownServices = this.inFile;
    this.placing = undefined;
  }

  /** Whether something in the user directory is unfinished, or was lost without a confirmation. */
  private async staysInFile({ openFile, recognition }: SharedServices): Promise<boolean> {
    const file = await openFile();
    if (!file) return false;
    const { recognition: ofFile, log } = this.inFile;
    try {
      if (!recognition.isKnown && ofFile.isKnown) await ofFile.look(file, false);
      if (!recognition.isKnown && ofFile.isLost) return true;
      const { items, waits } = await unfinishedIn(file, this.id);
      if (items + waits === 0) return false;
      log.warn(
        `${this.name}: its state stays in the user directory until what it has accepted there is done (texts and requests: ${items}, waits: ${waits}). It moves to the database at the first start or deploy after that.`,
      );
      return true;
    } finally {
      await file.close();
    }
  }

  /** After a reset of the simulator, the people it has texted or asked for consent are forgotten here too. */
  private async forget(): Promise<void> {
    await forgetRemembered(await this.store(), this.space);
  }

  /** Whether the state is in a database that processes share. */
  get isInDatabase(): boolean {
    return this.ownServices === this.shared;
  }

  /** What must be done in the user directory before the state can move to the database; undefined where it need not. */
  async leftInFile(): Promise<Pending | undefined> {
    return this.shared && !this.isInDatabase ? unfinishedIn(await this.store(), this.id) : undefined;
  }

  /** The services of this environment; those with a database have their own authorizations. */
  get services(): Services {
    return this.ownServices;
  }

  onStore(listener: StoreListener): () => void {
    return this.sharedStore?.onStore(listener) ?? (() => undefined);
  }

  async elsewhere(): ReturnType<Environment['elsewhere']> {
    await this.placed();
    const others = [...this.running].filter(({ id }) => id !== this.id);
    const services = new Set(others.map(({ ownServices }) => ownServices));
    for (const [each, at] of this.inFile.closed)
      if (each.environment !== this.id && this.elapsed() - at < formerFor) services.add(each);
    services.delete(this.inFile);
    const file = this.isInDatabase ? this.shared?.openFile() : undefined;
    return {
      stores: [...Array.from(services, (each) => each.openStore()), ...(file ? [file] : [])],
      onStore: (listener) => {
        const ends = others.map((other) => other.onStore(listener));
        return () => ends.forEach((end) => end());
      },
    };
  }

  /** This environment, and its copies in other instances of the same subflow. */
  uses(): readonly RunningEnvironment[] {
    return [this, ...this.otherUses()];
  }

  otherUses(): readonly RunningEnvironment[] {
    return [...this.running].filter((each) => each !== this && each.id === this.id);
  }

  tellOthers(node: string, message: Readonly<Record<string, unknown>>): void {
    this.tellInstances({ kind: 'control', node, order: message });
  }

  private tellInstances(command: Omit<ControlCommand, 'at'> | Omit<PauseCommand, 'at'>): void {
    if (!this.isInDatabase) return;
    this.store()
      .then((store) => store.peers?.tellOthers({ ...command, at: store.now() }))
      // The environment closes. This process has carried it out.
      .catch(() => undefined);
  }

  onControl(node: string, listener: ControlListener): () => void {
    this.controlListeners.set(node, listener);
    return () => {
      if (this.controlListeners.get(node) === listener) this.controlListeners.delete(node);
    };
  }

  /**
   * A pause after a 429 applies to all processes. Many requests may get a 429 at the same time: the other processes are
   * notified once.
   */
  private tellOfPause(ms: number): void {
    const until = performance.now() + ms;
    if (until < this.announcedPause + second) return;
    this.announcedPause = until;
    this.tellInstances({ kind: 'pause', ms });
  }

  async handleCommand(received: StoreCommand, orphan: Store | undefined): Promise<boolean> {
    const command = received as Command;
    const store = orphan ?? (await this.store());
    switch (command.kind) {
      case 'block':
        await (await doNotTextOf(this)).onRemoteBlock(command);
        return true;
      case 'pause': {
        const left = command.at + command.ms - (await this.store()).now();
        if (left > 0) (await this.client()).limits.pause(left);
        this.changed();
        return true;
      }
      case 'item':
        return activityOf(this).handleCommand(command, store);
      case 'accepted':
        await consentIn(this, store).accepted(command.advisor, command.subject, command.status, true);
        return true;
      case 'control':
        return this.controlListeners.get(command.node)?.(command.order, command.at, orphan) ?? false;
    }
    // A command of a later version.
    return true;
  }

  get opening(): Promise<void> | undefined {
    // A store that was given up opens no more: whoever waited for it would ask again at once, forever.
    if (this.isClosing) return undefined;
    // The vault stays open as long as this environment.
    if (!this.needsVault || (this.isVaultOpen ||= !this.placing && this.ownServices.vault.isOpen))
      return undefined;
    // While another process has the store, messages are still accepted, and wait in the outbox.
    const isElsewhere = (): boolean => !this.isInDatabase && this.storeTrouble !== undefined;
    if (isElsewhere()) return undefined;
    return this.store()
      .then(() => (isElsewhere() ? undefined : this.ownServices.vault.opening))
      .catch(() => undefined);
  }

  forgetRemovedNodes(existing: ReadonlySet<string> | undefined): void {
    this.sharedStore?.forgetRemovedNodes(existing);
  }

  /** Throws `not_configured`. */
  connection(): Connection {
    return connectionOf(this.id, this.values);
  }

  client(): Client | Promise<Client> {
    this.openClient ??= this.open().then(
      (client) => (this.openClient = client),
      (fault: unknown) => {
        this.openClient = undefined;
        throw fault;
      },
    );
    return this.openClient;
  }

  get space(): string {
    if (this.service === 'simulator') return `${this.id}/simulator`;
    const { address } = this.complete();
    return `${this.id}/${this.service}/${new URL(address.baseUrl).origin}`;
  }

  memory(): Store {
    return this.ownServices.memory();
  }

  store(): Promise<Store> {
    this.openedStore ??= this.openStore();
    return this.openedStore;
  }

  async otherListStores(): Promise<readonly Store[]> {
    if (this.service === 'simulator') return [];
    await this.placed();
    const others = this.otherServices().filter((each) => each.isInDatabase || this.isInDatabase);
    return Promise.all(others.map((each) => each.store()));
  }

  /** Resolves when it is known where the state of each environment is. */
  private async placed(): Promise<void> {
    for (const { placing } of [this, ...this.otherServices()]) await placing;
  }

  /** The other environments that run and text real people. */
  private otherServices(): readonly RunningEnvironment[] {
    return [...this.running].filter(
      ({ id, service, storeFault }) => id !== this.id && service !== 'simulator' && !storeFault,
    );
  }

  /** No other environment that texts real people had a store, and so none shares its do-not-text list. */
  private get isAlone(): boolean {
    return !this.otherServices().some(({ services }) => services.recognition.isKnown);
  }

  async isBlocked(phone: string, isOwnEnough = false): Promise<boolean> {
    if (isOwnEnough) return (await (await ownListOf(this)).getOwn(phone)) !== undefined;
    return (await (await doNotTextOf(this)).get(phone)) !== undefined;
  }

  advisors(): readonly string[] {
    this.checkSettings();
    if (this.service === 'simulator') return [defaultAdvisor];
    const { connection } = this.complete();
    if (connection.grant === 'client_credentials') return [defaultAdvisor];
    if (!this.ownServices.vault.isOpen) throw serviceError('network_error', 'store_away');
    return this.ownServices.vault.advisors(connection);
  }

  advisorState(advisor: string): 'authorized' | 'authorize_again' | 'unknown' {
    this.checkSettings();
    if (this.service === 'simulator') return 'authorized';
    const { connection } = this.complete();
    if (connection.grant === 'client_credentials')
      return advisor === defaultAdvisor ? 'authorized' : 'unknown';
    // The vault is not open yet: a request for a token waits until it is.
    if (!this.ownServices.vault.isOpen) return 'authorized';
    const entry = this.ownServices.vault.get(connection, advisor);
    if (!entry) return 'unknown';
    const { grant } = entry;
    return isOver(grant, this.clock.now()) || !isGrantFor(grant, connection)
      ? 'authorize_again'
      : 'authorized';
  }

  /** A deploy does not end a pause; a simulator can be reset. */
  private keepPause(until: number): void {
    const left = until - this.clock.now();
    if (left > 0 && this.service !== 'simulator') pauses.set(this.space, elapsedBy(this.clock) + left);
  }

  /** The milliseconds that are left of a pause from before a deploy. */
  private get keptPause(): number {
    const end = tried(() => pauses.get(this.space)) ?? 0;
    return Math.max(0, end - elapsedBy(this.clock));
  }

  get pausedUntil(): number {
    const { openClient: client, read, keptPause } = this;
    const isOpen = client !== undefined && !(client instanceof Promise);
    const byService = isOpen ? client.limits.pausedUntil : keptPause && this.clock.now() + keptPause;
    if (this.service === 'simulator' || !read) return byService;
    return Math.max(byService, this.ownServices.endpoints.pausedUntil(read.connection));
  }

  async advisorList(): Promise<readonly AdvisorItem[]> {
    this.checkSettings();
    if (this.service !== 'simulator') this.complete();
    return listAdvisors(this.ownServices, this.id, this.values);
  }

  async authorizationLink(advisor: string): Promise<string | undefined> {
    if (this.service === 'simulator') return undefined;
    const { grant, redirectUri } = this.complete().connection;
    // When the address is relative, the redirect URI does not say where our own pages are.
    if (grant !== 'authorization_code' || !URL.canParse(addressBeside(redirectUri, 'link'))) return undefined;
    const token = await this.ownServices.vault.createLink(this.id, advisor, mailedLinkLifetime);
    return addressBeside(redirectUri, `link/${token}`);
  }

  addPending(...[{ id, _path = id }, count]: Parameters<Environment['addPending']>): () => void {
    const counted = { path: _path.split('/'), count };
    this.pendingCounts.add(counted);
    return () => void this.pendingCounts.delete(counted);
  }

  /**
   * The number of items that have been accepted and have not ended: of all nodes, or of those with these ids in the
   * editor.
   */
  async pending(ids?: readonly string[]): Promise<Pending> {
    const asked = [...this.pendingCounts].filter(({ path }) => ids?.some((id) => path.includes(id)) ?? true);
    const counts = await Promise.all(asked.map(({ count }) => count()));
    const elsewhere = this.isInDatabase ? await activityOf(this).pendingElsewhere(isOf(ids)) : [];
    return sumOfPending([...counts, ...elsewhere]);
  }

  keepStoreOpen(): () => void {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    this.held.add(held);
    const leave = this.service === 'simulator' ? this.ownServices.simulator.addNode() : undefined;
    return () => {
      leave?.();
      this.held.delete(held);
      release();
    };
  }

  async close(): Promise<void> {
    forgetLists();
    if (this.storeTrouble === undefined)
      await wokenBy(
        Promise.all([this.openedStore, this.opening]),
        (wake) => systemClock.after(longestOpening, wake),
        (wake) => this.onChange(() => this.storeTrouble !== undefined && wake()),
      );
    this.giveUpStore?.();
    this.isClosing = true;
    if (this.shared && this.isInDatabase && this.trouble === undefined)
      this.inFile.closed.set(this.shared, this.elapsed());
    // A token that is being refreshed must be saved, or the advisor would have to authorize again.
    if (this.read)
      await within(systemClock, longestClose, this.ownServices.tokens.leave(this.read.connection));
    // A simulator in a store that is in trouble may never start.
    const patience = this.storeTrouble === undefined ? longestClose : 0;
    const client = await within(
      systemClock,
      patience,
      Promise.resolve(this.openClient).catch(() => undefined),
    );
    if (client && client !== late) {
      this.keepPause(client.limits.pausedUntil);
      await client.close();
    }
    await Promise.all(this.held);
    await activityOf(this).flush();
    const opened = Promise.resolve(this.openedStore).catch(() => undefined);
    const store = await within(systemClock, patience, opened);
    if (store !== late) await store?.close();
    // A store that cannot be opened yet is closed as soon as it can be.
    else void opened.then((given) => given?.close());
    await Promise.all(this.endings.map((end) => end()));
  }

  private checkSettings(): void {
    if (this.fault) throw this.fault;
  }

  /** The settings are read once: a deploy that changes them creates a new environment. Throws `not_configured`. */
  private complete(): Complete {
    this.read ??= { address: serviceAddressOf(this.values), connection: this.connection() };
    return this.read;
  }

  replaceStore(opening: Promise<Store>): void {
    this.openedStore = opening;
    forgetLists();
  }

  async prepareStore(store: Store): Promise<void> {
    this.giveUpStore = undefined;
    await this.moveTo(store, await this.shared?.openFile());
    await this.recognize(store);
  }

  private async openDatabase({ openDatabase }: SharedServices, shared: SharedStore): Promise<Store> {
    const handle = openDatabase();
    this.giveUpStore = () => handle.abandon();
    this.endings.push(
      () => shared.close(),
      handle.database.onIdentity((identity) => {
        if (this.isStoreLost) void this.ownServices.recognition.see(identity, this.isAlone);
      }),
    );
    const store = await shared.open(handle);
    this.commits = store.engine.commits;
    shared.look();
    this.useServices();
    return store;
  }

  /** Moves what all instances share and this process kept in a file to the database. */
  private async moveTo(store: Store, file: Store | undefined): Promise<void> {
    if (!file) return;
    try {
      await this.placed();
      const withList = this.otherServices().every(({ isInDatabase }) => isInDatabase);
      const count = await moveToDatabase(file, store, this.id, connectionIn(this.id, this.values), withList);
      if (withList) await this.inFile.recognition.leave(file);
      if (count > 0)
        this.ownServices.log.info(
          `${this.name}: moved ${count} records from the user directory to the database.`,
        );
    } finally {
      await file.close();
    }
  }

  /** Milliseconds for which nothing could be saved, by the monotonic clock. */
  get troubledFor(): number {
    if (this.isStoreLost || this.isStoreGone) return Infinity;
    const { since } = this.ownServices.outage;
    const stalledFor = this.commits?.underWayFor ?? 0;
    return since === undefined || !this.openedStore
      ? stalledFor
      : Math.max(this.elapsed() - since, stalledFor);
  }

  get trouble(): string | undefined {
    return this.storeTrouble ?? (this.isStoreLost ? lostTrouble(this.id) : undefined);
  }

  /** An empty store was found where this environment had one, and nobody has confirmed it. */
  get isStoreLost(): boolean {
    return this.service !== 'simulator' && this.ownServices.recognition.isLost;
  }

  async mayText(signal: AbortSignal): Promise<void> {
    while (this.isStoreLost && !signal.aborted)
      await wokenBy((wake) => this.ownServices.recognition.onChange(wake), signal);
    if (signal.aborted) throw serviceError('cancelled', 'cancelled');
  }

  /** Accepts the empty store as this environment's; false when there is nothing to confirm. */
  async confirmStore(): Promise<boolean> {
    return this.ownServices.recognition.confirm(await this.store(), this.isAlone);
  }

  private async recognize(store: Store): Promise<void> {
    // Texts of a simulator reach nobody, and it may be reset at any time.
    if (this.service === 'simulator') return;
    const { recognition, log } = this.ownServices;
    await recognition.look(store, this.isAlone);
    if (!recognition.isLost || this.isClosing) return;
    log.error(`${this.name}: ${lostTrouble(this.id)}`);
    forgetLists();
    this.changed();
  }

  /** A store that is still being opened, as after a deploy, does not end an outage. */
  noteTrouble(trouble: string | undefined, isOpen: boolean, isGone: boolean): void {
    this.storeTrouble = trouble;
    this.isStoreGone = isGone;
    const { outage } = this.ownServices;
    if (trouble !== undefined) outage.since ??= this.elapsed();
    else if (isOpen) outage.since = undefined;
  }

  private async openStore(): Promise<Store> {
    const { shared, sharedStore } = this;
    if (shared && sharedStore) {
      await this.placing;
      if (this.isClosing) throw storeClosed();
      if (this.isInDatabase) return this.openDatabase(shared, sharedStore);
      this.useServices();
    }
    const store = await this.ownServices.openStore();
    this.commits = store.engine.commits;
    const look = (): void => this.noteTrouble(store.engine.trouble, true, store.engine.isGone);
    this.endings.push(
      store.engine.onChange(() => {
        look();
        this.changed();
      }),
    );
    look();
    // Nodes listen by now, and trouble that is there from the start may never change.
    if (this.storeTrouble !== undefined) this.changed();
    await this.recognize(store);
    if (this.service === 'simulator') await this.ownServices.simulator.restored(store);
    return store;
  }

  private async open(): Promise<Client> {
    await this.placing;
    const options = this.service === 'simulator' ? await this.simulated() : this.configured();
    const { createClient } = lazy.client();
    const { sharedStore } = this;
    const measured = metrics();
    const client = createClient({
      ...requestSettingsOf(this.values),
      ...options,
      clock: this.clock,
      ...(sharedStore && { share: (most) => sharedStore.share(most) }),
      ...(measured && { onRequest: measured.request }),
      onPause: (until) => {
        measured?.pause();
        this.tellOfPause(until - this.clock.now());
        this.changed();
      },
    });
    this.load = () => client.limits.takePeak();
    client.limits.pause(this.keptPause);
    return client;
  }

  private async simulated(): Promise<Pick<ClientOptions, 'baseUrl' | 'apiKey' | 'token'>> {
    const simulator = await this.ownServices.simulator.start();
    return {
      baseUrl: simulator.baseUrl,
      apiKey: simulator.credentials.apiKey,
      token: (advisor) => simulator.accessToken(advisor),
    };
  }

  private configured(): Pick<ClientOptions, 'baseUrl' | 'apiKey' | 'token'> {
    const { address, connection } = this.complete();
    const { tokens } = this.ownServices;
    return { ...address, token: tokens.token.bind(tokens, connection) };
  }
}
