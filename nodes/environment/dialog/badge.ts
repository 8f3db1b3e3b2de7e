import { badgeOf, phonesButton } from '../../../lib/editor/badge';
import { icon } from '../../../lib/editor/dom';
import type { Form } from '../../../lib/editor/red';

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
    text.text(say(`badge.${look.kind}Text`));
    phones.toggle(look.kind === 'simulator');
    note.empty();
  });
};
