import { ask, faultText } from '../../../lib/editor/ask';
import { button, icon } from '../../../lib/editor/dom';
import type { Form } from '../../../lib/editor/red';
import { type ListedAdvisor, factsOf, lookOf } from './facts';
import { entry, focusIn, question, results, shownLink } from './panels';
import { scopeWords } from './scopes';
import { linkTo, openWindow, type Sent } from '../../../lib/editor/window';
import { second } from '../../../lib/durations';
import { visible } from '../../../lib/visible';

export interface Card {
  readonly element: JQuery;
  update(record: ListedAdvisor): void;
  /** Focuses the card, for the keyboard, when it was just added. */
  focus(): void;
}

const lookEvery = second;

type OpenedWindow = Exclude<Sent, { readonly state: 'failed' }>;

interface WindowState {
  readonly state: 'none' | 'open' | 'failed';
  readonly why?: string;
}

/** Why an authorization failed, where there is more to say than that it did. */
const reasons = ['denied', 'expired', 'declined', 'client', 'later', 'storeAway'];

interface CardContext {
  readonly form: Form;
  /** Reads the list of advisors again. */
  readonly reload: () => void;
  readonly knownScopes: readonly string[];
  /** False when the application signs in with its own credentials: nobody authorizes then. */
  readonly isByCode: () => boolean;
}

/** One advisor: what is known, and what can be done. The card is changed in place, so that no button loses the focus. */
export const cardOf = (advisor: string, { form, reload, knownScopes, isByCode }: CardContext): Card => {
  const { say, node } = form;
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
      const attempt = (await ask(say, 'GET', path(`authorize?${query}`)).catch(() => undefined)) as
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

  const authorize = button('key', say('advisors.authorize'), () => {
    begin(async () => {
      const body = { advisor, form: form.values() };
      const sent = await openWindow({ say, path: path('authorize'), body });
      if (sent.state === 'failed') throw new Error(sent.message);
      show(
        sent.state === 'opened' ? say('advisors.finish') : say('window.blocked'),
        $('<p>').append(linkTo(sent.url, say('advisors.openPage'))),
      );
      follow(sent);
    });
  });

  const link = button('link', say('advisors.link'), () => {
    begin(async () => {
      const { url } = (await ask(say, 'POST', path('link'), { advisor })) as { url: string };
      show(...shownLink(url, say));
    });
  });

  const paste = button('paste', say('advisors.paste'), () => {
    const complete = async (address: string): Promise<void> => {
      await ask(say, 'POST', path('complete'), { address });
      show(say('advisors.completed'));
      reload();
    };
    show(entry(say, (address) => begin(() => complete(address))));
    focusIn(panel);
  });

  const test = button('stethoscope', say('advisors.test'), () => {
    begin(async () => {
      const values = form.values();
      const now = (tested = JSON.stringify(values));
      const found = await ask(say, 'POST', path('test'), { advisor, form: values });
      if (tested !== now) return;
      show(results(found, say));
      tested = now;
      reload();
    });
  });
  form.onChange((values) => {
    if (tested !== undefined && tested !== JSON.stringify(values)) show();
  });

  const disconnect = button('chain-broken', say('advisors.disconnect'), () => {
    const keep = (): void => {
      show();
      disconnect.trigger('focus');
    };
    show(
      question(say('advisors.disconnectQuestion', { advisor }), [
        [say('advisors.disconnect'), remove],
        [say('advisors.keep'), keep],
      ]),
    );
    focusIn(panel);
  });
  const remove = (): void => {
    begin(async () => {
      await ask(say, 'DELETE', own);
      show(say('advisors.disconnected'));
      authorize.trigger('focus');
      reload();
    });
  };

  const confirm = button('check', say('advisors.confirm'), () => {
    begin(async () => {
      await ask(say, 'POST', `${own}/confirm`);
      show(say('advisors.confirmed'));
      reload();
    });
  });

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
    const look = lookOf(record, isByCode(), say);
    const name = (scope: string): string => scopeWords(scope, knownScopes, say);
    state
      .attr('class', `advisor-state advisor-${look.kind}`)
      .empty()
      .append(icon(look.icon), $('<span>', { text: look.text }));
    facts.empty().append(...factsOf(record, isByCode(), say, name));
    authorize
      .find('span')
      .text(record.state === 'none' ? say('advisors.authorize') : say('advisors.authorizeAgain'));
    confirm.toggle(record.state === 'confirm');
    disconnect.toggle(isByCode() && record.state !== 'none');
    for (const each of [authorize, link, paste]) each.toggle(isByCode());
  };

  return {
    element,
    update(record) {
      const now = JSON.stringify([record, isByCode()]);
      if (now === shown) return;
      // The authorization that the window was opened for has arrived.
      if (awaited !== undefined && shown !== '') show(say('advisors.completed'));
      shown = now;
      paint(record);
    },
    focus: () => authorize.trigger('focus'),
  };
};
