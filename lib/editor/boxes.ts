import { countText, signsOutsideGsm } from '../guards/segments';
import { placeholder } from '../kinds';
import type { TypedField } from '../runtime/spec';
import { valueIn } from './dom';
import { localNumber, zoneOfEnvironment } from './locale';
import { isTimeZone, ownTimeZone, wallTimeIn } from '../runtime/dates';
import { momentIn, writtenOf } from './moments';
import type { Say } from './red';

/** Replaces a typed input's line while a literal is chosen; the typed input still has the value. */
interface Box {
  readonly element: JQuery;
  readonly note: JQuery;
  /** Whether the box can show this value. */
  takes(value: string): boolean;
  show(value: string): void;
  read(): string;
}

const fewestLines = 3;
const mostLines = 10;
const shownForeign = 3;

const countOf = (text: string, say: Say): string => {
  const fixed = text.replace(placeholder, '');
  const { units, room, segments, encoding } = countText(fixed);
  const counts = { characters: localNumber(units), room: localNumber(room), segments: localNumber(segments) };
  // With placeholders, the count is of the shortest possible text.
  const notes = [say(fixed === text ? 'count.exact' : 'count.atLeast', counts)];
  if (encoding !== 'gsm7')
    notes.push(say('count.unicode', { signs: signsOutsideGsm(fixed, shownForeign).join(' ') }));
  const [single] = /[{[]\p{L}[^{}[\]]*[}\]]/u.exec(fixed) ?? [];
  if (single !== undefined) notes.push(say('count.single', { single }));
  return notes.join(' ');
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
      // Writing the same text again would move the cursor to the end.
      if (valueIn(element) !== text) element.val(text);
      grow(text);
      note.text(countOf(text, say));
    },
    read: () => valueIn(element),
  };
};

const momentBox = (say: Say): Box => {
  const own = ownTimeZone();
  const environment = $('#node-input-environment');
  let ofEnvironment = zoneOfEnvironment(valueIn(environment));
  const usual = (): string => ofEnvironment || own;
  const all = Intl.supportedValuesOf('timeZone');
  const element = $('<input>', { type: 'datetime-local' });
  const choice = $('<select>', { 'aria-label': say('moment.zone') });
  const said = $('<span>');
  const note = $('<span>', { class: 'advisor-hint advisor-zone' }).append(
    $('<span>', { text: say('moment.zone') }),
    choice,
    said,
  );
  const nameOf = (zone: string): string => {
    if (zone === own) return say('moment.ofBrowser', { zone });
    if (zone === ofEnvironment && zone !== '') return say('moment.ofEnvironment', { zone });
    if (zone !== '') return zone;
    return ofEnvironment === '' ? say('moment.ofMachine') : say('moment.asEnvironment');
  };
  let offered = '';
  const choose = (zone: string): void => {
    const options = [...new Set([usual(), own, '', 'UTC', ...all, zone])];
    const named = options.map((value) => ({ value, text: nameOf(value) }));
    const key = JSON.stringify(named);
    if (key !== offered) choice.empty().append(named.map((option) => $('<option>', option)));
    offered = key;
    choice.val(zone);
    said.text(zone === '' ? say('moment.later') : say('moment.exact'));
    const clocks = zone === '' ? ofEnvironment : zone;
    element.attr('min', isTimeZone(clocks) ? wallTimeIn(Date.now(), clocks) : '');
  };
  // Another zone makes another moment: the handler for the date is notified too.
  choice.on('change', () => element.trigger('change'));
  environment.on('change', () => {
    const isUntouched = valueIn(element) === '' && valueIn(choice) === usual();
    ofEnvironment = zoneOfEnvironment(valueIn(environment));
    if (offered !== '') choose(isUntouched ? usual() : valueIn(choice));
  });
  return {
    element,
    note,
    takes: (written) => written.trim() === '' || momentIn(written, []) !== undefined,
    show(written) {
      // Hundreds of zones are listed once somebody can see them.
      if (offered === '') choose(usual());
      const chosen = valueIn(choice);
      const moment = momentIn(written, [chosen, usual(), own]);
      const { wall, zone } = moment ?? { wall: '', zone: chosen };
      if (valueIn(element) !== wall) element.val(wall);
      choose(zone);
    },
    read: () => writtenOf({ wall: valueIn(element), zone: valueIn(choice) }),
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
  box.element.on('input change', () => input.typedInput('value', box.read()));
  input.on('change', sync);
  // When the menu of types closes, it returns the focus to its own button, so the box is focused after that.
  input.on('typedinputtypechange', () => {
    setTimeout(() => {
      const isBoxed = container.hasClass('advisor-boxed');
      if (isBoxed && container.find('.red-ui-typedInput-type-select').is(':focus'))
        box.element.trigger('focus');
    });
  });
  sync();
};
