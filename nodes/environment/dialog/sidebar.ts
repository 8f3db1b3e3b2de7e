import type { Failure, Listed, ListItem, NodeName, WaitItem } from '../../../lib/runtime/activity-items';
import { ask, wordsOf } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { button, icon, iconButton, textBox } from '../../../lib/editor/dom';
import { environmentSays, locale, numberOf } from '../../../lib/editor/locale';
import type { EditedNode, Say } from '../../../lib/editor/red';
import { momentOf } from '../../../lib/editor/words';
import { openWindow } from '../../../lib/editor/window';

const environmentType = 'advisor-environment';
const topic = 'advisor-texting/changed';
const tab = 'advisor-texting';
const pageSize = 20;
/** How long a button asks whether it is meant. */
const doubt = 5000;

const say: Say = (key, parts) => environmentSays(key, parts) ?? key;

interface Advisor {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm';
  readonly expiresAt: number | null;
}
interface ServiceState {
  readonly service: string;
  readonly pausedUntil: number | null;
  readonly lateBy: number;
  readonly trouble: string | null;
  readonly clock: number | null;
}

const timeOf = (ms: number): string => momentOf(new Date(ms), new Date(), locale());

const mayWrite = (): boolean => RED.user.hasPermission('advisor-texting.write');

/** What a node is called on the canvas. */
const labelOf = ({ id, name }: NodeName): string => {
  const node = RED.nodes.node(id);
  return node ? RED.utils.getNodeLabel(node, id) : name || id;
};

/** Rows by key: what is there stays there, so that nobody loses the focus while it changes. */
class Rows<T> {
  readonly element = $('<ul>', { class: 'advisor-side-rows' });
  private readonly rows = new Map<string, { readonly row: JQuery; update(item: T): void }>();

  constructor(
    private readonly keyOf: (item: T) => string,
    private readonly create: (item: T) => { readonly row: JQuery; update(item: T): void },
  ) {}

  show(items: readonly T[]): void {
    const keys = new Set(items.map(this.keyOf));
    for (const [key, { row }] of this.rows)
      if (!keys.has(key)) {
        row.remove();
        this.rows.delete(key);
      }
    let before: Element | undefined;
    for (const item of items) {
      const key = this.keyOf(item);
      const known = this.rows.get(key) ?? this.create(item);
      this.rows.set(key, known);
      known.update(item);
      const [row] = known.row;
      if (!row) continue;
      const place = before ? before.nextSibling : this.element[0]?.firstChild;
      if (place !== row) this.element[0]?.insertBefore(row, place ?? null);
      before = row;
    }
  }
}

/** Asks once more before it does what cannot be undone. */
const carefulButton = (name: string, words: string, act: () => void): JQuery => {
  let isArmed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const made = button(name, words, () => {
    clearTimeout(timer);
    if (isArmed) act();
    isArmed = !isArmed;
    if (isArmed) timer = setTimeout(disarm, doubt);
    draw();
  });
  const draw = (): void => {
    made.toggleClass('advisor-side-armed', isArmed);
    made.children('span').text(isArmed ? say('sidebar.really') : words);
  };
  const disarm = (): void => {
    isArmed = false;
    draw();
  };
  return made;
};

const revealButton = (node: NodeName): JQuery =>
  iconButton('search', say('sidebar.show'), () => {
    RED.view.reveal(node.id);
  }).toggle(RED.nodes.node(node.id) !== null);

/** One environment, and all that goes on in it. */
class Section {
  readonly element: JQuery;
  private readonly title = $('<span>', { class: 'advisor-side-name' });
  private readonly sign = $('<span>');
  private readonly state = $('<p>', { class: 'advisor-side-state', role: 'status' });
  private readonly problem = $('<p>', { class: 'advisor-warning', role: 'alert' }).hide();
  private readonly counts = new Map<string, JQuery>();
  private readonly waits: Rows<WaitItem>;
  private readonly lists: Rows<ListItem>;
  private readonly failures: Rows<Failure>;
  private readonly advisors: Rows<Advisor>;
  private readonly search = textBox(say('sidebar.search'), say('sidebar.search'));
  private readonly pages: Record<'waits' | 'failures', number> = { waits: 1, failures: 1 };
  private readonly pagers = new Map<string, (total: number | null, shown: number) => void>();
  private readonly phones = button('mobile', say('sidebar.phones'), () => {
    void openWindow({ say, path: 'simulator/open' }).then((sent) => {
      if (sent.state === 'failed') RED.notify(sent.message, { type: 'error' });
    });
  });
  private codes: Readonly<Record<string, string>> = {};
  private isReading = false;
  private isStale = false;

  constructor(private readonly id: string) {
    this.waits = new Rows<WaitItem>(
      ({ id: wait }) => wait,
      (item) => this.waitRow(item),
    );
    this.lists = new Rows<ListItem>(
      ({ id: list }) => list,
      (item) => this.listRow(item),
    );
    this.failures = new Rows<Failure>(
      ({ at, node, phone, traceId, code }) => [at, node.id, phone, traceId, code].join(' '),
      (item) => this.failureRow(item),
    );
    this.advisors = new Rows<Advisor>(
      ({ advisor }) => advisor,
      (item) => this.advisorRow(item),
    );
    let typing: ReturnType<typeof setTimeout> | undefined;
    this.search.on('input', () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        this.pages.waits = 1;
        this.read();
      }, 300);
    });
    this.element = $('<section>', { class: 'advisor-side-environment' }).append(
      $('<h3>').append(
        this.sign,
        this.title,
        iconButton('pencil', say('sidebar.open'), () => {
          RED.editor.editConfig('', environmentType, this.id);
        }),
      ),
      this.state,
      this.phones.hide(),
      this.problem,
      this.part('waits', say('sidebar.waiting'), this.search, this.waits.element, this.pager('waits')),
      this.part('lists', say('sidebar.lists'), this.lists.element),
      this.part('failures', say('sidebar.failures'), this.failures.element, this.pager('failures')),
      this.part('advisors', say('sidebar.advisors'), this.advisors.element),
    );
  }

  /** What the editor knows by itself. */
  name(node: EditedNode): void {
    const { kind, icon: name, title } = badgeOf(node['service'] ?? 'simulator', say);
    this.title.text(node.name !== undefined && node.name !== '' ? node.name : title);
    this.sign.attr('class', `advisor-badge advisor-${kind}`).attr('title', title).empty().append(icon(name));
    this.element.attr('aria-label', this.title.text());
  }

  /** Reads what is shown; what changes meanwhile is read after that. */
  read(): void {
    if (this.isReading) {
      this.isStale = true;
      return;
    }
    this.isReading = true;
    this.isStale = false;
    this.readAll()
      .then(
        () => {
          this.problem.hide();
        },
        (fault: unknown) => {
          this.problem.text(wordsOf(fault)).show();
        },
      )
      .finally(() => {
        this.isReading = false;
        if (this.isStale) this.read();
      });
  }

  private async readAll(): Promise<void> {
    const phone = encodeURIComponent(String(this.search.val() ?? '').trim());
    const get = (path: string): Promise<unknown> => ask(say, 'GET', `${this.id}/${path}`);
    const page = (what: 'waits' | 'failures'): string =>
      `page=${String(this.pages[what])}&pageSize=${String(pageSize)}`;
    const [service, waits, queue, failures, advisors] = (await Promise.all([
      get('service'),
      get(`waits?phone=${phone}&${page('waits')}`),
      get('queue?pageSize=1'),
      get(`failures?${page('failures')}`),
      get('advisors'),
    ])) as [
      ServiceState,
      Listed<WaitItem>,
      Listed<unknown> & { readonly lists: readonly ListItem[] },
      Listed<Failure> & { readonly codes: Readonly<Record<string, string>> },
      readonly Advisor[],
    ];
    this.codes = failures.codes;
    this.showService(service, queue.pageInfo.totalRecord ?? 0);
    this.waits.show(waits.data);
    this.lists.show(queue.lists);
    this.failures.show(failures.data);
    this.advisors.show(advisors);
    this.count('waits', waits.pageInfo.totalRecord);
    this.count('lists', queue.lists.length);
    this.count('failures', failures.pageInfo.totalRecord);
    this.count('advisors', advisors.length);
    this.pagers.get('waits')?.(waits.pageInfo.totalRecord, waits.data.length);
    this.pagers.get('failures')?.(failures.pageInfo.totalRecord, failures.data.length);
  }

  private showService({ service, pausedUntil, lateBy, trouble, clock }: ServiceState, queued: number): void {
    const said = [
      ...(trouble === null ? [] : [trouble]),
      ...(pausedUntil === null ? [] : [say('sidebar.paused', { time: timeOf(pausedUntil) })]),
      ...(lateBy < 1000 ? [] : [say('sidebar.late', { seconds: numberOf(Math.round(lateBy / 1000)) })]),
      say('sidebar.queued', { count: numberOf(queued) }),
      ...(clock === null ? [] : [say('sidebar.clock', { time: timeOf(clock) })]),
    ].join(' · ');
    if (this.state.text() !== said) this.state.text(said);
    this.state.toggleClass('advisor-warning', trouble !== null);
    this.phones.toggle(service === 'simulator' && mayWrite());
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

  private row(...actions: JQuery[]): { row: JQuery; head: JQuery; facts: JQuery } {
    const head = $('<strong>');
    const facts = $('<span>', { class: 'advisor-side-facts' });
    const row = $('<li>').append(
      $('<div>').append(head, facts),
      $('<div>', { class: 'advisor-side-actions' }).append(...actions),
    );
    return { row, head, facts };
  }

  private waitRow({ id, node }: WaitItem): { row: JQuery; update(item: WaitItem): void } {
    const actions = mayWrite()
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
      update: ({ phone, memberId, advisor, since, next, until }) => {
        head.text(phone ?? say('sidebar.member', { id: String(memberId ?? '') }));
        facts.text(
          [
            advisor,
            say('sidebar.since', { time: timeOf(since) }),
            ...(next === null ? [] : [say('sidebar.next', { time: timeOf(next) })]),
            say('sidebar.until', { time: timeOf(until) }),
          ].join(' · '),
        );
      },
    };
  }

  private listRow({ id, node }: ListItem): { row: JQuery; update(item: ListItem): void } {
    const bar = $('<progress>');
    const actions = mayWrite()
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
      update: ({ total, done }) => {
        head.text(labelOf(node));
        bar.attr({ max: total, value: done, 'aria-label': labelOf(node) });
        facts.text(`${numberOf(done)} / ${numberOf(total)}`);
      },
    };
  }

  private failureRow({ node, traceId }: Failure): { row: JQuery; update(item: Failure): void } {
    const copy = iconButton('clipboard', say('sidebar.copy'), () => {
      if (RED.clipboard.copyText(traceId ?? '')) RED.notify(say('sidebar.copied'), { type: 'success' });
    }).toggle(traceId !== null);
    const { row, head, facts } = this.row(copy, revealButton(node));
    return {
      row,
      update: ({ at, phone, code, detail }) => {
        head.text(this.codes[code] ?? code);
        facts.text(
          [
            timeOf(at),
            labelOf(node),
            ...(phone === null ? [] : [phone]),
            ...(detail === null ? [] : [detail]),
          ].join(' · '),
        );
      },
    };
  }

  private advisorRow({ advisor }: Advisor): { row: JQuery; update(item: Advisor): void } {
    const authorize = button('key', say('sidebar.authorize'), () => {
      void openWindow({ say, path: `${this.id}/authorize`, body: { advisor } }).then((sent) => {
        if (sent.state === 'failed') RED.notify(sent.message, { type: 'error' });
      });
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
    const isShown = mayWrite() && RED.nodes.node(this.id)?.['service'] !== 'simulator';
    const { row, head, facts } = this.row(authorize.toggle(isShown), link.toggle(isShown));
    return {
      row,
      update: ({ state, expiresAt }) => {
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

/** The tab *Texting*: reads while it is seen, and only when something has changed. */
class Sidebar {
  readonly element = $('<div>', { class: 'advisor-sidebar' });
  private readonly empty = $('<p>', { class: 'advisor-side-none', text: say('sidebar.none') });
  private readonly sections = new Map<string, Section>();
  private isStale = true;

  constructor() {
    this.element.append(this.empty);
  }

  /** Something has changed. */
  changed(): void {
    this.isStale = true;
    if (this.element.is(':visible') && !document.hidden) this.read();
  }

  shown(): void {
    if (this.isStale) this.read();
  }

  private read(): void {
    this.isStale = false;
    const known = new Set<string>();
    RED.nodes.eachConfig((node) => {
      if (node.type !== environmentType) return true;
      known.add(node.id);
      const section = this.sections.get(node.id) ?? new Section(node.id);
      if (!this.sections.has(node.id)) this.element.append(section.element);
      this.sections.set(node.id, section);
      section.name(node);
      section.read();
      return true;
    });
    for (const [id, { element }] of this.sections)
      if (!known.has(id)) {
        element.remove();
        this.sections.delete(id);
      }
    this.empty.toggle(known.size === 0);
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
