import should from 'should';
import { languages } from '../../../lib/languages';
import { invalidInput } from '../../../lib/runtime/errors';
import { failureLook, heldLook } from '../../../lib/runtime/status';
import { wordsIn } from '../../../lib/runtime/language';
import { serviceError, ownCodes, serviceCodes, type Problem } from '../../../lib/service/errors';

const at = new Date(2030, 0, 31, 14, 5).getTime();
const problem = (code: string): Problem => ({ message: 'why', code, retryable: false, attempts: 0 });
const codes = [...ownCodes, ...Object.keys(serviceCodes)];

describe('the status of a failure', () => {
  for (const language of languages) {
    const words = wordsIn(language);
    const shown = (code: string): string => failureLook(words, problem(code), at, at).text;

    it(`says in ${language} what kind each code is, and no two alike`, () => {
      codes.filter((code) => shown(code) === shown('unheard_of')).should.eql([]);
      new Set(codes.map(shown)).size.should.equal(codes.length);
    });

    it(`is short in ${language}`, () => {
      codes.filter((code) => shown(code).length > 27).should.eql([]);
      for (const count of [1, 12]) heldLook(words, count, at, at).text.length.should.be.below(27);
    });
  }

  const inEnglish = (why: Parameters<typeof failureLook>[1]): string =>
    failureLook(wordsIn('en-US'), why, at, at).text;

  it('says what is invalid about an invalid input', () => {
    inEnglish(invalidInput('phone_none').problem).should.equal('invalid number 2:05 PM');
    inEnglish(invalidInput('list_empty', { where: 'msg.phone' }).problem).should.equal(
      'invalid input 2:05 PM',
    );
    inEnglish(invalidInput('text_literal_empty').problem).should.equal('invalid text 2:05 PM');
    inEnglish(invalidInput('date_past').problem).should.equal('invalid date 2:05 PM');
    inEnglish(invalidInput('group_unnamed').problem).should.equal('invalid group 2:05 PM');
    inEnglish(problem('invalid_input')).should.equal('invalid input 2:05 PM');
    inEnglish(invalidInput('several_advisors').problem).should.equal('invalid input 2:05 PM');
  });

  it('says what to do if it lasts until somebody acts', () => {
    inEnglish(serviceError('not_configured', 'no_environment').problem).should.equal('not set up');
    should(inEnglish(problem('authorization_required'))).equal('authorize again');
    const ended = serviceError('authorization_required', 'authorization_ended', { advisor: 'a', name: 'n' });
    should(inEnglish(ended.problem)).equal('authorize again');
  });

  it('does not ask people to authorize again who never have', () => {
    for (const { problem: never } of [
      serviceError('authorization_required', 'not_authorized', { advisor: 'a', name: 'n' }),
      serviceError('authorization_required', 'nobody_authorized', { environment: 'n' }),
      serviceError('authorization_required', 'advisor_unauthorized', { advisor: 'a', environment: 'n' }),
    ])
      should(inEnglish(never)).equal('not authorized');
  });

  it('says only that it failed for an unknown code', () => {
    inEnglish(problem('unheard_of')).should.equal('failed 2:05 PM');
    inEnglish(problem('constructor')).should.equal('failed 2:05 PM');
  });
});
