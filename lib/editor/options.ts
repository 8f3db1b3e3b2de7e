import { visible } from '../visible';
import { icon } from './dom';

export interface Choice {
  /** The value that is written into the field. */
  readonly value: string;
  readonly title: string;
  readonly detail: string;
}

interface OptionListSettings {
  readonly label: string;
  readonly several: boolean;
  chosen(choice: Choice): void;
  /** Called when Enter is pressed in the box while no choice is active. */
  typed(): void;
}

let lists = 0;

/** A list of choices; the arrow keys in the box above it move through it. */
export class OptionList {
  readonly element: JQuery;
  private readonly id = `advisor-options-${String(++lists)}`;
  private choices: Choice[] = [];
  private active = -1;

  constructor(
    private readonly box: JQuery,
    private readonly settings: OptionListSettings,
  ) {
    this.element = $('<ul>', {
      id: this.id,
      class: 'advisor-options',
      role: 'listbox',
      'aria-label': settings.label,
      'aria-multiselectable': String(settings.several),
    });
    box.attr({
      role: 'combobox',
      'aria-controls': this.id,
      'aria-expanded': 'true',
      'aria-autocomplete': 'list',
    });
    box.on('keydown', (event) => {
      if (this.press(event.key)) event.preventDefault();
    });
  }

  get count(): number {
    return this.choices.length;
  }

  show(choices: readonly Choice[]): void {
    this.choices = [];
    this.element.empty();
    this.point(-1);
    this.add(choices);
  }

  add(choices: readonly Choice[]): void {
    const from = this.choices.length;
    this.choices.push(...choices);
    this.element.append(...choices.map((choice, index) => this.option(choice, from + index)));
    this.element.toggle(this.count > 0);
  }

  mark(values: readonly string[]): void {
    this.choices.forEach(({ value }, index) => {
      this.at(index).attr('aria-selected', String(values.includes(value)));
    });
  }

  private at(index: number): JQuery {
    return this.element.children().eq(index);
  }

  private option(choice: Choice, index: number): JQuery {
    const words = $('<div>').append(
      $('<div>', { class: 'advisor-option-title', text: visible(choice.title) }),
      $('<small>', { text: visible(choice.detail) }),
    );
    return $('<li>', { id: `${this.id}-${String(index)}`, role: 'option', 'aria-selected': 'false' })
      .append(this.settings.several ? icon('check') : $(), words)
      .on('click', () => {
        this.point(index);
        this.settings.chosen(choice);
      });
  }

  private press(key: string): boolean {
    const choice = this.choices[this.active];
    if (key === 'ArrowDown') this.point(Math.min(this.active + 1, this.count - 1));
    else if (key === 'ArrowUp') this.point(Math.max(this.active - 1, 0));
    else if (key !== 'Enter') return false;
    else if (choice) this.settings.chosen(choice);
    else this.settings.typed();
    return true;
  }

  private point(index: number): void {
    this.active = index < this.count ? index : -1;
    this.element.children().removeClass('advisor-active');
    this.box.removeAttr('aria-activedescendant');
    if (this.active < 0) return;
    const option = this.at(this.active).addClass('advisor-active');
    option.get(0)?.scrollIntoView({ block: 'nearest' });
    this.box.attr('aria-activedescendant', option.attr('id') ?? '');
  }
}
