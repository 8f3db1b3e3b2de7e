import should from 'should';
import { createMemoryStore } from '../../lib/state/memory';
import * as runtime from '../../nodes/check-consent/runtime';
import { spec } from '../../nodes/check-consent/spec';
import { Flow } from '../support/flow';
import { startSimulated, type Simulated } from '../support/simulated';
import { only } from '../texting/setup';
import { gate } from '../support/gate';

const silent = '+12025550111';

describe('check consent that closes before it is open', () => {
  let on: Simulated;
  const store = createMemoryStore();

  beforeEach(async () => {
    on = await startSimulated({}, { store });
  });
  afterEach(async () => {
    await Flow.unload();
    await on.close();
  });

  it('keeps a message that came, for the next node of its id to wait with', async () => {
    const { opened, open } = gate();
    const folders = [{ spec, runtime }];
    const nodes = [{ id: 'node', type: spec.type, mode: 'wait', pollEvery: 1 }];
    const slow = { ...on.environment, store: () => opened.then(() => store) };
    const early = await Flow.load({ folders, environment: slow, nodes });
    early.send({ phone: silent, topic: 'kept' });
    const closed = Flow.unload();
    open();
    await closed;
    should(early.errors.all).deepEqual([]);

    const flow = await Flow.load({ folders, environment: on.environment, nodes });
    on.simulator.accept(silent);
    const { port, msg } = only(await flow.arrivals.next(1));
    should(port).equal(0);
    should(msg).containEql({ phone: silent, topic: 'kept' });
  });
});
