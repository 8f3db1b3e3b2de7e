import { editorAddress } from '../../../lib/editor/ask';
import { button, icon, onKey, textBox } from '../../../lib/editor/dom';
import type { Say } from '../../../lib/editor/red';

/** A part of a card below its buttons, shown on request. */
interface Panel {
  readonly element: JQuery;
  focus(): void;
}

export const question = (
  words: string,
  answers: readonly (readonly [words: string, act: () => void])[],
): Panel => {
  const buttons = answers.map(([answer, act]) =>
    $('<button>', { type: 'button', class: 'red-ui-button red-ui-button-small', text: answer }).on(
      'click',
      act,
    ),
  );
  return {
    element: $('<div>').append(
      $('<p>', { text: words }),
      $('<div>', { class: 'advisor-actions' }).append(...buttons),
    ),
    focus: () => buttons.at(-1)?.trigger('focus'),
  };
};

/** Asks for the address at which the browser ended up when it could not return here. */
export const entry = (say: Say, done: (address: string) => void): Panel => {
  const input = textBox(say('paste.label'), say('paste.placeholder'));
  const finish = (): void => {
    done(String(input.val() ?? ''));
  };
  onKey(input, 'Enter', finish);
  return {
    element: $('<div>').append(
      $('<p>', { text: say('paste.text') }),
      $('<div>', { class: 'advisor-line' }).append(input, button('check', say('paste.finish'), finish)),
    ),
    focus: () => input.trigger('focus'),
  };
};

/** `place` may be relative to the editor: the runtime does not reveal a redirect URI that has a variable. */
export const shownLink = (place: string, say: Say): (JQuery | string)[] => {
  const url = editorAddress(place);
  const input = textBox(say('link.label'), '').attr('readonly', '').val(url);
  const note = $('<p>', { text: say('link.text') });
  const copy = (): void => {
    note.text(RED.clipboard.copyText(url) ? say('link.copied') : say('link.text'));
  };
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
export const results = (found: unknown, say: Say): JQuery =>
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
