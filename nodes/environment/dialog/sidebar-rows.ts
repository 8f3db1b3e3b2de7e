import type { NodeName } from '../../../lib/runtime/activity-items';
import { button, disable, iconButton, setText } from '../../../lib/editor/dom';
import { environmentSays as say, localNumber } from '../../../lib/editor/locale';
import type { EditedNode } from '../../../lib/editor/red';
import { second } from '../../../lib/durations';

export { say };

/** Milliseconds for which a button asks for confirmation. */
const doubt = 5 * second;

/**
 * Where a running node is in the editor: the node itself, or the subflow instances around it, then the node. In a
 * subflow, Node-RED makes the id of a node from the id of the instance and that of the node.
 */
const pathOf = (id: string): readonly EditedNode[] => {
  const node = RED.nodes.node(id);
  if (node) return [node];
  for (let at = id.lastIndexOf('-'); at > 0; at = id.lastIndexOf('-', at - 1)) {
    const inner = RED.nodes.node(id.slice(at + 1));
    const outer = inner ? pathOf(id.slice(0, at)) : [];
    if (inner && outer.length > 0) return [...outer, inner];
  }
  return [];
};

/** Whether the flow has no such node any more. */
export const isDeleted = ({ id }: NodeName): boolean => pathOf(id).length === 0;

/** The label of a node on the canvas. */
export const nodeLabel = ({ id, name }: NodeName): string =>
  pathOf(id)
    .map((node) => RED.utils.getNodeLabel(node, node.id))
    .join(' › ') ||
  name ||
  say('sidebar.deletedNode');

/**
 * Shows a node on the canvas. The node may be removed or imported while its row is shown: `refresh` hides or shows the
 * button.
 */
export const revealButton = (named: NodeName): { readonly element: JQuery; refresh(): void } => {
  const element = iconButton('search', say('sidebar.show'), () => {
    const node = pathOf(named.id).at(-1);
    if (node) RED.view.reveal(node.id);
  });
  return {
    element,
    refresh() {
      element.toggle(!isDeleted(named));
    },
  };
};

/** Asks for confirmation before an action that cannot be undone; Escape, or leaving the button, cancels. */
export const carefulButton = (
  name: string,
  words: string,
  act: () => void,
  question = say('sidebar.really'),
): JQuery => {
  let isArmed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arm = (isMeant: boolean): void => {
    clearTimeout(timer);
    isArmed = isMeant;
    if (isArmed)
      timer = setTimeout(() => {
        arm(false);
      }, doubt);
    made.toggleClass('advisor-side-armed', isArmed);
    made.children('span').text(isArmed ? question : words);
  };
  const made = button(name, words, () => {
    if (isArmed) act();
    arm(!isArmed);
  });
  // Neither the second half of a double click nor a key that is held down counts as confirmation.
  made[0]?.addEventListener(
    'click',
    (event) => {
      if (event.detail > 1) event.stopImmediatePropagation();
    },
    true,
  );
  made.on('keydown', (event) => {
    if (event.originalEvent?.repeat === true && [' ', 'Enter'].includes(event.key)) event.preventDefault();
    if (event.key !== 'Escape' || !isArmed) return;
    event.stopPropagation();
    arm(false);
  });
  return made.on('blur', () => {
    if (isArmed) arm(false);
  });
};

export interface Row<T> {
  readonly row: JQuery;
  update(item: T): void;
}

/** Rows by key. An existing row is changed in place, so that its buttons keep the focus. */
export class Rows<T> {
  readonly element = $('<ul>', { class: 'advisor-side-rows' });
  private readonly rows = new Map<string, Row<T>>();

  constructor(
    private readonly keyOf: (item: T) => string,
    private readonly create: (item: T) => Row<T>,
  ) {}

  show(items: readonly T[]): void {
    const keyed = new Map<string, T>();
    for (const item of items) {
      // Equal items have a row each.
      let key = this.keyOf(item);
      while (keyed.has(key)) key += ' ';
      keyed.set(key, item);
    }
    let focused: number | undefined;
    for (const [key, { row }] of this.rows)
      if (!keyed.has(key)) {
        if (row[0]?.contains(document.activeElement)) focused = row.index();
        row.remove();
        this.rows.delete(key);
      }
    let before: Element | undefined;
    for (const [key, item] of keyed) {
      const known = this.rows.get(key) ?? this.create(item);
      this.rows.set(key, known);
      known.update(item);
      const [row] = known.row;
      if (!row) continue;
      const place = before ? before.nextSibling : this.element[0]?.firstChild;
      if (place !== row) this.element[0]?.insertBefore(row, place ?? null);
      before = row;
    }
    if (focused !== undefined) this.focusFrom(focused);
  }

  /** When the focused row is gone, the focus goes to the row in its place, or to the heading. */
  private focusFrom(index: number): void {
    const rows = this.element.children();
    const next = rows
      .eq(Math.min(index, rows.length - 1))
      .find('button:visible')
      .first();
    (next.length > 0 ? next : this.element.closest('details').children('summary')).trigger('focus');
  }
}

export const rowsPerPage = 20;

/** Turns the pages of a part. */
export class Pager {
  page = 1;
  readonly element = $('<div>', { class: 'advisor-side-pager' }).hide();
  private readonly where = $('<span>');
  private readonly back = this.turner('chevron-left', say('sidebar.back'), -1);
  private readonly on = this.turner('chevron-right', say('sidebar.on'), 1);

  constructor(private readonly read: () => void) {
    this.element.append(this.back, this.where, this.on);
  }

  /** `total` is null when it is unknown. */
  show(total: number | null, shown: number): void {
    const first = (this.page - 1) * rowsPerPage;
    if (shown === 0 && this.page > 1) {
      this.page = total === null ? this.page - 1 : Math.max(Math.ceil(total / rowsPerPage), 1);
      this.read();
      return;
    }
    const isMore = total === null ? shown === rowsPerPage : first + shown < total;
    setText(this.where, `${localNumber(first + 1)} – ${localNumber(first + shown)}`);
    const hadFocus = this.element[0]?.contains(document.activeElement) === true;
    disable(this.back, first === 0);
    disable(this.on, !isMore);
    this.element.toggle(first > 0 || isMore);
    // A button that is disabled or hidden loses the focus.
    if (!hadFocus || this.element.find('button:enabled:focus').length > 0) return;
    const next = this.element.find('button:enabled:visible').first();
    (next.length > 0 ? next : this.element.closest('details').children('summary')).trigger('focus');
  }

  private turner(name: string, words: string, by: number): JQuery {
    return iconButton(name, words, () => {
      this.page += by;
      this.read();
    });
  }
}
