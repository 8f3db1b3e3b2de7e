import { icon } from './dom';
import type { Form, Say } from './red';
import { isVariable } from './values';

type Kind = 'simulator' | 'sandbox' | 'production' | 'variable';

const icons: Readonly<Record<Kind, string>> = {
  simulator: 'flask',
  sandbox: 'cube',
  production: 'exclamation-triangle',
  variable: 'question-circle',
};

const words: Readonly<Record<Kind, (say: Say, variable: unknown) => string>> = {
  simulator: (say) => say('badge.simulator'),
  sandbox: (say) => say('badge.sandbox'),
  production: (say) => say('badge.production'),
  variable: (say, variable) => say('badge.variable', { variable }),
};

/** What the chosen environment talks to: a service, or the variable that will decide; undefined if none is chosen. */
const serviceOf = (environment: unknown): unknown => {
  if (isVariable(environment)) return environment;
  const found = typeof environment === 'string' ? RED.nodes.node(environment) : null;
  return found ? (found['service'] ?? 'simulator') : undefined;
};

const kindOf = (service: unknown): Kind => {
  if (isVariable(service)) return 'variable';
  return service === 'production' || service === 'sandbox' ? service : 'simulator';
};

/** Below the environment of every node: whether a real person is affected. */
export const addBadge = (form: Form): void => {
  const badge = $('<div>', { role: 'status' });
  form.row('environment').after(badge);
  let shown: unknown;
  form.onChange((values) => {
    const service = serviceOf(values['environment']);
    badge.toggle(service !== undefined);
    if (service === undefined || service === shown) return;
    shown = service;
    const kind = kindOf(service);
    badge.attr('class', `advisor-badge advisor-badge-line advisor-${kind}`);
    badge
      .empty()
      .append(
        icon(icons[kind]).addClass('advisor-badge-sign'),
        $('<span>', { text: words[kind](form.say, service) }),
      );
  });
};
