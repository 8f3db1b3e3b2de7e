import should from 'should';
import { notANumber, phoneNumber } from '../../lib/runtime/recipients';

describe('what is said of a phone number that is none', () => {
  const cases: [what: string, given: unknown, country: string, sentence: RegExp][] = [
    ['nothing', '', '', /^There is no phone number/],
    ['a name', 'grace', '', /^What was given is not a phone number: give one such as \+/],
    ['a name, with a country', 'grace', 'US', /^What was given is not a phone number/],
    ['a plus sign alone', '+', '', /^What was given is not a phone number/],
    ['an object without a phone in it', {}, '', /^A phone number must be a text such as \+/],
    ['a number without a country code', '512 555 0142', '', /^The phone number has no country code/],
    ['a number that its country does not have', '12', 'US', /^The phone number is not a possible one in US/],
    ['a number that is too short', '+1512', '', /^The phone number is not in E\.164 format/],
  ];

  for (const [what, given, country, sentence] of cases) {
    it(`${what}: ${sentence.source}`, () => {
      should(phoneNumber(given, country)).be.undefined();
      notANumber(given, country).message.should.match(sentence);
    });
  }
});
