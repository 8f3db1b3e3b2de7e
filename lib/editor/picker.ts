import { tried } from '../kinds';
import type { TypedField } from '../runtime/spec';
import { visible } from '../visible';
import { ask, faultText } from './ask';
import { button, icon, iconButton, onKey, placeBeside, textBox, valueIn } from './dom';
import { rememberedName, rememberName } from './inputs';
import { localNumber } from './locale';
import type { Form, Say, Values } from './red';
import { isVariable } from '../runtime/settings';

type RecordKind = NonNullable<TypedField['lookup']>;

interface Choice {
  /** The value that is written into the field. */
  readonly value: string;
  readonly title: string;
  readonly detail: string;
}

/** Any field of the service's records may be missing or null. */
const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';

const firstOf = (...values: unknown[]): string => values.map(text).find((value) => value !== '') ?? '';

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');

const recordChoice: Readonly<Record<RecordKind, (record: Values, say: Say) => Choice>> = {
  contacts: (contact, say) => {
    const value = text(contact['contactId']);
    const name = `${text(contact['firstName'])} ${text(contact['lastName'])}`;
    const title = firstOf(contact['fullName'], name, contact['email'], contact['identifier'], value);
    return { value, title, detail: joined(text(contact['email']), say('picker.id', { id: value })) };
  },
  groups: (group, say) => {
    const value = text(group['groupId']);
    const count = text(group['contactCount']);
    const members = count === '' ? '' : say('picker.members', { members: Number(count) });
    return {
      value,
      title: firstOf(group['name'], value),
      detail: joined(members, say('picker.id', { id: value })),
    };
  },
  content: (item) => {
    const title = firstOf(item['title'], item['url']);
    return { value: title, title, detail: text(item['url']) };
  },
};

interface RecordPage {
  readonly data: readonly Values[];
  readonly pageInfo?: { readonly pageSize?: unknown; readonly totalRecord?: unknown };
}

/** The choices on a page of the lookup route. `before` is the number of records on earlier pages. */
const foundIn = (what: RecordKind, page: unknown, before: number, say: Say) => {
  const { data, pageInfo } = page as RecordPage;
  const size = typeof pageInfo?.pageSize === 'number' ? pageInfo.pageSize : Infinity;
  const total = typeof pageInfo?.totalRecord === 'number' ? pageInfo.totalRecord : null;
  return {
    choices: data.map((record) => recordChoice[what](record, say)).filter(({ value }) => value !== ''),
    total,
    hasMore: data.length > 0 && (total === null ? data.length >= size : before + data.length < total),
  };
};

const idsIn = (value: unknown, type: unknown): number[] => {
  if (type !== 'json' && type !== 'num') return [];
  const parsed = tried(() => JSON.parse(text(value)) as unknown);
  return [parsed].flat().filter((id): id is number => Number.isInteger(id));
};

const toggled = (ids: readonly number[], id: number): number[] =>
  ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id];

const pause = 250;

/** A list from which to choose a field's value, read from the environment; the field can always be filled in by hand. */
export const addPicker = (form: Form, field: TypedField, what: RecordKind): void => {
  const { say } = form;
  const chooseWords = say(`picker.${what}.choose`);
  const filterWords = say(`picker.${what}.filter`);
  const row = form.row(field.name);
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Only the answer to the latest request counts. */
  let question = 0;
  let page = 0;

  const filter = textBox(filterWords, filterWords);
  const note = $('<p>', { role: 'status' });
  const textOf = (): string => valueIn(filter).trim();
  const list = $('<ul>', { class: 'advisor-options', 'aria-label': chooseWords });

  const chosenIds = (): number[] => {
    const { [field.name]: saved, [`${field.name}Type`]: type } = form.values();
    return idsIn(saved, type);
  };

  const markChosen = (): void => {
    const ids = chosenIds().map(String);
    for (const choice of list.find('button').get())
      $(choice).attr('aria-pressed', String(ids.includes(valueIn($(choice)))));
  };

  const input = form.input(field.name);
  const choiceNow = () => {
    const { environment, [field.name]: id } = form.values();
    return { environment, id, name: rememberedName(input) };
  };
  /** The value that was saved, or chosen from the list, and the environment from which it is. */
  let origin = choiceNow();

  const use = ({ value, title }: Choice): void => {
    if (what === 'content') {
      form.set(field.name, value.slice(0, field.longest), 'str');
      close();
    } else if (field.several) {
      form.set(field.name, JSON.stringify(toggled(chosenIds(), Number(value))), 'json');
      markChosen();
    } else {
      form.set(field.name, value, 'num');
      rememberName(input, visible(title));
      origin = choiceNow();
      form.refresh();
      close();
    }
  };

  /** The text in the box can be used unchanged: a search, or an id. */
  const useTyped = (): void => {
    if (what === 'content' || /^\d+$/.test(textOf())) use({ value: textOf(), title: '', detail: '' });
  };

  const offer = (choice: Choice): JQuery => {
    const words = $('<div>').append(
      $('<div>', { class: 'advisor-option-title', text: visible(choice.title) }),
      $('<small>', { text: visible(choice.detail) }),
    );
    const press = $('<button>', { type: 'button', value: choice.value }).append(
      field.several ? icon('check') : $(),
      words,
    );
    return $('<li>').append(press.on('click', () => use(choice)));
  };

  const more = $('<button>', {
    type: 'button',
    class: 'red-ui-button red-ui-button-small',
    text: say('picker.more'),
  });
  more.hide().on('click', () => void fetch(page + 1));
  const addressOf = (wanted: number): string => {
    const { environment, advisor, advisorType, contentType } = form.values();
    if (typeof environment !== 'string' || environment === '' || environment === '_ADD_')
      throw new Error(say('picker.noEnvironment'));
    const isKnown = advisorType === 'str' && typeof advisor === 'string' && !isVariable(advisor);
    const query = new URLSearchParams({
      advisor: isKnown ? advisor : '',
      filter: textOf(),
      page: String(wanted),
      ...(what === 'content' && typeof contentType === 'string' ? { contentType } : {}),
    });
    return `${environment}/lookup/${what}?${query.toString()}`;
  };

  const fetch = async (wanted: number): Promise<void> => {
    const mine = ++question;
    note.text(say('picker.moment'));
    try {
      const answer = await ask('GET', addressOf(wanted));
      if (mine !== question) return;
      if (wanted === 1) list.empty();
      const before = list.children().length;
      const { choices, total, hasMore } = foundIn(what, answer, before, say);
      page = wanted;
      list.append(choices.map(offer));
      more.toggle(hasMore);
      if (field.several) markChosen();
      const count = list.children().length;
      if (count === 0) note.text(say('picker.nothing'));
      else if (total === null) note.text(say('picker.some', { count: localNumber(count) }));
      else note.text(say('picker.of', { count: localNumber(count), total: localNumber(total) }));
    } catch (fault) {
      if (mine !== question) return;
      if (wanted === 1) {
        list.empty();
        more.hide();
      }
      note.text(faultText(fault));
    }
  };

  const panel = $('<div>', { class: 'advisor-picker', role: 'group', 'aria-label': chooseWords });
  const chosen = $('<span>', { class: 'advisor-hint', role: 'status' });
  const close = (): void => {
    clearTimeout(timer);
    question += 1;
    panel.hide();
    opener.attr('aria-expanded', 'false').trigger('focus');
  };
  const open = (): void => {
    const { [field.name]: value, [`${field.name}Type`]: type } = form.values();
    filter.val(what === 'content' && type === 'str' && typeof value === 'string' ? value : '');
    panel.show();
    opener.attr('aria-expanded', 'true');
    filter.trigger('focus');
    void fetch(1);
  };
  const opener = iconButton('search', chooseWords, () => {
    if (panel.is(':visible')) close();
    else open();
  }).attr('aria-expanded', 'false');

  filter.on('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => void fetch(1), pause);
  });
  onKey(panel, 'Escape', close);
  for (const [key, by] of Object.entries({ ArrowDown: 1, ArrowUp: -1 }))
    onKey(panel, key, () => {
      const stops = panel.find(':input:visible').get();
      stops[stops.findIndex((each) => each === document.activeElement) + by]?.focus();
    });
  onKey(filter, 'Enter', useTyped);
  const line = $('<div>', { class: 'advisor-line' }).append(filter);
  if (what === 'content') line.append(button('check', say('picker.content.use'), useTyped));
  panel.append(line, list, more, note).hide();
  if (what === 'content') panel.append($('<p>', { class: 'advisor-hint', text: say('picker.content.note') }));
  placeBeside(row, opener);
  row.append(chosen, panel);
  form.onChange(({ environment, [field.name]: id }) => {
    const isSame = id === origin.id;
    const isElsewhere = isSame && environment !== origin.environment && chosenIds().length > 0;
    if (isSame) rememberName(input, isElsewhere ? '' : origin.name);
    chosen.text(isElsewhere ? say('picker.elsewhere') : rememberedName(input));
  });
  if (what === 'content')
    form.input('contentType').on('change', () => {
      if (panel.is(':visible')) void fetch(1);
    });
};
