import type { ChoiceField } from '../runtime/spec';
import { valueIn } from './dom';
import type { EditedNode, Say } from './red';
import { chosenIn, isUnknown, isVariable, noVariable } from './values';

/** The select has the variable as one more option, so that its value is always what will be saved. */
const addVariable = (input: JQuery, saved: string): void => {
  const option = input.find('.advisor-variable');
  const entry = $(`#${input.attr('id') ?? ''}-variable`);
  const sync = (): void => {
    entry.toggle(option.is(':selected'));
  };
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

/** Fills the select with the saved value, and says how to read it. */
export const choice = (
  field: ChoiceField,
  input: JQuery,
  node: EditedNode,
  say: Say,
): { input: JQuery; read(): Record<string, string> } => {
  const saved = chosenIn(field, node[field.name]);
  const isOffered = field.variable && (isVariable(saved) || saved === noVariable);
  input.val(saved);
  if (!isOffered && (isUnknown(field, saved) || isVariable(saved))) keepSaved(input, saved, say);
  if (field.variable) addVariable(input, saved);
  return { input, read: () => ({ [field.name]: valueIn(input) }) };
};
