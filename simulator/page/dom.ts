import { visible } from '../../lib/visible';

type Child = Node | string;

interface Attributes {
  readonly class?: string;
  readonly [name: string]: string | undefined;
}

/** The only way in which this page makes elements. Strings become text nodes: a name that looks like HTML stays a name.
 * A text may have several lines. */
export const element = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (typeof child === 'string' ? visible(child, '\n') : child)));
  return made;
};

export const button = (label: string, kind: string, press: () => void): HTMLButtonElement => {
  const made = element('button', { class: `button ${kind}`, type: 'button' }, label);
  made.addEventListener('click', press);
  return made;
};

/** An element of index.html. */
export const byId = <T extends HTMLElement>(id: string, type: new () => T): T => {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`index.html has no #${id} of the expected kind`);
  return found;
};

interface ListDrawing<T> {
  readonly key: (item: T) => string;
  /** Items with equal versions look the same: the element stays as it is. */
  readonly version: (item: T) => string;
  readonly draw: (item: T) => HTMLElement;
}

const versions = new WeakMap<HTMLElement, string>();

/**
 * Makes `parent` show `items` in order. Only changed elements are touched, so that focus, selection and scroll
 * positions survive live updates.
 */
export const showList = <T>(parent: HTMLElement, items: readonly T[], row: ListDrawing<T>): void => {
  const focused = document.activeElement;
  let refocus = focused instanceof HTMLElement && parent.contains(focused) ? focused : undefined;
  const before = new Map<string, HTMLElement>();
  for (const child of parent.children) {
    if (child instanceof HTMLElement) before.set(child.dataset['key'] ?? '', child);
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = row.key(item);
    const version = row.version(item);
    const old = before.get(key);
    before.delete(key);
    let shown = old;
    if (shown === undefined || versions.get(shown) !== version) {
      shown = row.draw(item);
      shown.dataset['key'] = key;
      versions.set(shown, version);
      if (old !== undefined) {
        if (old.contains(focused)) refocus = counterpart(focused, shown);
        old.replaceWith(shown);
        if (place === old) place = shown;
      }
    }
    if (shown === place) place = place.nextElementSibling;
    else parent.insertBefore(shown, place);
  }
  for (const gone of before.values()) {
    if (gone.contains(focused)) refocus = neighbour(gone);
    gone.remove();
  }
  if (refocus !== document.activeElement) refocus?.focus({ preventScroll: true });
};

const neighbour = (gone: HTMLElement): HTMLElement | undefined => {
  const beside = gone.nextElementSibling ?? gone.previousElementSibling;
  return beside instanceof HTMLElement ? beside : undefined;
};

/**
 * The same button in the new element, else the element itself: the keyboard focus never falls back to the top of the
 * page.
 */
const counterpart = (focused: Element | null, shown: HTMLElement): HTMLElement => {
  const action = focused instanceof HTMLElement ? focused.dataset['action'] : undefined;
  const same = action === undefined ? null : shown.querySelector<HTMLElement>(`[data-action="${action}"]`);
  return same ?? shown;
};
