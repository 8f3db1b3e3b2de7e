import helper from 'node-red-node-test-helper';
import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import type { Message } from '../../../lib/runtime/red';
import { createMemoryStore } from '../../../lib/state/memory';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type EnvironmentChoices } from '../../support/environment';
import { type Arrived, Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer, type Received } from '../../support/server';
import { startSimulated } from '../../support/simulated';
import { begin } from '../../support/consent/world';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';

const [ann, bob, cay] = ['+12025550101', '+12025550102', '+12025550103'] as const;
const folders = [sendFolder, requestFolder, checkFolder];

/** Answers each endpoint with success. */
const answerTo = ({ url }: Received): object => {
  if (url.includes('consent-requests')) return { successes: [{ memberId: 1 }], failures: [] };
  return url.includes('/consents') ? { memberId: 1, state: 'accepted', lastChanged: 0 } : sent;
};

/** One texting node on a service that records for whom each request is. */
const nodeOf = async (
  type: string,
  config: Readonly<Record<string, unknown>> = {},
  choices: EnvironmentChoices = {},
  env?: Readonly<Record<string, string>>,
) => {
  const server = await startServer((request) => ({ body: answerTo(request) }));
  const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: (advisor: string) => advisor };
  const environment = alsoClose(environmentOn(service, { advisors: ['alex', 'maria'], ...choices }));
  const nodes = [{ id: 'node', type, ...config }];
  const flow = await Flow.load({ folders, environment, nodes, ...(env && { env }) });
  return {
    flow,
    environment,
    texts: () => server.received.map(({ body }) => (JSON.parse(body) as { text?: string }).text),
    requests: () =>
      server.received
        .map(({ headers, url, body }) => {
          const phone = /\d{11}/.exec(decodeURIComponent(url) + body)?.[0] ?? '';
          return `${headers.authorization?.replace('Bearer ', '') ?? ''} +${phone}`;
        })
        .toSorted(),
  };
};
const sendOn = (config = {}, choices: EnvironmentChoices = {}) =>
  nodeOf('advisor-send-text', { text: 'Hi', textType: 'str', ...config }, choices);

const codesOf = (arrived: readonly Arrived[]): unknown[] =>
  arrived.map(({ port, msg }) => (port === 1 ? errorOf(msg).code : msg.outcome));

describe("a recipient's own fields", () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  describe('advisor', () => {
    for (const [type, config] of [
      ['advisor-send-text', { text: 'Hi', textType: 'str' }],
      ['advisor-request-consent', {}],
      ['advisor-check-consent', {}],
      ['advisor-check-consent', { mode: 'wait' }],
    ] as const) {
      it(`is the one for whom ${type} ${JSON.stringify(config)} acts`, async () => {
        const { flow, requests } = await nodeOf(type, config);
        const phone = [{ phone: ann, advisor: 'maria' }, { phone: bob }, { phone: cay, Advisor: ' ' }];
        const arrived = inOrder(await flow.ask({ phone, advisor: 'alex' }, 3));
        should(requests()).eql([`alex ${bob}`, `alex ${cay}`, `maria ${ann}`]);
        should(arrived.map(({ msg }) => msg.advisor)).eql(['maria', 'alex', 'alex']);
      });
    }

    it('fails that recipient alone if it is not authorized, or not a key at all', async () => {
      const { flow, requests } = await sendOn();
      const phone = [
        { phone: ann, advisor: 'zoe' },
        { phone: bob, advisor: { key: 'maria' } },
        { phone: cay, advisor: 'maria' },
      ];
      const arrived = inOrder(await flow.ask({ phone, advisor: 'alex' }, 3));
      should(codesOf(arrived)).eql(['authorization_required', 'invalid_input', 'sent']);
      should(requests()).eql([`maria ${cay}`]);
      // A retry of one of them must not be for Alex.
      should(arrived.map(({ msg }) => msg.advisor)).eql(['zoe', { key: 'maria' }, 'maria']);
    });

    it('is sufficient if the message names none of several: only the others fail', async () => {
      const { flow, requests } = await sendOn();
      const arrived = inOrder(await flow.ask({ phone: [{ phone: ann, advisor: 'maria' }, bob] }, 2));
      should(codesOf(arrived)).eql(['sent', 'invalid_input']);
      should(requests()).eql([`maria ${ann}`]);
    });

    it('is required as soon as a second advisor has authorized, even where the only one was used before', async () => {
      const advisors = ['alex'];
      const { flow, environment, requests } = await sendOn({}, { advisors });
      await flow.ask({ phone: ann });
      advisors.push('maria');
      environment.changed();
      const { msg } = only(await flow.ask({ phone: bob }));
      should(errorOf(msg).code).equal('invalid_input');
      should(requests()).eql([`alex ${ann}`]);
    });

    it('says that a key is written differently, rather than to authorize', async () => {
      const { flow, requests } = await sendOn({}, { advisors: ['alex', 'maria'] });
      const { msg } = only(await flow.ask({ phone: [{ phone: ann, advisor: 'Maria' }] }));
      should(errorOf(msg).code).equal('authorization_required');
      should(errorOf(msg).message).match(/^The advisor "Maria" has not .+ but "maria" has: write the key/);
      should(requests()).be.empty();
    });

    it('is explained to somebody who chose a column of the list for it', async () => {
      const { flow, requests } = await sendOn({
        phone: 'payload',
        advisor: 'payload.Berater',
        advisorType: 'msg',
      });
      const { msg } = only(await flow.ask({ payload: [{ phone: ann, Berater: 'maria' }] }));
      should(errorOf(msg).message).match(
        /^msg\.payload\.Berater names no advisor\. For a list, leave "Advisor" empty/,
      );
      const single = only(await flow.ask({ payload: ann }));
      should(errorOf(single.msg).message).match(/: put the key of an advisor there\.$/);
      should(requests()).eql([]);
    });

    it('makes the same text of two advisors two texts', async () => {
      const { flow, requests } = await sendOn();
      const phone = ['alex', 'maria', 'maria'].map((advisor) => ({ phone: ann, advisor }));
      await flow.ask({ phone }, 3);
      should(requests()).eql([`alex ${ann}`, `maria ${ann}`]);
    });

    it('is part of a send-once key', async () => {
      const { flow, requests } = await sendOn({ onceKey: 'k', onceKeyType: 'str' });
      await flow.ask({ phone: [{ phone: ann, advisor: 'alex' }] });
      const again = inOrder(
        await flow.ask({ phone: ['alex', 'maria'].map((advisor) => ({ phone: ann, advisor })) }, 2),
      );
      should(again.map(({ msg }) => (msg.payload as { alreadySent?: true }).alreadySent)).eql([
        true,
        undefined,
      ]);
      should(requests()).eql([`alex ${ann}`, `maria ${ann}`]);
    });

    for (const type of ['advisor-send-text', 'advisor-request-consent', 'advisor-check-consent']) {
      const load = (config: object = {}) =>
        nodeOf(type, { text: 'Hi', textType: 'str', ...config }, { advisors: ['alex'] });
      const row = { Mobile: ann, ' Advisor': 'maria' };

      it(`is not passed over by ${type} in a row that comes alone: nobody is texted`, async () => {
        const { flow, requests } = await load({ phone: 'payload.Mobile', phoneType: 'msg' });
        const { msg } = only(await flow.ask({ payload: row }));
        const { code, message } = errorOf(msg);
        should(code).equal('invalid_input');
        should(message).match(/maria.*choose msg\.payload\[" Advisor"\] under "Advisor"/);
        // A retry fails too.
        should(errorOf(only(await flow.ask(msg)).msg).message).equal(message);
        should(requests()).be.empty();
      });

      it(`does not stop ${type} if it is the one who acts, if there is none, or if the message names another`, async () => {
        const { flow, requests } = await load();
        await flow.ask({ phone: ann, payload: { Mobile: ann, advisor: 'alex' } });
        await flow.ask({ phone: bob, payload: { Mobile: bob, advisor: ' ' } });
        await flow.ask({ phone: cay, payload: { Mobile: cay, advisor: 'maria' }, advisor: 'alex' });
        should(requests()).eql([`alex ${ann}`, `alex ${bob}`, `alex ${cay}`]);
      });
    }

    it('is not that of a payload about somebody else', async () => {
      const { flow, requests } = await sendOn({}, { advisors: ['alex'] });
      await flow.ask({ phone: bob, payload: { phone: ann, advisor: 'maria' } });
      should(requests()).eql([`alex ${bob}`]);
    });

    it('stays with the recipient round the consent loop', async () => {
      const { environment } = alsoClose(await startSimulated());
      const flow = await Flow.load({
        folders,
        environment,
        nodes: [{ id: 'send', type: 'advisor-send-text' }],
      });
      const phone = [{ phone: '+12025550112', advisor: 'maria' }];
      const { port, msg } = only(await flow.ask({ phone, text: 'Hi' }));
      should([port, msg.advisor]).eql([2, 'maria']);
      should(msg.resend).containEql({ advisor: 'maria' });
    });
  });

  describe('number', () => {
    for (const type of ['advisor-send-text', 'advisor-request-consent', 'advisor-check-consent']) {
      it(`is in the field that "Column" of ${type} names, whatever its case`, async () => {
        const { flow, requests } = await nodeOf(type, { phoneField: 'Mobile' });
        const phone = [{ Mobile: ann, mobile: cay }, { MOBILE: bob }];
        await flow.ask({ phone, text: 'Hi', advisor: 'alex' }, 2);
        should(requests()).eql([`alex ${ann}`, `alex ${bob}`]);
      });
    }

    it('and placeholders are found despite a byte-order mark or spaces around the name of the field', async () => {
      const { flow, texts } = await nodeOf('advisor-send-text', { phoneField: 'mobile' });
      const phone = [
        { '\ufeffMobile': ann, 'Name ': 'Ann' },
        { mobile: bob, '\ufeffname': 'Bob' },
      ];
      await flow.ask({ phone, text: 'Hi {{name}}', advisor: 'alex' }, 2);
      should(texts().toSorted()).eql(['Hi Ann', 'Hi Bob']);
    });

    it('and the field after a byte-order mark can be named in the flow behind the node', async () => {
      const { flow } = await sendOn();
      const phone = [{ '\ufefffirstName': 'Ann', phone: ann }, bob];
      const arrived = inOrder(await flow.ask({ phone, advisor: 'alex' }, 2));
      should(arrived.map(({ msg }) => msg.recipient)).eql([{ firstName: 'Ann', phone: ann }, undefined]);
    });

    const saidOf = async (entry: object, config = {}): Promise<string> => {
      const { flow } = await sendOn({ phone: 'rows', ...config });
      const { msg } = only(await flow.ask({ rows: [entry], advisor: 'alex' }));
      should(errorOf(msg).code).equal('invalid_input');
      return errorOf(msg).message;
    };

    it('is suggested by the name of another field, or by its contents', async () => {
      should(await saidOf({ name: 'Ann', mobile: '' })).equal(
        'Entry 1 of the list in msg.rows has no field "phone". Its fields are name, mobile: enter "mobile" under "Column" in the node.',
      );
      await Flow.unload();
      should(await saidOf({ id: 7, contact_no: '(202) 555-0101', zip: '10001' })).match(
        /has no field "phone".+ id, contact_no, zip: enter "contact_no" under "Column"/,
      );
      await Flow.unload();
      should(await saidOf({ name: 'Ann', town: 'Bonn' }, { phoneField: 'mobile' })).match(
        /has no "mobile": fill in its phone number\. .+ \(name, town\), enter that one under "Column" in the node\.$/,
      );
    });

    it('is not suggested where the columns of a file were not separated', async () => {
      for (const separator of [';', ',']) {
        const [names, cells] = [`name${separator}mobile`, `Ann${separator}${ann}`];
        should(await saidOf({ [names]: cells })).match(
          /^Entry 1 of the list in msg\.rows has only one field, "name[;,]mobile", .+ separator of the file in the csv node\.$/,
        );
        await Flow.unload();
      }
    });

    it('is not suggested where the line that tells Excel the separator was read as the column names', async () => {
      should(await saidOf({ 'sep=': 'name', '': 'mobile' })).match(
        /^Entry 1 of the list in msg\.rows has the field "sep=", .+: skip that line in the csv node\.$/,
      );
    });

    it('is suggested for an object that is in no list', async () => {
      const chosen = async (entry: object): Promise<string> => {
        const { flow } = await sendOn({ phone: 'row' });
        const { message } = errorOf(only(await flow.ask({ row: entry, advisor: 'alex' })).msg);
        await Flow.unload();
        return /such as (.+), or/.exec(message)?.[1] ?? message;
      };
      should(await chosen({ name: 'Ann', mobile: ann })).equal('msg.row.mobile');
      should(await chosen({ mobile: '', phone: ann })).equal('msg.row.phone');
      should(await chosen({ name: 'Ann', 'mobile number': ann })).equal('msg.row["mobile number"]');
      should(await chosen({})).equal('msg.row.phone');
    });

    it('is not suggested in a date or the number of a customer', async () => {
      for (const value of ['19.11.1980', '1980-11-19', '1234567', 1234567]) {
        should(await saidOf({ name: 'Ann', value })).match(/has no "phone": fill in its phone number\./);
        await Flow.unload();
      }
      should(await saidOf({ name: 'Ann', value: '0171 2345678', since: '01.02.2020' })).match(
        /enter "value" under "Column"/,
      );
    });

    it('is not looked for in search results, which have none, unless a field of theirs has one', async () => {
      const found = { contactId: 1234567, fullName: 'Ann Ito', groupCount: 2 };
      const sentence =
        /^Search results contain no phone numbers: read each contact with a second contact node, or/;
      should(await saidOf(found)).match(sentence);
      await Flow.unload();
      should(await saidOf({ ...found, mobile: ann })).match(/enter "mobile" under "Column"/);
      await Flow.unload();
      const { flow } = await sendOn({ phone: 'page' });
      const page = { data: [found], pageInfo: { page: 1 } };
      should(errorOf(only(await flow.ask({ page, advisor: 'alex' })).msg).message).match(sentence);
    });

    it('is reported as empty if it is empty, not as missing', async () => {
      should(await saidOf({ name: 'Ann', '\ufeffPhone': '' })).match(
        /^The field "phone" of entry 1 .+ is empty/,
      );
    });

    it('is reported with no more than ten other fields', async () => {
      const wide = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`col${String(n)}`, 'x']));
      should(await saidOf(wide)).match(/ \(col0, .+, col9, …\), /);
    });
  });

  describe('placeholders', () => {
    it('are replaced in its own text, and in one that came with the message, without spaces around the value', async () => {
      const { flow, texts } = await nodeOf('advisor-send-text');
      const phone = [
        { phone: ann, name: 'Ann', text: 'Dear {{name}}' },
        { phone: bob, Name: 'Bob' },
        { phone: bob, Name: ' Bob ' },
      ];
      await flow.ask({ phone, text: 'Hi {{name}}', name: 'nobody', advisor: 'alex' }, 3);
      should(texts().toSorted()).eql(['Dear Ann', 'Hi Bob']);
    });

    const authored = 'Hi {{name}} of {{town}}';
    for (const [what, text, textType, env] of [
      ['typed in', authored, 'str'],
      ['of an environment variable', 'PEOPLE_TEST_TEXT', 'env'],
      ["of a subflow's variable", 'WORDS', 'env', { WORDS: authored }],
      ['of a flow variable', 'words', 'flow'],
      ['of a global variable', 'words.there', 'global'],
      ['of an expression', "'Hi {{name}} of ' & '{{town}}'", 'jsonata'],
    ] as const) {
      it(`are also found in msg.contact and the message for a text ${what}, or it is not sent`, async () => {
        process.env['PEOPLE_TEST_TEXT'] = authored;
        const { flow, texts } = await nodeOf('advisor-send-text', { text, textType }, {}, env);
        const variables = helper.getNode('node')?.context();
        variables?.flow.set('words', authored);
        variables?.global.set('words', { there: authored });
        const msg = { phone: ann, contact: { Name: 'Ann' }, name: 'nobody', advisor: 'alex' };
        const gap = only(await flow.ask({ ...msg }));
        should(errorOf(gap.msg)).containEql({ code: 'invalid_input' });
        await flow.ask({ ...msg, town: 'Bonn' });
        delete process.env['PEOPLE_TEST_TEXT'];
        should(texts()).eql(['Hi Ann of Bonn']);
      });
    }

    for (const [what, msg] of [
      ['a text of the message', { phone: ann, text: 'Hi {{name}}', name: 'Ann', contact: { name: 'Ann' } }],
      ['a text of its own', { phone: [{ phone: ann, text: 'Hi {{name}}' }], name: 'Ann' }],
      ['braces that name nothing', { phone: ann, text: 'Hi {{ there' }],
      ['a value that holds braces', { phone: [{ phone: ann, name: '{{x}}', text: 'Hi {{name}}' }] }],
    ] as readonly [string, Message][]) {
      it(`without a value are never sent as braces: ${what}`, async () => {
        const { flow, texts } = await nodeOf('advisor-send-text');
        const { port, msg: failed } = only(await flow.ask({ ...msg, advisor: 'alex' }));
        should([port, errorOf(failed).code]).eql([1, 'invalid_input']);
        should(texts()).be.empty();
      });
    }

    it('name the field that a recipient has, but empty', async () => {
      const { flow } = await nodeOf('advisor-send-text', { text: 'From {{Town}}', textType: 'str' });
      const { msg } = only(await flow.ask({ phone: [{ phone: ann, town: ' ' }], advisor: 'alex' }));
      should(errorOf(msg).message).match(/^"Town" is empty, so the text would have a gap/);
    });

    it('are not looked for in an object, which is not a text', async () => {
      const { flow } = await nodeOf('advisor-send-text');
      const { msg } = only(await flow.ask({ phone: ann, text: { en: 'Hi' }, advisor: 'alex' }));
      should(errorOf(msg).message).match(/^The value in msg\.text is not a text/);
    });

    it('name the field whose value holds braces', async () => {
      const { flow } = await nodeOf('advisor-send-text');
      const phone = [{ phone: ann, name: '{{x}}', text: 'Hi {{name}}' }];
      const { msg } = only(await flow.ask({ phone, advisor: 'alex' }));
      should(errorOf(msg).message).match(/^The value of "name" contains double braces/);
    });
  });

  describe('entry', () => {
    const rows = () => [
      { phone: ann, name: 'Ann' },
      { phone: 'none', name: 'Bob' },
    ];

    it('is the payload of its failure if the payload was the list', async () => {
      const { flow } = await sendOn({ phone: 'payload' });
      const [first, failed] = inOrder(await flow.ask({ payload: rows(), advisor: 'alex' }, 2));
      should(failed?.msg.payload).eql(rows()[1]);
      should(first?.msg.payload).have.property('messageId');
    });

    it('replaces the list, even deep in the message, and everything beside it is kept', async () => {
      const { flow } = await sendOn({ phone: 'data.rows[0].people' });
      const data = { kept: { n: 1 }, rows: [{ people: rows() }] };
      const arrived = inOrder(await flow.ask({ data, advisor: 'alex' }, 2));
      should(arrived.map(({ msg }) => msg['data'])).eql(
        rows().map((people) => ({ kept: { n: 1 }, rows: [{ people }] })),
      );
      const [one, other] = arrived.map(({ msg }) => msg['data'] as typeof data);
      should(one?.kept).not.equal(other?.kept);
      should(data.rows[0]?.people).eql(rows());
    });

    it('is kept for plain numbers as given, and for member ids', async () => {
      const { flow } = await sendOn({ phone: 'payload' }, { settings: { country: 'US' } });
      const payload = ['202 555 0101', 'none'];
      const arrived = inOrder(await flow.ask({ payload, advisor: 'alex' }, 2));
      should(arrived[1]?.msg.payload).equal('none');
      await Flow.unload();
      const byId = await nodeOf('advisor-check-consent', { by: 'memberId', memberId: 'ids' });
      const checked = inOrder(await byId.flow.ask({ ids: [7, true], advisor: 'alex' }, 2));
      should(checked.map(({ msg }) => msg['ids'])).eql([7, true]);
    });

    it('does not replace the list for a Complete node', async () => {
      const people = rows();
      for (const input of [
        { payload: { people, kept: true }, advisor: 'alex' },
        { payload: { people: ['+12025550101', '12'] }, advisor: 'alex' },
      ]) {
        const { flow } = await sendOn({ phone: 'payload.people' }, { settings: { journal: true } });
        flow.send(structuredClone(input));
        await flow.arrivals.next(2);
        should(only(await flow.completed.next()).payload).eql(input.payload);
        await Flow.unload();
      }
    });

    it('is all that is saved of the list, and is restored after a restart', async () => {
      const store = createMemoryStore();
      const clock = new MovableClock(() => begin);
      const settings = {
        journal: true,
        textHours: { from: 0, until: 60, outside: 'hold' as const },
        timeZone: 'UTC',
      };
      const config = { phone: 'payload.people' };
      const before = await sendOn(config, { store, clock, settings });
      const mark = 'saved only once';
      const people = rows().map((row) => ({ ...row, note: mark }));
      before.flow.send({ payload: { people, kept: true }, advisor: 'alex' });
      await before.flow.arrivals.next();
      const all = { from: Buffer.alloc(0), to: Buffer.alloc(8, 0xff), limit: 1000 };
      const records = JSON.stringify(await store.page('work', all));
      should(records.split(mark)).have.length(people.length + 1);
      await Flow.unload();
      const after = await sendOn(config, { store, clock, settings: { journal: true } });
      const { msg } = only(await after.flow.arrivals.next());
      // The service is another one now, so the text is cancelled.
      should(msg).containEql({ outcome: 'failed', recipient: people[0] });
      should(msg.payload).eql({ people: people[0], kept: true });
    });
  });
});
