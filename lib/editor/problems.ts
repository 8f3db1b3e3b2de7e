import type { Field, RowsField } from '../runtime/spec';
import { fieldProblem, rowProblem, type SavedRow, type ValidationContext } from './validate';

const place = (id: string): JQuery =>
  $('<span>', { class: 'advisor-error', id: `${id}-error`, role: 'status' });

/** The typed inputs of a field with rows, in the order of the rows. */
const inputsIn = (block: JQuery): JQuery => block.find('.advisor-row > input:first-of-type');

/** Makes the place for sentences about a field, which a screen reader reads with the field. */
export const describe = (block: JQuery, input: JQuery, field: Field): void => {
  if (field.kind === 'rows') {
    inputsIn(block).each((_, one) => {
      $(one).parent().append(place(one.id));
    });
    block.append(place(`${field.name}-rows`));
    return;
  }
  const id = input.attr('id') ?? '';
  block.append(place(id));
  input.attr('aria-describedby', `${id}-hint ${id}-error`);
};

/** A missing value is not an error until somebody has visited the field. */
const mark = (block: JQuery, sentence: string | undefined, isAwaited: boolean): void => {
  block.children('.advisor-error').text(sentence ?? '');
  block.toggleClass('advisor-wrong', sentence !== undefined && !isAwaited);
  block.toggleClass('advisor-awaited', sentence !== undefined && isAwaited);
};

const showAt = (block: JQuery, input: JQuery, sentence: string | undefined, isAwaited = false): void => {
  const spoken = input.next('.red-ui-typedInput-container').find('.red-ui-typedInput-input, .advisor-box');
  const box = spoken.length > 0 ? spoken : input;
  mark(block, sentence, isAwaited);
  box.attr('aria-invalid', String(sentence !== undefined && !isAwaited));
};

/** Each row shows its own problem; only problems of all rows are shown below them. */
const showRows = (block: JQuery, field: RowsField, around: ValidationContext, isAwaited: boolean): void => {
  const saved = around.values[field.name] as readonly SavedRow[];
  const inputs = inputsIn(block);
  const problems = Object.keys(field.rows).map((name) => {
    const row = saved.find((one) => one.field === name);
    return row && rowProblem(field, row, around);
  });
  problems.forEach((problem, index) => showAt(inputs.eq(index).parent(), inputs.eq(index), problem));
  const isOneWrong = problems.some((problem) => problem !== undefined);
  mark(block, isOneWrong ? undefined : fieldProblem(field, saved, around), isAwaited);
};

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === '' || value === '_ADD_' || (Array.isArray(value) && value.length === 0);

export const showProblem = (
  block: JQuery,
  input: JQuery,
  field: Field,
  around: ValidationContext,
  isTouched: boolean,
): void => {
  const value = around.values[field.name];
  // A name that is being typed, to choose by it, is not a value yet.
  const isTyping = input.is('[list]:focus');
  const isAwaited = isTyping || (!isTouched && isEmpty(value));
  if (field.kind === 'rows') showRows(block, field, around, isAwaited);
  else showAt(block, input, fieldProblem(field, value, around), isAwaited);
};
