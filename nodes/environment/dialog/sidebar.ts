import { minute, second } from '../../../lib/durations';
import { ask, faultText } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { environments, environmentType } from '../../../lib/editor/flow';
import { icon, iconButton, setAttributes, setText } from '../../../lib/editor/dom';
import type { EditedNode } from '../../../lib/editor/red';
import {
  advisorsPart,
  blockedPart,
  failuresPart,
  heldPart,
  listsPart,
  ServicePart,
  waitsPart,
  type SidebarSection,
  type SidebarPart,
} from './sidebar-parts';
import { say } from './sidebar-rows';
import {
  changedTopic,
  type BlockedItem,
  type ChangeNews,
  type Listed,
} from '../../../lib/runtime/activity-items';

const tab = 'advisor-texting';
/** The least milliseconds between two automatic reads; more if a read takes long. */
const leastInterval = 1.5 * second;
const longestRest = 5 * second;
/** Milliseconds: displayed times advance even when nothing changes. */
const longestInterval = minute;
/** Milliseconds that a check takes after it is due. */
const checkTakes = 2 * second;

const mayRead = (): boolean => RED.user.hasPermission('advisor-texting.read');

/** Statuses after which an environment is no longer shown: it may not be seen, or is not deployed. */
const refusals = [401, 403, 404];
const httpStatusOf = (fault: unknown): number | undefined =>
  ((fault as Error).cause as { status?: number } | undefined)?.status;

/**
 * Reads at once, or soon after a change with a rest between two reads, and never twice at the same time. `work` resolves
 * with the milliseconds until something shown will be over.
 */
class Reader {
  private startedAt = -Infinity;
  private rest = leastInterval;
  private isReading = false;
  private isStale = false;
  private isClosed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly isSeen: () => boolean,
    private readonly work: () => Promise<number>,
  ) {}

  /** Nothing has been read yet. */
  get isNew(): boolean {
    return this.startedAt === -Infinity;
  }

  changed(): void {
    if (this.isReading) this.isStale = true;
    else this.readAfter(this.startedAt + this.rest - performance.now());
  }

  read(): void {
    clearTimeout(this.timer);
    this.isStale = this.isReading;
    if (this.isReading || this.isClosed) return;
    this.isReading = true;
    this.startedAt = performance.now();
    void this.work().then((due) => {
      const took = performance.now() - this.startedAt;
      this.rest = Math.min(Math.max(2 * took, leastInterval), longestRest);
      this.isReading = false;
      if (this.isStale) this.changed();
      else this.readAfter(Math.min(Math.max(due, this.rest), longestInterval));
    });
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  private readAfter(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        if (this.isSeen()) this.read();
      },
      Math.max(ms, 0),
    );
  }
}

/** One environment and all its activity. Only its heading is shown while there is none, until somebody opens it. */
class Section implements SidebarSection {
  readonly element: JQuery;
  mayWrite = false;
  service: string | null | undefined;
  paused = 0;
  /** Something is in progress, or needs attention. */
  isActive = false;
  private readonly title = $('<span>', { class: 'advisor-side-name' });
  private readonly sign = $('<span>');
  private readonly idle = $('<span>', { class: 'advisor-side-count', text: say('sidebar.idle') }).hide();
  private readonly caret = icon('caret-right');
  private readonly heading: JQuery;
  private readonly problem = $('<p>', { class: 'advisor-warning', role: 'alert' }).hide();
  private readonly servicePart = new ServicePart(this);
  /** What an incomplete environment does not carry on. */
  private readonly work: readonly SidebarPart<never>[] = [waitsPart(this), listsPart(this), heldPart(this)];
  private readonly lists = [...this.work, failuresPart(this), advisorsPart(this)];
  private readonly parts = [this.servicePart, ...this.lists];
  private readonly body: JQuery;
  readonly reader: Reader;
  /** Whether somebody has opened or folded it; undefined while nobody has. */
  private chosen: boolean | undefined;
  /** Milliseconds by which the environment's clock is ahead of the browser's. */
  private ahead = 0;

  constructor(
    readonly id: string,
    private readonly sidebar: { readonly isSeen: boolean; wasRead(section: Section): void },
  ) {
    this.heading = $('<button>', { type: 'button', class: 'advisor-side-heading' })
      .append(this.caret, this.sign, this.title, this.idle)
      .on('click', () => {
        this.chosen = !this.isOpen;
        this.open(this.chosen);
      });
    this.body = $('<div>').append(...this.lists.map(({ element }) => element), this.servicePart.element);
    this.element = $('<section>', { class: 'advisor-side-environment' }).append(
      $('<h3>').append(
        this.heading,
        iconButton('pencil', say('sidebar.open'), () => RED.editor.editConfig('', environmentType, id)),
      ),
      this.servicePart.alarm,
      this.problem,
      this.body,
    );
    this.open(false);
    this.reader = new Reader(
      () => sidebar.isSeen,
      () => this.readAll(),
    );
  }

  now(): number {
    return Date.now() + this.ahead;
  }

  /** Opens or folds it, unless somebody has chosen. */
  unfold(isOpen: boolean): void {
    this.open(this.chosen ?? isOpen);
  }

  get isOpen(): boolean {
    return this.heading.attr('aria-expanded') === 'true';
  }

  private open(isOpen: boolean): void {
    setAttributes(this.heading, { 'aria-expanded': String(isOpen) });
    setAttributes(this.caret, { class: `fa fa-caret-${isOpen ? 'down' : 'right'}` });
    this.body.toggle(isOpen);
  }

  /** Shows the name and the service, which the editor itself knows. */
  name(node: EditedNode): void {
    const { kind, icon: name, title } = badgeOf(node['service'] ?? 'simulator', say);
    const own = node.name !== undefined && node.name !== '' ? node.name : title;
    const subflow = typeof node['z'] === 'string' ? RED.nodes.subflow(node['z'])?.name : undefined;
    setText(this.title, subflow === undefined ? own : `${subflow} › ${own}`);
    setAttributes(this.element, { 'aria-label': this.title.text() });
    if (this.sign.attr('title') === title) return;
    this.sign
      .attr({ class: `advisor-badge advisor-${kind}`, title })
      .empty()
      .append(icon(name));
  }

  read(): void {
    this.reader.read();
  }

  close(): void {
    this.reader.close();
    this.element.remove();
  }

  /** Resolves with the milliseconds until something shown will be over. */
  private async readAll(): Promise<number> {
    const problems = new Set<string>();
    const statuses = new Set<number | undefined>();
    const get = async <T>(part: SidebarPart<T>): Promise<T | undefined> => {
      try {
        const answer = (await ask('GET', `${this.id}/${part.path}`)) as T;
        part.show(answer);
        return answer;
      } catch (fault) {
        problems.add(this.sentenceOf(fault));
        statuses.add(httpStatusOf(fault));
        return undefined;
      }
    };
    // A request for one that was never deployed would show up as an error in the browser's console.
    const isDeployed = RED.nodes.originalFlow()?.some(({ id }) => id === this.id) !== false;
    if (!isDeployed) problems.add(say('sidebar.undeployed'));
    // The service is read first: the buttons depend on it, and without it nothing can be shown.
    const service = isDeployed && (await get(this.servicePart));
    this.paused = service ? service.paused : 0;
    if (service) {
      if (service.mayWrite !== this.mayWrite) this.clear(this.lists);
      this.mayWrite = service.mayWrite;
      this.service = service.service;
      this.ahead = service.clock === null ? 0 : service.clock - Date.now();
      const isComplete = service.fault === null;
      if (service.fault !== null) problems.add(`${service.fault} ${say('sidebar.incomplete')}`);
      for (const { element } of this.work) element.toggle(isComplete);
      if (!isComplete) this.clear(this.work);
      const readable = this.lists.filter((part) => isComplete || !this.work.includes(part));
      await Promise.all(readable.map((part) => get(part)));
    }
    if (refusals.some((status) => statuses.has(status))) this.clear(this.parts);
    const said = [...problems].join(' ');
    setText(this.problem, said);
    this.problem.toggle(said !== '');
    this.isActive = this.parts.some(({ isActive }) => isActive);
    this.idle.toggle(!this.isActive && said === '');
    this.sidebar.wasRead(this);
    return Math.min(...this.parts.map(({ due }) => due)) - this.now() + checkTakes;
  }

  private sentenceOf(fault: unknown): string {
    const isDisabled = RED.nodes.node(this.id)?.['d'] === true;
    return isDisabled && httpStatusOf(fault) === 404 ? say('sidebar.disabled') : faultText(fault);
  }

  private clear(parts: readonly { clear(): void }[]): void {
    for (const part of parts) part.clear();
  }
}

/** The section *Do not text*, read through an environment of its kind. */
class BlockedSection implements SidebarSection {
  readonly element: JQuery;
  private readonly part: ReturnType<typeof blockedPart>;
  private readonly reader: Reader;
  private through: Section | undefined;

  constructor(title: string, isSeen: () => boolean) {
    this.part = blockedPart(this, title);
    this.reader = new Reader(isSeen, () => this.readList());
    this.part.element.on('toggle', () => {
      if (this.part.isOpen) this.read();
    });
    this.element = $('<section>', { class: 'advisor-side-environment', 'aria-label': title })
      .append(this.part.element)
      .hide();
  }

  get id(): string {
    return this.through?.id ?? '';
  }
  get mayWrite(): boolean {
    return this.through?.mayWrite ?? false;
  }
  get service(): string | null | undefined {
    return this.through?.service;
  }
  now(): number {
    return this.through?.now() ?? Date.now();
  }

  /** Undefined when no environment of this kind can be read. */
  use(through: Section | undefined): void {
    this.through = through;
    this.element.toggle(through !== undefined);
    this.reader.changed();
  }

  read(): void {
    this.reader.read();
  }

  private async readList(): Promise<number> {
    const { id, part } = this;
    const answer = this.through && (await ask('GET', `${id}/${part.path}`).catch(() => undefined));
    if (answer === undefined) part.clear();
    else part.show(answer as Listed<BlockedItem>);
    return Infinity;
  }
}

/** The tab *Texting*. It reads only while it is visible, and only when something has changed or is due. */
class Sidebar {
  readonly element = $('<div>', { class: 'advisor-sidebar' });
  private readonly empty = $('<p>', { class: 'advisor-side-none', tabindex: -1 });
  private readonly paused = $('<p>', { class: 'advisor-warning', role: 'status' }).hide();
  private readonly environments = $('<div>');
  private readonly sections = new Map<string, Section>();
  private readonly blocked = {
    real: new BlockedSection(say('sidebar.doNotText'), () => this.isSeen),
    simulator: new BlockedSection(say('sidebar.doNotTextSimulator'), () => this.isSeen),
  };
  private newsNumber = 0;

  constructor() {
    this.element.append(
      this.empty,
      this.paused,
      this.environments,
      this.blocked.real.element,
      this.blocked.simulator.element,
    );
  }

  get isSeen(): boolean {
    return this.element.is(':visible') && !document.hidden;
  }

  /** Called when something has changed: in these environments, or in any. */
  changed(environments?: readonly string[]): void {
    if (!this.isSeen) return;
    this.read(({ id, reader }) => {
      if (reader.isNew || environments?.includes(id) !== false) reader.changed();
    });
  }

  onNews({ number, environments }: ChangeNews): void {
    const hasMissedNone = number === this.newsNumber + 1;
    this.newsNumber = number;
    this.changed(hasMissedNone ? environments : undefined);
  }

  shown(): void {
    if (this.isSeen) this.read((section) => section.read());
  }

  wasRead(section: Section): void {
    if (section.isActive || this.sections.size === 1) section.unfold(true);
    this.arrange();
    const readable = [...this.sections.values()].filter(({ service }) => service !== undefined);
    const count = Math.max(0, ...readable.map(({ paused }) => paused));
    setText(this.paused, say('sidebar.resting', { count }));
    this.paused.toggle(count > 0);
    this.blocked.simulator.use(readable.find(({ service }) => service === 'simulator'));
    this.blocked.real.use(readable.find(({ service }) => service !== 'simulator'));
  }

  /**
   * Puts environments with activity first, and among them those that text real people, but nothing moves under somebody's
   * mouse.
   */
  private arrange(): void {
    const place = ({ isActive, service }: Section): number =>
      isActive ? Number(service === 'simulator') : 2;
    const wanted = [...this.sections.values()].sort((one, other) => place(one) - place(other));
    const isInPlace = wanted.every(({ element }, index) => element.index() === index);
    if (isInPlace || this.element.is(':hover, :focus-within')) return;
    this.environments.append(...wanted.map(({ element }) => element));
  }

  private read(how: (section: Section) => void): void {
    const hadFocus = this.element[0]?.contains(document.activeElement) === true;
    const known = new Set<string>();
    if (mayRead())
      for (const node of environments()) {
        known.add(node.id);
        const section = this.sections.get(node.id) ?? new Section(node.id, this);
        if (!this.sections.has(node.id)) this.environments.append(section.element);
        this.sections.set(node.id, section);
        section.name(node);
        how(section);
      }
    setText(this.empty, mayRead() ? say('sidebar.none') : say('ask.notAllowed'));
    this.empty.toggle(known.size === 0);
    for (const [id, section] of this.sections)
      if (!known.has(id)) {
        section.close();
        this.sections.delete(id);
      }
    // The focused element may be gone.
    if (hadFocus && this.element.find(':focus:visible').length === 0)
      this.element
        .find('.advisor-side-heading, summary, .advisor-side-none')
        .filter(':visible')
        .first()
        .trigger('focus');
  }
}

/** The locale catalogue comes with the environment's node, which is loaded after plugins. */
const begin = (): void => {
  const sidebar = new Sidebar();
  const content = sidebar.element;
  RED.sidebar.addTab({
    id: tab,
    label: say('sidebar.label'),
    name: say('sidebar.name'),
    iconClass: 'fa fa-commenting-o',
    content,
    enableOnEdit: true,
  });
  const changed = (): void => sidebar.changed();
  const shown = (): void => sidebar.shown();
  RED.comms.subscribe(changedTopic, (_topic, news) => sidebar.onNews(news as ChangeNews));
  for (const event of ['nodes:add', 'nodes:remove', 'nodes:change'])
    RED.events.on(event, (node) => {
      if ((node as EditedNode | undefined)?.type === environmentType) changed();
    });
  // After a deploy, nodes may have other names, and other environments are deployed.
  RED.events.on('deploy', changed);
  document.addEventListener('visibilitychange', shown);
  // Node-RED reports that a tab was chosen, but not that the closed sidebar was opened again, so visibility is observed.
  const [element] = content;
  if (element) new IntersectionObserver(shown).observe(element);
};

RED.plugins.registerPlugin('advisor-texting', {
  onadd: () => {
    if (RED.nodes.getType(environmentType)) {
      begin();
      return;
    }
    const wait = (type: unknown): void => {
      if (type !== environmentType) return;
      RED.events.off('registry:node-type-added', wait);
      begin();
    };
    RED.events.on('registry:node-type-added', wait);
  },
});
