import { button, icon } from './dom';
import { environmentOf } from './flow';
import { locale } from './locale';
import type { Form, Say } from './red';
import { isVariable } from '../runtime/settings';
import { savedOr } from './values';
import { linkTo, openWindow } from './window';

type ServiceKind = 'simulator' | 'sandbox' | 'production' | 'variable' | 'unchosen';

const icons: Readonly<Record<ServiceKind, string>> = {
  simulator: 'flask',
  sandbox: 'cube',
  production: 'exclamation-triangle',
  variable: 'question-circle',
  unchosen: 'question-circle',
};

/** An unknown service never looks like the simulator: no node runs with it. */
const kindOf = (service: unknown): ServiceKind => {
  if (isVariable(service)) return 'variable';
  if (service === undefined) return 'simulator';
  return service === 'production' || service === 'sandbox' || service === 'simulator' ? service : 'unchosen';
};

/** The look of a service, wherever it is shown. */
export const badgeOf = (service: unknown, say: Say) => {
  const kind = kindOf(service);
  return { kind, icon: icons[kind], title: say(`badge.${kind}`, { variable: service }) };
};

/** The service of the chosen environment, or the variable that decides it; undefined if none is chosen. */
export const serviceOfEnvironment = (environment: unknown): unknown => {
  if (isVariable(environment)) return environment;
  const found = environmentOf(environment);
  return found ? savedOr(found['service'], 'simulator') : undefined;
};

/** Opens the phones page; `note` shows an error, or a link when the browser has blocked the window. */
export const phonesButton = (say: Say, note: JQuery): JQuery =>
  button('mobile', say('badge.phones'), () => {
    void openWindow({ say, path: 'simulator/open', query: `&lang=${locale()}` }).then((sent) => {
      note.empty();
      if (sent.state === 'failed') note.text(sent.message);
      if (sent.state === 'blocked') {
        note.append($('<span>', { text: say('window.blocked') }), ' ', linkTo(sent.url, say('badge.phones')));
      }
    });
  });

/** Shows below the environment of every node whether real people are texted. */
export const addBadge = (form: Form): void => {
  const badge = $('<div>', { role: 'status' });
  form.row('environment').after(badge);
  let shown: unknown;
  form.onChange((values) => {
    const service = serviceOfEnvironment(values['environment']);
    badge.toggle(service !== undefined);
    if (service === undefined || service === shown) return;
    shown = service;
    const { kind, icon: sign, title } = badgeOf(service, form.say);
    badge.attr('class', `advisor-badge advisor-badge-line advisor-${kind}`);
    badge.empty().append(icon(sign).addClass('advisor-badge-sign'), $('<span>', { text: title }));
    if (kind !== 'simulator') return;
    const note = $('<span>', { class: 'advisor-badge-note' });
    badge.append(phonesButton(form.say, note), note);
  });
};
