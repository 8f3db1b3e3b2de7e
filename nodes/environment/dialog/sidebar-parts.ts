import { day, minute, second } from '../../../lib/durations';
import { defaultAdvisor } from '../../../lib/default-advisor';
import type {
  AdvisorItem,
  BlockedItem,
  Failure,
  Listed,
  ListItem,
  QueueItem,
  ServiceState,
  WaitItem,
} from '../../../lib/runtime/activity-items';
import { offsetName } from '../../../lib/runtime/dates';
import { calculated } from '../../../lib/process-memory';
import { visible } from '../../../lib/visible';
import { ask, editorAddress, faultText } from '../../../lib/editor/ask';
import { badgeOf } from '../../../lib/editor/badge';
import { button, notify, onKey, setText, textBox } from '../../../lib/editor/dom';
import { locale, localMoment, localNumber } from '../../../lib/editor/locale';
import { linkTo, openWindow } from '../../../lib/editor/window';
import {
  isDeleted,
  nodeLabel,
  Pager,
  Rows,
  rowsPerPage,
  say,
  type Action,
  type RowView,
} from './sidebar-rows';

/** Failures, with a word for each code, and for each failure the sentence that says what to do. */
interface Failures extends Listed<Failure & { readonly count?: number }> {
  readonly codes: Readonly<Record<string, string>>;
  readonly advice: readonly (string | null)[];
}

/** The section that a part belongs to. */
export interface SidebarSection {
  /** The id of the environment. */
  readonly id: string;
  /** The user's right, as the server last reported it: rights may change while the editor is open. */
  readonly mayWrite: boolean;
  readonly service: string | null | undefined;
  /** The time of the environment's clock: a simulator's can be moved. */
  now(): number;
  /** Reads everything again immediately. */
  read(): void;
}

/** A heading of a section, with the answer of a route under it. */
export interface SidebarPart<Answer> {
  readonly element: JQuery;
  /** The path of the route, below the environment. */
  readonly path: string;
  /** When something shown will be over, in epoch milliseconds. */
  readonly due: number;
  /** Whether it shows something in progress or something that needs attention. */
  readonly isActive: boolean;
  show(answer: Answer): void;
  /** Called when nothing is known any more. */
  clear(): void;
}

const writtenTimes = new Map<string, string>();

/** A formatted time is cached, because each read shows a hundred of them, mostly unchanged, and formatting is slow. */
const writtenTime = (ms: number, now: number): string =>
  calculated(writtenTimes, [locale(), new Date(now).toDateString(), Math.floor(ms / minute)].join(' '), () =>
    // No line breaks within a time.
    localMoment(new Date(ms), new Date(now)).replaceAll(/\s/g, '\u00a0'),
  );

/** An advisor's key; the default advisor is shown as such. */
const advisorName = (advisor: string): string =>
  advisor === defaultAdvisor ? say('defaultAdvisor') : advisor;

const timeOf = (ms: number, host: SidebarSection): string => writtenTime(ms, host.now());
const sinceWords = (ms: number, host: SidebarSection): string =>
  say('sidebar.since', { time: timeOf(ms, host) });

const complain = (fault: unknown): unknown => notify(faultText(fault), 'error');
const copy = (text: string): void => {
  if (RED.clipboard.copyText(text)) notify(say('sidebar.copied'), 'success');
};

const act = (host: SidebarSection, method: 'POST' | 'DELETE', path: string, done?: string): void => {
  ask(method, `${host.id}/${path}`)
    .then(() => done === undefined || notify(done, 'success', 20 * second), complain)
    .finally(() => host.read());
};

/** When the browser blocks the window, a link is shown beside `where`. */
const openBeside = async (where: JQuery, path: string, body: object, query = ''): Promise<void> => {
  where.next('.advisor-side-link').remove();
  const { isBlocked, url } = await openWindow(path, body, query);
  if (isBlocked) where.after(linkTo(url, say('sidebar.follow')).addClass('advisor-side-link'));
};

/** A part that lists what a route answers, page by page. */
interface ListOptions<Answer> {
  readonly name: string;
  readonly title: string;
  readonly route?: string;
  /** The words for an empty list. */
  readonly nothing?: string;
  /** The words in the search box. */
  readonly search?: string;
  readonly rows: (answer: Answer) => readonly (readonly [key: string, view: RowView])[];
  readonly isActive?: (answer: Answer) => boolean;
  readonly due?: (answer: Answer) => number;
  /** Whether it is open, until somebody opens or closes it. */
  readonly isOpen?: (isEmpty: boolean) => boolean;
}

export class ListPart<Answer extends Listed<unknown>> implements SidebarPart<Answer> {
  readonly element: JQuery;
  due = Infinity;
  isActive = false;
  private readonly total = $('<span>', { class: 'advisor-side-count' });
  private readonly none: JQuery;
  private readonly search: JQuery;
  /** What the search has found. */
  private readonly found = $('<p>', { role: 'status' }).hide();
  private readonly rows = new Rows();
  private readonly pager: Pager;
  /** Somebody has opened or closed it: from then on it stays that way. */
  private isChosen = false;

  constructor(
    private readonly host: SidebarSection,
    private readonly options: ListOptions<Answer>,
  ) {
    const { name, title, search = '', nothing = say('sidebar.nothing') } = options;
    this.none = $('<p>', { class: 'advisor-side-none', text: nothing }).hide();
    this.search = textBox(search, search).hide();
    this.pager = new Pager(() => host.read());
    const summary = $('<summary>').append($('<span>', { text: title }), ' ', this.total);
    summary.on('click', () => (this.isChosen = true));
    this.element = $('<details>', { class: `advisor-side-part advisor-side-${name}` }).append(
      summary,
      this.none,
      ...(options.search === undefined ? [] : [this.search, this.found]),
      this.rows.element,
      this.pager.element,
    );
    let typing: ReturnType<typeof setTimeout> | undefined;
    const find = (): void => {
      this.pager.page = 1;
      host.read();
    };
    this.search.on('input', () => {
      clearTimeout(typing);
      typing = setTimeout(find, 300);
    });
    const forget = (): void => {
      this.search.val('');
      find();
    };
    onKey(this.search, 'Escape', forget, () => this.search.val() !== '');
  }

  get isOpen(): boolean {
    return this.element.prop('open') === true;
  }

  get path(): string {
    const { name, route = name } = this.options;
    const page = `page=${String(this.pager.page)}&pageSize=${String(rowsPerPage)}`;
    const query = route.includes('?') ? '&' : '?';
    return `${route}${query}${page}&phone=${encodeURIComponent(this.searched)}`;
  }

  show(answer: Answer): void {
    const { host, options } = this;
    const { totalRecord } = answer.pageInfo;
    const shown = answer.data.length;
    const isSearched = this.searched !== '';
    const isEmpty = shown === 0 && !isSearched;
    this.rows.show(options.rows(answer));
    setText(this.total, totalRecord === null ? '' : localNumber(totalRecord));
    this.pager.show(totalRecord, shown);
    this.isActive = options.isActive?.(answer) ?? shown > 0;
    this.due = options.due?.(answer) ?? Infinity;
    this.none.toggle(isEmpty);
    this.element.toggleClass('advisor-side-empty', isEmpty);
    const isOpen = options.isOpen?.(isEmpty) ?? !isEmpty;
    if (!this.isChosen && this.isOpen !== isOpen) this.element.prop('open', isOpen);
    // Without the right to see numbers, a search finds nothing.
    this.search.toggle(host.mayWrite && !isEmpty);
    const isScanned = isSearched && totalRecord === null && shown < rowsPerPage;
    const isNobody = isSearched && totalRecord === 0;
    setText(this.found, isScanned ? say('sidebar.scanned') : isNobody ? say('sidebar.nobody') : '');
    this.found.toggle(isScanned || isNobody);
  }

  clear(): void {
    this.rows.show([]);
    this.isActive = false;
    this.due = Infinity;
    setText(this.total, '');
    this.pager.page = 1;
    this.pager.show(0, 0);
    this.search.val('').hide();
    this.found.hide();
  }

  private get searched(): string {
    return this.host.mayWrite ? String(this.search.val() ?? '').trim() : '';
  }
}

/** Does something to what a row shows, and asks before. */
const careful = (
  host: SidebarSection,
  icon: string,
  words: string,
  path: string,
  question = say('sidebar.really'),
): Action => ({
  icon,
  words,
  question,
  act: () => act(host, 'DELETE', path),
  isShown: host.mayWrite,
});

export const waitsPart = (host: SidebarSection) =>
  new ListPart<Listed<WaitItem>>(host, {
    name: 'waits',
    title: say('sidebar.waiting'),
    search: say('sidebar.search'),
    due: ({ data }) => Math.min(...data.map(({ next }) => next ?? Infinity)),
    rows: ({ data }) =>
      data.map(({ id, node, phone, memberId, name, advisor, since, next, until }) => {
        const number = phone ?? say('sidebar.member', { id: String(memberId ?? '') });
        const isPaused = next === null;
        const check = {
          icon: 'refresh',
          words: say('sidebar.check'),
          act: () => act(host, 'POST', `waits/${id}/check`),
          // Only a node that runs can check.
          isShown: host.mayWrite && !isPaused,
        };
        const view = {
          node,
          head: name ?? number,
          facts: [
            name !== undefined && number,
            advisorName(advisor),
            sinceWords(since, host),
            !isPaused && say('sidebar.next', { time: timeOf(next, host) }),
            say('sidebar.until', { time: timeOf(until, host) }),
          ],
          ...(isPaused && {
            note: isDeleted(node) ? say('sidebar.deleted') : say('sidebar.asleep'),
            className: 'advisor-side-asleep',
          }),
          actions: [check, careful(host, 'times', say('sidebar.cancel'), `waits/${id}`)],
        };
        return [id, view];
      }),
  });

export const listsPart = (host: SidebarSection) =>
  new ListPart<Listed<ListItem>>(host, {
    name: 'lists',
    title: say('sidebar.lists'),
    rows: ({ data }) =>
      data.map(({ id, node, total, done, advisor, since }) => {
        const progress = `${localNumber(done)} / ${localNumber(total)}`;
        const view = {
          node,
          head: nodeLabel(node),
          progress: { value: done, max: total },
          facts: [progress, advisorName(advisor), sinceWords(since, host)],
          actions: [careful(host, 'stop', say('sidebar.stop'), `lists/${id}`)],
        };
        return [id, view];
      }),
  });

export const heldPart = (host: SidebarSection) =>
  new ListPart<Listed<QueueItem>>(host, {
    name: 'held',
    route: 'queue?state=held',
    title: say('sidebar.held'),
    rows: ({ data }) =>
      data.map(({ id, node, phone, name, advisor, since, notBefore }) => {
        const leavesAt = notBefore ?? since;
        // The hours are those of the recipient, who may be in another zone.
        const zone = offsetName(-new Date(leavesAt).getTimezoneOffset() * minute);
        const view = {
          node,
          head: name ?? phone ?? '',
          facts: [
            name !== undefined && phone,
            nodeLabel(node),
            advisorName(advisor),
            sinceWords(since, host),
            say('sidebar.leaves', { time: `${timeOf(leavesAt, host)}\u00a0${zone}` }),
          ],
          actions: [careful(host, 'times', say('sidebar.cancel'), `queue/${id}`)],
        };
        return [id, view];
      }),
  });

export const failuresPart = (host: SidebarSection) =>
  new ListPart<Failures>(host, {
    name: 'failures',
    route: 'failures?gathered=true',
    title: say('sidebar.failures'),
    // Failures stay for a month: only those of the last day count as activity.
    isActive: ({ data: [latest] }) => latest !== undefined && latest.at > host.now() - day,
    rows: ({ data, codes, advice }) =>
      data.map(({ at, node, phone, code, detail, traceId, count = 1 }, index) => {
        const advised = advice[index] ?? '';
        const isDetailSaid = detail === null || advised.includes(visible(detail));
        const note = [
          advised,
          isDetailSaid ? '' : say('sidebar.said', { words: detail }),
          traceId === null ? '' : say('sidebar.trace', { id: traceId }),
        ];
        const copyTrace = {
          icon: 'clipboard',
          words: say('sidebar.copy'),
          act: () => copy(traceId ?? ''),
          isIcon: true,
          isShown: traceId !== null,
        };
        const view = {
          node,
          head: codes[code] ?? code,
          title: code,
          facts: [
            timeOf(at, host),
            nodeLabel(node, true),
            count > 1 ? say('sidebar.together', { count: localNumber(count) }) : phone,
          ],
          note: note.filter((sentence) => sentence !== '').join(' '),
          actions: [copyTrace],
        };
        return [[at, node.id, phone, traceId, code].join(' '), view];
      }),
  });

export const advisorsPart = (host: SidebarSection) => {
  const isByPerson = (): boolean =>
    host.service !== 'simulator' && RED.nodes.node(host.id)?.['grant'] !== 'client_credentials';
  return new ListPart<Listed<AdvisorItem>>(host, {
    name: 'advisors',
    title: say('sidebar.advisors'),
    nothing: say('sidebar.unauthorized'),
    isActive: ({ data }) => data.some(({ state }) => state !== 'authorized'),
    // Nothing can be sent until somebody has authorized: this is in sight.
    isOpen: (isEmpty) => !isEmpty || isByPerson(),
    rows: ({ data }) =>
      data.map(({ advisor, state, expiresAt }) => {
        const states = {
          authorized: say('sidebar.authorized'),
          authorize_again: say('sidebar.authorizeAgain'),
          confirm: say('sidebar.confirm'),
        };
        const isShown = host.mayWrite && isByPerson();
        const authorize = (button: JQuery): void =>
          void openBeside(button, `${host.id}/authorize`, { advisor }).catch(complain);
        const link = (): void => {
          ask('POST', `${host.id}/link`, { advisor }).then(
            (answer) => copy(editorAddress((answer as { url: string }).url)),
            complain,
          );
        };
        const view = {
          head: advisorName(advisor),
          facts: [
            states[state],
            advisor === defaultAdvisor && say('sidebar.defaultAdvisor'),
            state !== 'authorize_again' &&
              expiresAt !== null &&
              say('sidebar.expires', { time: timeOf(expiresAt, host) }),
          ],
          ...(state !== 'authorized' && { className: 'advisor-warning' }),
          actions: [
            { icon: 'key', words: say('sidebar.authorize'), act: authorize, isShown },
            { icon: 'link', words: say('sidebar.link'), act: link, isShown },
          ],
        };
        return [advisor, view];
      }),
  });
};

/** The people who are not texted: one list for all simulators, another for all real services. */
export const blockedPart = (host: SidebarSection, title: string) =>
  new ListPart<Listed<BlockedItem>>(host, {
    name: 'do-not-text',
    title,
    search: say('sidebar.searchBlocked'),
    isOpen: () => false,
    rows: ({ data }) =>
      data.map(({ phone, since, reason }) => {
        const path = `do-not-text/${encodeURIComponent(phone)}`;
        const view = {
          head: phone,
          facts: [sinceWords(since, host), reason],
          actions: [
            {
              ...careful(host, 'undo', say('sidebar.unblock'), path, say('sidebar.unblockReally')),
              // Whoever took off the wrong person could not find the number again.
              act: () => act(host, 'DELETE', path, say('sidebar.unblocked', { phone })),
            },
          ],
        };
        return [`${phone} ${String(since)}`, view];
      }),
  });

/** Downloads the support bundle, which contains no number, text or secret. */
const download = (host: SidebarSection): void => {
  ask('GET', `${host.id}/bundle`).then((bundle) => {
    const file = new Blob([`${JSON.stringify(bundle, null, 2)}\n`], { type: 'application/json' });
    const href = URL.createObjectURL(file);
    $('<a>', { href, download: 'advisor-texting-bundle.json' })[0]?.click();
    URL.revokeObjectURL(href);
  }, complain);
};

export class ServicePart implements SidebarPart<ServiceState> {
  readonly path = 'service';
  /** The problem, shown at the head of the section. */
  readonly alarm = $('<p>', { class: 'advisor-side-state advisor-warning', role: 'status' }).hide();
  readonly element: JQuery;
  due = Infinity;
  isActive = false;
  private readonly facts = $('<ul>', { class: 'advisor-side-rows' });
  private shownFacts: readonly string[] = [];
  private readonly phones = button('mobile', say('sidebar.phones'), () =>
    openBeside(this.phones, 'simulator/open', {}, `&lang=${locale()}`).catch(complain),
  );

  constructor(private readonly host: SidebarSection) {
    this.element = $('<details>', { class: 'advisor-side-part advisor-side-service', open: true }).append(
      $('<summary>').append($('<span>', { text: say('sidebar.service') })),
      this.facts,
      $('<div>', { class: 'advisor-side-actions' }).append(
        this.phones.hide(),
        button('download', say('sidebar.bundle'), () => download(host)),
      ),
    );
  }

  show(state: ServiceState): void {
    const { service, pausedUntil, lateBy, queued, store, left, trouble, fault, clock, mayWrite } = state;
    const wrong = [
      trouble ?? '',
      pausedUntil === null ? '' : say('sidebar.paused', { time: timeOf(pausedUntil, this.host) }),
      lateBy < second ? '' : say('sidebar.late', { seconds: localNumber(Math.round(lateBy / second)) }),
    ].filter((sentence) => sentence !== '');
    this.due = pausedUntil ?? Infinity;
    this.alert(wrong.join(' · '));
    this.isActive = wrong.length > 0 || (queued ?? 0) > 0;
    this.phones.toggle(service === 'simulator' && mayWrite);
    const stores = {
      embedded: say('sidebar.onDisk'),
      postgres: say('sidebar.inDatabase'),
      memory: say('sidebar.inMemory'),
    };
    this.list([
      badgeOf(service, say).title,
      ...(queued === null ? [] : [say('sidebar.queued', { count: localNumber(queued) })]),
      ...(store === null ? (fault === null ? [say('sidebar.noStore')] : []) : [stores[store]]),
      ...(left === null ? [] : [say('sidebar.left', { items: left.items, waits: left.waits })]),
      ...(clock === null ? [] : [say('sidebar.clock', { time: writtenTime(clock, Date.now()) })]),
    ]);
  }

  clear(): void {
    this.alert('');
    this.isActive = false;
    this.list([]);
    this.phones.hide();
    this.due = Infinity;
  }

  private alert(words: string): void {
    setText(this.alarm, words);
    this.alarm.toggle(words !== '');
  }

  private list(facts: readonly string[]): void {
    if (String(facts) === String(this.shownFacts)) return;
    this.shownFacts = facts;
    this.facts.empty().append(...facts.map((fact) => $('<li>', { text: fact })));
  }
}
