import { addBadge, serviceOfEnvironment } from './badge';
import { onKey, valueIn } from './dom';
import { controlOf } from './inputs';
import { sayOf, zoneOfEnvironment } from './locale';
import { addPicker } from './picker';
import { describe, showProblem } from './problems';
import type { EditedNode, EditorSpec, Form, OwnEditor, Say, Values } from './red';
import { clearStatuses, environmentOf, leavesEnvironment, senderApart } from './flow';
import { addSuggestions, countries, countryName, timeZones } from './suggestions';
import { fieldProblem, type ValidationContext } from './validate';
import { tried } from '../kinds';
import { applies, withDefaults } from '../runtime/settings';

/** With client credentials the application has one advisor, so the field is hidden, unless something is filled in. */
const hideOnlyAdvisor = (form: Form): void => {
  form.onChange(({ environment, advisor, advisorType }) => {
    const found = environmentOf(environment);
    const isOnly =
      found?.['grant'] === 'client_credentials' &&
      ['sandbox', 'production'].includes(String(found['service']));
    if (isOnly && advisor === '' && advisorType === 'str') form.row('advisor').hide();
  });
};

/** The dialog of a node and that of its environment can be open at the same time. */
const forms = new Map<string, Form & { readonly own: OwnEditor }>();

/** The nodes in whose open dialogs an environment is chosen: they are not its users before they are saved. */
export const nodesChoosing = (environment: string): readonly EditedNode[] =>
  [...forms.values()].filter((form) => form.values()['environment'] === environment).map(({ node }) => node);

const surroundings = (node: EditedNode, say: Say, values: Values): ValidationContext => {
  const { environment: id } = values;
  const found = environmentOf(id);
  return {
    now: Date.now(),
    say,
    values,
    environment: found && {
      country: typeof found['country'] === 'string' ? found['country'] : '',
      timeZone: zoneOfEnvironment(id),
      isComplete: found.valid !== false,
      isDisabled: found['d'] === true,
      senderApart: () => {
        const sender = senderApart(node, found);
        return sender && RED.utils.getNodeLabel(sender, sender.type);
      },
    },
    propertyExpression: (text) => RED.utils.validatePropertyExpression(text),
    jsonata: (text) => tried(() => jsonata(text)) !== undefined,
  };
};

/** The editor does not validate credentials, and knows them only until a change to them is deployed. */
const missingCredentials = (
  { credentials }: EditedNode,
  spec: EditorSpec,
  around: ValidationContext,
): readonly (string | undefined)[] => {
  if (!credentials) return [];
  return spec.fields
    .filter((field) => field.kind === 'credential')
    .map((field) => {
      const isGiven = field.secret
        ? credentials[`has_${field.name}`] === true
        : Boolean(credentials[field.name]);
      return fieldProblem(field, isGiven ? 'given' : '', around);
    });
};

/**
 * True, or the sentences for the red triangle. The field of the permissions also reports missing credentials: the
 * editor does not validate a text that is a `${VARIABLE}`.
 */
export const checkField = (
  node: EditedNode,
  spec: EditorSpec,
  name: string,
  value: unknown,
): string | true => {
  const field = spec.fields.find((candidate) => candidate.name === name);
  if (!field) return true;
  const values = forms.get(node.id)?.values() ?? withDefaults(spec.fields, node);
  const isWhole = ['json', 'rows', 'ticks'].includes(field.kind) || value === undefined;
  const around = surroundings(node, sayOf(node), values);
  const problems = [
    ...(field.kind === 'ticks' ? missingCredentials(node, spec, around) : []),
    fieldProblem(field, isWhole ? values[name] : value, around),
  ].filter((problem) => problem !== undefined);
  return problems.length === 0 ? true : problems.join(' ');
};

/** The editor's two buttons beside an environment are links without an address, which the keyboard cannot reach. */
const reachButtons = (row: JQuery, say: Say): void => {
  const words = [say('environment.edit'), say('environment.add')];
  row.find('a.red-ui-button').each((index, link) => {
    const made = $(link).attr({ role: 'button', tabindex: '0', 'aria-label': words[index] ?? '' });
    for (const key of ['Enter', ' ']) onKey(made, key, () => made.trigger('click'));
  });
};

/** The value of the editor's option *none*. */
const none = '_ADD_';

/** Chooses the environment if there is only one, and that texts nobody. */
const chooseTheOnly = (select: JQuery): void => {
  const choices = select.find('option').filter((_, option) => !['', none].includes(valueIn($(option))));
  const isOpen = ['', none].includes(valueIn(select));
  if (!isOpen || choices.length !== 1) return;
  const only = valueIn(choices);
  if (RED.nodes.node(only)?.['service'] === 'simulator') select.val(only).trigger('change');
};

/** Chooses none when the chosen environment is deleted: the editor would choose the next, which may be production. */
const chooseNoneInstead = (select: JQuery): void => {
  const [element] = select;
  if (!element) return;
  let chosen = valueIn(select);
  select.on('change', () => (chosen = valueIn(select)));
  new MutationObserver(() => {
    const isThere = select.find('option').is((_, option) => valueIn($(option)) === chosen);
    if (!isThere && chosen !== '') select.val(none).trigger('change');
  }).observe(element, { childList: true });
};

/** The nodes that were saved in their dialogs since the editor was loaded. */
const savedHere = new Set<string>();

/** A new environment is in no list yet; a new node is changed from the start. */
const wasSaved = ({ id, changed }: EditedNode): boolean =>
  RED.nodes.node(id) !== null && (changed !== true || savedHere.has(id));

export const open = (node: EditedNode, spec: EditorSpec, own: OwnEditor): void => {
  const root = $(`.advisor-form[data-type="${spec.type}"]`).last();
  const say = sayOf(node);
  const listeners: ((values: Values) => void)[] = [];
  const controls = spec.fields.map((field) => ({ field, control: controlOf(field, node, spec, root) }));

  const values = (): Values => Object.assign({}, ...controls.map(({ control }) => control.read())) as Values;

  const blockOf = (name: string): JQuery => root.find(`[data-field="${name}"]`);

  /** Fields that somebody has visited. For a node that was saved before, all fields that were shown. */
  const touched = new Set<string>();
  if (wasSaved(node)) {
    const now = values();
    for (const { field } of controls) if (applies(field, now)) touched.add(field.name);
  }
  const touch = (block: Element) => touched.add($(block).attr('data-field') ?? '');
  root.on('input', '[data-field]', ({ currentTarget }) => touch(currentTarget as Element));
  root.on('focusout', '[data-field]', ({ currentTarget, relatedTarget }) => {
    const block = currentTarget as Element;
    const to = relatedTarget as Element | null | undefined;
    // Who chooses a type of input in its menu, which is not in the field, is still at the field.
    if (to && (block.contains(to) || to.closest('.red-ui-typedInput-options'))) return;
    touch(block);
    refresh();
  });

  const refresh = (): void => {
    const now = values();
    const around = surroundings(node, say, now);
    for (const { field, control } of controls) {
      const isShown = applies(field, now);
      if (isShown) control.show?.();
      const block = blockOf(field.name)
        // Unlike toggle, this does not make the browser compute the style of each field again.
        .css('display', isShown ? '' : 'none')
        .toggleClass('advisor-by-field', now[`${field.name}Type`] === 'fields');
      showProblem(block, control.input, field, around, touched.has(field.name));
    }
    root.find('.advisor-advanced').toggle(spec.fields.some((field) => field.advanced && applies(field, now)));
    for (const listener of listeners) listener(now);
  };

  const inputOf = (name: string): JQuery =>
    controls.find(({ field }) => field.name === name)?.control.input ?? $();

  const form: Form = {
    node,
    spec,
    root,
    say,
    more: root.find('.advisor-more'),
    values,
    refresh,
    input: inputOf,
    row: blockOf,
    set(name, value, type) {
      const input = inputOf(name);
      if (type === undefined) input.val(value);
      else input.typedInput('type', type).typedInput('value', value);
      input.trigger('change');
    },
    onChange(listener) {
      listeners.push(listener);
      listener(values());
    },
  };

  forms.set(node.id, { ...form, own });
  for (const { field, control } of controls) describe(blockOf(field.name), control.input, field);
  for (const { field } of controls) {
    if (field.kind === 'typed' && field.lookup) addPicker(form, field, field.lookup);
    if (field.kind === 'text' && field.format === 'country')
      addSuggestions(form, field.name, countries, countryName);
    if (field.kind === 'text' && field.format === 'time_zone') addSuggestions(form, field.name, timeZones);
  }
  if (spec.category !== 'config') {
    reachButtons(form.row('environment'), say);
    chooseTheOnly(form.input('environment'));
    chooseNoneInstead(form.input('environment'));
    hideOnlyAdvisor(form);
  }
  addBadge(form);
  own.opened?.(form);
  let isDue = false;
  // As a dialog opens, the editor triggers a change of each field: one refresh is enough for all of them.
  root.on('input change keyup paste', () => {
    if (isDue) return;
    isDue = true;
    queueMicrotask(() => {
      isDue = false;
      refresh();
    });
  });
  refresh();
};

/** Hidden fields keep their values: choosing another operation and going back loses nothing. */
export const save = (node: EditedNode): void => {
  const form = forms.get(node.id);
  if (!form) return;
  savedHere.add(node.id);
  // The editor itself saves these fields, and keeps the list of a config node's users.
  const ofEditor = form.spec.fields
    .filter(({ kind }) => kind === 'credential' || kind === 'environment')
    .map(({ name }) => name);
  const saved = form.values();
  form.own.saving?.(form);
  if (serviceOfEnvironment(node['environment']) !== serviceOfEnvironment(saved['environment']))
    clearStatuses([node]);
  if (node['environment'] !== saved['environment'])
    RED.events.emit(leavesEnvironment, {
      id: node.id,
      type: node.type,
      environment: node['environment'],
      next: saved['environment'],
    });
  for (const [name, value] of Object.entries(saved)) if (!ofEditor.includes(name)) node[name] = value;
  close(node);
};

export const close = ({ id }: EditedNode): boolean => forms.delete(id);
