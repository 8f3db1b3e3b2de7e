import { minute, second } from '../../../lib/durations';
import { visible } from '../../../lib/visible';
import type { Failure, Listed, ListItem, QueueItem, WaitItem } from '../../../lib/runtime/activity-items';
import { ask, editorAddress, faultText } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import {
  button,
  disable,
  iconButton,
  notify,
  setAttributes,
  setText,
  textBox,
} from '../../../lib/editor/dom';
import { locale, localNumber } from '../../../lib/editor/locale';
import { momentOf } from '../../../lib/editor/words';
import { linkTo, openWindow } from '../../../lib/editor/window';
import {
  carefulButton,
  nodeLabel,
  rowsPerPage,
  Pager,
  revealButton,
  Rows,
  say,
  type Row,
} from './sidebar-rows';

interface Advisor {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm';
  readonly expiresAt: number | null;
}
export interface ServiceState {
  readonly service: string;
  readonly pausedUntil: number | null;
  readonly lateBy: number;
  readonly queued: number | null;
  readonly store: 'embedded' | 'postgres' | 'memory' | null;
  readonly trouble: string | null;
  /** What must be filled in before anything can be done. */
  readonly fault: string | null;
  readonly clock: number | null;
  readonly mayWrite: boolean;
}
/** A failure, with the sentence that says what to do. */
interface Advised extends Failure {
  readonly advice: string | null;
}
type Failures = Listed<Failure> & {
  readonly codes: Readonly<Record<string, string>>;
  readonly advice: readonly (string | null)[];
};

/** The section that a part belongs to. */
export interface SidebarSection {
  /** The id of the environment. */
  readonly id: string;
  /** The user's right, as the server last told it: rights may change while the editor is open. */
  readonly mayWrite: boolean;
  readonly service: string | undefined;
  /** Reads everything again at once. */
  read(): void;
}

const writtenTimes = { for: '', texts: new Map<number, string>() };

/** A written time is kept, because each reading shows a hundred of them, mostly unchanged, and writing one takes long. */
const timeOf = (ms: number): string => {
  const now = Date.now();
  const language = locale();
  const writtenFor = `${language} ${String(Math.floor(now / minute))}`;
  if (writtenTimes.for !== writtenFor) {
    writtenTimes.for = writtenFor;
    writtenTimes.texts.clear();
  }
  const at = Math.floor(ms / minute);
  const known = writtenTimes.texts.get(at);
  if (known !== undefined) return known;
  // No line breaks within a time.
  const text = momentOf(new Date(ms), new Date(now), language).replaceAll(/\s/g, '\u00a0');
  writtenTimes.texts.set(at, text);
  return text;
};
const since = (ms: number): string => say('sidebar.since', { time: timeOf(ms) });
const joined = (...said: readonly (string | false | null)[]): string =>
  said.filter((each) => each !== false && each !== null).join(' · ');

const complain = (fault: unknown): void => {
  notify(faultText(fault), 'error');
};
const copy = (text: string): void => {
  if (RED.clipboard.copyText(text)) notify(say('sidebar.copied'), 'success');
};

/** When the browser blocks the window, a link is shown beside `where`. */
const openBeside = async (where: JQuery, path: string, body: object): Promise<void> => {
  const sent = await openWindow({ say, path, body });
  where.next('.advisor-side-link').remove();
  if (sent.state === 'failed') notify(sent.message, 'error');
  if (sent.state === 'blocked')
    where.after(linkTo(sent.url, say('sidebar.follow')).addClass('advisor-side-link'));
};

const rowWith = (...actions: JQuery[]): { row: JQuery; head: JQuery; facts: JQuery } => {
  const head = $('<strong>');
  const facts = $('<span>', { class: 'advisor-side-facts' });
  const row = $('<li>').append(
    $('<div>').append(head, facts),
    $('<div>', { class: 'advisor-side-actions' }).append(...actions),
  );
  return { row, head, facts };
};

/** A heading of a section, with the answer of a route under it. */
export abstract class SidebarPart<T> {
  readonly element: JQuery;
  /** When something that is shown will be over, in epoch milliseconds. */
  due: number | null = null;
  private readonly total = $('<span>', { class: 'advisor-side-count' });

  constructor(
    protected readonly host: SidebarSection,
    name: string,
    title: string,
  ) {
    this.element = $('<details>', { class: `advisor-side-part advisor-side-${name}` })
      .prop('open', true)
      .append($('<summary>').append($('<span>', { text: title }), ' ', this.total));
  }

  /** The path of the route, below the environment. */
  abstract readonly path: string;
  abstract show(answer: T): void;
  /** Called when nothing is known any more, or when the buttons of the rows change. */
  abstract clear(): void;

  protected count(total: number | null): void {
    setText(this.total, total === null ? '' : localNumber(total));
  }

  protected act(method: 'POST' | 'DELETE', path: string): void {
    ask(say, method, `${this.host.id}/${path}`)
      .catch(complain)
      .finally(() => {
        this.host.read();
      });
  }
}

/** A part that shows one page of many rows. */
abstract class PagedPart<T, Answer extends Listed<unknown>> extends SidebarPart<Answer> {
  protected readonly rows = new Rows<T>(
    (item) => this.keyOf(item),
    (item) => this.rowOf(item),
  );
  protected readonly pager = new Pager(() => {
    this.host.read();
  });

  constructor(
    host: SidebarSection,
    private readonly route: string,
    title: string,
  ) {
    super(host, route, title);
    this.element.append(this.rows.element, this.pager.element);
  }

  get path(): string {
    return `${this.route}?page=${String(this.pager.page)}&pageSize=${String(rowsPerPage)}`;
  }

  show(answer: Answer): void {
    const { totalRecord } = answer.pageInfo;
    this.rows.show(this.itemsIn(answer));
    this.count(totalRecord);
    this.pager.show(totalRecord, answer.data.length);
  }

  clear(): void {
    this.rows.show([]);
    this.count(null);
    this.pager.page = 1;
    this.pager.show(0, 0);
    this.due = null;
  }

  protected itemsIn(answer: Answer): readonly T[] {
    return answer.data as readonly T[];
  }

  protected abstract keyOf(item: T): string;
  protected abstract rowOf(item: T): Row<T>;
}

export class WaitsPart extends PagedPart<WaitItem, Listed<WaitItem>> {
  private readonly search = textBox(say('sidebar.search'), say('sidebar.search'));
  private readonly searched = $('<p>', { role: 'status' }).hide();

  constructor(host: SidebarSection) {
    super(host, 'waits', say('sidebar.waiting'));
    this.rows.element.before(this.search.hide(), this.searched);
    let typing: ReturnType<typeof setTimeout> | undefined;
    const find = (): void => {
      this.pager.page = 1;
      host.read();
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
  }

  override get path(): string {
    return `${super.path}&phone=${encodeURIComponent(this.phone)}`;
  }

  override show(answer: Listed<WaitItem>): void {
    super.show(answer);
    const { data, pageInfo } = answer;
    const { totalRecord } = pageInfo;
    const nexts = data.flatMap(({ next }) => (next === null ? [] : [next]));
    this.due = nexts.length > 0 ? Math.min(...nexts) : null;
    // Without the right to see numbers, a search finds nothing.
    this.search.toggle(this.host.mayWrite);
    const isScanned = this.phone !== '' && totalRecord === null && data.length < rowsPerPage;
    const isNobody = this.phone !== '' && totalRecord === 0;
    setText(this.searched, isScanned ? say('sidebar.scanned') : isNobody ? say('sidebar.nobody') : '');
    this.searched.toggle(isScanned || isNobody);
  }

  override clear(): void {
    super.clear();
    this.search.val('').hide();
    this.searched.hide();
  }

  private get phone(): string {
    return this.host.mayWrite ? String(this.search.val() ?? '').trim() : '';
  }

  protected keyOf({ id }: WaitItem): string {
    return id;
  }

  protected rowOf({ id, node }: WaitItem): Row<WaitItem> {
    const actions = this.host.mayWrite
      ? [
          button('refresh', say('sidebar.check'), () => {
            this.act('POST', `waits/${id}/check`);
          }),
          carefulButton('times', say('sidebar.cancel'), () => {
            this.act('DELETE', `waits/${id}`);
          }),
        ]
      : [];
    const reveal = revealButton(node);
    const { row, head, facts } = rowWith(...actions, reveal.element);
    return {
      row,
      update: ({ phone, memberId, name, advisor, since: begun, next, until }) => {
        reveal.refresh();
        const number = phone ?? say('sidebar.member', { id: String(memberId ?? '') });
        setText(head, name ?? number);
        setText(
          facts,
          joined(
            name !== undefined && number,
            advisor,
            since(begun),
            next === null ? say('sidebar.asleep') : say('sidebar.next', { time: timeOf(next) }),
            say('sidebar.until', { time: timeOf(until) }),
          ),
        );
        // The node of the wait does not run, so nobody could carry out the action.
        for (const action of actions) disable(action, next === null);
      },
    };
  }
}

export class ListsPart extends PagedPart<ListItem, Listed<ListItem>> {
  constructor(host: SidebarSection) {
    super(host, 'lists', say('sidebar.lists'));
  }

  protected keyOf({ id }: ListItem): string {
    return id;
  }

  protected rowOf({ id, node }: ListItem): Row<ListItem> {
    const bar = $('<progress>');
    const actions = this.host.mayWrite
      ? [
          carefulButton('stop', say('sidebar.stop'), () => {
            this.act('DELETE', `lists/${id}`);
          }),
        ]
      : [];
    const reveal = revealButton(node);
    const { row, head, facts } = rowWith(...actions, reveal.element);
    facts.before(bar);
    return {
      row,
      update: ({ total, done, advisor, since: begun }) => {
        reveal.refresh();
        setText(head, nodeLabel(node));
        setAttributes(bar, { max: String(total), value: String(done), 'aria-label': nodeLabel(node) });
        setText(facts, joined(`${localNumber(done)} / ${localNumber(total)}`, advisor, since(begun)));
      },
    };
  }
}

export class HeldPart extends PagedPart<QueueItem, Listed<QueueItem>> {
  constructor(host: SidebarSection) {
    super(host, 'held', say('sidebar.held'));
  }

  override get path(): string {
    return `queue?state=held&page=${String(this.pager.page)}&pageSize=${String(rowsPerPage)}`;
  }

  protected keyOf({ id }: QueueItem): string {
    return id;
  }

  protected rowOf({ id, node }: QueueItem): Row<QueueItem> {
    const actions = this.host.mayWrite
      ? [
          carefulButton('times', say('sidebar.cancel'), () => {
            this.act('DELETE', `queue/${id}`);
          }),
        ]
      : [];
    const reveal = revealButton(node);
    const { row, head, facts } = rowWith(...actions, reveal.element);
    return {
      row,
      update: ({ phone, advisor, since: begun, notBefore }) => {
        reveal.refresh();
        setText(head, phone ?? '');
        const leaves = say('sidebar.leaves', { time: timeOf(notBefore ?? begun) });
        setText(facts, joined(nodeLabel(node), advisor, since(begun), leaves));
      },
    };
  }
}

export class FailuresPart extends PagedPart<Advised, Failures> {
  private codes: Readonly<Record<string, string>> = {};

  constructor(host: SidebarSection) {
    super(host, 'failures', say('sidebar.failures'));
  }

  override show(answer: Failures): void {
    this.codes = answer.codes;
    super.show(answer);
  }

  protected override itemsIn({ data, advice }: Failures): readonly Advised[] {
    return data.map((failure, at) => ({ ...failure, advice: advice[at] ?? null }));
  }

  protected keyOf({ at, node, phone, traceId, code }: Advised): string {
    return [at, node.id, phone, traceId, code].join(' ');
  }

  protected rowOf({ node, traceId }: Advised): Row<Advised> {
    const copyTrace = iconButton('clipboard', say('sidebar.copy'), () => {
      copy(traceId ?? '');
    }).toggle(traceId !== null);
    const reveal = revealButton(node);
    const { row, head, facts } = rowWith(copyTrace, reveal.element);
    const advised = $('<span>', { class: 'advisor-side-facts' });
    facts.after(advised);
    return {
      row,
      update: ({ at, phone, code, detail, advice }) => {
        reveal.refresh();
        setText(head, this.codes[code] ?? code);
        const isDetailTold = detail === null || advice?.includes(visible(detail)) === true;
        setText(facts, joined(timeOf(at), nodeLabel(node), phone));
        setText(
          advised,
          [
            ...(advice === null ? [] : [advice]),
            ...(isDetailTold ? [] : [say('sidebar.said', { words: detail })]),
            ...(traceId === null ? [] : [say('sidebar.trace', { id: traceId })]),
          ].join(' '),
        );
      },
    };
  }
}

export class AdvisorsPart extends PagedPart<Advisor, Listed<Advisor>> {
  constructor(host: SidebarSection) {
    super(host, 'advisors', say('sidebar.advisors'));
  }

  protected keyOf({ advisor }: Advisor): string {
    return advisor;
  }

  protected rowOf({ advisor }: Advisor): Row<Advisor> {
    const { host } = this;
    const authorize = button('key', say('sidebar.authorize'), () => {
      void openBeside(authorize, `${host.id}/authorize`, { advisor });
    });
    const link = button('link', say('sidebar.link'), () => {
      ask(say, 'POST', `${host.id}/link`, { advisor }).then((answer) => {
        copy(editorAddress((answer as { url: string }).url));
      }, complain);
    });
    const { row, head, facts } = rowWith(authorize, link);
    const states = {
      authorized: say('sidebar.authorized'),
      authorize_again: say('sidebar.authorizeAgain'),
      confirm: say('sidebar.confirm'),
    };
    return {
      row,
      update: ({ state, expiresAt }) => {
        const isByPerson = RED.nodes.node(host.id)?.['grant'] !== 'client_credentials';
        const isShown = host.mayWrite && host.service !== 'simulator' && isByPerson;
        authorize.toggle(isShown);
        link.toggle(isShown);
        setText(head, advisor);
        row.toggleClass('advisor-warning', state !== 'authorized');
        setText(
          facts,
          joined(states[state], expiresAt !== null && say('sidebar.expires', { time: timeOf(expiresAt) })),
        );
      },
    };
  }
}

export class ServicePart extends SidebarPart<ServiceState> {
  readonly path = 'service';
  /** The trouble, shown at the head of the section. */
  readonly alarm = $('<p>', { class: 'advisor-side-state advisor-warning', role: 'status' }).hide();
  private readonly facts = new Rows<string>(
    (fact) => fact,
    (fact) => ({ row: $('<li>', { text: fact }), update: () => undefined }),
  );
  private readonly phones = button('mobile', say('sidebar.phones'), () => {
    void openBeside(this.phones, 'simulator/open', {});
  });

  constructor(host: SidebarSection) {
    super(host, 'service', say('sidebar.service'));
    this.element.append(
      this.facts.element,
      this.phones.hide(),
      button('download', say('sidebar.bundle'), () => {
        this.download();
      }),
    );
  }

  show({ service, pausedUntil, lateBy, queued, store, trouble, clock, mayWrite }: ServiceState): void {
    this.due = pausedUntil;
    const paused = pausedUntil !== null && say('sidebar.paused', { time: timeOf(pausedUntil) });
    const late =
      lateBy >= second && say('sidebar.late', { seconds: localNumber(Math.round(lateBy / second)) });
    const wrong = joined(trouble, paused, late);
    setText(this.alarm, wrong);
    this.alarm.toggle(wrong !== '');
    this.phones.toggle(service === 'simulator' && mayWrite);
    const stores = {
      embedded: say('sidebar.onDisk'),
      postgres: say('sidebar.inDatabase'),
      memory: say('sidebar.inMemory'),
    };
    this.facts.show([
      badgeOf(service, say).title,
      paused === false ? say('sidebar.ready') : paused,
      late === false ? say('sidebar.punctual') : late,
      ...(queued === null ? [] : [say('sidebar.queued', { count: localNumber(queued) })]),
      store === null ? say('sidebar.noStore') : stores[store],
      ...(clock === null ? [] : [say('sidebar.clock', { time: timeOf(clock) })]),
    ]);
  }

  clear(): void {
    this.alarm.text('').hide();
    this.facts.show([]);
    this.phones.hide();
    this.due = null;
  }

  /** Downloads the support bundle, which holds no number, text or secret. */
  private download(): void {
    ask(say, 'GET', `${this.host.id}/bundle`).then((bundle) => {
      const file = new Blob([`${JSON.stringify(bundle, null, 2)}\n`], { type: 'application/json' });
      const href = URL.createObjectURL(file);
      $('<a>', { href, download: 'advisor-texting-bundle.json' })[0]?.click();
      URL.revokeObjectURL(href);
    }, complain);
  }
}
