import type { IncomingMessage, ServerResponse } from 'node:http';
import { isForeignOrigin } from '../guard';
import { answer, readBody, saysWhoItIs, tooLarge } from '../http';
import { respond, writeReady, type Ready } from '../injection';
import { newEntry } from '../ledger';
import type { Simulation } from '../simulation';
import { check, redirectWith } from './authorize';
import { authorizePage, pagePolicy, refusalPage } from './authorize-page';
import { exchange, type Exchanged } from './exchange';
import { readParameters } from './parameters';

const formLimit = 64 * 1024;
const noStore = { 'cache-control': 'no-store' };

const show = (response: ServerResponse, status: number, body: string, redirectUri?: string): void => {
  answer(response, status, 'text/html; charset=utf-8', body, {
    ...noStore,
    'content-security-policy': pagePolicy(redirectUri),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
  });
};

const redirect = (response: ServerResponse, to: string): void => {
  response.writeHead(303, { location: to, ...noStore }).end();
};

const formBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') {
    request.resume();
    return undefined;
  }
  const body = await readBody(request, formLimit);
  return body === tooLarge ? undefined : body.toString('utf8');
};

/** Serves the page that asks the advisor, and handles the advisor's answer. */
export const serveAuthorize = async (
  simulation: Simulation,
  request: IncomingMessage,
  response: ServerResponse,
  query: string,
): Promise<void> => {
  const { state, codes, client } = simulation;
  const checked = check(query, client.clientId, state.settings);
  if (checked.kind === 'refuse') {
    show(response, 400, refusalPage(checked.message));
  } else if (checked.kind === 'redirect') {
    redirect(response, checked.to);
  } else if (request.method === 'GET') {
    show(
      response,
      200,
      authorizePage(client.clientId, checked, state.identities(), state.settings.habits),
      checked.redirectUri,
    );
  } else if (request.method !== 'POST' || isForeignOrigin(request)) {
    show(response, 400, refusalPage('Open this address in a browser and decide there.'));
  } else {
    const form = readParameters((await formBody(request)) ?? '');
    const values = 'values' in form ? form.values : {};
    const { redirectUri, challenge, scopes, nonce } = checked;
    const advisor = values['advisor'] ?? '';
    if (values['decision'] !== 'approve' || advisor === '') {
      const description = 'The advisor denied access.';
      const parameters = { error: 'access_denied', error_description: description, state: checked.state };
      redirect(response, redirectWith(redirectUri, parameters));
      return;
    }
    const code = codes.issue({ redirectUri, challenge, scopes, nonce, advisor });
    redirect(response, redirectWith(redirectUri, { code, state: checked.state }));
  }
};

const readyFor = (exchanged: Exchanged): Ready => ({
  status: exchanged.ok ? 200 : exchanged.status,
  type: 'application/json',
  body: JSON.stringify(
    exchanged.ok ? exchanged.answer : { error: exchanged.error, error_description: exchanged.description },
  ),
  headers: noStore,
});

const notAForm: Exchanged = {
  ok: false,
  status: 400,
  error: 'invalid_request',
  description: 'POST a form, Content-Type: application/x-www-form-urlencoded.',
};

export const serveToken = async (
  simulation: Simulation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const { state, faults, ledger } = simulation;
  const entry = { ...newEntry(state.clock.now(), request.method ?? '', '/oauth/token'), endpoint: 'token' };
  const settle = (exchanged: Exchanged): Ready => {
    entry.processed = exchanged.ok;
    entry.outcome = exchanged.ok ? exchanged.outcome : exchanged.error;
    if (exchanged.ok) entry.advisor = exchanged.advisor;
    state.changed();
    return readyFor(exchanged);
  };
  const issuer = `http://${request.headers.host ?? ''}`;
  const form = request.method === 'POST' ? await formBody(request) : undefined;
  if (!saysWhoItIs(request, state.settings.habits)) {
    writeReady(response, { status: 403, type: '', body: '' });
    ledger.add({ ...entry, status: 403, outcome: 'forbidden' });
    return;
  }
  await respond(response, state, faults.meet('token', []), entry, 'openid', async () =>
    settle(form === undefined ? notAForm : await exchange(simulation, issuer, form)),
  );
  ledger.add(entry);
};
