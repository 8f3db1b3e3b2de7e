import type { Environment } from '../../../lib/runtime/environment';
import * as checkRuntime from '../../../nodes/check-consent/runtime';
import { spec as checkSpec } from '../../../nodes/check-consent/spec';
import * as requestRuntime from '../../../nodes/request-consent/runtime';
import { spec as requestSpec } from '../../../nodes/request-consent/spec';
import * as sendRuntime from '../../../nodes/send-text/runtime';
import { spec as sendSpec } from '../../../nodes/send-text/spec';
import { alsoClose } from '../closing';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from '../environment';
import { Flow, type FlowOptions } from '../flow';
import { gate } from '../gate';
import { sent } from '../sent';
import { startServer, type Scripted } from '../server';

/** The texting nodes, as `Flow.load` takes them. */
export const sendFolder = { spec: sendSpec, runtime: sendRuntime };
export const checkFolder = { spec: checkSpec, runtime: checkRuntime };
export const requestFolder = { spec: requestSpec, runtime: requestRuntime };

export const folders = [sendFolder];

export const sendNode = (
  environment: Environment | undefined,
  config: Readonly<Record<string, unknown>> = {},
  more: Pick<FlowOptions, 'unwired'> = {},
): Promise<Flow> =>
  Flow.load({
    folders,
    ...(environment && { environment }),
    nodes: [{ id: 'send', type: 'advisor-send-text', name: 'my send', ...config }],
    ...more,
  });

/** A send node on a service that answers once the test opens it. */
export const heldSendNode = async (
  choices: EnvironmentChoices,
): Promise<{ flow: Flow; open: () => void; server: Scripted; environment: TestEnvironment }> => {
  const { opened, open } = gate();
  const server = await startServer(async () => {
    await opened;
    return { body: sent };
  });
  const environment = alsoClose(
    environmentOn({ baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' }, choices),
  );
  return { flow: await sendNode(environment), open, server, environment };
};
