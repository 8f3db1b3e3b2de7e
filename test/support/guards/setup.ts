import type { Message } from '../../../lib/runtime/red';
import * as listRuntime from '../../../nodes/do-not-text/runtime';
import { spec as listSpec } from '../../../nodes/do-not-text/spec';
import type { Simulator } from '../../../simulator';
import { alsoClose } from '../closing';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from '../environment';
import type { Arrived, Flow } from '../flow';
import { numbers } from '../numbers';
import { only } from '../only';
import { requestFolder, sendFolder } from '../texting/setup';

/** All nodes with guards, and the one that keeps the do-not-text list. */
export const folders = [sendFolder, requestFolder, { spec: listSpec, runtime: listRuntime }];
export const send = { id: 'send', type: 'advisor-send-text' };
export const request = { id: 'request', type: 'advisor-request-consent' };
export const block = { id: 'block', type: 'advisor-do-not-text' };

export const { consented, unasked } = numbers;
/** Ten in the evening in New York, the numbers' zone; five in the afternoon in Honolulu. */
export const night = Date.UTC(2027, 0, 5, 3);
export const hold = { textHours: { from: 8 * 60, until: 21 * 60, outside: 'hold' as const } };

/** An environment on a simulator, with its clock and the journal; it ends with the test. */
export const environmentAt = (
  simulator: Simulator,
  { settings, ...choices }: EnvironmentChoices,
): TestEnvironment =>
  alsoClose(
    environmentOn(
      {
        baseUrl: simulator.baseUrl,
        apiKey: simulator.credentials.apiKey,
        token: (advisor) => simulator.accessToken(advisor),
      },
      { service: 'simulator', clock: simulator.clock, settings: { journal: true, ...settings }, ...choices },
    ),
  );

/** The only outcome of a message. */
export const ask = async (flow: Flow, msg: Message, to: string): Promise<Arrived> => {
  const coming = flow.arrivals.next();
  flow.send(msg, to);
  return only(await coming);
};
