import { sentences, type ErrorKey, type MessageValue, type Problem } from '../service/errors';
import { nodeError } from './errors';

const withoutText = (value: MessageValue): MessageValue => {
  if (typeof value === 'string') return '…';
  if (typeof value === 'number' || !('map' in value)) return value;
  return value.map((each) => (typeof each === 'string' ? '…' : each));
};

/**
 * The sentence of a failure for people who may only read: texts that were filled into it may quote the service or the
 * message, so they are left out. Undefined when the sentence is not one of ours.
 */
export const ownWords = ({
  code,
  wording,
}: Pick<Problem, 'wording'> & { readonly code: string }): Problem | undefined => {
  if (!wording || !Object.hasOwn(sentences, wording.key)) return undefined;
  const values = Object.fromEntries(
    Object.entries(wording.values).map(([name, value]) => [name, withoutText(value)]),
  );
  return nodeError(code, wording.key as ErrorKey, values).problem;
};

/** A code as the contract writes them. The service may send any other text as one, such as a number or a name. */
export const plainCode = (code: string): string =>
  code.length <= 60 && /^[a-z]+(_[a-z]+)*$/.test(code) ? code : 'other';
