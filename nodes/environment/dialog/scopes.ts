import { environmentSays as say } from '../../../lib/editor/locale';
import type { Form, Values } from '../../../lib/editor/red';
import { holdsVariable } from '../../../lib/editor/values';
import { prefixPattern, usualPrefixes, wireScope, type Prefixes } from '../../../lib/service/prefixes';

const nodeTitles = (types: string): string[] =>
  types
    .split(' ')
    .filter((type) => type !== '')
    .map((type) => RED.nodes.getType(type)?._('title') ?? type);

/** The prefixes in the form; the contract's own if a field is empty or contains a variable. */
const prefixesIn = (values: Values): Prefixes => {
  const read = (name: string, usual: string): string => {
    const value = values[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return prefixPattern.test(text) && !holdsVariable(text) ? text : usual;
  };
  return { core: read('corePrefix', usualPrefixes.core), text: read('textPrefix', usualPrefixes.text) };
};

/** The initial scopes of an environment, by how it signs in: as `usualScopes` in the spec, which is too large here. */
const usualOf = (all: readonly string[], grant: unknown): readonly string[] =>
  grant === 'client_credentials' ? all.filter((scope) => scope.startsWith('text.')) : all;

const tick = (ticks: JQuery, scopes: readonly string[]): void => {
  ticks.find('input[type=checkbox][value]').each((_, box) => {
    $(box).prop('checked', scopes.includes($(box).attr('value') ?? ''));
  });
  ticks.find('input[type=checkbox][value]').first().trigger('change');
};

/** The scopes that the form offers. */
export const scopesIn = ({ spec }: Form): readonly string[] =>
  spec.fields.flatMap((field) => (field.kind === 'ticks' ? field.options : []));

/**
 * Says under each permission which nodes need it and what the service calls it, and shows the one that is always
 * requested.
 */
export const addScopes = (form: Form): void => {
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
  const byClient = $('<small>', { text: say('scopes.byClient') });
  ticks.append(byClient);
  const all = scopesIn(form);
  let grant: unknown;
  // An environment without any, from a flow file, requests the usual ones.
  if (form.node['scopes'] === undefined) tick(ticks, usualOf(all, form.values()['grant']));
  form.onChange((values) => {
    const before = grant;
    ({ grant } = values);
    always.toggle(grant !== 'client_credentials');
    byClient.toggle(grant === 'client_credentials');
    const ticked = values['scopes'] as readonly string[];
    // Nobody has changed the initial choice.
    if (before !== undefined && before !== grant && String(ticked) === String(usualOf(all, before)))
      tick(ticks, usualOf(all, grant));
    const prefixes = prefixesIn(values);
    ticks.find('label').each((_, label) => {
      const scope = $(label).find('input').attr('value');
      if (scope !== undefined) $(label).find('code').text(wireScope(scope, prefixes));
    });
  });
};

/** A known scope in plain words; any other unchanged. */
export const scopeWords = (scope: string, known: readonly string[]): string =>
  known.includes(scope) ? say(`option.scopes.${scope.replaceAll('.', '_')}`) : scope;
