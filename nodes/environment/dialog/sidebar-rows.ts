import type { NodeName } from '../../../lib/runtime/activity-items';
import {
  button as textButton,
  disable,
  iconButton,
  onKey,
  setAttributes,
  setText,
} from '../../../lib/editor/dom';
import { environmentSays as say, localNumber, sayOf } from '../../../lib/editor/locale';
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

/** What a node is called: its label may show a text that it did not send. */
const titleOf = (node: EditedNode): string =>
  node.name || !node.type.startsWith('advisor-')
    ? RED.utils.getNodeLabel(node, node.id)
    : sayOf(node)('title');

/** The label of a node on the canvas; `isPast` for what happened before the node may have been changed. */
export const nodeLabel = ({ id, name }: NodeName, isPast = false): string =>
  pathOf(id)
    .map((node) => (isPast ? titleOf(node) : RED.utils.getNodeLabel(node, node.id)))
    .join(' › ') ||
  name ||
  say('sidebar.deletedNode');

/** Asks for confirmation before an action that cannot be undone; Escape, or leaving the button, cancels. */
const carefulButton = (name: string, words: string, act: () => void, question: string): JQuery => {
  let isArmed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arm = (isMeant: boolean): void => {
    clearTimeout(timer);
    isArmed = isMeant;
    if (isArmed) timer = setTimeout(() => arm(false), doubt);
    made.toggleClass('advisor-side-armed', isArmed);
    made.children('span').text(isArmed ? question : words);
  };
  // Neither the second half of a double click nor a key that is held down counts as confirmation.
  const made = textButton(name, words, ({ detail }) => {
    if (Number(detail) > 1) return;
    if (isArmed) act();
    arm(!isArmed);
  });
  made.on('keydown', (event) => {
    if (event.originalEvent?.repeat === true && [' ', 'Enter'].includes(event.key)) event.preventDefault();
  });
  const disarm = (): void => arm(false);
  onKey(made, 'Escape', disarm, () => isArmed);
  return made.on('blur', disarm);
};

export interface Action {
  readonly icon: string;
  readonly words: string;
  readonly act: (button: JQuery) => void;
  /** Asked before it is done. */
  readonly question?: string;
  /** A picture alone, with the words as its tooltip. */
  readonly isIcon?: boolean;
  readonly isShown?: boolean;
}

/** What a row shows. It has the same actions each time. */
export interface RowView {
  readonly head: string;
  /** The tooltip of the head. */
  readonly title?: string;
  readonly progress?: { readonly value: number; readonly max: number };
  readonly facts: readonly (string | false | null)[];
  /** A sentence below the facts. */
  readonly note?: string;
  readonly actions: readonly Action[];
  /** The node that a button shows on the canvas. */
  readonly node?: NodeName;
  readonly className?: string;
}

const rowOf = (first: RowView) => {
  let view = first;
  const show = (): void => {
    const node = view.node && pathOf(view.node.id).at(-1);
    if (node) RED.view.reveal(node.id);
  };
  const actions = [...first.actions, { icon: 'search', words: say('sidebar.show'), act: show, isIcon: true }];
  const buttons = actions.map(({ icon, words, question, isIcon }: Action, at) => {
    const act = (): void => (view.actions[at]?.act ?? show)(button);
    const button =
      question === undefined
        ? (isIcon ? iconButton : textButton)(icon, words, act)
        : carefulButton(icon, words, act, question);
    return button;
  });
  const head = $('<strong>');
  const bar = $('<progress>');
  const facts = $('<span>', { class: 'advisor-side-facts' });
  const note = $('<span>', { class: 'advisor-side-facts advisor-side-note' });
  const element = $('<li>').append(
    $('<div>').append(head, first.progress ? bar : '', facts, note),
    $('<div>', { class: 'advisor-side-actions' }).append(...buttons),
  );
  return {
    element,
    update(now: RowView) {
      view = now;
      const { title, progress, node, className = '' } = now;
      setAttributes(element, { class: className });
      setText(head, now.head);
      if (title !== undefined) setAttributes(head, { title });
      if (progress)
        setAttributes(bar, {
          max: String(progress.max),
          value: String(progress.value),
          'aria-label': now.head,
        });
      setText(facts, now.facts.filter(Boolean).join(' · '));
      setText(note, now.note ?? '');
      // The node may be removed or imported while its row is shown.
      const isShown = [
        ...now.actions.map(({ isShown = true }) => isShown),
        node !== undefined && !isDeleted(node),
      ];
      for (const [at, button] of buttons.entries()) button.toggle(isShown[at]);
    },
  };
};

/** Rows by key. An existing row is changed in place, so that its buttons keep the focus. */
export class Rows {
  readonly element = $('<ul>', { class: 'advisor-side-rows' });
  private readonly rows = new Map<string, ReturnType<typeof rowOf>>();

  show(views: readonly (readonly [key: string, view: RowView])[]): void {
    const keyed = new Map<string, RowView>();
    for (const [own, view] of views) {
      // Equal items have a row each.
      let key = own;
      while (keyed.has(key)) key += ' ';
      keyed.set(key, view);
    }
    let focused: number | undefined;
    for (const [key, { element }] of this.rows)
      if (!keyed.has(key)) {
        if (element[0]?.contains(document.activeElement)) focused = element.index();
        element.remove();
        this.rows.delete(key);
      }
    for (const [at, [key, view]] of [...keyed].entries()) {
      const row = this.rows.get(key) ?? rowOf(view);
      this.rows.set(key, row);
      row.update(view);
      const before = this.element.children().eq(at);
      if (before.is(row.element)) continue;
      if (before.length > 0) before.before(row.element);
      else this.element.append(row.element);
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
