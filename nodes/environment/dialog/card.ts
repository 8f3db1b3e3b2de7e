import { ask, faultText } from '../../../lib/editor/ask';
import { button, icon } from '../../../lib/editor/dom';
import { environmentSays as say, localMoment } from '../../../lib/editor/locale';
import type { Form, Values } from '../../../lib/editor/red';
import type { AdvisorItem } from '../../../lib/runtime/activity-items';
import { entry, focusIn, question, results, shownLink } from './panels';
import { scopesIn, scopeWords } from './scopes';
import { linkTo, openWindow, type OpenedWindow } from '../../../lib/editor/window';
import { second } from '../../../lib/durations';
import { visible } from '../../../lib/visible';

/** The settings of the form that decide the list, deployed or not. No secret is among them. */
export const shownIn = (values: Values): string =>
  new URLSearchParams(
    ['service', 'grant', 'tokenUrl', 'clientId', 'scopes'].map((name) => {
      const value = values[name];
      return [name, Array.isArray(value) ? value.join(' ') : String(value)];
    }),
  ).toString();

/** An advisor as the route lists it. */
export type ListedAdvisor = Omit<AdvisorItem, 'state'> & {
  readonly state: AdvisorItem['state'] | 'none';
  /** The identity that waits for confirmation; only in the state `confirm`. */
  readonly awaiting?: string | null;
  /** Another advisor for whom the same person has authorized. */
  readonly alsoAs?: string;
};

export const notYet = (advisor: string): ListedAdvisor => ({
  advisor,
  state: 'none',
  identity: null,
  scopes: [],
  missingScopes: [],
  expiresAt: null,
  refreshedAt: null,
});

/** `isByCode` is false for an application that signs in with its own credentials. */
const lookOf = ({ state, refreshedAt }: ListedAdvisor, isByCode: boolean) => {
  if (state === 'authorize_again') {
    const text = isByCode ? say('state.authorizeAgain') : say('state.refused');
    return { icon: 'times-circle', kind: 'bad', text };
  }
  if (state === 'confirm') return { icon: 'question-circle', kind: 'bad', text: say('state.confirm') };
  if (isByCode && state === 'none') return { icon: 'circle-o', kind: 'open', text: say('state.none') };
  if (!isByCode && refreshedAt === null) return { icon: 'cog', kind: 'open', text: say('state.byItself') };
  const text = isByCode ? say('state.authorized') : say('state.signedIn');
  return { icon: 'check-circle', kind: 'good', text };
};

/** Facts about an advisor, line by line. `name` puts a scope into words. */
const factsOf = (
  { state, identity, awaiting, alsoAs, scopes, missingScopes, expiresAt, refreshedAt }: ListedAdvisor,
  isByCode: boolean,
  name: (scope: string) => string,
): readonly JQuery[] => {
  const now = new Date();
  const facts: JQuery[] = [];
  const add = (text: string, look = ''): unknown =>
    facts.push($('<li>', { class: look, text: visible(text) }));
  const warn = (text: string): unknown => add(text, 'advisor-warning');
  if (state === 'authorize_again') warn(isByCode ? say('fact.authorizeAgain') : say('fact.refused'));
  if (state === 'confirm') {
    const somebody = say('fact.somebody');
    warn(say('fact.confirm', { before: identity ?? somebody, after: awaiting ?? somebody }));
  } else if (identity !== null) {
    add(say('fact.identity', { identity }));
    if (alsoAs !== undefined) warn(say('fact.alsoAs', { identity, other: alsoAs }));
  }
  const missing = missingScopes.map(name).join('; ');
  if (missing !== '')
    warn(isByCode ? say('fact.missing', { missing }) : say('fact.missingByItself', { missing }));
  const granted = scopes.filter((scope) => scope !== 'openid').map(name);
  if (granted.length > 0) add(say('fact.granted', { granted: granted.join('; ') }));
  if (state !== 'authorize_again' && expiresAt !== null) {
    const time = localMoment(new Date(expiresAt), now);
    if (!isByCode || scopes.includes('offline_access')) add(say('fact.renewed', { time }));
    else if (expiresAt > now.getTime()) add(say('fact.until', { time }));
    else warn(say('fact.ended', { time }));
  }
  if (refreshedAt !== null) add(say('fact.refreshed', { time: localMoment(new Date(refreshedAt), now) }));
  return facts;
};

export type Card = ReturnType<typeof cardOf>;

const lookEvery = second;

interface WindowState {
  readonly state: 'none' | 'open' | 'failed';
  readonly why?: string;
}

/** Why an authorization failed, where there is more to say than that it did. */
const reasons = ['denied', 'expired', 'declined', 'scopes', 'client', 'later', 'storeAway'];

/** One advisor: what is known, and what can be done. The card is changed in place, so that no button loses the focus. */
export const cardOf = (
  advisor: string,
  form: Form,
  /** False when the application signs in with its own credentials: nobody authorizes then. */
  isByCode: () => boolean,
  /** Reads the list of advisors again. */
  reload: () => void,
) => {
  const { node } = form;
  const path = (rest: string): string => `${node.id}/${rest}`;
  const own = path(`advisors/${encodeURIComponent(advisor)}`);
  const state = $('<span>');
  const facts = $('<ul>', { class: 'advisor-facts' });
  const panel = $('<div>', { class: 'advisor-panel', role: 'status' });
  let shown = '';
  /** The window in which somebody is expected to authorize; undefined when there is none. */
  let awaited: object | undefined;
  /** The values whose test is under way or shown. */
  let tested: string | undefined;

  const put = (...content: (JQuery | string)[]): void => {
    panel
      .empty()
      .append(...content.map((part) => (typeof part === 'string' ? $('<p>', { text: part }) : part)));
  };
  const show = (...content: (JQuery | string)[]): void => {
    awaited = undefined;
    tested = undefined;
    put(...content);
  };
  const warning = (text: string): JQuery => $('<p>', { class: 'advisor-warning', text });
  /** Shows what happened to the window: its result, or that it was closed. */
  const follow = (sent: OpenedWindow): void => {
    awaited = sent;
    let isToldClosed = false;
    const look = async (): Promise<void> => {
      if (awaited !== sent || element[0]?.isConnected !== true) return;
      const isClosed = sent.isClosed();
      const query = new URLSearchParams({ advisor }).toString();
      const attempt = (await ask('GET', path(`authorize?${query}`)).catch(() => undefined)) as
        WindowState | undefined;
      if (awaited !== sent) return;
      if (attempt?.state === 'failed') {
        const why = reasons.find((reason) => reason === attempt.why) ?? 'refused';
        show(warning(say(`attempt.${why}`)));
        return;
      }
      // Another site's page in the window can also make it look closed from here (`Cross-Origin-Opener-Policy`).
      if (isClosed && !isToldClosed && attempt?.state === 'open') {
        isToldClosed = true;
        put(warning(say('attempt.closed')), $('<p>').append(linkTo(sent.url, say('advisors.openPage'))));
      }
      setTimeout(() => void look(), lookEvery);
    };
    setTimeout(() => void look(), lookEvery);
  };
  /** One action at a time: the message of the previous one disappears when the next starts. */
  const begin = (work: () => Promise<void>): void => {
    show(say('advisors.moment'));
    work()
      .catch((fault: unknown) => show(warning(faultText(fault))))
      .finally(() => panel[0]?.scrollIntoView({ block: 'nearest' }));
  };

  const action = (name: string, words: string, work: () => Promise<void>): JQuery =>
    button(name, words, () => begin(work));
  const change = async (method: 'POST' | 'DELETE', route: string, done: string, body = {}): Promise<void> => {
    await ask(method, route, body);
    show(done);
    reload();
  };

  const authorize = action('key', say('advisors.authorize'), async () => {
    const sent = await openWindow(path('authorize'), { advisor, form: form.values() });
    show(
      sent.isBlocked ? say('window.blocked') : say('advisors.finish'),
      $('<p>').append(linkTo(sent.url, say('advisors.openPage'))),
    );
    follow(sent);
  });

  const link = action('link', say('advisors.link'), async () => {
    const { url } = (await ask('POST', path('link'), { advisor })) as { url: string };
    show(...shownLink(url));
  });

  const paste = button('paste', say('advisors.paste'), () => {
    const complete = (address: string): Promise<void> =>
      change('POST', path('complete'), say('advisors.completed'), { address });
    show(entry((address) => begin(() => complete(address))));
    focusIn(panel);
  });

  const test = action('stethoscope', say('advisors.test'), async () => {
    const values = form.values();
    const now = (tested = JSON.stringify(values));
    const found = await ask('POST', path('test'), { advisor, form: values });
    if (tested !== now) return;
    show(results(found));
    tested = now;
    reload();
  });
  form.onChange((values) => {
    if (tested !== undefined && tested !== JSON.stringify(values)) show();
  });

  const disconnect = button('chain-broken', say('advisors.disconnect'), () => {
    const keep = (): void => {
      show();
      disconnect.trigger('focus');
    };
    const remove = async (): Promise<void> => {
      await change('DELETE', own, say('advisors.disconnected'));
      authorize.trigger('focus');
    };
    show(
      question(say('advisors.disconnectQuestion', { advisor }), [
        [say('advisors.disconnect'), () => begin(remove)],
        [say('advisors.keep'), keep],
      ]),
    );
    focusIn(panel);
  });

  const confirm = action('check', say('advisors.confirm'), () =>
    change('POST', `${own}/confirm?${shownIn(form.values())}`, say('advisors.confirmed')),
  );

  const actions = $('<div>', { class: 'advisor-actions' });
  const header = $('<div>', { class: 'advisor-card-header' }).append(
    $('<strong>', { text: visible(advisor) }),
    state,
  );
  const element = $('<div>', { class: 'advisor-card', role: 'group', 'aria-label': visible(advisor) }).append(
    header,
    facts,
    actions.append(confirm, authorize, test, link, paste, disconnect),
    panel,
  );

  const paint = (record: ListedAdvisor): void => {
    const look = lookOf(record, isByCode());
    const name = (scope: string): string => scopeWords(scope, scopesIn(form));
    state
      .attr('class', `advisor-state advisor-${look.kind}`)
      .empty()
      .append(icon(look.icon), $('<span>', { text: look.text }));
    facts.empty().append(...factsOf(record, isByCode(), name));
    authorize
      .find('span')
      .text(record.state === 'none' ? say('advisors.authorize') : say('advisors.authorizeAgain'));
    confirm.toggle(record.state === 'confirm');
    disconnect.toggle(isByCode() && record.state !== 'none');
    for (const each of [authorize, link, paste]) each.toggle(isByCode());
  };

  return {
    element,
    update(record: ListedAdvisor) {
      const now = JSON.stringify([record, isByCode()]);
      if (now === shown) return;
      // The authorization that the window was opened for has arrived.
      if (awaited !== undefined && shown !== '')
        show(...(record.state === 'confirm' ? [] : [say('advisors.completed')]));
      shown = now;
      paint(record);
    },
    /** Focuses the card, for the keyboard, when it was just added. */
    focus: () => authorize.trigger('focus'),
  };
};
