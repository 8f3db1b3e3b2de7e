import helper from 'node-red-node-test-helper';
import should from 'should';
import type { Simulator } from '../../../simulator';
import { freshFolder, removeFolders } from '../../support/auth/setup';
import { closeAll } from '../../support/closing';
import { errorOf } from '../../support/outcomes';
import { Started } from '../../support/guards/started';
import { startServer } from '../../support/server';
import { until } from '../../support/until';

/** Runs the task while timers of this process fire twenty times earlier. */
const hurried = async (task: () => Promise<void>): Promise<void> => {
  const { setTimeout: later } = globalThis;
  globalThis.setTimeout = ((run: () => void, ms = 0) => later(run, ms / 20)) as typeof setTimeout;
  try {
    await task();
  } finally {
    globalThis.setTimeout = later;
  }
};

describe('a deploy while the service hangs', function () {
  this.timeout(60_000);
  afterEach(closeAll);
  after(removeFolders);

  it('reports no fault, and afterwards the outcome of each request that was under way', async () => {
    const server = await startServer(({ url }) =>
      url === '/token' ? { body: { access_token: 't', token_type: 'Bearer', expires_in: 3600 } } : undefined,
    );
    const { url } = server;
    const credentials = { clientId: 'c', clientSecret: 's', apiKey: 'k' };
    const service = { baseUrl: `${url}/v1`, authUrl: `${url}/auth`, tokenUrl: `${url}/token`, credentials };
    const userDir = freshFolder();
    const start = (): Promise<Started> => Started.on(service as unknown as Simulator, userDir);

    const before = await start();
    const faults: unknown[] = [];
    const note = (fault: unknown): unknown => faults.push(fault);
    // The environment closes after the nodes, when the helper no longer listens to them.
    for (const id of ['send', 'request'])
      Object.assign(helper.getNode(id) ?? {}, { error: note, warn: note });
    before.flow.send({ phone: ['+12025550101', '+12025550102'], text: 'Hi' }, 'send');
    before.flow.send({ phone: '+12025550103' }, 'request');
    await until(() => server.received.filter((each) => each.url.startsWith('/v1')).length === 3);
    await hurried(() => before.stop());

    const after = await start();
    const outcomes = (): unknown[] =>
      [...before.outcomes(), ...after.outcomes()].map(({ msg }) => errorOf(msg).code);
    await until(() => outcomes().length >= 3);
    should(outcomes()).eql(['outcome_unknown', 'outcome_unknown', 'outcome_unknown']);
    should(server.received.filter((each) => each.url.startsWith('/v1'))).have.length(3);
    await after.stop();
    should([...faults, ...before.logged.filter((line) => /closed|report/.test(line))]).be.empty();
  });
});
