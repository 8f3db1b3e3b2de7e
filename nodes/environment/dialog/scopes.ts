import type { Form, Say } from '../../../lib/editor/red';

const nodesIn = (types: string): string[] =>
  types
    .split(' ')
    .filter((type) => type !== '')
    .map((type) => RED.nodes.getType(type)?._('title') ?? type);

/** Says under each permission which nodes need it, and shows the one that is always asked for. */
export const addScopes = (form: Form): void => {
  const { say } = form;
  const ticks = form.row('scopes').find('.advisor-ticks');
  ticks.find('small').each((_, small) => {
    const nodes = nodesIn($(small).attr('data-nodes') ?? '');
    $(small).text(
      nodes.length > 0 ? say('scopes.neededBy', { nodes: nodes.join(', ') }) : say('scopes.stay'),
    );
  });
  const always = $('<label>').append(
    // Disabled, and without a value: it is not for the form to read.
    $('<input>', { type: 'checkbox', checked: true, disabled: true }).removeAttr('value'),
    ' ',
    $('<span>', { text: say('scopes.identity') }),
    ' ',
    $('<code>', { text: 'openid' }),
    $('<small>', { text: say('scopes.always') }),
  );
  ticks.prepend(always);
};

/** A scope in plain words, where it is one we know. */
export const scopeWords = (scope: string, known: readonly string[], say: Say): string =>
  known.includes(scope) ? say(`option.scopes.${scope.replaceAll('.', '_')}`) : scope;
