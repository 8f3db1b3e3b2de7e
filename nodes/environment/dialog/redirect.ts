import { editorAddress } from '../../../lib/editor/ask';
import { iconButton, placeBeside } from '../../../lib/editor/dom';
import type { Form } from '../../../lib/editor/red';

/** Fills in the redirect URI once, when the field is first shown. A field that somebody has emptied stays empty. */
export const addRedirect = (form: Form): void => {
  const { say } = form;
  const input = form.input('redirectUri');
  const note = $('<span>', { class: 'advisor-hint', role: 'status' });
  const copy = iconButton('copy', say('redirect.copy'), () => {
    const copied = RED.clipboard.copyText(String(input.val() ?? ''));
    note.text(copied ? say('redirect.copied') : say('redirect.notCopied'));
  });
  placeBeside(form.row('redirectUri'), copy);
  form.row('redirectUri').append(note);
  let isPrefilled = false;
  form.onChange((values) => {
    if (isPrefilled || values['service'] === 'simulator') return;
    isPrefilled = true;
    if (values['redirectUri'] === '') form.set('redirectUri', editorAddress('advisor-texting/callback'));
  });
};
