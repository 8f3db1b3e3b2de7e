import {
  getCountries,
  getCountryCallingCode,
  getExampleNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js';
import examples from 'libphonenumber-js/examples.mobile.json';
import should from 'should';
import { wordsIn } from '../../../lib/runtime/language';
import { notANumber, phoneNumber } from '../../../lib/texting/recipients';
import { alsoClose, closeAll } from '../../support/closing';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { startSimulated } from '../../support/simulated';
import { sendNode } from '../../support/texting/setup';

describe('the error for an invalid phone number', () => {
  const cases: [what: string, given: unknown, country: string, sentence: RegExp][] = [
    ['nothing', '', '', /^There is no phone number in msg\.phone/],
    ['a list that is a text', '["+12025550113", "+12025550112"]', '', /^msg\.phone contains text.+JSON/],
    ['the beginning of a list, with a country', '["+12025550113"', 'US', /^msg\.phone contains text/],
    ['an object that is a text', '{"phone":"2025550113"}', 'US', /^msg\.phone contains text/],
    ['a list of numbers that is a text', ' [2025550113] ', 'US', /^msg\.phone contains text/],
    ['a name', 'grace', '', /^This is not a phone number: use one such as \+/],
    ['a name, with a country', 'grace', 'US', /^This is not a phone number/],
    ['a name before a number', 'Ann 2025550113', 'US', /^There is text next to the phone number: leave only/],
    ['a name before a number with +', 'Ann +12025550113', '', /^There is text next to the phone number/],
    ['a number that Excel has rounded', '1.21756E+10', '', /^A spreadsheet has rounded this phone number/],
    ['a rounded number with a comma', '1,21756e10', 'DE', /^A spreadsheet has rounded this phone number/],
    ['a rounded number that a csv node has parsed', 2_185_550_000, 'US', /^This phone number ends in 0000/],
    ['one with its country code', 12_185_550_000, 'US', /^This phone number ends in 0000/],
    ['a zero', 0, 'US', /^The phone number is too short/],
    ['a name after a number', '202-555-0113 Ann', 'US', /^There is text next to the phone number/],
    ['a number with an extension', '202-555-0113 ext. 5', 'US', /^There is text next to the phone number/],
    ['a number with a short extension', '2025550113x5', 'US', /^There is text next to the phone number/],
    ['an extension after a sign', '202-555-0113 #5', 'US', /fit the country of the environment/],
    ['a number with + and an extension', '+12025550113 ext 5', '', /^The phone number contains characters/],
    ['a plus sign alone', '+', '', /^This is not a phone number/],
    ['an object without a phone in it', {}, '', /^A phone number must be text such as \+/],
    ['a number without a country code', '512 555 0142', '', /^The phone number has no country code/],
    [
      'a number that its country does not have',
      '555 0142',
      'US',
      /fit the country of the environment \(United States\): write/,
    ],
    [
      'one that lost its + or its zero in a spreadsheet',
      491717654321,
      'DE',
      /may or may not start with the country/,
    ],
    ['a number with hardly any digits', '(999) 12', '', /^The phone number is too short: write/],
    ['a number with hardly any digits in a country', '(999) 12', 'US', /^The phone number is too short/],
    ['a number that is too short', '+1512', '', / 8 to 15 digits .+: this one has 4\.$/],
    ['one that is too short and has spaces', '+1 51 2', '', /this one has 4\.$/],
    ['a number that is too long', '+1202555011312345', '', /this one has 16\.$/],
    [
      'a number with a letter in it',
      '+1202555o113',
      'US',
      /^The phone number contains characters other than digits/,
    ],
    ['a plus sign apart from the digits', '+ 12025550113', 'US', /^The phone number contains characters/],
    ['two numbers in one text', '+12025550113, +12025550114', '', /^There are several numbers/],
    ['two numbers of a country in one text', '2025550113;2025550114', 'US', /^There are several numbers/],
  ];

  for (const [what, given, country, sentence] of cases) {
    it(`${what}: ${sentence.source}`, () => {
      should(phoneNumber(given, country)).be.undefined();
      const { problem } = notANumber(given, country, { where: 'msg.phone', list: false });
      wordsIn('en').problem(problem).should.match(sentence);
    });
  }

  it('names the place of a list entry without one, and the required field name', () => {
    const { message } = notANumber(undefined, '', { where: 'msg.phone', list: true, row: 3 });
    message.should.match(/^Entry 3 of the list in msg\.phone has no phone number: .+ the field phone\.$/);
  });

  for (const written of [
    '+1 202 555 0113',
    '+1 (202) 555-0113',
    '+1.202.555.0113',
    '+1\u00a0202\u2011555\u20130113',
    '\u202a+1 202\u200b 555 0113\u202c',
    ' +12025550113 ',
  ]) {
    it(`is not raised for ${JSON.stringify(written)}, with and without a country`, () => {
      should(phoneNumber(written, '')).equal('+12025550113');
      should(phoneNumber(written, 'DE')).equal('+12025550113');
    });
  }

  it('leaves a number that starts with + as it is written', () => {
    for (const written of ['+4901717654321', '+390612345678'])
      should(phoneNumber(written, 'DE')).equal(written);
  });

  for (const written of ['+49 (0)171 7654321', '+49(0)171-7654321'])
    it(`reads ${written} without its zero, as it is on the do-not-text list`, () => {
      should(phoneNumber(written, '')).equal('+491717654321');
    });

  it('leaves out decimal places that a column of numbers was exported with, but no zeros that were dialed', () => {
    for (const written of ['1717654321.0', '1717654321.00', '1717654321,0'])
      should(phoneNumber(written, 'DE')).equal('+491717654321', written);
    should(phoneNumber('+33 6.12.34.56.00', '')).equal('+33612345600');
    should(phoneNumber('0171.765.43.0', 'DE')).equal('+49171765430');
  });

  it('reads a zero in parentheses as the country does, in every country', () => {
    for (const country of getCountries()) {
      const national = getExampleNumber(country, examples)?.nationalNumber;
      if (national === undefined) continue;
      const written = `+${getCountryCallingCode(country)} (0)${national}`;
      should(phoneNumber(written, '')).equal(parsePhoneNumberFromString(written)?.number, written);
    }
  });

  it('reads a number without + that can only start with its country code, or only without it', () => {
    should(phoneNumber('15125550142', 'US')).equal('+15125550142');
    should(phoneNumber('34612345678', 'ES')).equal('+34612345678');
    should(phoneNumber('481234567', 'PL')).equal('+48481234567');
    should(phoneNumber('04917 123456', 'DE')).equal('+494917123456');
  });

  for (const written of ['tel:202-555-0113', 'Tel. 202 555 0113'])
    it(`is not raised for ${written}`, () => {
      should(phoneNumber(written, 'US')).equal('+12025550113');
    });

  it('is not raised for a number whose area code is in square brackets', () => {
    should(phoneNumber('[202] 555-0113', 'US')).equal('+12025550113');
  });
});

describe('send text node, recipients that cannot be found', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('says where it looked for a number, and under which name an object must have it', async () => {
    const { environment } = alsoClose(await startSimulated());
    const flow = await sendNode(environment, { phone: 'people', phoneType: 'msg' });
    const people = [{ number: numbers.consented }];
    const { port, msg } = only(await flow.ask({ people, text: 'Hi' }));
    should(port).equal(1);
    should(errorOf(msg).code).equal('invalid_input');
    should(errorOf(msg).message).match(
      /list in msg\.people has no field "phone".+ enter "number" under "Column"/,
    );
  });

  it('names the chosen column to somebody whose rows are lists of cells', async () => {
    const { environment } = alsoClose(await startSimulated());
    const flow = await sendNode(environment, { phoneField: 'Handy' });
    const { msg } = only(await flow.ask({ phone: [['Ann', numbers.consented]], text: 'Hi' }));
    should(errorOf(msg).message).match(/may contain numbers, or objects with the field "Handy"/);
  });

  it('names the field of the form where no message property was chosen', async () => {
    const { environment } = alsoClose(await startSimulated());
    const flow = await sendNode(environment, { phone: '', phoneType: 'msg' });
    const { code, message } = errorOf(only(await flow.ask({ phone: numbers.consented, text: 'Hi' })).msg);
    should(code).equal('invalid_input');
    should(message).match(/^"Phone number" contains neither/);
  });

  it('sends to nobody from a string that was meant as a list, even if a number could be read', async () => {
    const { environment, received } = alsoClose(await startSimulated({}, { settings: { country: 'US' } }));
    const flow = await sendNode(environment);
    const phone = `["${numbers.consented}"`;
    const { port, msg } = only(await flow.ask({ phone, text: 'Hi' }));
    should(port).equal(1);
    should(errorOf(msg).message).match(/^msg\.phone contains text .+ JSON node/);
    should(received('sendMessage')).equal(0);
  });

  it('finds the fields of a recipient whatever their case, exact matches first', async () => {
    const { environment } = alsoClose(await startSimulated());
    const flow = await sendNode(environment, { text: 'Hi {{firstName}}', textType: 'str' });
    const phone = [
      { PHONE: numbers.consented, FirstName: 'Ann' },
      { Phone: 'nobody', phone: numbers.consented, firstname: 'Bob', firstName: 'Ben' },
      { Phone: numbers.consented, Text: 'My own' },
    ];
    const arrived = inOrder(await flow.ask({ phone }, 3));
    should(arrived.map(({ port, msg }) => [port, msg.text])).deepEqual([
      [0, 'Hi Ann'],
      [0, 'Hi Ben'],
      [0, 'My own'],
    ]);
  });

  it('says of an object that is not in a list where its number may be', async () => {
    const { environment } = alsoClose(await startSimulated());
    const flow = await sendNode(environment);
    const [row] = await flow.ask({ phone: { name: 'Ann', phone: numbers.consented }, text: 'Hi' });
    should(errorOf(row?.msg ?? {}).message).match(
      /^msg\.phone contains an object, .+ such as msg\.phone\.phone,/,
    );
    const [spaced] = await flow.ask({ phone: { 'Mobile Phone': numbers.consented }, text: 'Hi' });
    should(errorOf(spaced?.msg ?? {}).message).match(/ such as msg\.phone\["Mobile Phone"\],/);
  });

  it('fails a hole of a sparse array once, at its index, and sends to all others', async () => {
    const { environment, received } = alsoClose(await startSimulated());
    const flow = await sendNode(environment);
    // As `delete list[1]` in a function node leaves it.
    const phone = [numbers.consented, numbers.consented, numbers.consented, '+12025550110'];
    Reflect.deleteProperty(phone, 1);
    const arrived = inOrder(await flow.ask({ phone, text: 'Hi' }, 4));
    await flow.completed.next();
    should(arrived.map(({ msg }) => (msg.parts as { index: number }).index)).deepEqual([0, 1, 2, 3]);
    should(arrived.map(({ port }) => port === 1)).deepEqual([false, true, false, false]);
    should(errorOf(arrived[1]?.msg ?? {})).containEql({ code: 'invalid_input' });
    should(errorOf(arrived[1]?.msg ?? {}).message).match(/^Entry 2 of the list in msg\.phone has no phone/);
    should(received('sendMessage')).equal(2);
    should(flow.arrivals.all).have.length(4);
  });

  for (const phone of [[], {}, { phone: numbers.consented }, true, [[numbers.consented]], null]) {
    it(`reports one invalid_input: ${JSON.stringify(phone)}`, async () => {
      const { environment, received } = alsoClose(await startSimulated());
      const flow = await sendNode(environment);
      const { port, msg } = only(await flow.ask({ phone, text: 'Hi' }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      should(received('sendMessage')).equal(0);
    });
  }
});
