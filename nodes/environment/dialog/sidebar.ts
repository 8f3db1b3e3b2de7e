import type { Failure, Listed, ListItem, WaitItem } from '../../../lib/runtime/activity-items';
import { ask, wordsOf } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { button, icon, iconButton, textBox } from '../../../lib/editor/dom';
import { locale, numberOf } from '../../../lib/editor/locale';
import type { EditedNode } from '../../../lib/editor/red';
import { momentOf } from '../../../lib/editor/words';
import { linkTo, openWindow } from '../../../lib/editor/window';
import { carefulButton, labelOf, revealButton, Rows, say, type Row } from './sidebar-rows';

const environmentType = 'advisor-environment';
const topic = 'advisor-texting/changed';
const tab = 'advisor-texting';
const pageSize = 20;
/** From one reading to the next that nobody has asked for; longer where one takes long. */
const leastInterval = 1500;
const longestRest = 5000;
/** Times that are shown pass without anything having changed. */
const longestInterval = 60_000;
/** A check that is due takes a moment. */
const checkTakes = 2000;

interface Advisor {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm';
  readonly expiresAt: number | null;
}
interface ServiceState {
  readonly service: string;
  readonly pausedUntil: number | null;
  readonly lateBy: number;
  readonly store: 'embedded' | 'postgres' | 'memory' | null;
  readonly trouble: string | null;
  /** What is to be filled in before anything can go on. */
  readonly fault: string | null;
  readonly clock: number | null;
}
/** What failed, and the sentence that says what to do. */
interface Advised extends Failure {
  readonly advice: string | null;
}
type Failures = Listed<Failure> & {
  readonly codes: Readonly<Record<string, string>>;
  readonly advice: readonly (string | null)[];
};
type Queue = Listed<unknown> & { readonly lists: readonly ListItem[] };

const timeOf = (ms: number): string => momentOf(new Date(ms), new Date(), locale());

const may = (what: 'read' | 'write'): boolean => RED.user.hasPermission(`advisor-texting.${what}`);

/** One environment, and all that goes on in it. */
class Section {
  readonly element: JQuery;
  private readonly title = $('<span>', { class: 'advisor-side-name' });
  private readonly sign = $('<span>');
  private readonly alarm = $('<p>', { class: 'advisor-side-state advisor-warning', role: 'status' }).hide();
  private readonly problem = $('<p>', { class: 'advisor-warning', role: 'alert' }).hide();
  private readonly counts = new Map<string, JQuery>();
  private readonly waits: Rows<WaitItem>;
  private readonly lists: Rows<ListItem>;
  private readonly failures: Rows<Advised>;
  private readonly advisors: Rows<Advisor>;
  private readonly facts = new Rows<string>(
    (fact) => fact,
    (fact) => ({ row: $('<li>', { text: fact }), update: () => undefined }),
  );
  private readonly search = textBox(say('sidebar.search'), say('sidebar.search'));
  private readonly searched = $('<p>', { role: 'status' }).hide();
  private readonly pages: Record<'waits' | 'failures', number> = { waits: 1, failures: 1 };
  private readonly pagers = new Map<string, (total: number | null, shown: number) => void>();
  private readonly phones = button('mobile', say('sidebar.phones'), () => {
    this.openWindow('simulator/open', {}, this.phones);
  });
  private service: string | undefined;
  private queued = 0;
  private codes: Readonly<Record<string, string>> = {};
  private isReading = false;
  private isStale = false;
  private lastTime = -Infinity;
  private rest = leastInterval;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly id: string,
    private readonly isSeen: () => boolean,
  ) {
    this.waits = new Rows<WaitItem>(
      ({ id: wait }) => wait,
      (item) => this.waitRow(item),
    );
    this.lists = new Rows<ListItem>(
      ({ id: list }) => list,
      (item) => this.listRow(item),
    );
    this.failures = new Rows<Advised>(
      ({ at, node, phone, traceId, code }) => [at, node.id, phone, traceId, code].join(' '),
      (item) => this.failureRow(item),
    );
    this.advisors = new Rows<Advisor>(
      ({ advisor }) => advisor,
      (item) => this.advisorRow(item),
    );
    let typing: ReturnType<typeof setTimeout> | undefined;
    const find = (): void => {
      this.pages.waits = 1;
      this.read();
    };
    this.search.on('input', () => {
      clearTimeout(typing);
      typing = setTimeout(find, 300);
    });
    this.search.on('keydown', (event) => {
      if (event.key !== 'Escape' || this.search.val() === '') return;
      event.stopPropagation();
      this.search.val('');
      find();
    });
    this.element = $('<section>', { class: 'advisor-side-environment' }).append(
      $('<h3>').append(
        this.sign,
        this.title,
        iconButton('pencil', say('sidebar.open'), () => {
          RED.editor.editConfig('', environmentType, this.id);
        }),
      ),
      this.alarm,
      this.problem,
      this.part(
        'waits',
        say('sidebar.waiting'),
        // A search finds nothing for who sees no numbers.
        this.search.toggle(may('write')),
        this.searched,
        this.waits.element,
        this.pager('waits'),
      ),
      this.part('lists', say('sidebar.lists'), this.lists.element),
      this.part('failures', say('sidebar.failures'), this.failures.element, this.pager('failures')),
      this.part('advisors', say('sidebar.advisors'), this.advisors.element),
      this.part(
        'service',
        say('sidebar.service'),
        this.facts.element,
        this.phones.hide(),
        button('download', say('sidebar.bundle'), () => {
          this.download();
        }),
      ),
    );
  }

  /** What the editor knows by itself. */
  name(node: EditedNode): void {
    const { kind, icon: name, title } = badgeOf(node['service'] ?? 'simulator', say);
    const own = node.name !== undefined && node.name !== '' ? node.name : title;
    const subflow = typeof node['z'] === 'string' ? RED.nodes.subflow(node['z'])?.name : undefined;
    this.title.text(subflow === undefined ? own : `${subflow} › ${own}`);
    this.sign.attr('class', `advisor-badge advisor-${kind}`).attr('title', title).empty().append(icon(name));
    this.element.attr('aria-label', this.title.text());
  }

  /** Something may have changed: it is read, but no more often than that costs little. */
  changed(): void {
    if (this.isReading) this.isStale = true;
    else this.readAfter(this.lastTime + this.rest - Date.now());
  }

  /** Reads what is shown; what changes meanwhile is read after that. */
  read(): void {
    clearTimeout(this.timer);
    if (this.isReading) {
      this.isStale = true;
      return;
    }
    this.isReading = true;
    this.isStale = false;
    const began = Date.now();
    this.lastTime = began;
    void this.readAll().then((due) => {
      const took = Date.now() - began;
      this.rest = Math.min(Math.max(2 * took, leastInterval), longestRest);
      this.isReading = false;
      if (this.isStale) this.changed();
      else this.readAfter(Math.min(Math.max(due, this.rest), longestInterval));
    });
  }

  close(): void {
    clearTimeout(this.timer);
    this.element.remove();
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

  /** Gives in how many milliseconds something of what it shows is over. */
  private async readAll(): Promise<number> {
    const phone = String(this.search.val() ?? '').trim();
    const problems = new Set<string>();
    const get = async <T>(path: string, show: (answer: T) => void): Promise<T | undefined> => {
      try {
        const answer = (await ask(say, 'GET', `${this.id}/${path}`)) as T;
        show(answer);
        return answer;
      } catch (fault) {
        problems.add(wordsOf(fault));
        return undefined;
      }
    };
    const page = (what: 'waits' | 'failures'): string =>
      `page=${String(this.pages[what])}&pageSize=${String(pageSize)}`;
    // The service first: which buttons an advisor has depends on it, and without it there is nothing.
    const service = await get<ServiceState>('service', (state) => {
      this.showService(state);
    });
    if (service?.fault != null) problems.add(service.fault);
    const readWaits = (): Promise<Listed<WaitItem> | undefined> =>
      get(`waits?phone=${encodeURIComponent(phone)}&${page('waits')}`, (found: Listed<WaitItem>) => {
        this.showWaits(found, phone);
      });
    const [waits] = service
      ? await Promise.all([
          service.fault === null ? readWaits() : undefined,
          get<Queue>('queue?pageSize=1', ({ lists, pageInfo: { totalRecord } }) => {
            this.lists.show(lists);
            this.count('lists', lists.length);
            this.queued = totalRecord ?? 0;
          }),
          get<Failures>(`failures?${page('failures')}`, (found) => {
            this.showFailures(found);
          }),
          get<readonly Advisor[]>('advisors', (advisors) => {
            this.advisors.show(advisors);
            this.count('advisors', advisors.length);
          }),
        ])
      : [];
    if (service) this.showFacts(service);
    const said = [...problems].join(' ');
    if (this.problem.text() !== said) this.problem.text(said);
    this.problem.toggle(said !== '');
    const now = service?.clock ?? Date.now();
    const times = [service?.pausedUntil, ...(waits?.data ?? []).map(({ next }) => next)];
    return Math.min(...times.map((time) => (time == null ? Infinity : time - now + checkTakes)));
  }

  private showService({ service, pausedUntil, lateBy, trouble }: ServiceState): void {
    this.service = service;
    const said = [
      ...(trouble === null ? [] : [trouble]),
      ...(pausedUntil === null ? [] : [say('sidebar.paused', { time: timeOf(pausedUntil) })]),
      ...(lateBy < 1000 ? [] : [this.late(lateBy)]),
    ].join(' · ');
    if (this.alarm.text() !== said) this.alarm.text(said);
    this.alarm.toggle(said !== '');
    this.phones.toggle(service === 'simulator' && may('write'));
  }

  private late(lateBy: number): string {
    return say('sidebar.late', { seconds: numberOf(Math.round(lateBy / 1000)) });
  }

  private showFacts({ service, pausedUntil, lateBy, store, clock }: ServiceState): void {
    const stores = {
      embedded: say('sidebar.onDisk'),
      postgres: say('sidebar.inDatabase'),
      memory: say('sidebar.inMemory'),
    };
    this.facts.show([
      badgeOf(service, say).title,
      pausedUntil === null ? say('sidebar.ready') : say('sidebar.paused', { time: timeOf(pausedUntil) }),
      lateBy < 1000 ? say('sidebar.punctual') : this.late(lateBy),
      say('sidebar.queued', { count: numberOf(this.queued) }),
      store === null ? say('sidebar.noStore') : stores[store],
      ...(clock === null ? [] : [say('sidebar.clock', { time: timeOf(clock) })]),
    ]);
  }

  private showWaits({ data, pageInfo: { totalRecord } }: Listed<WaitItem>, phone: string): void {
    this.waits.show(data);
    this.count('waits', totalRecord);
    const isScanned = phone !== '' && totalRecord === null && data.length < pageSize;
    const isNobody = phone !== '' && totalRecord === 0;
    this.searched
      .text(isScanned ? say('sidebar.scanned') : isNobody ? say('sidebar.nobody') : '')
      .toggle(isScanned || isNobody);
    this.pagers.get('waits')?.(totalRecord, data.length);
  }

  private showFailures({ data, pageInfo: { totalRecord }, codes, advice }: Failures): void {
    this.codes = codes;
    this.failures.show(data.map((failure, at) => ({ ...failure, advice: advice[at] ?? null })));
    this.count('failures', totalRecord);
    this.pagers.get('failures')?.(totalRecord, data.length);
  }

  private part(name: string, title: string, ...content: JQuery[]): JQuery {
    const count = $('<span>', { class: 'advisor-side-count' });
    this.counts.set(name, count);
    return $('<details>', { class: `advisor-side-part advisor-side-${name}` })
      .prop('open', true)
      .append($('<summary>').append($('<span>', { text: title }), ' ', count), ...content);
  }

  private count(name: string, total: number | null): void {
    this.counts.get(name)?.text(total === null ? '' : numberOf(total));
  }

  private pager(what: 'waits' | 'failures'): JQuery {
    const turn = (by: number): void => {
      this.pages[what] += by;
      this.read();
    };
    const where = $('<span>');
    const back = iconButton('chevron-left', say('sidebar.back'), () => {
      turn(-1);
    });
    const on = iconButton('chevron-right', say('sidebar.on'), () => {
      turn(1);
    });
    const element = $('<div>', { class: 'advisor-side-pager' }).append(back, where, on).hide();
    this.pagers.set(what, (total, shown) => {
      const first = (this.pages[what] - 1) * pageSize;
      if (shown === 0 && this.pages[what] > 1) {
        turn(-1);
        return;
      }
      const isMore = total === null ? shown === pageSize : first + shown < total;
      element.toggle(first > 0 || isMore);
      where.text(`${numberOf(first + 1)} – ${numberOf(first + shown)}`);
      back.prop('disabled', first === 0);
      on.prop('disabled', !isMore);
    });
    return element;
  }

  /** What helps whoever is asked for help: nobody's number, text or secret is in it. */
  private download(): void {
    ask(say, 'GET', `${this.id}/bundle`).then(
      (bundle) => {
        const file = new Blob([`${JSON.stringify(bundle, null, 2)}\n`], { type: 'application/json' });
        const href = URL.createObjectURL(file);
        $('<a>', { href, download: 'advisor-texting-bundle.json' })[0]?.click();
        URL.revokeObjectURL(href);
      },
      (fault: unknown) => {
        RED.notify(wordsOf(fault), { type: 'error' });
      },
    );
  }

  private act(method: 'POST' | 'DELETE', path: string): void {
    ask(say, method, `${this.id}/${path}`).then(
      () => {
        this.read();
      },
      (fault: unknown) => {
        RED.notify(wordsOf(fault), { type: 'error' });
        this.read();
      },
    );
  }

  /** Beside `where` it offers a link, when the browser lets no window open. */
  private openWindow(path: string, body: object, where: JQuery): void {
    void openWindow({ say, path, body }).then((sent) => {
      where.next('.advisor-side-link').remove();
      if (sent.state === 'failed') RED.notify(sent.message, { type: 'error' });
      if (sent.state === 'blocked')
        where.after(linkTo(sent.url, say('sidebar.follow')).addClass('advisor-side-link'));
    });
  }

  private row(...actions: JQuery[]): { row: JQuery; head: JQuery; facts: JQuery } {
    const head = $('<strong>');
    const facts = $('<span>', { class: 'advisor-side-facts' });
    const row = $('<li>').append(
      $('<div>').append(head, facts),
      $('<div>', { class: 'advisor-side-actions' }).append(...actions),
    );
    return { row, head, facts };
  }

  private waitRow({ id, node }: WaitItem): Row<WaitItem> {
    const actions = may('write')
      ? [
          button('refresh', say('sidebar.check'), () => {
            this.act('POST', `waits/${id}/check`);
          }),
          carefulButton('times', say('sidebar.cancel'), () => {
            this.act('DELETE', `waits/${id}`);
          }),
        ]
      : [];
    const { row, head, facts } = this.row(...actions, revealButton(node));
    return {
      row,
      update: ({ phone, memberId, name, advisor, since, next, until }) => {
        const number = phone ?? say('sidebar.member', { id: String(memberId ?? '') });
        head.text(name ?? number);
        facts.text(
          [
            ...(name === undefined ? [] : [number]),
            advisor,
            say('sidebar.since', { time: timeOf(since) }),
            next === null ? say('sidebar.asleep') : say('sidebar.next', { time: timeOf(next) }),
            say('sidebar.until', { time: timeOf(until) }),
          ].join(' · '),
        );
        // Its node does not run: nobody could do it.
        for (const action of actions) action.prop('disabled', next === null);
      },
    };
  }

  private listRow({ id, node }: ListItem): Row<ListItem> {
    const bar = $('<progress>');
    const actions = may('write')
      ? [
          carefulButton('stop', say('sidebar.stop'), () => {
            this.act('DELETE', `lists/${id}`);
          }),
        ]
      : [];
    const { row, head, facts } = this.row(...actions, revealButton(node));
    facts.before(bar);
    return {
      row,
      update: ({ total, done, advisor, since }) => {
        head.text(labelOf(node));
        bar.attr({ max: total, value: done, 'aria-label': labelOf(node) });
        facts.text(
          [
            `${numberOf(done)} / ${numberOf(total)}`,
            advisor,
            say('sidebar.since', { time: timeOf(since) }),
          ].join(' · '),
        );
      },
    };
  }

  private failureRow({ node, traceId }: Advised): Row<Advised> {
    const copy = iconButton('clipboard', say('sidebar.copy'), () => {
      if (RED.clipboard.copyText(traceId ?? '')) RED.notify(say('sidebar.copied'), { type: 'success' });
    }).toggle(traceId !== null);
    const { row, head, facts } = this.row(copy, revealButton(node));
    const advised = $('<span>', { class: 'advisor-side-facts' });
    facts.after(advised);
    return {
      row,
      update: ({ at, phone, code, detail, advice }) => {
        head.text(this.codes[code] ?? code);
        const isDetailTold = detail === null || advice?.includes(detail) === true;
        facts.text([timeOf(at), labelOf(node), ...(phone === null ? [] : [phone])].join(' · '));
        advised.text(
          [
            ...(advice === null ? [] : [advice]),
            ...(isDetailTold ? [] : [say('sidebar.said', { words: detail })]),
            ...(traceId === null ? [] : [say('sidebar.trace', { id: traceId })]),
          ].join(' '),
        );
      },
    };
  }

  private advisorRow({ advisor }: Advisor): Row<Advisor> {
    const authorize = button('key', say('sidebar.authorize'), () => {
      this.openWindow(`${this.id}/authorize`, { advisor }, authorize);
    });
    const link = button('link', say('sidebar.link'), () => {
      ask(say, 'POST', `${this.id}/link`, { advisor }).then(
        (answer) => {
          if (RED.clipboard.copyText((answer as { url: string }).url))
            RED.notify(say('sidebar.copied'), { type: 'success' });
        },
        (fault: unknown) => {
          RED.notify(wordsOf(fault), { type: 'error' });
        },
      );
    });
    const { row, head, facts } = this.row(authorize, link);
    return {
      row,
      update: ({ state, expiresAt }) => {
        const isShown =
          may('write') &&
          this.service !== 'simulator' &&
          RED.nodes.node(this.id)?.['grant'] !== 'client_credentials';
        authorize.toggle(isShown);
        link.toggle(isShown);
        head.text(advisor);
        row.toggleClass('advisor-warning', state !== 'authorized');
        const states = {
          authorized: say('sidebar.authorized'),
          authorize_again: say('sidebar.authorizeAgain'),
          confirm: say('sidebar.confirm'),
        };
        facts.text(
          [
            states[state],
            ...(expiresAt === null ? [] : [say('sidebar.expires', { time: timeOf(expiresAt) })]),
          ].join(' · '),
        );
      },
    };
  }
}

/** The tab *Texting*: reads while it is seen, and only when something has changed or is due. */
class Sidebar {
  readonly element = $('<div>', { class: 'advisor-sidebar' });
  private readonly empty = $('<p>', { class: 'advisor-side-none' });
  private readonly sections = new Map<string, Section>();

  constructor() {
    this.element.append(this.empty);
  }

  get isSeen(): boolean {
    return this.element.is(':visible') && !document.hidden;
  }

  /** Something has changed. */
  changed(): void {
    if (this.isSeen) this.read((section) => section.changed());
  }

  shown(): void {
    this.read((section) => section.read());
  }

  private read(how: (section: Section) => void): void {
    const known = new Set<string>();
    if (may('read'))
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
    for (const [id, section] of this.sections)
      if (!known.has(id)) {
        section.close();
        this.sections.delete(id);
      }
    this.empty.text(may('read') ? say('sidebar.none') : say('ask.notAllowed')).toggle(known.size === 0);
  }
}

/** The words come with the environment's node, which is loaded after plugins are. */
const begin = (): void => {
  const sidebar = new Sidebar();
  RED.sidebar.addTab({
    id: tab,
    label: say('sidebar.label'),
    name: say('sidebar.name'),
    iconClass: 'fa fa-commenting-o',
    content: sidebar.element,
    enableOnEdit: true,
    onchange: () => {
      sidebar.shown();
    },
  });
  const changed = (): void => {
    sidebar.changed();
  };
  RED.comms.subscribe(topic, changed);
  for (const event of ['nodes:add', 'nodes:remove', 'nodes:change'])
    RED.events.on(event, (node) => {
      if ((node as EditedNode | undefined)?.type === environmentType) changed();
    });
  // Nodes have other names, and the environments others than those that are deployed.
  RED.events.on('deploy', changed);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && sidebar.element.is(':visible')) sidebar.shown();
  });
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
