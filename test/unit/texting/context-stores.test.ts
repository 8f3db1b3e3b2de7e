import { mock } from 'node:test';
import { util } from '@node-red/util';
import should from 'should';
import { compile, source } from '../../../lib/runtime/inputs';
import type { Message, Red, RunningNode } from '../../../lib/runtime/red';
import { spec } from '../../../nodes/send-text/spec';
import { minute } from '../../../lib/durations';
import { closeLimit } from '../../../lib/service/clock';

describe('a field that reads a context store', () => {
  afterEach(() => mock.timers.reset());

  /** A store in which only the value `late` is answered. */
  const RED = {
    util: {
      evaluateNodeProperty: (name: string, _type: string, _node: object, _msg: object, done: Callback) => {
        if (name === 'late') done(null, name);
      },
      prepareJSONataExpression: (expression: string) => expression,
      evaluateJSONataExpression: () => undefined,
      parseContextStore: util.parseContextStore,
    },
  } as unknown as Red;
  type Callback = (fault: unknown, value: unknown) => void;
  const node = { type: 'advisor-send-text' } as RunningNode;
  const read = (value: string, type: string): unknown =>
    compile(RED, node, 'phone', value, type)({} as Message);

  for (const type of ['flow', 'global', 'jsonata'])
    it(`fails while its node may still close when the store never answers (${type})`, async () => {
      mock.timers.enable({ apis: ['setTimeout'] });
      const reading = read('phone', type) as Promise<unknown>;
      mock.timers.tick(closeLimit - 1);
      await should(reading).be.rejectedWith({ code: 'invalid_input', message: /phone.*timeout/ });
    });

  it('is named in errors as in the form, with its store', () => {
    const where = (text: string): unknown =>
      source(RED, node, spec, { text, textType: 'flow' }, 'text').where;
    should(where('#:(file)::greetings.first')).equal('flow.greetings.first (file)');
    should(where('greetings.first')).equal('flow.greetings.first');
  });

  it('takes whatever value the store answers', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const reading = read('late', 'flow');
    should(await reading).equal('late');
    mock.timers.tick(minute);
  });
});
