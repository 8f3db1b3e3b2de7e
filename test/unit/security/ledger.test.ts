import should from 'should';
import type { Fault } from '../../../simulator';
import { settle } from '../../support/service/setup';
import { alsoClose, closeAll } from '../../support/closing';
import { Flow, type Arrived } from '../../support/flow';
import { errorOf } from '../../support/outcomes';
import { startSimulated } from '../../support/simulated';
import { sendNode } from '../../support/texting/setup';

const faults: readonly Fault[] = [
  { kind: 'cut-before' },
  { kind: 'cut-after' },
  { kind: 'cut-inside' },
  { kind: 'gateway' },
  { kind: 'empty' },
  { kind: 'truncated' },
  { kind: 'malformed' },
  { status: 503 },
  { code: 'downstream_unavailable' },
  { code: 'rate_limited', retryAfter: 1 },
  { code: 'unauthorized' },
];
/** Only these leave open whether the text was sent. */
const unclear = new Set(['outcome_unknown', 'invalid_response']);

describe("the service's ledger compared with the node's outcomes, with half of all requests failing", () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  for (const repeatSends of ['never', 'contract'] as const) {
    it(`repeatSends ${repeatSends}: no text twice, no recipient without an outcome, no false outcome`, async function () {
      this.timeout(180_000);
      const { simulator, environment } = alsoClose(
        await startSimulated({ randomSeed: 9 }, { client: { repeatSends } }),
      );
      simulator.change({ consentRequired: false });
      for (const fault of faults) simulator.faults.add({ ...fault, endpoint: 'sendMessage', rate: 0.06 });
      const phones = Array.from({ length: 400 }, (_, n) => `+1202555${(1000 + n).toString()}`);
      const flow = await sendNode(environment);
      const arrived = await settle(simulator.clock, flow.ask({ phone: phones, text: 'Hi' }, 400), 1000);

      const texts = new Map<unknown, number>();
      for (const { endpoint, phone, processed } of simulator.ledger.entries()) {
        if (endpoint === 'sendMessage' && processed) texts.set(phone, (texts.get(phone) ?? 0) + 1);
      }
      const outcome = ({ port, msg }: Arrived): string => (port === 0 ? 'sent' : errorOf(msg).code);
      should(new Set(arrived.map(({ msg }) => msg.phone)).size).equal(400);
      should([...texts].filter(([, times]) => times > 1)).deepEqual([]);
      const isUntrue = (one: Arrived): boolean =>
        !unclear.has(outcome(one)) && (outcome(one) === 'sent') !== texts.has(one.msg.phone);
      should(arrived.filter(isUntrue).map((one) => [one.msg.phone, outcome(one)])).deepEqual([]);
      const outcomes = new Set(arrived.map(outcome));
      for (const code of ['sent', ...unclear]) should(outcomes).containEql(code);
    });
  }
});
