import { type FieldKinds, fitting, isLeftOut, isRecord } from '../kinds';
import { hideNumbers } from '../runtime/log';
import { invalidInput } from '../runtime/errors';
import type { Tools } from '../runtime/flow-node';

export const fieldsGiven = <K extends FieldKinds>(
  record: Readonly<Record<string, unknown>>,
  kinds: K,
): { [P in keyof K]?: K[P] extends 'num' ? number : string } => {
  const given: Record<string, string | number> = {};
  for (const [field, kind] of Object.entries(kinds)) {
    const value = Object.hasOwn(record, field) ? record[field] : undefined;
    if (isLeftOut(value, kind)) continue;
    const fits = fitting(value, kind);
    if (fits === undefined) throw invalidInput(kind === 'num' ? 'field_number' : 'field_text', { field });
    given[field] = fits;
  }
  return given as { [P in keyof K]?: K[P] extends 'num' ? number : string };
};

/** Enough names to help with a wrong spelling; a flow that invents names must not fill the memory. */
const mostNames = 100;

/** Names the fields that the service does not know, once each: ten thousand contacts cause one warning. */
export const unknownFields = (
  tools: Tools,
  known: Readonly<Record<string, unknown>>,
): ((records: readonly unknown[]) => void) => {
  const named = new Set<string>();
  return (records) => {
    const found: string[] = [];
    for (const record of records) {
      if (!isRecord(record)) continue;
      for (const field of Object.keys(record)) {
        if (Object.hasOwn(known, field) || named.has(field) || named.size >= mostNames) continue;
        named.add(field);
        found.push(field);
      }
    }
    if (found.length === 0) return;
    const fields = hideNumbers(found.join(', '));
    tools.node.warn(tools.words.say('warning.unknownFields', { fields }));
  };
};
