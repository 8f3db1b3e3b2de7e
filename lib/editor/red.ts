import type { NodeSpec } from '../runtime/spec';
import type { Values } from '../runtime/settings';
import type { Say } from './values';

export type { Say, Values };

/** A node in the editor: its saved properties, and what the editor adds. */
export interface EditedNode {
  id: string;
  type: string;
  name?: string;
  valid?: boolean;
  /** For a secret, only `has_<name>` is known. */
  credentials?: Readonly<Record<string, unknown>>;
  _: Say;
  [property: string]: unknown;
}

export interface TypedInputType {
  value: string;
  label: string;
  icon?: string;
  hasValue?: boolean;
  inputType?: string;
}

interface TypedInput {
  (options: {
    types: readonly (string | TypedInputType)[];
    default?: string;
    typeField?: JQuery | string;
  }): JQuery;
  (command: 'type' | 'value'): string;
  (command: 'type' | 'value', value: string): JQuery;
}

export interface Notice {
  close(): void;
}

/** The part of the editor that we use. */
interface Editor {
  nodes: {
    node(id: string): EditedNode | null;
    getType(type: string): { _: Say } | null;
    subflow(id: string): { name: string; instances: EditedNode[] } | undefined;
    getNodeLinks(id: string, port: number): { source: EditedNode; sourcePort: number }[];
    filterNodes(filter: { z?: unknown; type?: string }): EditedNode[];
    /** Ends when the callback returns false. */
    eachConfig(callback: (node: EditedNode) => boolean): void;
    /** What was loaded or deployed last. */
    originalFlow(): readonly { readonly id: string; readonly z?: string }[] | null | undefined;
  };
  /** The result says whether it worked. */
  clipboard: { copyText(text: string): boolean };
  utils: {
    validatePropertyExpression(expression: string): boolean;
    getNodeLabel(node: EditedNode, fallback?: string): string;
  };
  settings: {
    /** The language of the runtime; empty when nothing names one. */
    advisorEnvironmentLanguage?: string;
  };
  user: { hasPermission(permission: string): boolean };
  view: {
    reveal(id: string): void;
    calculateTextWidth(text: string, style: string): number;
    redrawStatus(node: EditedNode): void;
    redraw(): void;
  };
  editor: {
    editConfig(name: string, type: string, id: string): void;
    validateNode(node: EditedNode): boolean;
  };
  comms: { subscribe(topic: string, listener: (topic: string, payload: unknown) => void): void };
  events: {
    on(event: string, listener: (about?: unknown, context?: unknown) => void): void;
    off(event: string, listener: (about?: unknown) => void): void;
    emit(event: string, about: unknown): void;
  };
  plugins: { registerPlugin(id: string, plugin: { onadd(): void }): void };
  sidebar: {
    addTab(tab: {
      id: string;
      label: string;
      name: string;
      iconClass: string;
      content: JQuery;
      /** The tab can be used while a dialog is open. */
      enableOnEdit: boolean;
    }): void;
    show(id: string): void;
  };
  notify(content: JQuery, options?: { type?: 'error' | 'warning' | 'success'; timeout?: number }): Notice;
}

declare global {
  const RED: Editor;
  const jsonata: (expression: string) => unknown;
  interface JQuery {
    typedInput: TypedInput;
  }
}

/** The part of a spec that is sent to the editor. */
export type EditorSpec = Pick<NodeSpec, 'type' | 'category' | 'fields'>;

/** What a node's own `editor.ts` may export. */
export interface OwnEditor {
  /** By default, the title, or the sentence of the node's operation. */
  label?: (values: Values, say: Say) => string | undefined;
  /** Adds to the form what the fields alone cannot express. */
  opened?: (form: Form) => void;
  /** Called before the form's values are saved. */
  saving?: (form: Form) => void;
}

/** An open dialog, as a node's own editor code sees it. */
export interface Form {
  readonly node: EditedNode;
  readonly spec: EditorSpec;
  readonly root: JQuery;
  /** An empty element between the fields and *Advanced*. */
  readonly more: JQuery;
  readonly say: Say;
  /** The values of the form now, as they would be saved. */
  values(): Values;
  row(field: string): JQuery;
  input(field: string): JQuery;
  set(field: string, value: string, type?: string): void;
  /** Calls the listener now and after every change. */
  onChange(listener: (values: Values) => void): void;
  /** Must be called after a node's own code has changed something that the form cannot see. */
  refresh(): void;
}
