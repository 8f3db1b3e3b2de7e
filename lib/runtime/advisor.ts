import type { MessageValue } from '../service/errors';
import type { Environment } from './environment';
import type { Source } from './inputs';
import { invalidInput, nodeError } from './errors';
import type { Message } from './red';

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

const asKey = (value: unknown, where: MessageValue): string => {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  throw invalidInput('advisor_value', { where });
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

/** The advisor of the chosen source, else `msg.advisor`; empty when neither names one. */
export const anyAdvisor = (chosen: Source, value: unknown, msg: Message): string => {
  const isChosen = !isEmpty(chosen.value);
  const given = isChosen ? value : msg.advisor;
  const where = isChosen ? chosen.where : 'msg.advisor';
  if (isChosen && isEmpty(given)) throw invalidInput('advisor_empty', { where });
  return isEmpty(given) ? '' : asKey(given, where);
};

/** The advisor of a message: the chosen source, else `msg.advisor`, else the environment's only advisor. Never a guess. */
export const whoseAdvisor = (
  environment: Environment,
  chosen: Source,
  value: unknown,
  msg: Message,
): string => {
  const advisor = anyAdvisor(chosen, value, msg) || theOnlyOne(environment);
  if (environment.advisorState(advisor) !== 'authorized') {
    throw nodeError('authorization_required', 'advisor_unauthorized', {
      advisor,
      environment: environment.name,
    });
  }
  return advisor;
};
