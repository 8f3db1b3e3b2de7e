import type { EndpointName, RequestOf, ResponseOf } from '../service/endpoints';
import type { Environment } from './environment';
import type { Tools } from './flow-node';
import type { Message } from './red';

/** The service, on behalf of the advisor a message is for. */
export interface Caller {
  readonly environment: Environment;
  readonly advisor: string;
  call<N extends EndpointName>(name: N, request: RequestOf<N>, signal?: AbortSignal): Promise<ResponseOf<N>>;
}

/** Throws when there is no environment, no authorization, or no saying whose advisor it is. */
export const callerFor = async (tools: Tools, msg: Message): Promise<Caller> => {
  const environment = tools.environment();
  const advisor = tools.advisor(environment, await tools.advisorSource.read(msg), msg);
  const client = await environment.client();
  return {
    environment,
    advisor,
    async call(name, request, signal) {
      const options = { advisor, lane: tools.node.id, ...(signal && { signal }) };
      const answer = await client.call(name, request, options);
      return answer.data;
    },
  };
};
