import { invalidInput } from '../../lib/runtime/errors';
import { excerpt, pick, type Source } from '../../lib/runtime/inputs';
import {
  fieldOf,
  hasBraces,
  hasBrokenPlaceholder,
  isBlank,
  isNothing,
  isRecord,
  isWellFormed,
  placeholder,
  sameName,
} from '../../lib/kinds';
import type { Message } from '../../lib/runtime/red';
import type { ServiceError } from '../../lib/service/errors';
import { fieldNames, type PhoneEntry } from '../../lib/texting/recipients';

/** JSON is sent as UTF-8, which has no lone surrogates (RFC 8259, section 8): another text would arrive than was written. */
const wholeText = (text: string): string => {
  if (!isWellFormed(text)) throw invalidInput('text_broken');
  // A file that was read in another encoding than its own has it in place of each umlaut.
  if (text.includes('\ufffd')) throw invalidInput('text_garbled');
  return text;
};

/** A text, or a finite number as one; undefined for anything else, and for a blank text. */
const asText = (value: unknown): string | undefined => {
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
};

/** Gives the field of this name of a recipient, a contact or a message. */
type FieldSource = (name: string) => unknown;

const fieldsOf =
  (record: unknown): FieldSource =>
  (name) =>
    pick(record, name, fieldOf);

/** What the flow's author wrote is filled from the message too; a text that came in with the message is not. */
const isAuthored = ({ type }: Source): boolean => type !== 'msg';

/** What a formula without a result leaves in a cell: #N/A, #NV, #REF!, #¿NOMBRE? and the like. */
const cellError = /^#(N\/[AD]|NV|[¡¿]?[A-Z/0]{3,}[!?])$/;

/** Compiles a text: each `{{field}}` is filled from the first of the sources that has it, else `missing` is thrown. */
export const compileTemplate = (
  template: string,
): ((sources: readonly FieldSource[], missing: (name: string) => ServiceError) => string) => {
  if (!hasBraces(template)) return () => template;
  if (hasBrokenPlaceholder(template)) throw invalidInput('placeholder_broken');
  const names: string[] = [];
  const pieces: string[] = [];
  let from = 0;
  for (const match of template.matchAll(placeholder)) {
    pieces.push(template.slice(from, match.index));
    names.push(match[1]?.trim() ?? '');
    from = match.index + match[0].length;
  }
  const tail = template.slice(from);
  return (sources, missing) => {
    let text = '';
    for (const [index, name] of names.entries()) {
      let value: string | undefined;
      for (const fieldIn of sources) value ??= asText(fieldIn(name));
      if (value === undefined) throw missing(name);
      // Braces never reach a phone, not even those in a badly filled table.
      if (hasBraces(value)) throw invalidInput('placeholder_braces', { field: excerpt(name) });
      if (cellError.test(value.trim()))
        throw invalidInput('placeholder_error', { field: excerpt(name), value });
      text += (pieces[index] ?? '') + value.trim();
    }
    return text + tail;
  };
};

const noText = (source: Source, value: unknown, msg: Message): ServiceError => {
  if (source.type === 'str') return invalidInput('text_literal_empty');
  const isEmpty = isNothing(value);
  if (isEmpty && source.where === 'msg.text' && asText(msg.payload) !== undefined) {
    return invalidInput('text_in_payload');
  }
  const kind = typeof value === 'string' ? 'text_kind' : 'text_object';
  return invalidInput(isEmpty ? 'text_missing' : kind, { where: source.where });
};

/**
 * An address book node gives the contact as the payload, and an outcome of a list has its row as the recipient: users who
 * wire them to a text try the field's bare name.
 */
const noField = (
  name: string,
  msg: Message,
  record: PhoneEntry['record'],
  authored: boolean,
): ServiceError => {
  const field = excerpt(name);
  const { payload, recipient, contact } = msg;
  const own = [record, authored ? contact : undefined]
    .filter((each) => isRecord(each))
    .find((each) => Object.keys(each).some((key) => sameName(key, name)));
  const value = own ? fieldOf(own, name) : authored ? pick(msg, name) : undefined;
  if (own && isBlank(value)) return invalidInput('placeholder_empty', { field });
  if (!isBlank(value)) return invalidInput('placeholder_kind', { field });
  if (!authored) return invalidInput('placeholder_own', { field });
  // A row without the field must not be filled from another one.
  const held = record ? { payload } : { payload, recipient };
  const holder = Object.entries(held).find(([, value]) => asText(pick(value, name)) !== undefined);
  if (holder) return invalidInput('placeholder_elsewhere', { field, holder: holder[0] });
  const results = isRecord(payload) && Array.isArray(payload.data) ? payload.data : undefined;
  const isPage = results && (name.startsWith('payload.') || asText(pick(results[0], name)) !== undefined);
  if (isPage && !record) return invalidInput('placeholder_in_page', { field });
  const person = record ?? (isRecord(contact) ? contact : undefined);
  return person
    ? invalidInput('placeholder_of_recipient', { field, fields: fieldNames(person) })
    : invalidInput('placeholder_missing', { field });
};

/** Fills templates; the last one is kept compiled, because the recipients of a list mostly share it. */
const templateFiller = () => {
  let last: string | undefined;
  let compiled = compileTemplate('');
  return (template: string, { record }: PhoneEntry, msg: Message, authored: boolean): string => {
    if (template !== last) compiled = compileTemplate(template);
    last = template;
    const own = fieldsOf(record);
    const sources = authored ? [own, fieldsOf(msg['contact']), (name: string) => pick(msg, name)] : [own];
    return compiled(sources, (name) => noField(name, msg, record, authored));
  };
};

/** Gives each recipient its text: its own, else that of the node's field, with its placeholders filled. */
export const textGiver = (source: Source) => {
  const fill = templateFiller();
  const authored = isAuthored(source);
  return (entry: PhoneEntry, msg: Message, value: unknown): string => {
    const { record } = entry;
    const ownText = record && fieldOf(record, 'text');
    if (ownText !== undefined) {
      const own = asText(ownText);
      if (own === undefined) throw invalidInput('text_own_empty');
      return wholeText(fill(own, entry, msg, false));
    }
    const text = asText(value);
    if (text === undefined) throw noText(source, value, msg);
    return wholeText(fill(text, entry, msg, authored));
  };
};

/** Gives each recipient the once-key of its text: the filled literal, or the value of the source. */
export const onceKeyGiver = (source: Source) => {
  const fill = templateFiller();
  return (entry: PhoneEntry, msg: Message, value: unknown): string => {
    const given = asText(value);
    const key = given !== undefined && source.type === 'str' ? fill(given, entry, msg, true) : given;
    if (key === undefined) throw invalidInput('once_key_missing', { where: source.where });
    return key;
  };
};
