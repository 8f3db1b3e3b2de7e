import fc from 'fast-check';
import should from 'should';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import type { Message } from '../../../lib/runtime/red';
import { MovableClock } from '../../../simulator/movable-clock';
import { activityOf } from '../../../lib/runtime/activity';
import { alsoClose } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { isLong } from '../../support/extent';
import { Flow, type Arrived } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';

const lists = isLong ? 1000 : 200;

const folders = [sendFolder, requestFolder, checkFolder];
const unknown = '+12025550199';
/** What a dry run predicts for somebody, or what then happened. */
interface Foreseen {
  readonly code?: string;
  readonly message?: string;
  readonly segments?: number;
  readonly duplicateOf?: number;
  readonly alreadySent?: boolean;
  readonly notBefore?: number;
}
type Foretold = Record<string, unknown> & { readonly at: number; readonly duplicateOf: unknown };

describe('a dry run', () => {
  const on = simulatedForEach(() =>
    startSimulated({ clock: new MovableClock(() => Date.UTC(2027, 0, 4, 15)) }),
  );

  const load = (
    type: string,
    config: Readonly<Record<string, unknown>> = {},
    environment = on.environment,
  ): Promise<Flow> => Flow.load({ folders, environment, nodes: [{ id: 'node', type, ...config }] });

  describe('of send text', () => {
    it('sends nothing, and distinguishes who has accepted and who has not', async () => {
      const flow = await load('advisor-send-text');
      const phone = [numbers.consented, numbers.unasked, unknown, 'nobody'];
      const arrived = inOrder(await flow.ask({ phone, text: 'Hi', dryRun: true }, 4));
      should(arrived.map(({ port }) => port)).deepEqual([0, 2, 2, 1]);
      should(on.received('sendMessage')).equal(0);
      const [sent, pending, missing, wrong] = arrived.map(({ msg }) => msg);
      should(sent?.payload).containEql({ messageId: null, scheduled: false, segments: 1, dryRun: true });
      should(pending?.payload).containEql({ segments: 1, dryRun: true });
      should(missing?.payload).containEql({ reason: 'unknown_number', dryRun: true });
      should(errorOf(wrong ?? {})).containEql({ code: 'invalid_input', dryRun: true });
      should(arrived.every(({ msg }) => msg.dryRun === true)).be.true();
    });

    it('says in its status that nobody was texted', async () => {
      const flow = await load('advisor-send-text');
      await flow.ask({ phone: numbers.consented, text: 'Hi', dryRun: true });
      const text = 'sim dry run: 1 would be sent';
      should(flow.statuses.at(-1)).eql({ fill: 'grey', shape: 'ring', text });
    });

    it('says in its status that a message that failed as a whole was a dry run', async () => {
      const flow = await load('advisor-send-text');
      await flow.ask({ phone: [], text: 'Hi', dryRun: true });
      should(flow.statuses.at(-1)?.text).match(/^sim dry run: invalid input /);
    });

    it('marks a message that fails as a whole, and a resend, too', async () => {
      const flow = await load('advisor-send-text');
      const [failed] = await flow.ask({ phone: [], text: 'Hi', dryRun: 'yes' });
      should(errorOf(failed?.msg ?? {})).containEql({ code: 'invalid_input', dryRun: true });
      const [round] = await flow.ask({ phone: numbers.unasked, text: 'Hi', dryRun: 1 });
      const [again] = await flow.ask(round?.msg ?? {});
      should(again?.port).equal(2);
      should(on.received('sendMessage')).equal(0);
    });

    for (const dryRun of [false, 'false', '', 0, null, undefined])
      it(`is off with msg.dryRun = ${JSON.stringify([dryRun])}`, async () => {
        const flow = await load('advisor-send-text');
        const { msg } = only(await flow.ask({ phone: numbers.consented, text: 'Hi', dryRun }));
        should(msg.payload).not.have.property('dryRun');
        should(on.received('sendMessage')).equal(1);
      });

    it(`predicts what then happens and when, for ${lists} lists, some of which are held`, async function () {
      this.timeout(300_000);
      const textHours: { from: number; until: number; outside: 'fail' | 'hold' } = {
        from: 8 * 60,
        until: 21 * 60,
        outside: 'fail',
      };
      const clock = new MovableClock(() => Date.UTC(2027, 0, 4, 15));
      const { environment } = alsoClose(await startSimulated({ clock }, { settings: { textHours } }));
      const once = { onceKey: '{{id}}', onceKeyType: 'str' };
      const flow = await load('advisor-send-text', { maxSegments: 1, ...once }, environment);
      const blocked = '+12025550133';
      await (await doNotTextOf(environment)).block(blocked, null, 0);
      const times = new WeakMap<Message, number>();
      const add = flow.arrivals.add.bind(flow.arrivals);
      flow.arrivals.add = (arrived) => {
        times.set(arrived.msg, clock.now());
        add(arrived);
      };

      /** How somebody leaves, and when. */
      const foretold = ({ port, msg }: Arrived): Foretold => {
        const { payload, error = {} } = msg as { payload?: Foreseen; error?: Foreseen };
        const { segments, duplicateOf, alreadySent, notBefore } =
          port === 1 ? ({} as Foreseen) : (payload ?? {});
        const { code, message, notBefore: allowedFrom } = error;
        const about = { port, code, message, duplicateOf, allowedFrom };
        const ofSent = port === 0 ? { segments, alreadySent } : {};
        return { ...about, ...ofSent, at: (msg.dryRun ? notBefore : undefined) ?? times.get(msg) ?? 0 };
      };
      const heldNow = async (): Promise<number> => {
        const { data } = await activityOf(environment).queue({ page: 1, pageSize: 100 });
        return data.filter(({ state }) => state === 'held').length;
      };

      const phones = fc.constantFrom(
        numbers.consented,
        numbers.unasked,
        unknown,
        blocked,
        // Five hours behind the others.
        '+18085550101',
        '+1',
        'nobody',
      );
      const texts = fc.constantFrom(undefined, 'Hi', 'Hello', ' ', 'x'.repeat(161));
      // Some keys recur, in the same list or later.
      const ids = fc.oneof(fc.nat(2000), fc.constantFrom(1, 2, undefined));
      const list = fc.array(fc.record({ phone: phones, text: texts, id: ids }), {
        minLength: 1,
        maxLength: 6,
      });
      let held = 0;
      await fc.assert(
        fc.asyncProperty(
          list,
          fc.constantFrom('fail' as const, 'hold' as const),
          fc.integer({ min: 0, max: 12 * 60 }),
          async (recipients, outside, wait) => {
            textHours.outside = outside;
            await clock.move(wait * 60_000);
            const phone = recipients.map(({ phone: to, text, id }) => ({
              phone: to,
              ...(text !== undefined && { text }),
              ...(id !== undefined && { id }),
            }));
            const msg = { phone, text: 'Good day' };
            const expected = inOrder(await flow.ask({ ...msg, dryRun: true }, phone.length)).map(foretold);
            const from = flow.arrivals.all.length;
            const came = (): number => flow.arrivals.all.length - from;
            const coming = flow.ask(msg, phone.length);
            const late = expected.filter(({ at }) => at > clock.now());
            // A duplicate is not an item of its own.
            const lateItems = late.filter(({ duplicateOf }) => duplicateOf === undefined).length;
            held += late.length;
            while (came() < phone.length - late.length || (await heldNow()) < lateItems)
              await nextIteration();
            for (const time of [...new Set(late.map(({ at }) => at))].sort((a, b) => a - b)) {
              await clock.move(time - clock.now());
              while (came() < expected.filter(({ at }) => at <= time).length) await nextIteration();
            }
            should(inOrder(await coming).map(foretold)).deepEqual(expected);
          },
        ),
        { numRuns: lists },
      );
      should(held).above(lists / 10);
    });
  });

  describe('of request consent', () => {
    it('asks nobody', async () => {
      const flow = await load('advisor-request-consent');
      const { port, msg } = only(await flow.ask({ phone: numbers.unasked, dryRun: true }));
      should(port).equal(0);
      should(msg.payload).containEql({ requested: false, requestedAt: null, dryRun: true });
      should(on.received('requestConsent')).equal(0);
    });

    it('says in its status whom it would ask', async () => {
      const flow = await load('advisor-request-consent');
      await flow.ask({ phone: unknown, dryRun: true });
      should(flow.statuses.at(-1)?.text).equal('sim dry run: 1 would be asked');
    });

    it('says in its status that it would not ask somebody again', async () => {
      const flow = await load('advisor-request-consent');
      await flow.ask({ phone: unknown });
      await flow.ask({ phone: unknown, dryRun: true });
      while (flow.statuses.length < 2) await nextIteration();
      should(flow.statuses.at(-1)?.text).match(/dry run: 1 not asked$/);
    });

    it('does not count: who was asked in one is still asked for real', async () => {
      const flow = await load('advisor-request-consent');
      await flow.ask({ phone: unknown, dryRun: true });
      const { msg } = only(await flow.ask({ phone: unknown }));
      should(msg.payload).containEql({ requested: true });
    });

    it('is the failure that it would be', async () => {
      const flow = await load('advisor-request-consent', { every: 0, limit: 1 });
      await flow.ask({ phone: unknown });
      const { port, msg } = only(await flow.ask({ phone: unknown, dryRun: true }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'consent_limit', dryRun: true });
    });

    it('ends a loop behind check consent', async () => {
      const flow = await load('advisor-request-consent');
      const { port, msg } = only(await flow.ask({ phone: unknown, dryRun: true, outcome: 'notAccepted' }));
      should(port).equal(1);
      should(errorOf(msg)).containEql({ code: 'cancelled', dryRun: true });
    });
  });

  describe('of check consent', () => {
    it('checks once and never waits', async () => {
      const flow = await load('advisor-check-consent', { mode: 'wait' });
      const phone = [numbers.consented, numbers.unasked, unknown];
      const arrived = inOrder(await flow.ask({ phone, dryRun: true }, 3));
      should(arrived.map(({ port }) => port)).deepEqual([0, 2, 2]);
      should(arrived[0]?.msg.payload).containEql({ state: 'accepted', dryRun: true });
      for (const { msg } of arrived.slice(1))
        should(msg.payload).containEql({ reason: 'dry_run', dryRun: true });
      should(on.received('getConsent')).equal(3);
    });
  });
});

describe('a text of many segments', () => {
  const on = simulatedForEach();

  const load = (config: Readonly<Record<string, unknown>>): Promise<Flow> =>
    Flow.load({
      folders,
      environment: on.environment,
      nodes: [{ id: 'send', type: 'advisor-send-text', ...config }],
    });

  it('is counted in the payload, and not sent over the limit', async () => {
    const flow = await load({ maxSegments: 2 });
    const text = 'x'.repeat(307);
    const phone = [{ phone: numbers.consented, text: text.slice(1) }, { phone: numbers.consented }];
    const [sent, failed] = inOrder(await flow.ask({ phone, text }, 2));
    should(sent?.msg.payload).containEql({ segments: 2 });
    should(errorOf(failed?.msg ?? {}).code).equal('invalid_input');
    should(errorOf(failed?.msg ?? {}).message).match(
      /^The text takes 3 SMS segments, but this node sends at most 2/,
    );
    should(on.received('sendMessage')).equal(1);
  });

  it('is not sent when it returns with consent either', async () => {
    const flow = await load({ maxSegments: 1 });
    const phone = numbers.consented;
    const resend = { node: 'send', phone, text: 'ç'.repeat(71), advisor: 'default' };
    const { msg } = only(await flow.ask({ phone, resend }));
    should(errorOf(msg).code).equal('invalid_input');
    should(on.received('sendMessage')).equal(0);
  });
});

describe('the summary of a list', () => {
  const on = simulatedForEach();

  it('is part of its last outcome, and counts each output, failures by code, and duplicates', async () => {
    const flow = await Flow.load({
      folders,
      environment: on.environment,
      nodes: [{ id: 'send', type: 'advisor-send-text' }],
    });
    const { consented, unasked, landline } = numbers;
    const phone = [consented, consented, unasked, landline, 'nobody', unasked];
    const arrived = await flow.ask({ phone, text: 'Hi' }, 6);
    const { id } = arrived.at(-1)?.msg.parts as { id: string };
    const summary = {
      id,
      total: 6,
      sent: 2,
      failed: 2,
      needsConsent: 2,
      alreadySent: 1,
      byCode: { rejected: 1, invalid_input: 1 },
    };
    should(arrived.at(-1)?.msg.summary).deepEqual(summary);
    should(arrived.slice(0, -1).every(({ msg }) => msg.summary === undefined)).be.true();
    should(only(await flow.completed.next(1)).summary).deepEqual(summary);
  });
});
