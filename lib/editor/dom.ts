import { visible } from '../visible';
import type { Notice } from './red';

/** Everything is set as text: nothing from the server is ever treated as HTML. */

export const icon = (name: string): JQuery => $('<i>', { class: `fa fa-${name}`, 'aria-hidden': 'true' });

export const button = (name: string, words: string, press: (event: JQuery.TriggeredEvent) => void): JQuery =>
  $('<button>', { type: 'button', class: 'red-ui-button red-ui-button-small' })
    .append(icon(name), $('<span>', { text: words }))
    .on('click', press);

/** The text in a box, or the chosen option. */
export const valueIn = (input: JQuery): string => String(input.val() ?? '');

/** An unchanged text is not set again, because setting it redraws it. */
export const setText = (element: JQuery, text: string): void => {
  const shown = visible(text);
  if (element.text() !== shown) element.text(shown);
};

/** As `setText`, for attributes. */
export const setAttributes = (element: JQuery, values: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(values))
    if (element.attr(name) !== value) element.attr(name, value);
};

/** As `setText`, for the disabled state of a button. */
export const disable = (element: JQuery, isDisabled: boolean): void => {
  if (element.prop('disabled') !== isDisabled) element.prop('disabled', isDisabled);
};

/** The values are set with `attr`: jQuery takes some names in its shorter form for calls of a widget. */
export const textBox = (label: string, placeholder: string): JQuery =>
  $('<input>').attr({ type: 'text', 'aria-label': label, placeholder, autocomplete: 'off' });

/** Stops the event: the dialog would handle the key as well, and reads the element where it was pressed, which may be gone. */
export const onKey = (element: JQuery, key: string, act: () => void, isOurs = () => true): void => {
  element.on('keydown', (event) => {
    if (event.key !== key || !isOurs()) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
};

/** A button with only a picture: its words are a tooltip, and for screen readers. */
export const iconButton = (name: string, words: string, press: () => void): JQuery =>
  $('<button>', {
    type: 'button',
    class: 'red-ui-button advisor-icon-button',
    'aria-label': words,
    title: words,
  })
    .append(icon(name))
    .on('click', press);

/** Puts an element beside the box of a field, which makes room for it. */
export const placeBeside = (row: JQuery, extra: JQuery): void => {
  const typed = row.children('.red-ui-typedInput-container');
  row.addClass('advisor-with-button');
  (typed.length > 0 ? typed : row.children('input').first()).after(extra);
};

/** Node-RED would treat a bare string as HTML. */
export const notify = (words: string, type: 'error' | 'warning' | 'success', timeout?: number): Notice =>
  RED.notify($('<p>', { text: visible(words) }), { type, ...(timeout !== undefined && { timeout }) });
