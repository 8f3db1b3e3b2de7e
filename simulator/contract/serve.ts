import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EndpointName } from '../../lib/service/endpoints';
import { endpoints } from '../endpoints';
import type { ContractRequest } from '../endpoints/endpoint';
import type { Effect } from '../effects';
import { readBody, saysWhoItIs, tooLarge } from '../http';
import { problem, respond, writeReady, type Ready } from '../injection';
import { newEntry, type LedgerEntry } from '../ledger';
import { magicOf } from '../magic';
import { Refusal, turnedAway } from '../problem';
import type { Habits } from '../profiles';
import type { Simulation } from '../simulation';
import type { Account } from '../state/account';
import { readInputs } from './inputs';
import { allowedMethods, findRoute, type Route } from './routes';
import { answerOnWire, scopeOnWire } from './wire';

/** Bytes. The contract has a 413, but shows no limit (*Limits*). */
const bodyLimit = 256 * 1024;

const json = 'application/json';

/** Serves one request below the base address; `path` starts after the version. */
export const serveContract = async (
  around: Simulation,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  query: string,
): Promise<void> => {
  const { state, ledger } = around;
  const entry = newEntry(state.clock.now(), request.method ?? '', path);
  try {
    const { habits } = state.settings;
    checkGateway(around, request);
    const route = routeOf(entry.method, path, habits);
    entry.endpoint = route.name;
    entry.advisor = advisorOf(around, request, route.name);
    const asked = readInputs(route, query, await contractBody(request, route.name), habits);
    const phones = phonesIn(asked);
    if (phones.length > 0) entry.phone = phones.join(',');
    const text = textIn(asked);
    if (text !== undefined) entry.text = text;
    await carryOut(around, response, route.name, asked, phones, entry);
  } catch (error) {
    if (request.destroyed && !request.complete) entry.outcome = 'client-gone';
    else refuse(response, error, path, entry);
  }
  ledger.add(entry);
};

const carryOut = (
  around: Simulation,
  response: ServerResponse,
  name: EndpointName,
  asked: ContractRequest,
  phones: readonly string[],
  entry: LedgerEntry,
): Promise<void> => {
  const { state, faults } = around;
  const { habits } = state.settings;
  const account = state.account(entry.advisor ?? '');
  const run = (): Ready => {
    const reply = endpoints[name].handle(asked, account, state);
    entry.processed = true;
    entry.outcome = reply.outcome;
    if (reply.messageId !== undefined) entry.messageId = reply.messageId;
    state.changed();
    return reply.body === undefined
      ? { status: 204, type: json, body: '' }
      : { status: 200, type: json, body: answerOnWire(reply.body, reply.reasons, habits) };
  };
  const met = magicEffect(name, phones, account) ?? faults.meet(name, phones);
  return respond(response, state, met, entry, scopeOnWire(endpoints[name].scope, habits), run);
};

/** The effect that belongs to a magic number, which may be saved in the address book like any other. */
const magicEffect = (name: EndpointName, phones: readonly string[], account: Account): Effect | undefined => {
  if (!endpoints[name].scope.startsWith('text.')) return undefined;
  for (const phone of phones) {
    const magic = magicOf(phone);
    if (magic?.effect === undefined) continue;
    if (magic.once !== true) return magic.effect;
    const { struck } = account.line(account.contactFor(phone), phone);
    if (struck.includes(name)) continue;
    struck.push(name);
    return magic.effect;
  }
  return undefined;
};

const refuse = (response: ServerResponse, error: unknown, path: string, entry: LedgerEntry): void => {
  const refusal =
    error instanceof Refusal
      ? error
      : new Refusal('internal_error', 'The simulator failed to handle this request.', {
          details: error instanceof Error ? error.message : String(error),
        });
  entry.status = refusal.status;
  entry.outcome = refusal.code;
  writeReady(response, problem(refusal, path));
};

const routeOf = (method: string, path: string, habits: Habits): Route => {
  const route = findRoute(method, path, habits);
  if (route !== undefined) return route;
  const allowed = allowedMethods(path, habits);
  if (allowed.length === 0) throw new Refusal('not_found', 'The service has no such path.');
  throw new Refusal('invalid_request', `This path takes ${allowed.join(' or ')}, not ${method}.`, {
    status: 405,
    headers: { allow: allowed.join(', ') },
  });
};

/** A gateway in front of the service, if there is one, checks keys but not tokens. */
const checkGateway = ({ state, apiKey }: Simulation, request: IncomingMessage): void => {
  const { habits } = state.settings;
  if (!saysWhoItIs(request, habits)) throw turnedAway('A User-Agent is required.');
  if (habits.badKey === 'bare' && request.headers['x-api-key'] !== apiKey) throw turnedAway('Unknown key.');
};

/** Checks both credentials and the scope. */
const advisorOf = (
  { state, tokens, apiKey }: Simulation,
  request: IncomingMessage,
  name: EndpointName,
): string => {
  const { authorization, 'x-api-key': key } = request.headers;
  const token = authorization?.startsWith('Bearer ') === true ? authorization.slice(7) : undefined;
  const access = token === undefined ? undefined : tokens.check(token);
  if (access === undefined) {
    throw new Refusal('unauthorized', 'The access token is missing, unknown or expired. Refresh it.', {
      headers: { 'www-authenticate': 'Bearer' },
    });
  }
  if (key !== apiKey) throw new Refusal('unauthorized', 'The x-api-key header is missing or wrong.');
  const scope = scopeOnWire(endpoints[name].scope, state.settings.habits);
  if (!access.scopes.has(scope)) throw new Refusal('forbidden', `The token lacks the scope ${scope}.`);
  return access.advisor;
};

const contractBody = async (request: IncomingMessage, name: EndpointName): Promise<string> => {
  if (!endpoints[name].body) {
    request.resume();
    return '';
  }
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== json) throw new Refusal('unsupported_media_type', `The body must be ${json}.`);
  const body = await readBody(request, bodyLimit);
  if (body === tooLarge) {
    throw new Refusal('payload_too_large', `The body is larger than ${String(bodyLimit)} bytes.`, {
      headers: { connection: 'close' },
    });
  }
  return body.toString('utf8');
};

/** The text of a send. */
const textIn = ({ body }: ContractRequest): string | undefined =>
  (body as { text?: string } | undefined)?.text;

/** The numbers that a request names. */
const phonesIn = ({ query, body }: ContractRequest): readonly string[] => {
  const { phone, phoneNumbers } = (body ?? query) as { phone?: string; phoneNumbers?: string[] };
  return phoneNumbers ?? (phone === undefined ? [] : [phone]);
};
