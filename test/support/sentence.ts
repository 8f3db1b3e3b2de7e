import { problemOf } from '../../lib/runtime/errors';
import { wordsIn } from '../../lib/runtime/language';

/** The fault of some work as people read it; empty when there is none. */
export const sentenceOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return '';
  } catch (fault) {
    return wordsIn('en').problem(problemOf(fault));
  }
};
