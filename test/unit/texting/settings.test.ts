import { inspect } from 'node:util';
import should from 'should';
import type { NodeSpec } from '../../../lib/runtime/spec';
import { folders as addressBook } from '../../support/address-book/setup';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach } from '../../support/simulated';
import { checkFolder, folders as sending, requestFolder } from '../../support/texting/setup';

const folders = [...sending, requestFolder, checkFolder, ...addressBook];

/** Settings that a form would not save, with what makes their field apply. */
const wrongIn = ({ fields }: NodeSpec): [name: string, config: Record<string, unknown>][] =>
  fields.flatMap((field) => {
    const around = Object.fromEntries(
      Object.entries(field.when ?? {}).map(([name, [value]]) => [name, value]),
    );
    const values = (): unknown[] => {
      if (field.kind === 'choice')
        return [
          'At',
          'later',
          7,
          ...(field.options.includes('true') ? [] : [true]),
          ['x'],
          [field.options[0]],
          {},
        ];
      if (field.kind === 'flag') return ['yes', 1, []];
      if (field.kind !== 'number') return [];
      const { min = 0, max, whole } = field;
      const wrong = [min - 1, 'soon', true, [1], {}, '1e999', ...(min > 0 ? [0] : [])];
      return [...wrong, ...(max ? [max + 1] : []), ...(whole ? [1.5] : [])];
    };
    return values().map((value): [string, Record<string, unknown>] => [
      field.name,
      { ...around, [field.name]: value },
    ]);
  });

const msg = (): Record<string, unknown> => ({
  phone: numbers.consented,
  text: 'Hi',
  payload: 'x',
  contactId: 1001,
  groupId: 1,
  memberId: 1,
  deliveryDate: Date.now() + 1e9,
});

describe('an unknown setting', () => {
  const on = simulatedForEach();

  for (const { spec } of folders) {
    for (const [name, config] of wrongIn(spec)) {
      it(`is invalid_input, and nothing is sent: ${spec.type} ${JSON.stringify(config)}`, async () => {
        const flow = await Flow.load({
          folders,
          environment: on.environment,
          nodes: [{ id: 'node', type: spec.type, ...config }],
        });
        const { port, msg: failed } = only(await flow.ask(msg()));
        should(port).equal(1);
        should(errorOf(failed).code).equal('invalid_input');
        should(errorOf(failed).message).match(/^".+" (is set to|must be) .+: open this node/, name);
        for (const { endpoint } of spec.uses) should(on.received(endpoint)).equal(0);
      });
    }
  }

  it('fails each entry of a list, and a text that returns with consent', async () => {
    const nodes = [{ id: 'send', type: 'advisor-send-text', schedule: 'later' }];
    const flow = await Flow.load({ folders, environment: on.environment, nodes });
    const arrived = await flow.ask({ ...msg(), phone: [numbers.consented, numbers.unasked] }, 2);
    should(arrived.map((each) => errorOf(each.msg).code)).deepEqual(['invalid_input', 'invalid_input']);
    const resend = { node: 'send', phone: numbers.consented, text: 'Hi', advisor: 'default' };
    should(errorOf(only(await flow.ask({ resend })).msg).code).equal('invalid_input');
    should(on.received('sendMessage')).equal(0);
  });

  for (const config of [
    { type: 'advisor-contact', operation: 'get', pageSize: 0, emit: 'nothing' },
    { type: 'advisor-send-text', schedule: null },
    { type: 'advisor-send-text', schedule: '' },
  ]) {
    it(`is ignored if it does not apply, or nothing is saved: ${JSON.stringify(config)}`, async () => {
      const nodes = [{ id: 'node', ...config }];
      const flow = await Flow.load({ folders, environment: on.environment, nodes });
      should(only(await flow.ask(msg())).port).equal(0);
    });
  }
});

describe('the advisor', () => {
  const on = simulatedForEach();

  for (const advisor of [['bob'], { key: 'bob' }, true, false, NaN, []]) {
    for (const type of ['advisor-send-text', 'advisor-contact']) {
      it(`is never guessed from msg.advisor = ${inspect(advisor)} by ${type}`, async () => {
        const nodes = [{ id: 'node', type, operation: 'get' }];
        const flow = await Flow.load({ folders, environment: on.environment, nodes });
        const { port, msg: failed } = only(await flow.ask({ ...msg(), advisor }));
        should(port).equal(1);
        should(errorOf(failed).code).equal('invalid_input');
        should(errorOf(failed).message).match(/^The value in msg\.advisor is not an advisor.s key/);
        should(on.received('sendMessage') + on.received('getContact')).equal(0);
      });
    }
  }

  for (const [config, given] of [
    [{ advisor: 'who', advisorType: 'msg' }, { who: ['bob'] }],
    [{ advisor: 'who', advisorType: 'msg' }, { who: ' ' }],
    [{ advisor: 'who', advisorType: 'msg' }, {}],
    [{ advisor: ['bob'], advisorType: 'str' }, {}],
  ] as const) {
    it(`is rejected as chosen: ${JSON.stringify([config, given])}`, async () => {
      const nodes = [{ id: 'send', type: 'advisor-send-text', ...config }];
      const flow = await Flow.load({ folders, environment: on.environment, nodes });
      const { port, msg: failed } = only(await flow.ask({ ...msg(), ...given }));
      should(port).equal(1);
      should(errorOf(failed).code).equal('invalid_input');
    });
  }
});
