import * as contactRuntime from '../../../nodes/contact/runtime';
import { spec as contactSpec } from '../../../nodes/contact/spec';
import * as contentRuntime from '../../../nodes/content/runtime';
import { spec as contentSpec } from '../../../nodes/content/spec';
import * as groupRuntime from '../../../nodes/group/runtime';
import { spec as groupSpec } from '../../../nodes/group/spec';
import type { Environment } from '../../../lib/runtime/environment';
import { alsoClose } from '../closing';
import { Flow, type Arrived, type FlowOptions } from '../flow';
import { environmentOn, type EnvironmentChoices } from '../environment';
import { type Received, type Reply, startServer } from '../server';

export const folders = [
  { spec: contactSpec, runtime: contactRuntime },
  { spec: groupSpec, runtime: groupRuntime },
  { spec: contentSpec, runtime: contentRuntime },
];

type Config = Readonly<Record<string, unknown>>;
type More = Pick<FlowOptions, 'unwired'>;

const one =
  (type: string) =>
  (environment: Environment, config: Config, more: More = {}): Promise<Flow> =>
    Flow.load({ folders, environment, nodes: [{ id: 'node', type, ...config }], ...more });

export const contactNode = one('advisor-contact');
export const groupNode = one('advisor-group');
export const contentNode = one('advisor-content');

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly body: unknown;
}

const readable = ({ method, url, body }: Received): Request => {
  const { pathname, searchParams } = new URL(url, 'http://service');
  return {
    method,
    path: pathname,
    query: Object.fromEntries(searchParams),
    body: body === '' ? undefined : (JSON.parse(body) as unknown),
  };
};

/** An environment on a real server that answers as the test says, to see exactly what is sent. */
export const scripted = async (
  answer: (request: Request, index: number) => Reply | Promise<Reply>,
  choices: EnvironmentChoices = {},
  /** Sees each body as it was sent. */
  see: (body: string) => void = () => undefined,
): Promise<{ environment: Environment; requests: () => Request[] }> => {
  const server = await startServer((request) => {
    see(request.body);
    return answer(readable(request), request.index);
  });
  const environment = alsoClose(
    environmentOn(
      { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' },
      { id: server.url, ...choices },
    ),
  );
  return { environment, requests: () => server.received.map(readable) };
};

export const payloads = (arrived: readonly Arrived[]): unknown[] => arrived.map(({ msg }) => msg.payload);
