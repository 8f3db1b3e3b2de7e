import type { Mutable } from '../../lib/mutable';
import { type Problem, ServiceError } from '../../lib/service/errors';
import type { Used } from '../../lib/runtime/dressed';
import type { Source } from '../../lib/runtime/inputs';
import { fieldOf } from '../../lib/runtime/kinds';
import type { Item, Taken } from '../../lib/runtime/node-outbox';
import { invalid } from '../../lib/runtime/errors';
import {
  asGiven,
  noRecipients,
  notANumber,
  recipientsOf,
  type Recipient,
} from '../../lib/runtime/recipients';
import type { Message } from '../../lib/runtime/red';
import { compileTemplate, type Filled } from '../../lib/runtime/template';
import type { Place } from './resend';

/** A text of a list, with the object that the list held for its recipient. */
interface Prepared extends Text {
  /** It stands earlier in this list. */
  readonly duplicateOf?: number;
  readonly recipient?: Record<string, unknown>;
}

/** One text to one number, ready to be sent; or why it cannot be. */
export interface Text extends Item, Omit<Used, 'memberId'> {
  /** It came back with consent, and stood here in its list. */
  readonly place?: Place;
}

/** Gives each recipient its text: its own, else the literal filled in, else the one of the message. */
export type TextOf = (recipient: Recipient, msg: Message, value: unknown) => string;

const asText = (value: unknown): string | undefined => {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
};

const noText = (source: Source, value: unknown, msg: Message): ServiceError => {
  if (source.type === 'str') return invalid('text_literal_empty');
  const isEmpty = value === undefined || value === null || value === '';
  if (isEmpty && source.where === 'msg.text' && asText(msg.payload) !== undefined) {
    return invalid('text_in_payload');
  }
  return invalid(isEmpty ? 'text_missing' : 'text_kind', { where: source.where });
};

export const textOf = (source: Source): TextOf => {
  const literal = source.type === 'str' ? compileTemplate(String(source.value)) : undefined;
  return ({ record }, msg, value) => {
    const ownText = record && fieldOf(record, 'text');
    if (ownText !== undefined) {
      const own = asText(ownText);
      if (own === undefined) throw invalid('text_own_empty');
      return own;
    }
    const filled: Filled | undefined = literal?.(record, msg);
    if (filled && 'isBroken' in filled) throw invalid('placeholder_broken');
    if (filled && 'missing' in filled) throw invalid('placeholder_missing', { field: filled.missing });
    const text = asText(filled ? filled.text : value);
    if (text === undefined) throw noText(source, value, msg);
    return text;
  };
};

const wrongText = (index: number, recipient: Recipient, list: boolean, wrong: Problem): Prepared => ({
  index,
  ...(recipient.phone !== undefined ? { phone: recipient.phone } : list && { given: asGiven(recipient) }),
  ...(recipient.record && { recipient: recipient.record }),
  wrong,
});

/** The texts of one message: each checked, the same number and text in one list only once. */
export const prepareTexts = (
  phones: unknown,
  where: string,
  country: string,
  give: (recipient: Recipient) => string,
): { readonly list: boolean; readonly texts: readonly Prepared[] } => {
  const found = recipientsOf(phones, country);
  if (!found) throw noRecipients(phones, where);
  const seen = new Map<string, number>();
  const texts = found.recipients.map((recipient, index): Prepared => {
    const { phone, record } = recipient;
    if (phone === undefined) {
      const { problem } = notANumber(recipient.given, country, { where, list: found.list });
      return wrongText(index, recipient, found.list, problem);
    }
    let text: string;
    try {
      text = give(recipient);
    } catch (thrown) {
      if (!(thrown instanceof ServiceError)) throw thrown;
      return wrongText(index, recipient, found.list, thrown.problem);
    }
    const key = `${phone} ${text}`;
    const original = seen.get(key);
    if (original === undefined) seen.set(key, index);
    const ready: Mutable<Prepared> = { index, phone, text };
    if (record) ready.recipient = record;
    if (original !== undefined) ready.duplicateOf = original;
    return ready;
  });
  return { list: found.list, texts };
};

/** Duplicates go with their originals, and the objects of the list lie in a place of their own. */
export const byOriginal = (texts: readonly Prepared[]): Omit<Taken<Text>, 'list' | 'source'> => {
  const duplicates = new Map<number, { index: number }[]>();
  for (const { index, duplicateOf } of texts) {
    if (duplicateOf === undefined) continue;
    const others = duplicates.get(duplicateOf) ?? [];
    others.push({ index });
    duplicates.set(duplicateOf, others);
  }
  const items: Text[] = [];
  for (const { duplicateOf, recipient: _recipient, ...text } of texts) {
    if (duplicateOf !== undefined) continue;
    const others = duplicates.get(text.index);
    items.push(others ? { ...text, duplicates: others } : text);
  }
  const entries = texts.some(({ recipient }) => recipient) && texts.map(({ recipient }) => recipient);
  return { items, count: texts.length, ...(entries && { entries }) };
};
