import { environmentSays as say } from '../../../lib/editor/locale';
import { editorAddress } from '../../../lib/editor/ask';
import { button, icon, onKey, textBox, valueIn } from '../../../lib/editor/dom';
import { visible } from '../../../lib/visible';

/** Focuses what a question or an entry waits for; of several answers the last, which changes nothing. */
export const focusIn = (panel: JQuery): JQuery =>
  panel.find('input, button:last-child').first().trigger('focus');

export const question = (
  words: string,
  answers: readonly (readonly [words: string, act: () => void])[],
): JQuery => {
  const look = { type: 'button', class: 'red-ui-button red-ui-button-small' };
  const buttons = answers.map(([text, act]) => $('<button>', { ...look, text }).on('click', act));
  return $('<div>').append(
    $('<p>', { text: visible(words) }),
    $('<div>', { class: 'advisor-actions' }).append(...buttons),
  );
};

/** Asks for the address at which the browser ended up when it could not return here. */
export const entry = (done: (address: string) => void): JQuery => {
  const input = textBox(say('paste.label'), say('paste.placeholder'));
  const finish = (): void => done(valueIn(input));
  onKey(input, 'Enter', finish);
  return $('<div>').append(
    $('<p>', { text: say('paste.text') }),
    $('<div>', { class: 'advisor-line' }).append(input, button('check', say('paste.finish'), finish)),
  );
};

/** `place` may be relative to the editor: the runtime does not reveal a redirect URI that has a variable. */
export const shownLink = (place: string): (JQuery | string)[] => {
  const url = editorAddress(place);
  const input = textBox(say('link.label'), '').attr('readonly', '').val(url);
  const note = $('<p>', { text: say('link.text') });
  const copy = (): unknown => note.text(RED.clipboard.copyText(url) ? say('link.copied') : say('link.text'));
  input.on('focus', () => input.trigger('select'));
  copy();
  const line = $('<div>', { class: 'advisor-line' }).append(input, button('copy', say('link.copy'), copy));
  return URL.canParse(place) ? [note, line] : [note, line, $('<p>', { text: say('link.here') })];
};

interface CheckResult {
  readonly check: string;
  /** Null when the check was not made, or has no verdict. */
  readonly ok: boolean | null;
  readonly message: string;
}

const marks: Readonly<
  Record<string, { readonly mark: string; readonly sign: string; readonly key: string }>
> = {
  true: { mark: 'advisor-good', sign: 'check', key: 'passed' },
  false: { mark: 'advisor-bad', sign: 'times', key: 'failed' },
};
const noMark = { mark: '', sign: 'minus', key: 'untried' };

/** Shows a tick, a cross or a dash for each check. */
export const results = (found: unknown): JQuery =>
  $('<ul>', { class: 'advisor-results' }).append(
    ...(found as readonly CheckResult[]).map(({ check, ok, message }) => {
      const { mark, sign, key } = marks[String(ok)] ?? noMark;
      return $('<li>', { class: mark }).append(
        icon(sign)
          .attr({ role: 'img', 'aria-label': say(`test.${key}`) })
          .removeAttr('aria-hidden'),
        $('<div>').append($('<strong>', { text: say(`test.${check}`) }), $('<span>', { text: message })),
      );
    }),
  );
