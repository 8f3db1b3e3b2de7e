import { badgeOf, phonesButton, type ServiceKind } from '../../../lib/editor/badge';
import { icon } from '../../../lib/editor/dom';
import type { Form, Say } from '../../../lib/editor/red';

const texts: Readonly<Record<ServiceKind, (say: Say) => string>> = {
  simulator: (say) => say('badge.simulatorText'),
  sandbox: (say) => say('badge.sandboxText'),
  production: (say) => say('badge.productionText'),
  variable: (say) => say('badge.variableText'),
  unchosen: (say) => say('badge.unchosenText'),
};

/** Makes clear whether real people are texted. */
export const addServiceBanner = (form: Form): void => {
  const { say } = form;
  const sign = $('<div>', { class: 'advisor-badge-sign', 'aria-hidden': 'true' });
  const title = $('<strong>');
  const text = $('<span>');
  const note = $('<div>', { class: 'advisor-badge-note', role: 'status' });
  const phones = $('<div>', { class: 'advisor-actions' }).append(phonesButton(say, note));
  const words = $('<div>').append(title, text, phones, note);
  const badge = $('<div>', { role: 'status' }).append(sign, words);
  form.row('service').after(badge);
  form.onChange(({ service }) => {
    const look = badgeOf(service, say);
    if (badge.attr('class') === `advisor-badge advisor-${look.kind}` && title.text() === look.title) return;
    badge.attr('class', `advisor-badge advisor-${look.kind}`);
    sign.empty().append(icon(look.icon));
    title.text(look.title);
    text.text(texts[look.kind](say));
    phones.toggle(look.kind === 'simulator');
    note.empty();
  });
};
