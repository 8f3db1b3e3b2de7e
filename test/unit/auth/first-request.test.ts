import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express, { type Express } from 'express';
import should from 'should';
import type { Red } from '../../../lib/runtime/red';
import { onDemand } from '../../../nodes/environment/on-demand';
import { routes } from '../../../nodes/environment/routes';

describe('the very first request', () => {
  const quiet = (): void => undefined;

  const register = (httpAdmin: Express, httpNode: Express | undefined): void => {
    const settings = {
      available: () => false,
      get: () => {
        throw new Error('Settings not available');
      },
    };
    routes(
      {
        httpAdmin,
        httpNode,
        settings,
        events: new EventEmitter(),
        log: { info: quiet, warn: quiet, error: quiet },
        auth: {
          needsPermission: () => (_: unknown, response: express.Response) => response.status(401).end(),
        },
      } as unknown as Red,
      () => onDemand,
    );
  };

  const statusOf = async (app: Express, path: string): Promise<number> => {
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { status } = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    server.close();
    return status;
  };

  for (const path of ['callback?state=x', 'link/x']) {
    it(`of an advisor (${path}) is ours even if a flow listens to everything`, async () => {
      const httpNode = express();
      register(express(), httpNode);
      httpNode.get('/*', (_, response) => response.send('of a flow'));
      should(await statusOf(httpNode, `/advisor-texting/${path}`)).equal(400);
      should(await statusOf(httpNode, '/advisor-texting/e/advisors')).equal(200);
    });
  }

  it('of the editor needs a login, even without a root for HTTP nodes', async () => {
    const httpAdmin = express();
    register(httpAdmin, undefined);
    should(await statusOf(httpAdmin, '/advisor-texting/e/advisors')).equal(401);
    should(await statusOf(httpAdmin, '/advisor-texting/callback')).equal(400);
  });
});
