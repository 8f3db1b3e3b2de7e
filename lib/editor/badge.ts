import { faultText } from './ask';
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

/** Shows whether real people are texted: below the environment of a node, and below the service of an environment. */
export const addBadge = (form: Form): void => {
  const { say } = form;
  const isOfNode = form.spec.category !== 'config';
  const sign = icon('');
  const title = $('<strong>');
  const text = $('<span>');
  const note = $('<div>', { class: 'advisor-badge-note' });
  const openPhones = async (): Promise<void> => {
    note.empty();
    const { isBlocked, url } = await openWindow('simulator/open', {}, `&lang=${locale()}`);
    if (isBlocked)
      note.append($('<span>', { text: say('window.blocked') }), ' ', linkTo(url, say('badge.phones')));
  };
  const phones = $('<div>', { class: isOfNode ? '' : 'advisor-actions' }).append(
    button('mobile', say('badge.phones'), () =>
      openPhones().catch((fault: unknown) => note.text(faultText(fault))),
    ),
  );
  const badge = $('<div>', { role: 'status' }).append(sign, $('<div>').append(title, text, phones, note));
  form.row(isOfNode ? 'environment' : 'service').after(badge);
  let shown: unknown;
  form.onChange((values) => {
    const service = isOfNode ? serviceOfEnvironment(values['environment']) : values['service'];
    badge.toggle(service !== undefined);
    if (service === undefined || service === shown) return;
    shown = service;
    const look = badgeOf(service, say);
    badge.attr('class', `advisor-badge advisor-${look.kind}`).toggleClass('advisor-badge-line', isOfNode);
    sign.attr('class', `fa fa-${look.icon} advisor-badge-sign`);
    title.text(look.title);
    if (!isOfNode) text.text(say(`badge.${look.kind}Text`));
    phones.toggle(look.kind === 'simulator');
    note.empty();
  });
};
