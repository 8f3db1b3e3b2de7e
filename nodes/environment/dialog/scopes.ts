import type { Form, Say, Values } from '../../../lib/editor/red';
import { holdsVariable } from '../../../lib/editor/values';
import { prefixPattern, usualPrefixes, wireScope, type Prefixes } from '../../../lib/service/prefixes';

const nodeTitles = (types: string): string[] =>
  types
    .split(' ')
    .filter((type) => type !== '')
    .map((type) => RED.nodes.getType(type)?._('title') ?? type);

/** The prefixes in the form; the contract's own where a field is empty or holds a variable. */
const prefixesIn = (values: Values): Prefixes => {
  const read = (name: string, usual: string): string => {
    const value = values[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return prefixPattern.test(text) && !holdsVariable(text) ? text : usual;
  };
  return { core: read('corePrefix', usualPrefixes.core), text: read('textPrefix', usualPrefixes.text) };
};

/**
 * Says under each permission which nodes need it and what the service calls it, and shows the one that is always
 * requested.
 */
export const addScopes = (form: Form): void => {
  const { say } = form;
  const ticks = form.row('scopes').find('.advisor-ticks');
  ticks.find('small').each((_, small) => {
    const nodes = nodeTitles($(small).attr('data-nodes') ?? '');
    $(small).text(
      nodes.length > 0 ? say('scopes.neededBy', { nodes: nodes.join(', ') }) : say('scopes.stay'),
    );
  });
  const always = $('<label>').append(
    // The box is disabled and has no value, so that the form does not read it.
    $('<input>', { type: 'checkbox', checked: true, disabled: true }).removeAttr('value'),
    ' ',
    $('<span>', { text: say('scopes.identity') }),
    ' ',
    $('<code>', { text: 'openid' }),
    $('<small>', { text: say('scopes.always') }),
  );
  ticks.prepend(always);
  form.onChange((values) => {
    const prefixes = prefixesIn(values);
    ticks.find('label').each((_, label) => {
      const scope = $(label).find('input').attr('value');
      if (scope !== undefined) $(label).find('code').text(wireScope(scope, prefixes));
    });
  });
};

/** A known scope in plain words; any other as it is. */
export const scopeWords = (scope: string, known: readonly string[], say: Say): string =>
  known.includes(scope) ? say(`option.scopes.${scope.replaceAll('.', '_')}`) : scope;
