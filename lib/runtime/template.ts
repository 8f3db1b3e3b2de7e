import { pick } from './inputs';
import { fieldOf, hasBrokenPlaceholder, placeholder } from './kinds';

/** The text for a `{{field}}`; undefined when the value is neither a number nor a text with something in it. */
const words = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
};

export type Filled = { readonly text: string } | { readonly missing: string } | { readonly isBroken: true };

/** Compiles a literal text: its `{{field}}`s are filled from the recipient, then from the message. */
export const compileTemplate = (template: string): ((recipient: unknown, message: unknown) => Filled) => {
  if (hasBrokenPlaceholder(template)) return () => ({ isBroken: true });
  const names: string[] = [];
  const pieces: string[] = [];
  let from = 0;
  for (const match of template.matchAll(placeholder)) {
    pieces.push(template.slice(from, match.index));
    names.push(match[1] ?? '');
    from = match.index + match[0].length;
  }
  const tail = template.slice(from);
  return (recipient, message) => {
    let text = '';
    for (const [index, name] of names.entries()) {
      const value = words(pick(recipient, name, fieldOf)) ?? words(pick(message, name));
      if (value === undefined) return { missing: name };
      text += (pieces[index] ?? '') + value;
    }
    return { text: text + tail };
  };
};
