import { serviceError } from '../service/errors';
import type { Environment } from './environment';
import type { Source } from './inputs';
import { invalidInput, nodeError } from './errors';
import type { Message } from './red';

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

/** Undefined for a value that is no key. */
const keyIn = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value.trim();
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
};

const theOnlyOne = (environment: Environment): string => {
  const [only, ...others] = environment.advisors();
  if (only === undefined) {
    throw nodeError('authorization_required', 'nobody_authorized', { environment: environment.name });
  }
  if (others.length > 0) {
    throw invalidInput('several_advisors');
  }
  return only;
};

/** Throws `authorization_required`. */
const authorized = (environment: Environment, advisor: string): string => {
  const { name } = environment;
  switch (environment.advisorState(advisor)) {
    case 'authorized':
      return advisor;
    case 'authorize_again':
      throw serviceError('authorization_required', 'authorization_ended', { advisor, name });
    case 'unknown':
      throw nodeError('authorization_required', 'advisor_unauthorized', { advisor, environment: name });
  }
};

/** The advisor that a recipient's object names; undefined when it names none. Throws when it is not authorized. */
export const ownAdvisor = (environment: Environment, value: unknown): string | undefined => {
  if (isEmpty(value)) return undefined;
  const key = keyIn(value);
  if (key === undefined) throw invalidInput('advisor_own');
  return authorized(environment, key);
};

/** The advisor of the chosen source, else `msg.advisor`; empty when neither names one. */
export const anyAdvisor = (chosen: Source, value: unknown, msg: Message): string => {
  const isChosen = !isEmpty(chosen.value);
  const given = isChosen ? value : msg.advisor;
  const where = isChosen ? chosen.where : 'msg.advisor';
  if (isChosen && isEmpty(given)) throw invalidInput('advisor_empty', { where });
  const key = isEmpty(given) ? '' : keyIn(given);
  if (key === undefined) throw invalidInput('advisor_value', { where });
  return key;
};

/** The advisor of a message: the chosen source, else `msg.advisor`, else the environment's only advisor. Never a guess. */
export const whoseAdvisor = (
  environment: Environment,
  chosen: Source,
  value: unknown,
  msg: Message,
): string => authorized(environment, anyAdvisor(chosen, value, msg) || theOnlyOne(environment));
