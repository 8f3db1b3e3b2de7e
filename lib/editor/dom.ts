/** Everything is set as text: what comes from the server is never taken for HTML. */

export const icon = (name: string): JQuery => $('<i>', { class: `fa fa-${name}`, 'aria-hidden': 'true' });

export const button = (name: string, words: string, press: () => void): JQuery =>
  $('<button>', { type: 'button', class: 'red-ui-button red-ui-button-small' })
    .append(icon(name), $('<span>', { text: words }))
    .on('click', press);

/** What reads so already is left alone: to set it draws it anew. */
export const setText = (element: JQuery, text: string): void => {
  if (element.text() !== text) element.text(text);
};

/** Likewise for attributes. */
export const setAttributes = (element: JQuery, values: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(values))
    if (element.attr(name) !== value) element.attr(name, value);
};

/** Likewise for whether a button can be pressed. */
export const disable = (element: JQuery, isDisabled: boolean): void => {
  if (element.prop('disabled') !== isDisabled) element.prop('disabled', isDisabled);
};

/** Set as attributes: jQuery takes some names in its shorter form for calls of a widget. */
export const textBox = (label: string, placeholder: string): JQuery =>
  $('<input>').attr({ type: 'text', 'aria-label': label, placeholder, autocomplete: 'off' });

/** The editor's own keys climb up from where the key was pressed, which may be gone by then: it is not told. */
export const onEnter = (box: JQuery, act: () => void): void => {
  box.on('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
};

/** Only a picture: the words are for those who hover, or listen. */
export const iconButton = (name: string, words: string, press: () => void): JQuery =>
  $('<button>', {
    type: 'button',
    class: 'red-ui-button advisor-icon-button',
    'aria-label': words,
    title: words,
  })
    .append(icon(name))
    .on('click', press);

/** Beside a field's own box, which makes room for it. */
export const placeBeside = (row: JQuery, extra: JQuery): void => {
  const typed = row.children('.red-ui-typedInput-container');
  row.addClass('advisor-with-button');
  (typed.length > 0 ? typed : row.children('input').first()).after(extra);
};

/** Node-RED would take a bare text for HTML. */
export const notify = (words: string, type: 'error' | 'warning' | 'success', timeout?: number): void => {
  RED.notify($('<p>', { text: words }), { type, ...(timeout !== undefined && { timeout }) });
};
