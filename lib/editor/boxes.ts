import { countText, signsOutsideGsm } from '../guards/segments';
import { placeholder } from '../runtime/kinds';
import type { TypedField } from '../runtime/spec';
import { numberOf } from './locale';
import { wallClock, withZone } from './moments';
import type { Say } from './red';

/** Stands in for the line of a typed input while a literal is chosen; the typed input still holds the value. */
interface Box {
  readonly element: JQuery;
  /** What is said below it. */
  readonly note: JQuery;
  /** Whether it can show this value at all. */
  takes(value: string): boolean;
  show(value: string): void;
  read(): string;
}

const fewestLines = 3;
const mostLines = 10;
const shownForeign = 3;

const valueOf = (element: JQuery): string => String(element.val() ?? '');

const countOf = (text: string, say: Say): string => {
  const fixed = text.replace(placeholder, '');
  const { units, room, segments, encoding } = countText(fixed);
  // With placeholders the text will be at least this long.
  const count =
    fixed !== text
      ? say('count.atLeast', { characters: numberOf(units), segments: numberOf(segments) })
      : say('count.exact', {
          characters: numberOf(units),
          room: numberOf(room),
          segments: numberOf(segments),
        });
  return encoding === 'gsm7'
    ? count
    : `${count} ${say('count.unicode', { signs: signsOutsideGsm(fixed, shownForeign).join(' ') })}`;
};

const textArea = (say: Say): Box => {
  const element = $('<textarea>', { rows: fewestLines, spellcheck: 'true' });
  const note = $('<span>', { class: 'advisor-hint advisor-count' });
  const grow = (text: string): void => {
    const lines = text.split('\n').length;
    element.attr('rows', Math.min(Math.max(lines, fewestLines), mostLines));
  };
  return {
    element,
    note,
    takes: () => true,
    show(text) {
      // Writing the same again would move the cursor to the end.
      if (valueOf(element) !== text) element.val(text);
      grow(text);
      note.text(countOf(text, say));
    },
    read: () => valueOf(element),
  };
};

const momentBox = (say: Say): Box => {
  const element = $('<input>', { type: 'datetime-local', min: wallClock(new Date().toISOString()) });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return {
    element,
    note: $('<span>', { class: 'advisor-hint', text: say('moment.zone', { zone }) }),
    takes: (written) => written.trim() === '' || wallClock(written) !== '',
    show(written) {
      if (valueOf(element) !== wallClock(written)) element.val(wallClock(written));
    },
    read: () => withZone(valueOf(element)),
  };
};

export const hasBox = (field: TypedField): boolean => field.lines === true || field.literal === 'date';

export const addBox = (field: TypedField, input: JQuery, say: Say): void => {
  const box = field.lines ? textArea(say) : momentBox(say);
  const id = input.attr('id') ?? '';
  const container = input.next('.red-ui-typedInput-container');
  box.element.addClass('advisor-box').attr({
    id: `${id}-box`,
    'aria-labelledby': `${id}-label`,
    'aria-describedby': `${id}-count ${id}-hint ${id}-error`,
  });
  box.note.attr('id', `${id}-count`);
  container.append(box.element).after(box.note);
  const sync = (): void => {
    const value = input.typedInput('value');
    const isShown = input.typedInput('type') === 'str' && box.takes(value);
    container.toggleClass('advisor-boxed', isShown);
    container.parent().toggleClass('advisor-has-box', isShown);
    box.note.toggle(isShown);
    $(`#${id}-label`).attr('for', `${id}-${isShown ? 'box' : 'line'}`);
    if (isShown) box.show(value);
  };
  box.element.on('input change', () => {
    input.typedInput('value', box.read());
  });
  input.on('change', sync);
  // The menu of types, when it closes, gives the focus back to its own button.
  input.on('typedinputtypechange', () => {
    setTimeout(() => {
      const isBoxed = container.hasClass('advisor-boxed');
      if (isBoxed && container.find('.red-ui-typedInput-type-select').is(':focus'))
        box.element.trigger('focus');
    });
  });
  sync();
};
