import {
  sentences as serviceSentences,
  serviceError,
  type MessageValue,
  type Problem,
  type ServiceErrorKey,
} from '../service/errors';
import { sentences, nodeError, type NodeErrorKey } from './errors';

const isOurs = (key: string): key is NodeErrorKey => Object.hasOwn(sentences, key);
const isOfService = (key: string): key is ServiceErrorKey => Object.hasOwn(serviceSentences, key);

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
  if (!wording) return undefined;
  const { key } = wording;
  const values = Object.fromEntries(
    Object.entries(wording.values).map(([name, value]) => [name, withoutText(value)]),
  );
  if (isOurs(key)) return nodeError(code, key, values).problem;
  return isOfService(key) ? serviceError(code, key, values).problem : undefined;
};

/** A code as the contract writes them. The service may send any other text as one, such as a number or a name. */
export const plainCode = (code: string): string =>
  code.length <= 60 && /^[a-z]+(_[a-z]+)*$/.test(code) ? code : 'other';
