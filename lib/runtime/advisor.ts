import { problem } from '../service/problems';
import type { Environment } from './environment';
import type { Source } from './fields';
import type { Message } from './red';

const asKey = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value.trim() !== '') return value.trim();
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
};

const theOnlyOne = (environment: Environment): string => {
  const [only, ...others] = environment.advisors();
  if (only === undefined) {
    throw problem(
      'authorization_required',
      `Nobody has authorized "${environment.name}" yet: open the environment and authorize an advisor.`,
    );
  }
  if (others.length > 0) {
    throw problem(
      'invalid_input',
      'This environment serves several advisors: say whose text this is in msg.advisor or in the node.',
    );
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
  const isChosen = chosen.type !== 'str' || asKey(chosen.value) !== undefined;
  const given = isChosen ? asKey(value) : asKey(msg.advisor);
  if (isChosen && given === undefined) {
    throw problem('invalid_input', `The advisor is to come from ${chosen.where}, and there is none there.`);
  }
  const advisor = given ?? theOnlyOne(environment);
  if (environment.advisorState(advisor) !== 'authorized') {
    throw problem(
      'authorization_required',
      `The advisor "${advisor}" has to authorize "${environment.name}": open the environment and authorize.`,
    );
  }
  return advisor;
};
