import { button, icon } from '../../../lib/editor/dom';
import type { Form, Say, Values } from '../../../lib/editor/red';
import { isVariable } from '../../../lib/editor/values';
import { linkTo, openWindow } from './window';

interface Look {
  readonly kind: 'simulator' | 'sandbox' | 'production' | 'variable';
  readonly icon: string;
  readonly title: string;
  readonly text: string;
}

const lookOf = (values: Values, say: Say): Look => {
  const { service } = values;
  if (isVariable(service)) {
    const title = say('badge.variable', { variable: service });
    return { kind: 'variable', icon: 'question-circle', title, text: say('badge.variableText') };
  }
  if (service === 'production') {
    const title = say('badge.production');
    return { kind: service, icon: 'exclamation-triangle', title, text: say('badge.productionText') };
  }
  if (service === 'sandbox') {
    return { kind: service, icon: 'cube', title: say('badge.sandbox'), text: say('badge.sandboxText') };
  }
  const title = say('badge.simulator');
  return { kind: 'simulator', icon: 'flask', title, text: say('badge.simulatorText') };
};

const phonesButton = (say: Say, note: JQuery): JQuery =>
  button('mobile', say('badge.phones'), () => {
    void openWindow({ say, path: 'simulator/open' }).then((sent) => {
      note.empty();
      if (sent.state === 'failed') note.text(sent.message);
      if (sent.state === 'blocked') {
        note.append($('<span>', { text: say('window.blocked') }), ' ', linkTo(sent.url, say('badge.phones')));
      }
    });
  });

/** Leaves no doubt whether a real person is texted. */
export const addBadge = (form: Form): void => {
  const { say } = form;
  const sign = $('<div>', { class: 'advisor-badge-sign', 'aria-hidden': 'true' });
  const title = $('<strong>');
  const text = $('<span>');
  const note = $('<div>', { class: 'advisor-badge-note', role: 'status' });
  const phones = $('<div>', { class: 'advisor-actions' }).append(phonesButton(say, note));
  const words = $('<div>').append(title, text, phones, note);
  const badge = $('<div>', { role: 'status' }).append(sign, words);
  form.row('service').after(badge);
  form.onChange((values) => {
    const look = lookOf(values, say);
    if (badge.attr('class') === `advisor-badge advisor-${look.kind}` && title.text() === look.title) return;
    badge.attr('class', `advisor-badge advisor-${look.kind}`);
    sign.empty().append(icon(look.icon));
    title.text(look.title);
    text.text(look.text);
    phones.toggle(look.kind === 'simulator');
    note.empty();
  });
};
