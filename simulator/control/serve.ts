import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { day, second } from '../../lib/durations';
import { tried } from '../../lib/kinds';
import { E164 } from '../contract/rules';
import { faultSchema } from '../faults';
import { answer, answerJson, parsedBody, readBody, tooLarge } from '../http';
import { magicNumbers } from '../magic';
import { problemBody } from '../problem';
import type { Simulation } from '../simulation';
import { toldSettings } from '../state/settings';
import { settingsChange } from '../state/settings-schema';
import { simulatorWordsFor } from '../words';
import type { ChangeStream } from './events';
import { asRefusal, Misuse, sentencesIn } from './misuse';
import { contactsView, stateView } from './view';

const limit = 64 * 1024;

interface Question {
  readonly query: URLSearchParams;
  /** The number in the path. */
  readonly phone: string;
  /** Parses the body with a schema, whose messages are in the language of the request. */
  readonly read: <Body>(schema: z.ZodType<Body>) => Body;
}

type ControlHandler = (simulation: Simulation, question: Question) => unknown;

const advisorBody = z.object({ advisor: z.string().optional() });
/** Seconds. After the year 275760 there are no dates (ECMA-262, section 21.4.1.1), and no token is valid. */
const century = (36_525 * day) / second;
const clockBody = z.object({ advance: z.number().min(0).max(century) });

const whole = (text: string | null, otherwise: number): number => {
  const value = Number(text ?? otherwise);
  return Number.isInteger(value) && value > 0 ? value : otherwise;
};

const consentReply =
  (given: 'accepted' | 'declined'): ControlHandler =>
  (simulation, { phone, read }) => {
    simulation.answer(phone, given, read(advisorBody).advisor);
  };

const ledgerOf: ControlHandler = ({ ledger }, { query }) => {
  const endpoint = query.get('endpoint');
  const entries = ledger.entries().filter((entry) => endpoint === null || entry.endpoint === endpoint);
  return {
    received: ledger.received,
    entries: entries.slice(-whole(query.get('limit'), entries.length + 1)),
  };
};

/** The control API: what a person or a test does to the simulated world. It is not part of the contract. */
const operations = new Map<string, ControlHandler>(
  Object.entries<ControlHandler>({
    'GET state': (simulation, { query }) => stateView(simulation, query.get('advisor') ?? undefined),
    'GET contacts': (simulation, { query }) =>
      contactsView(
        simulation,
        query.get('advisor') ?? undefined,
        whole(query.get('page'), 1),
        whole(query.get('pageSize'), 25),
        query.get('filter') ?? '',
      ),
    'GET magic': () => magicNumbers.map(({ phone, name, does }) => ({ phone, name, does })),
    'POST phones/:phone/accept': consentReply('accepted'),
    'POST phones/:phone/decline': consentReply('declined'),
    'POST phones/:phone/reset': (simulation, { phone, read }) => {
      simulation.resetPhone(phone, read(advisorBody).advisor);
    },
    'POST clock': async (simulation, { read }) => {
      await simulation.advance(read(clockBody).advance);
      return { now: simulation.clock.now() };
    },
    'GET ledger': ledgerOf,
    'DELETE ledger': ({ ledger }) => {
      ledger.clear();
    },
    'GET faults': ({ faults }) => faults.list(),
    'POST faults': ({ faults }, { read }) => faults.add(read(faultSchema)),
    'DELETE faults': ({ faults }) => {
      faults.clear();
    },
    'GET settings': ({ state }) => toldSettings(state.settings),
    'PUT settings': ({ state }, { read }) => {
      state.change(read(settingsChange));
      return toldSettings(state.settings);
    },
    'DELETE authorizations': (simulation, { query }) => ({
      ended: simulation.revoke(query.get('advisor') ?? undefined),
    }),
    'POST reset': (simulation) => simulation.reset(),
  }),
);

const controlBody = async (request: IncomingMessage): Promise<unknown> => {
  const parsed = parsedBody(request);
  if (parsed !== undefined) return parsed;
  const body = await readBody(request, limit);
  if (body === tooLarge) throw new Misuse('payload_too_large', 'control.tooLarge');
  if (body.length === 0) return {};
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new Misuse('invalid_request', 'control.notJson');
  }
};

/** Serves `control/<path>`. An invalid body or an unknown operation gets a problem body as in the contract. */
export const serveControl = async (
  simulation: Simulation,
  events: ChangeStream,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  query: string,
): Promise<void> => {
  const method = request.method ?? '';
  const words = simulatorWordsFor(request);
  if (path === 'events' && method === 'GET') {
    events.open(response);
    return;
  }
  try {
    const { operation, phone } = findOperation(method, path);
    const body = method === 'GET' ? undefined : await controlBody(request);
    const result = await operation(simulation, {
      query: new URLSearchParams(query),
      phone,
      read: (schema) => schema.parse(body, { error: sentencesIn(words.language) }),
    });
    if (result === undefined) response.writeHead(204).end();
    else answerJson(response, 200, result, { 'cache-control': 'no-store' });
  } catch (error) {
    const refusal = asRefusal(error, words);
    answer(response, refusal.status, 'application/problem+json', problemBody(refusal, `control/${path}`));
  }
};

const findOperation = (method: string, path: string): { operation: ControlHandler; phone: string } => {
  const [, given] = /^phones\/([^/]+)\//.exec(path) ?? [];
  const named = given === undefined ? path : path.replace(given, () => ':phone');
  const operation = operations.get(`${method} ${named}`);
  if (!operation)
    throw new Misuse('not_found', 'control.noSuchOperation', { operation: `${method} control/${path}` });
  const phone = tried(() => decodeURIComponent(given ?? '')) ?? '';
  if (given !== undefined && !E164.test(phone)) throw new Misuse('invalid_request', 'control.phone');
  return { operation, phone };
};
