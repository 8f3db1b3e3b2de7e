import { pick } from './inputs';
import { fieldOf, hasBrokenPlaceholder, placeholder } from './kinds';

/** What a `{{field}}` stands for, or undefined when there is nothing to say in its place. */
const words = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
};

export type Filled = { readonly text: string } | { readonly missing: string } | { readonly isBroken: true };

/** A literal text, taken apart once: its `{{field}}`s come from the recipient, then from the message. */
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
