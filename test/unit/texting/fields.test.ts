import assert from 'node:assert/strict';
import should from 'should';
import { compileTemplate } from '../../../nodes/send-text/template';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startSimulated, type Simulated } from '../../support/simulated';
import { sendNode } from '../../support/texting/setup';

/** A setting of the node, and what the failure says. */
const cases: [what: string, config: Record<string, unknown>, sentence: RegExp][] = [
  [
    'a name with a space in it',
    { phone: 'my phone', phoneType: 'msg' },
    /^The field "Phone number" of this node does not contain a valid property name: open the node and /,
  ],
  [
    'a name with an open bracket',
    { phone: 'phones[0', phoneType: 'msg' },
    /^The field "Phone number" of this node does not contain a valid property name/,
  ],
  [
    'JSON with a mistake',
    { phone: '["+12025550101"', phoneType: 'json' },
    /^The field "Phone number" of this node does not contain valid JSON: open the node and check quotes/,
  ],
  [
    'an expression with a mistake',
    { text: '"Hi', textType: 'jsonata' },
    /^The JSONata expression in the field "Text" of this node is invalid \(.+\): open the node/,
  ],
  [
    'an expression that does not fit the message',
    { text: '$number(name)', textType: 'jsonata' },
    /^The JSONata expression in the field "Text" of this node failed for this message \(.+\)/,
  ],
  [
    'a source of another version',
    { text: 'x', textType: 'cloud' },
    /^The field "Text" of this node reads its value from a source that this version does not know \(cloud\)/,
  ],
  [
    'a source that is no text',
    { text: 'x', textType: true },
    /^The field "Text" of this node reads its value from a source that this version does not know \(true\)/,
  ],
];

describe('a property that cannot be read', () => {
  let on: Simulated;

  before(async () => {
    on = await startSimulated();
  });
  after(() => on.close());
  afterEach(() => Flow.unload());

  for (const [what, config, sentence] of cases) {
    it(`says for ${what} which field it is, what is wrong and what to do`, async () => {
      const flow = await sendNode(on.environment, config);
      const { port, msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi', name: 'Ann' }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(sentence);
      should(errorOf(msg).message).not.match(/position|unexpected|my phone/);
    });
  }
});

describe('a text with placeholders', () => {
  for (const text of [
    'Hi {{}} there',
    'Hi {{ there',
    'Hi {{name} there',
    'Hi {{ {name} }} there',
    'Hi {{{name}}}',
    'Hi }}',
  ]) {
    it(`is malformed as ${text}`, () => {
      should(() => compileTemplate(text)).throw(/double braces/);
    });
  }

  it('is found malformed in no time, whatever follows the braces', () => {
    // A pattern that backtracks over the spaces takes minutes for these.
    const text = `Hi {{${' '.repeat(8000)}`;
    should(() => compileTemplate(text)).throw(/double braces/);
  });

  it('may contain single braces', () => {
    should(compileTemplate('{a} {{ name }} }')([() => 'Ann'], () => assert.fail())).equal('{a} Ann }');
  });
});
