import { problem, type Problem } from '../../lib/service/problems';
import type { Source } from '../../lib/runtime/fields';
import { notANumber, recipientsOf, type Recipient } from '../../lib/runtime/recipients';
import type { Message } from '../../lib/runtime/red';
import { compileTemplate, type Filled } from '../../lib/runtime/template';

/** One text to one number, ready to be sent; or why it cannot be. */
export interface Text {
  readonly index: number;
  readonly phone?: string;
  readonly text?: string;
  readonly recipient?: Record<string, unknown>;
  /** The same number and text stand earlier in this list: sent once, told twice. */
  readonly duplicateOf?: number;
  readonly wrong?: Problem;
}

/** Gives each recipient its text: its own, else the literal filled in, else the one of the message. */
export type TextOf = (recipient: Recipient, msg: Message, value: unknown) => string;

const invalid = (message: string) => problem('invalid_input', message);

const asText = (value: unknown): string | undefined => {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
};

const whyNoText = (source: Source, value: unknown, msg: Message): string => {
  if (source.type === 'str') return 'The text is empty: write one in the node.';
  const noText = value === undefined || value === null || value === '';
  if (noText && source.where === 'msg.text' && asText(msg.payload) !== undefined) {
    return 'msg.text is missing, but msg.payload holds a text: choose msg.payload as the text in the node.';
  }
  if (noText)
    return `There is no text in ${source.where}: put one there, or choose another place in the node.`;
  return `What is in ${source.where} is not a text with at least one letter: give it a text.`;
};

export const textOf = (source: Source): TextOf => {
  const literal = source.type === 'str' ? compileTemplate(String(source.value)) : undefined;
  return ({ record }, msg, value) => {
    if (record && 'text' in record) {
      const own = asText(record.text);
      if (own === undefined) throw invalid("This recipient's own text is empty: fill it in or leave it out.");
      return own;
    }
    const filled: Filled | undefined = literal?.(record, msg);
    if (filled && 'missing' in filled) {
      throw invalid(`There is no "${filled.missing}" to fill into the text: give each recipient one.`);
    }
    const text = asText(filled ? filled.text : value);
    if (text === undefined) throw invalid(whyNoText(source, value, msg));
    return text;
  };
};

const refuse = (index: number, recipient: Recipient, wrong: Problem): Text => ({
  index,
  ...(recipient.phone !== undefined && { phone: recipient.phone }),
  ...(recipient.record && { recipient: recipient.record }),
  wrong,
});

/** The texts of one message: each checked, the same number and text in one list only once. */
export const prepareTexts = (
  phones: unknown,
  where: string,
  country: string,
  give: (recipient: Recipient) => string,
): { readonly list: boolean; readonly texts: readonly Text[] } => {
  const found = recipientsOf(phones, country);
  if (!found) {
    throw invalid(
      Array.isArray(phones)
        ? `The list in ${where} is empty: give it at least one number.`
        : `${where} must hold a phone number or a list of them.`,
    );
  }
  const seen = new Map<string, number>();
  const texts = found.recipients.map((recipient, index): Text => {
    const { phone, record } = recipient;
    if (phone === undefined) {
      return refuse(index, recipient, invalid(notANumber(recipient.given, country)).problem);
    }
    let text: string;
    try {
      text = give(recipient);
    } catch (thrown) {
      return refuse(index, recipient, (thrown as ReturnType<typeof invalid>).problem);
    }
    const key = `${phone} ${text}`;
    const original = seen.get(key);
    if (original === undefined) seen.set(key, index);
    return {
      index,
      phone,
      text,
      ...(record && { recipient: record }),
      ...(original !== undefined && { duplicateOf: original }),
    };
  });
  return { list: found.list, texts };
};
