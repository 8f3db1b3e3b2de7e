import { day, minute, second } from '../../../lib/durations';
import { defaultAdvisor } from '../../../lib/default-advisor';
import type {
  BlockedItem,
  Failure,
  Listed,
  ListItem,
  QueueItem,
  WaitItem,
} from '../../../lib/runtime/activity-items';
import { offsetName } from '../../../lib/runtime/dates';
import { visible } from '../../../lib/visible';
import { ask, editorAddress, faultText } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { button, iconButton, notify, setAttributes, setText, textBox } from '../../../lib/editor/dom';
import { locale, localMoment, localNumber } from '../../../lib/editor/locale';
import { linkTo, openWindow } from '../../../lib/editor/window';
import {
  carefulButton,
  isDeleted,
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
  readonly left: { readonly items: number; readonly waits: number } | null;
  readonly trouble: string | null;
  /** What must be filled in before anything can be done. */
  readonly fault: string | null;
  readonly clock: number | null;
  /** How many texts and waits pause because their node or environment does not run. */
  readonly paused: number;
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
  /** The user's right, as the server last reported it: rights may change while the editor is open. */
  readonly mayWrite: boolean;
  readonly service: string | undefined;
  /** The time of the environment's clock: a simulator's can be moved. */
  now(): number;
  /** Reads everything again immediately. */
  read(): void;
}

const mostTimesKept = 1000;
const writtenTimes = new Map<string, string>();

/** A formatted time is cached, because each read shows a hundred of them, mostly unchanged, and formatting is slow. */
const writtenTime = (ms: number, now: number): string => {
  const language = locale();
  const today = new Date(now).toDateString();
  const key = [language, today, Math.floor(ms / minute)].join(' ');
  const known = writtenTimes.get(key);
  if (known !== undefined) return known;
  // No line breaks within a time.
  const text = localMoment(new Date(ms), new Date(now)).replaceAll(/\s/g, '\u00a0');
  if (writtenTimes.size >= mostTimesKept) writtenTimes.clear();
  writtenTimes.set(key, text);
  return text;
};
/** An advisor's key; the default advisor is shown as such. */
const advisorName = (advisor: string): string =>
  advisor === defaultAdvisor ? say('defaultAdvisor') : advisor;
const joined = (...said: readonly (string | false | null)[]): string =>
  said.filter((each) => each !== false && each !== null).join(' · ');

const complain = (fault: unknown): void => {
  notify(faultText(fault), 'error');
};
const copy = (text: string): void => {
  if (RED.clipboard.copyText(text)) notify(say('sidebar.copied'), 'success');
};

/** When the browser blocks the window, a link is shown beside `where`. */
const openBeside = async (where: JQuery, path: string, body: object, query = ''): Promise<void> => {
  const sent = await openWindow({ say, path, body, query });
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
  /** When something shown will be over, in epoch milliseconds. */
  due: number | null = null;
  /** Whether it shows something in progress or something that needs attention. */
  isActive = false;
  private readonly total = $('<span>', { class: 'advisor-side-count' });
  private readonly none: JQuery;
  /** Somebody has opened or closed it: from then on it stays that way. */
  protected isChosen = false;

  constructor(
    protected readonly host: SidebarSection,
    name: string,
    title: string,
    nothing = say('sidebar.nothing'),
  ) {
    this.none = $('<p>', { class: 'advisor-side-none', text: nothing }).hide();
    const summary = $('<summary>').append($('<span>', { text: title }), ' ', this.total);
    summary.on('click', () => {
      this.isChosen = true;
    });
    this.element = $('<details>', { class: `advisor-side-part advisor-side-${name}` }).append(
      summary,
      this.none,
    );
  }

  /** The path of the route, below the environment. */
  abstract readonly path: string;
  abstract show(answer: T): void;
  /** Called when nothing is known any more, or when the buttons of the rows change. */
  abstract clear(): void;

  protected count(total: number | null): void {
    setText(this.total, total === null ? '' : localNumber(total));
  }

  /** An empty part is closed. */
  protected fold(isEmpty: boolean): void {
    this.none.toggle(isEmpty);
    this.element.toggleClass('advisor-side-empty', isEmpty);
    if (!this.isChosen && this.element.prop('open') === isEmpty) this.element.prop('open', !isEmpty);
  }

  protected timeOf(ms: number): string {
    return writtenTime(ms, this.host.now());
  }

  protected since(ms: number): string {
    return say('sidebar.since', { time: this.timeOf(ms) });
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
    nothing?: string,
  ) {
    super(host, route, title, nothing);
    this.element.append(this.rows.element, this.pager.element);
  }

  get path(): string {
    return `${this.route}?page=${String(this.pager.page)}&pageSize=${String(rowsPerPage)}`;
  }

  show(answer: Answer): void {
    const { totalRecord } = answer.pageInfo;
    const items = this.itemsIn(answer);
    this.rows.show(items);
    this.count(totalRecord);
    this.pager.show(totalRecord, answer.data.length);
    this.isActive = this.isGoingOn(items);
    this.fold(items.length === 0 && !this.isSearched());
  }

  clear(): void {
    this.rows.show([]);
    this.isActive = false;
    this.count(null);
    this.pager.page = 1;
    this.pager.show(0, 0);
    this.due = null;
  }

  protected itemsIn(answer: Answer): readonly T[] {
    return answer.data as readonly T[];
  }

  protected isGoingOn(items: readonly T[]): boolean {
    return items.length > 0;
  }

  protected isSearched(): boolean {
    return false;
  }

  protected abstract keyOf(item: T): string;
  protected abstract rowOf(item: T): Row<T>;
}

/** A paged part with a search box. */
abstract class SearchedPart<T> extends PagedPart<T, Listed<T>> {
  private readonly search: JQuery;
  private readonly searched = $('<p>', { role: 'status' }).hide();

  constructor(host: SidebarSection, route: string, title: string, words: string, nothing?: string) {
    super(host, route, title, nothing);
    this.search = textBox(words, words).hide();
    this.rows.element.before(this.search, this.searched);
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

  override show(answer: Listed<T>): void {
    super.show(answer);
    const { data, pageInfo } = answer;
    const { totalRecord } = pageInfo;
    // Without the right to see numbers, a search finds nothing.
    this.search.toggle(this.host.mayWrite && (data.length > 0 || this.isSearched()));
    const isScanned = this.isSearched() && totalRecord === null && data.length < rowsPerPage;
    const isNobody = this.isSearched() && totalRecord === 0;
    setText(this.searched, isScanned ? say('sidebar.scanned') : isNobody ? say('sidebar.nobody') : '');
    this.searched.toggle(isScanned || isNobody);
  }

  override clear(): void {
    super.clear();
    this.search.val('').hide();
    this.searched.hide();
  }

  protected override isSearched(): boolean {
    return this.phone !== '';
  }

  private get phone(): string {
    return this.host.mayWrite ? String(this.search.val() ?? '').trim() : '';
  }
}

export class WaitsPart extends SearchedPart<WaitItem> {
  constructor(host: SidebarSection) {
    super(host, 'waits', say('sidebar.waiting'), say('sidebar.search'));
  }

  override show(answer: Listed<WaitItem>): void {
    super.show(answer);
    const nexts = answer.data.flatMap(({ next }) => (next === null ? [] : [next]));
    this.due = nexts.length > 0 ? Math.min(...nexts) : null;
  }

  protected keyOf({ id }: WaitItem): string {
    return id;
  }

  protected rowOf({ id, node }: WaitItem): Row<WaitItem> {
    const check = button('refresh', say('sidebar.check'), () => {
      this.act('POST', `waits/${id}/check`);
    });
    const actions = this.host.mayWrite
      ? [
          check,
          carefulButton('times', say('sidebar.cancel'), () => {
            this.act('DELETE', `waits/${id}`);
          }),
        ]
      : [];
    const reveal = revealButton(node);
    const { row, head, facts } = rowWith(...actions, reveal.element);
    const asleep = $('<span>', { class: 'advisor-side-facts advisor-side-asleep' }).hide();
    facts.after(asleep);
    return {
      row,
      update: ({ phone, memberId, name, advisor, since: started, next, until }) => {
        reveal.refresh();
        const number = phone ?? say('sidebar.member', { id: String(memberId ?? '') });
        setText(head, name ?? number);
        setText(
          facts,
          joined(
            name !== undefined && number,
            advisorName(advisor),
            this.since(started),
            next !== null && say('sidebar.next', { time: this.timeOf(next) }),
            say('sidebar.until', { time: this.timeOf(until) }),
          ),
        );
        const isPaused = next === null;
        const why = isDeleted(node) ? say('sidebar.deleted') : say('sidebar.asleep');
        setText(asleep, isPaused ? why : '');
        asleep.toggle(isPaused);
        // Only a node that runs can check.
        check.toggle(!isPaused);
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
      update: ({ total, done, advisor, since: started }) => {
        reveal.refresh();
        setText(head, nodeLabel(node));
        setAttributes(bar, { max: String(total), value: String(done), 'aria-label': nodeLabel(node) });
        setText(
          facts,
          joined(`${localNumber(done)} / ${localNumber(total)}`, advisorName(advisor), this.since(started)),
        );
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
      update: ({ phone, name, advisor, since: started, notBefore }) => {
        reveal.refresh();
        setText(head, name ?? phone ?? '');
        const leavesAt = notBefore ?? started;
        // The hours are those of the recipient, who may be in another zone.
        const zone = offsetName(-new Date(leavesAt).getTimezoneOffset() * minute);
        setText(
          facts,
          joined(
            name !== undefined && phone,
            nodeLabel(node),
            advisorName(advisor),
            this.since(started),
            say('sidebar.leaves', { time: `${this.timeOf(leavesAt)}\u00a0${zone}` }),
          ),
        );
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

  /** Failures stay for a month: only those of the last day count as activity. */
  protected override isGoingOn([latest]: readonly Advised[]): boolean {
    return latest !== undefined && latest.at > this.host.now() - day;
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
        setAttributes(head, { title: code });
        const isDetailTold = detail === null || advice?.includes(visible(detail)) === true;
        setText(facts, joined(this.timeOf(at), nodeLabel(node), phone));
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
    super(host, 'advisors', say('sidebar.advisors'), say('sidebar.unauthorized'));
  }

  protected override isGoingOn(advisors: readonly Advisor[]): boolean {
    return advisors.some(({ state }) => state !== 'authorized');
  }

  /** Nothing can be sent until somebody has authorized: this is in sight. */
  protected override fold(isEmpty: boolean): void {
    super.fold(isEmpty);
    if (isEmpty && !this.isChosen && this.isByPerson()) this.element.prop('open', true);
  }

  private isByPerson(): boolean {
    const { host } = this;
    return host.service !== 'simulator' && RED.nodes.node(host.id)?.['grant'] !== 'client_credentials';
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
        const isShown = host.mayWrite && this.isByPerson();
        authorize.toggle(isShown);
        link.toggle(isShown);
        setText(head, advisorName(advisor));
        row.toggleClass('advisor-warning', state !== 'authorized');
        setText(
          facts,
          joined(
            states[state],
            advisor === defaultAdvisor && say('sidebar.defaultAdvisor'),
            expiresAt !== null && say('sidebar.expires', { time: this.timeOf(expiresAt) }),
          ),
        );
      },
    };
  }
}

export class ServicePart extends SidebarPart<ServiceState> {
  readonly path = 'service';
  /** The problem, shown at the head of the section. */
  readonly alarm = $('<p>', { class: 'advisor-side-state advisor-warning', role: 'status' }).hide();
  private readonly facts = new Rows<string>(
    (fact) => fact,
    (fact) => ({ row: $('<li>', { text: fact }), update: () => undefined }),
  );
  private readonly phones = button('mobile', say('sidebar.phones'), () => {
    void openBeside(this.phones, 'simulator/open', {}, `&lang=${locale()}`);
  });

  constructor(host: SidebarSection) {
    super(host, 'service', say('sidebar.service'));
    this.element.prop('open', true).append(
      this.facts.element,
      $('<div>', { class: 'advisor-side-actions' }).append(
        this.phones.hide(),
        button('download', say('sidebar.bundle'), () => {
          this.download();
        }),
      ),
    );
  }

  show(state: ServiceState): void {
    const { service, pausedUntil, lateBy, queued, store, left, trouble, fault, clock, mayWrite } = state;
    this.due = pausedUntil;
    const paused = pausedUntil !== null && say('sidebar.paused', { time: this.timeOf(pausedUntil) });
    const late =
      lateBy >= second && say('sidebar.late', { seconds: localNumber(Math.round(lateBy / second)) });
    const wrong = joined(trouble, paused, late);
    setText(this.alarm, wrong);
    this.alarm.toggle(wrong !== '');
    this.isActive = wrong !== '' || (queued ?? 0) > 0;
    this.phones.toggle(service === 'simulator' && mayWrite);
    const stores = {
      embedded: say('sidebar.onDisk'),
      postgres: say('sidebar.inDatabase'),
      memory: say('sidebar.inMemory'),
    };
    this.facts.show([
      badgeOf(service, say).title,
      ...(queued === null ? [] : [say('sidebar.queued', { count: localNumber(queued) })]),
      ...(store === null ? (fault === null ? [say('sidebar.noStore')] : []) : [stores[store]]),
      ...(left === null ? [] : [say('sidebar.left', { items: left.items, waits: left.waits })]),
      ...(clock === null ? [] : [say('sidebar.clock', { time: this.timeOf(clock) })]),
    ]);
  }

  clear(): void {
    this.alarm.text('').hide();
    this.isActive = false;
    this.facts.show([]);
    this.phones.hide();
    this.due = null;
  }

  /** Downloads the support bundle, which contains no number, text or secret. */
  private download(): void {
    ask(say, 'GET', `${this.host.id}/bundle`).then((bundle) => {
      const file = new Blob([`${JSON.stringify(bundle, null, 2)}\n`], { type: 'application/json' });
      const href = URL.createObjectURL(file);
      $('<a>', { href, download: 'advisor-texting-bundle.json' })[0]?.click();
      URL.revokeObjectURL(href);
    }, complain);
  }
}

/** The people who are not texted: one list for all simulators, another for all real services. */
export class BlockedPart extends SearchedPart<BlockedItem> {
  constructor(host: SidebarSection, title: string) {
    super(host, 'do-not-text', title, say('sidebar.searchBlocked'));
  }

  get isOpen(): boolean {
    return this.element.prop('open') === true;
  }

  /** It stays closed until somebody opens it. */
  protected override fold(isEmpty: boolean): void {
    const { isOpen } = this;
    super.fold(isEmpty);
    this.element.prop('open', isOpen);
  }

  protected keyOf({ phone, since }: BlockedItem): string {
    return `${phone} ${String(since)}`;
  }

  protected rowOf({ phone }: BlockedItem): Row<BlockedItem> {
    const unblock = carefulButton(
      'undo',
      say('sidebar.unblock'),
      () => {
        this.act('DELETE', `do-not-text/${encodeURIComponent(phone)}`);
      },
      say('sidebar.unblockReally'),
    );
    const { row, head, facts } = rowWith(...(this.host.mayWrite ? [unblock] : []));
    return {
      row,
      update: ({ since, reason }) => {
        setText(head, phone);
        setText(facts, joined(this.since(since), reason));
      },
    };
  }
}
