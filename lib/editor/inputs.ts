import {
  lookupTypes,
  type ChoiceField,
  type Field,
  type JsonField,
  type RowsField,
  type TicksField,
  type TypedField,
  type ValueType,
} from '../runtime/spec';
import { addBox, hasBox } from './boxes';
import { valueIn } from './dom';
import { sayOf } from './locale';
import type { EditedNode, EditorSpec, Say, TypedInputType, Values } from './red';
import { chosenIn, isVariable } from '../runtime/settings';
import {
  filledRows,
  isNamed,
  isSource,
  isUnknown,
  noVariable,
  savedNumber,
  savedOr,
  tickedAnd,
} from './values';

/** The controls of one field; `read` returns its properties as they would be saved. */
export interface Control {
  readonly input: JQuery;
  read(): Readonly<Record<string, unknown>>;
  /** Called whenever the field applies: makes what it takes long to make. */
  show?(): void;
}

/** The editor's own icon for literals. */
const textIcon = 'red/images/typedInput/az.svg';

/** The typed input shows its own box in place of ours, so the label must name that box. */
const nameTypedInput = (input: JQuery, say: Say): void => {
  const id = input.attr('id') ?? '';
  const container = input.next('.red-ui-typedInput-container');
  container.find('.red-ui-typedInput-input').attr({
    id: `${id}-line`,
    'aria-labelledby': `${id}-label`,
    'aria-describedby': `${id}-hint ${id}-error`,
  });
  $(`#${id}-label`).attr('for', `${id}-line`);
  container
    .find('.red-ui-typedInput-type-select')
    .attr({ 'aria-label': say('source'), 'aria-haspopup': 'menu' });
  container
    .find('.red-ui-typedInput-option-expand')
    .attr({ 'aria-label': say('expand'), title: say('expand') });
};

const offered = (type: ValueType, say: Say): string | TypedInputType =>
  isSource(type) ? type : { value: type, label: say('type.unknown') };

/** A type of the typed input, or our own type of the same name if a literal has another box. */
const typeOf = (field: TypedField, type: ValueType | 'fields', say: Say): string | TypedInputType => {
  if (type === 'fields')
    return { value: 'fields', label: say('fieldByField'), icon: 'fa fa-list', hasValue: false };
  if (type === 'off' || type === 'text')
    return { value: type, label: say(`option.${field.name}.${type}`), hasValue: false };
  if (type !== 'str') return offered(type, say);
  // A single-line input would drop line breaks; a hidden one keeps them.
  if (field.lines) return { value: 'str', label: say('type.text'), icon: textIcon, inputType: 'hidden' };
  if (field.literal === 'date') return { value: 'str', label: say('type.moment'), icon: 'fa fa-calendar' };
  return type;
};

/** A property's name is useless as a literal, and vice versa: the box is emptied when the type changes between them. */
const keepApart = (field: TypedField, input: JQuery): void => {
  input.on('typedinputtypechange', () => {
    const type = input.typedInput('type');
    const value = input.typedInput('value');
    const isSource = ['msg', 'flow', 'global'].includes(type);
    const isNoName = isSource && (value === '' || /^[+\d]|\s/.test(value));
    if (type === field.defaultType && (value === '' || isNoName)) input.typedInput('value', field.default);
    else if (isNoName) input.typedInput('value', '');
    else if (!isSource && type !== field.defaultType && value === field.default)
      input.typedInput('value', '');
  });
};

/** The name of the record whose id is in the input now. */
export const rememberName = (input: JQuery, name: string): JQuery =>
  input.data('advisorNamed', { value: input.typedInput('value'), name });

/** Empty when the id was changed since. */
export const rememberedName = (input: JQuery): string => {
  const named = input.data('advisorNamed') as { value: string; name: string } | undefined;
  const isSame = input.typedInput('type') === 'num' && input.typedInput('value') === named?.value;
  return isSame ? named.name : '';
};

const typed = (field: TypedField, input: JQuery, node: Values, say: Say): Control => {
  const typeField = $(`#${input.attr('id') ?? ''}Type`);
  const saved = String(savedOr(node[field.name], field.default));
  const savedType = String(savedOr(node[`${field.name}Type`], field.defaultType)) as ValueType;
  // A saved type that is not offered is kept until another is chosen.
  const types = [...new Set([...field.types, savedType])];
  typeField.val(savedType);
  input.val(saved);
  input.typedInput({
    types: types.map((type) => typeOf(field, type, say)),
    default: field.defaultType,
    typeField,
  });
  nameTypedInput(input, say);
  keepApart(field, input);
  if (hasBox(field)) {
    input.typedInput('value', saved);
    addBox(field, input, say);
  }
  if (isNamed(field)) rememberName(input, String(savedOr(node[`${field.name}Name`], '')));
  return {
    input,
    read: () => ({
      [field.name]: input.typedInput('value'),
      [`${field.name}Type`]: input.typedInput('type'),
      ...(isNamed(field) && { [`${field.name}Name`]: rememberedName(input) }),
    }),
  };
};

/** The select has the variable as one more option, so that its value is always what will be saved. */
const addVariable = (input: JQuery, saved: string): void => {
  const option = input.find('.advisor-variable');
  const entry = $(`#${input.attr('id') ?? ''}-variable`);
  const sync = (): JQuery => entry.toggle(option.is(':selected'));
  if (isVariable(saved)) {
    option.val(saved).prop('selected', true);
    entry.val(saved);
  }
  if (saved === noVariable) option.prop('selected', true);
  entry.on('input change', () => {
    option.val(isVariable(valueIn(entry)) ? valueIn(entry) : `\${${valueIn(entry).replace(/[${}]/g, '')}}`);
    input.trigger('change');
  });
  input.on('change', sync);
  sync();
};

/** A saved value without an option stays chosen until somebody chooses another: opening a node must not change it. */
const keepSaved = (input: JQuery, saved: string, say: Say): void => {
  const text = isVariable(saved) ? saved : say('option.unknown', { choice: saved });
  input.append($('<option>').attr('value', saved).text(text)).val(saved);
};

const choice = (field: ChoiceField, input: JQuery, node: EditedNode, say: Say): Control => {
  const saved = chosenIn(field, node[field.name]);
  const isOffered = field.variable && (isVariable(saved) || saved === noVariable);
  input.val(saved);
  if (!isOffered && (isUnknown(field, saved) || isVariable(saved))) keepSaved(input, saved, say);
  if (field.variable) addVariable(input, saved);
  return { input, read: () => ({ [field.name]: valueIn(input) }) };
};

const json = (field: JsonField, input: JQuery, node: EditedNode, say: Say): Control => {
  input.val(JSON.stringify(savedOr(node[field.name], field.default)));
  input.typedInput({ types: ['json'], default: 'json' });
  nameTypedInput(input, say);
  const parse = (text: string): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };
  return { input, read: () => ({ [field.name]: parse(valueIn(input)) }) };
};

const ticks = (field: TicksField, input: JQuery, node: EditedNode): Control => {
  const saved = savedOr(node[field.name], field.default) as readonly string[];
  const boxes = input.find('input[type=checkbox]');
  const others = $(`#${input.attr('id') ?? ''}-others`);
  for (const box of boxes.get()) $(box).prop('checked', saved.includes(valueIn($(box))));
  others.val(saved.filter((value) => !field.options.includes(value)).join(' '));
  const ticked = (): string[] => boxes.get().flatMap((box) => ($(box).is(':checked') ? valueIn($(box)) : []));
  return { input, read: () => ({ [field.name]: tickedAnd(ticked(), valueIn(others)) }) };
};

const rows = (field: RowsField, prefix: string, node: EditedNode, say: Say): Control => {
  const given = savedOr(node[field.name], field.default) as RowsField['default'];
  const saved: Values = Object.fromEntries(
    given.flatMap((row) => [
      [row.field, row.value],
      [`${row.field}Type`, row.valueType],
    ]),
  );
  const controls: Control[] = [];
  const make = ([name, literal]: [string, ValueType]): Control => {
    const types = [literal, ...lookupTypes];
    const row: TypedField = { kind: 'typed', name, types, default: '', defaultType: literal };
    return typed(row, $(`#${prefix}-${name}`), saved, say);
  };
  return {
    input: $(`#${prefix}-${Object.keys(field.rows)[0] ?? ''}`),
    read() {
      const now = Object.assign({ ...saved }, ...controls.map((control) => control.read())) as Values;
      return { [field.name]: filledRows(field, now) };
    },
    show() {
      if (controls.length === 0) controls.push(...Object.entries(field.rows).map(make));
    },
  };
};

/** Makes the controls of a field from the rows that the build wrote, and fills them with the saved values. */
export const controlOf = (field: Field, node: EditedNode, spec: EditorSpec, root: JQuery): Control => {
  const prefix = spec.category === 'config' ? 'node-config-input' : 'node-input';
  const say = sayOf(node);
  const input = root.find(`#${prefix}-${field.name}`);
  const entry = root.find(`#${prefix}-${field.name}-entry`);
  switch (field.kind) {
    case 'typed':
      return typed(field, input, node, say);
    case 'choice':
      return choice(field, input, node, say);
    case 'json':
      return json(field, entry, node, say);
    case 'ticks':
      return ticks(field, entry, node);
    case 'rows':
      return rows(field, `${prefix}-${field.name}-entry`, node, say);
    case 'flag':
      input.prop('checked', savedOr(node[field.name], field.default) === true);
      return { input, read: () => ({ [field.name]: input.prop('checked') === true }) };
    case 'number':
      input.val(String(savedOr(node[field.name], field.default)));
      return { input, read: () => ({ [field.name]: savedNumber(valueIn(input)) }) };
    case 'credential':
    case 'environment':
    case 'text':
      return { input, read: () => ({ [field.name]: valueIn(input) }) };
  }
};
