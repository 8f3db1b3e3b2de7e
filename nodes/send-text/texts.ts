import type { Mutable } from '../../lib/mutable';
import { pick, type Source } from '../../lib/runtime/inputs';
import { fieldOf, hasBrokenPlaceholder, isWellFormed, placeholder } from '../../lib/runtime/kinds';
import { invalidInput } from '../../lib/runtime/errors';
import type { Message } from '../../lib/runtime/red';
import { ServiceError, type MessageValue } from '../../lib/service/errors';
import { recipientsOf, type PhoneEntry, type Recipient, type Recipients } from '../../lib/texting/recipients';

/** The index of a text in the list that it came in, from `msg.parts`. */
export interface ListPlace {
  readonly list: string;
  readonly index: number;
}

/** One text to one number, ready to be sent; or the reason why it cannot be. */
export interface Text extends Recipient {
  /** The text came back with consent, in `msg.resend`. */
  readonly cameBack?: true;
  /** Set when the text came back with consent: where it was in its list. */
  readonly place?: ListPlace;
  /** The key by which the text is sent once. */
  readonly onceKey?: string;
}

/** JSON is sent as UTF-8, which has no lone surrogates (RFC 8259, section 8): another text would arrive than was written. */
const wholeText = (text: string): string => {
  if (!isWellFormed(text)) throw invalidInput('text_broken');
  return text;
};

/** Gives each recipient its text: its own, else the filled literal, else the text of the message. */
export type TextOf = (entry: PhoneEntry, msg: Message, value: unknown) => string;

/** A text, or a finite number as one; undefined for anything else, and for a blank text. */
const asText = (value: unknown): string | undefined => {
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
};

type Filled = { readonly text: string } | { readonly missing: string } | { readonly isBroken: true };

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
      const value = asText(pick(recipient, name, fieldOf)) ?? asText(pick(message, name));
      if (value === undefined) return { missing: name };
      text += (pieces[index] ?? '') + value;
    }
    return { text: text + tail };
  };
};

const noText = (source: Source, value: unknown, msg: Message): ServiceError => {
  if (source.type === 'str') return invalidInput('text_literal_empty');
  const isEmpty = value === undefined || value === null || value === '';
  if (isEmpty && source.where === 'msg.text' && asText(msg.payload) !== undefined) {
    return invalidInput('text_in_payload');
  }
  return invalidInput(isEmpty ? 'text_missing' : 'text_kind', { where: source.where });
};

/** An address book node gives the contact as the payload, and whoever wires it to a text tries the field's bare name. */
const noField = (field: string, { payload }: Message): ServiceError =>
  asText(pick(payload, field)) === undefined
    ? invalidInput('placeholder_missing', { field })
    : invalidInput('placeholder_in_payload', { field });

/** Gives the filled literal, or the value of the message, as a text; undefined where that is none. */
const filler = (
  source: Source,
): ((entry: PhoneEntry, msg: Message, value: unknown) => string | undefined) => {
  if (source.type !== 'str') return (_entry, _msg, value) => asText(value);
  const fill = compileTemplate(String(source.value));
  return ({ record }, msg) => {
    const filled = fill(record, msg);
    if ('isBroken' in filled) throw invalidInput('placeholder_broken');
    if ('missing' in filled) throw noField(filled.missing, msg);
    return asText(filled.text);
  };
};

export const textGiver = (source: Source): TextOf => {
  const fill = filler(source);
  return (entry, msg, value) => {
    const { record } = entry;
    const ownText = record && fieldOf(record, 'text');
    if (ownText !== undefined) {
      const own = asText(ownText);
      if (own === undefined) throw invalidInput('text_own_empty');
      return wholeText(own);
    }
    const text = fill(entry, msg, value);
    if (text === undefined) throw noText(source, value, msg);
    return wholeText(text);
  };
};

/** A text to the same number again in a list becomes a duplicate of the first. */
const withoutDuplicates = (items: readonly Text[]): Text[] => {
  const originals = new Map<string, { readonly text: Mutable<Text>; readonly others: { index: number }[] }>();
  return items.filter((text) => {
    if (text.wrong) return true;
    const key = `${text.phone ?? ''} ${text.text ?? ''}`;
    const original = originals.get(key);
    if (!original) {
      originals.set(key, { text, others: [] });
      return true;
    }
    original.others.push({ index: text.index });
    original.text.duplicates = original.others;
    return false;
  });
};

/** The texts of one message: each is checked, and equal ones in one list are sent once. */
export const textsOf = (
  phones: unknown,
  where: MessageValue,
  country: string,
  give: (entry: PhoneEntry) => string,
  /** Completes a valid text; if it throws, the text fails. */
  complete: (text: Mutable<Text>, entry: PhoneEntry) => void = () => undefined,
): Recipients<Text> => {
  const recipients = recipientsOf<Text>(phones, where, country, (text, entry) => {
    try {
      text.text = give(entry);
      complete(text, entry);
    } catch (thrown) {
      if (!(thrown instanceof ServiceError)) throw thrown;
      text.wrong = thrown.problem;
    }
  });
  return recipients.list ? { ...recipients, items: withoutDuplicates(recipients.items) } : recipients;
};

/** Gives each recipient the once-key of its text: the filled literal, or the value of the message. */
export const onceKeyGiver = (
  source: Source,
): ((entry: PhoneEntry, msg: Message, value: unknown) => string) => {
  const fill = filler(source);
  return (entry, msg, value) => {
    const key = fill(entry, msg, value);
    if (key === undefined) throw invalidInput('once_key_missing', { where: source.where });
    return key;
  };
};
