import { minute, second } from '../../../lib/durations';
import { ask, faultText } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { icon, iconButton, setAttributes, setText } from '../../../lib/editor/dom';
import type { EditedNode } from '../../../lib/editor/red';
import {
  AdvisorsPart,
  FailuresPart,
  HeldPart,
  ListsPart,
  ServicePart,
  WaitsPart,
  type SidebarSection,
  type SidebarPart,
  type ServiceState,
} from './sidebar-parts';
import { changedTopic, type ChangeNews } from '../spec';
import { say } from './sidebar-rows';

const environmentType = 'advisor-environment';
const tab = 'advisor-texting';
/** The least milliseconds between two readings that nobody asked for; more where a reading takes long. */
const leastInterval = 1.5 * second;
const longestRest = 5 * second;
/** Milliseconds: times that are shown pass even when nothing changes. */
const longestInterval = minute;
/** Milliseconds that a check takes after it is due. */
const checkTakes = 2 * second;

const mayRead = (): boolean => RED.user.hasPermission('advisor-texting.read');

/** Statuses after which an environment is no longer shown: it may not be seen, or is not deployed. */
const refusals = [401, 403, 404];
const httpStatusOf = (fault: unknown): number | undefined =>
  ((fault as Error).cause as { status?: number } | undefined)?.status;

/** One environment, and all that goes on in it. */
class Section implements SidebarSection {
  readonly element: JQuery;
  mayWrite = false;
  service: string | undefined;
  private readonly title = $('<span>', { class: 'advisor-side-name' });
  private readonly sign = $('<span>');
  private readonly problem = $('<p>', { class: 'advisor-warning', role: 'alert' }).hide();
  private readonly servicePart = new ServicePart(this);
  private readonly waits = new WaitsPart(this);
  private readonly lists: readonly SidebarPart<never>[] = [
    this.waits,
    new ListsPart(this),
    new HeldPart(this),
    new FailuresPart(this),
    new AdvisorsPart(this),
  ];
  private isReading = false;
  private isStale = false;
  private isClosed = false;
  private lastTime = -Infinity;
  private rest = leastInterval;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly id: string,
    private readonly isSeen: () => boolean,
  ) {
    this.element = $('<section>', { class: 'advisor-side-environment' }).append(
      $('<h3>').append(
        this.sign,
        this.title,
        iconButton('pencil', say('sidebar.open'), () => {
          RED.editor.editConfig('', environmentType, this.id);
        }),
      ),
      this.servicePart.alarm,
      this.problem,
      ...this.lists.map(({ element }) => element),
      this.servicePart.element,
    );
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

  /** Nothing has been read yet. */
  get isNew(): boolean {
    return this.lastTime === -Infinity;
  }

  /** Called when something may have changed: it is read again, but not too often. */
  changed(): void {
    if (this.isReading) this.isStale = true;
    else this.readAfter(this.lastTime + this.rest - performance.now());
  }

  /** Reads what is shown. A change during the reading is read afterwards. */
  read(): void {
    clearTimeout(this.timer);
    if (this.isClosed) return;
    if (this.isReading) {
      this.isStale = true;
      return;
    }
    this.isReading = true;
    this.isStale = false;
    const began = performance.now();
    this.lastTime = began;
    void this.readAll().then((due) => {
      const took = performance.now() - began;
      this.rest = Math.min(Math.max(2 * took, leastInterval), longestRest);
      this.isReading = false;
      if (this.isStale) this.changed();
      else this.readAfter(Math.min(Math.max(due, this.rest), longestInterval));
    });
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.element.remove();
  }

  private readAfter(ms: number): void {
    clearTimeout(this.timer);
    if (this.isClosed) return;
    this.timer = setTimeout(
      () => {
        if (this.isSeen()) this.read();
      },
      Math.max(ms, 0),
    );
  }

  /** Resolves with the milliseconds until something that is shown will be over. */
  private async readAll(): Promise<number> {
    const problems = new Set<string>();
    const statuses = new Set<number | undefined>();
    const get = async <T>(part: SidebarPart<T>): Promise<T | undefined> => {
      try {
        const answer = (await ask(say, 'GET', `${this.id}/${part.path}`)) as T;
        part.show(answer);
        return answer;
      } catch (fault) {
        problems.add(this.sentenceOf(fault));
        statuses.add(httpStatusOf(fault));
        return undefined;
      }
    };
    // The service is read first: the buttons depend on it, and without it nothing can be shown.
    const service = await get<ServiceState>(this.servicePart);
    if (service) {
      if (service.mayWrite !== this.mayWrite) this.clear(this.lists);
      this.mayWrite = service.mayWrite;
      this.service = service.service;
      if (service.fault !== null) problems.add(service.fault);
      const readable = this.lists.filter((part) => service.fault === null || part !== this.waits);
      await Promise.all(readable.map((part) => get(part)));
    }
    if (refusals.some((status) => statuses.has(status))) this.clear([this.servicePart, ...this.lists]);
    const said = [...problems].join(' ');
    setText(this.problem, said);
    this.problem.toggle(said !== '');
    const now = service?.clock ?? Date.now();
    const dues = [this.servicePart.due, this.waits.due];
    return Math.min(...dues.map((due) => (due === null ? Infinity : due - now + checkTakes)));
  }

  private sentenceOf(fault: unknown): string {
    const isDisabled = RED.nodes.node(this.id)?.['d'] === true;
    return isDisabled && httpStatusOf(fault) === 404 ? say('sidebar.disabled') : faultText(fault);
  }

  private clear(parts: readonly { clear(): void }[]): void {
    for (const part of parts) part.clear();
  }
}

/** The tab *Texting*. It reads only while it is visible, and only when something has changed or is due. */
class Sidebar {
  readonly element = $('<div>', { class: 'advisor-sidebar' });
  private readonly empty = $('<p>', { class: 'advisor-side-none', tabindex: -1 });
  private readonly sections = new Map<string, Section>();
  private newsNumber = 0;

  constructor() {
    this.element.append(this.empty);
  }

  get isSeen(): boolean {
    return this.element.is(':visible') && !document.hidden;
  }

  /** Called when something has changed: in these environments, or in any. */
  changed(environments?: readonly string[]): void {
    if (!this.isSeen) return;
    this.read((section) => {
      if (section.isNew || environments?.includes(section.id) !== false) section.changed();
    });
  }

  heard({ number, environments }: ChangeNews): void {
    const hasMissedNone = number === this.newsNumber + 1;
    this.newsNumber = number;
    this.changed(hasMissedNone ? environments : undefined);
  }

  shown(): void {
    if (this.isSeen) this.read((section) => section.read());
  }

  private read(how: (section: Section) => void): void {
    const hadFocus = this.element[0]?.contains(document.activeElement) === true;
    const known = new Set<string>();
    if (mayRead())
      RED.nodes.eachConfig((node) => {
        if (node.type !== environmentType) return true;
        known.add(node.id);
        const section = this.sections.get(node.id) ?? new Section(node.id, () => this.isSeen);
        if (!this.sections.has(node.id)) this.element.append(section.element);
        this.sections.set(node.id, section);
        section.name(node);
        how(section);
        return true;
      });
    setText(this.empty, mayRead() ? say('sidebar.none') : say('ask.notAllowed'));
    this.empty.toggle(known.size === 0);
    for (const [id, section] of this.sections)
      if (!known.has(id)) {
        section.close();
        this.sections.delete(id);
      }
    // The focused element may be gone.
    if (hadFocus && this.element.find(':focus:visible').length === 0)
      this.element.find('summary, .advisor-side-none').filter(':visible').first().trigger('focus');
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
  const changed = (): void => {
    sidebar.changed();
  };
  const shown = (): void => {
    sidebar.shown();
  };
  RED.comms.subscribe(changedTopic, (_topic, news) => {
    sidebar.heard(news as ChangeNews);
  });
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
