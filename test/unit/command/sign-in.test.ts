import should from 'should';
import { rehearseClient } from '../../../command/sign-in';
import type { Clock } from '../../../lib/service/clock';
import { connectionTo } from '../../support/auth/setup';
import { closeAll } from '../../support/closing';
import { startServer } from '../../support/server';

describe('a rehearsal of signing in', () => {
  afterEach(closeAll);

  it('waits at most a minute for a failing server, however long a wait that asks for', async () => {
    const { url, received } = await startServer(() => ({ status: 503, headers: { 'retry-after': '40' } }));
    const pauses: number[] = [];
    const clock: Clock = {
      now: () => 0,
      elapsed: () => 0,
      after: (ms, then) => {
        pauses.push(ms);
        then();
        return () => undefined;
      },
    };
    const credentials = { clientId: 'client', clientSecret: 'secret', apiKey: 'key' };
    const connection = connectionTo({ authUrl: `${url}/authorize`, tokenUrl: `${url}/token`, credentials });
    const { check, ok } = await rehearseClient(connection, { clock, random: () => 0 });
    should({ check, ok }).deepEqual({ check: 'client', ok: false });
    should(pauses).deepEqual([40_000]);
    should(received).have.length(2);
  });
});
