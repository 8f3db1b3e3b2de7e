import type { Environment } from './environment';
import type { Source } from './fields';
import { invalid, refuse } from './messages';
import type { Message } from './red';

const asKey = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value.trim() !== '') return value.trim();
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
};

const theOnlyOne = (environment: Environment): string => {
  const [only, ...others] = environment.advisors();
  if (only === undefined) {
    throw refuse('authorization_required', 'nobody_authorized', { environment: environment.name });
  }
  if (others.length > 0) {
    throw invalid('several_advisors');
  }
  return only;
};

/** Whose advisor: the chosen source, else `msg.advisor`, else the only one there is. Never a guess. */
export const whoseAdvisor = (
  environment: Environment,
  chosen: Source,
  value: unknown,
  msg: Message,
): string => {
  const isChosen = asKey(chosen.value) !== undefined;
  const given = isChosen ? asKey(value) : asKey(msg.advisor);
  if (isChosen && given === undefined) {
    throw invalid('advisor_empty', { where: chosen.where });
  }
  const advisor = given ?? theOnlyOne(environment);
  if (environment.advisorState(advisor) !== 'authorized') {
    throw refuse('authorization_required', 'advisor_unauthorized', {
      advisor,
      environment: environment.name,
    });
  }
  return advisor;
};
