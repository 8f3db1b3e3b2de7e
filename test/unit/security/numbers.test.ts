import should from 'should';
import { hideNumbers, lastFour } from '../../../lib/runtime/log';

describe('a number in the log', () => {
  it('shows its last four digits and no more', () => {
    for (const number of ['+12025550199', '+1 (202) 555-0199', '٠١٢٣٤٥٦٠١٩٩'])
      should(lastFour(number)).match(/^…\p{Nd}{4}$/u);
    should(lastFour('+12025550199')).equal('…0199');
  });

  for (const written of ['+12025550199', '0012025550199', '(202) 555-0199', '202.555.0199', '2025550199'])
    it(`is hidden in a sentence as ${written}`, () => {
      should(hideNumbers(`Nobody has ${written}.`)).equal('Nobody has …0199.');
    });

  it('is shown where it is the example in our own sentences', () => {
    for (const sentence of ['Use one such as +12025550123.', 'Start with +, as in +1 202 555 0123, please.'])
      should(hideNumbers(sentence)).equal(sentence);
  });

  it('is not taken for one where it is a year, an id or an amount', () => {
    const sentence = 'In 2026, contact 123456 has 3 groups.';
    should(hideNumbers(sentence)).equal(sentence);
  });
});
