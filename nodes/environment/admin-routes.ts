import type { Request, RequestHandler } from 'express';
import type { Connection } from '../../lib/auth/connection';
import { defaultAdvisor } from '../../lib/auth/connection';
import { stateOf, type Entry } from '../../lib/auth/grant-book';
import { missingScopes, type Grant } from '../../lib/auth/grants';
import { fits } from '../../lib/auth/tokens';
import type { Red } from '../../lib/runtime/red';
import { systemClock } from '../../lib/service/clock';
import { runChecks } from './checks';
import { connectionOf, serviceOf, type Values } from './config';
import { deployedOrigin, formValues, valuesOf } from './form';
import { lookUp } from './lookup';
import { advisorKey, answer, field, jsonOnly, Refused, wordsFor } from './reply';
import { findRunning } from './running';
import type { Services } from './services';

const environmentOf = (request: Request): string => request.params['env'] ?? '';

const codeConnection = (id: string, values: Values): Connection => {
  if (serviceOf(values) === 'simulator') throw new Refused(400, 'refused.simulator');
  const connection = connectionOf(id, values);
  if (connection.grant === 'authorization_code') return connection;
  throw new Refused(400, 'refused.clientCredentials');
};

/** The link leads to the same place as the redirect; where that is not ours to know, the editor completes it. */
const linkAddress = (redirectUri: string, token: string): string => {
  const path = `advisor-texting/link/${token}`;
  const place = /^(.*\/)advisor-texting\/callback$/.exec(redirectUri.split('?')[0] ?? '')?.[1];
  return place === undefined ? path : place + path;
};

/** The query of an address that was pasted. */
const queryIn = (address: unknown): URLSearchParams => {
  const text = typeof address === 'string' ? address.trim() : '';
  const at = text.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : (text.slice(at + 1).split('#')[0] ?? ''));
};

const shown = (
  advisor: string,
  state: string,
  grant: Grant | undefined,
  asked: readonly string[],
): object => ({
  advisor,
  state,
  identity: grant?.identity?.label ?? null,
  scopes: grant?.scopes ?? [],
  missingScopes: grant?.accessToken ? missingScopes(asked, grant.scopes) : [],
  expiresAt: grant?.expiresAt ?? null,
  refreshedAt: grant?.refreshedAt ?? null,
});

/** What the form holds, of that which may stand in an address: no secret. */
const formFields = ['service', 'grant', 'tokenUrl', 'clientId', 'scopes'];

/** The values as the form would have them, so that the list is right before they are deployed. */
const shownValues = (RED: Red, id: string, query: Request['query']): Values | undefined => {
  const given = formFields.flatMap((name) => (typeof query[name] === 'string' ? [[name, query[name]]] : []));
  return given.length > 0
    ? formValues(RED, id, Object.fromEntries(given) as Values)
    : findRunning(RED, id)?.values;
};

const listAdvisors = (
  RED: Red,
  { book, tokens }: Services,
  id: string,
  query: Request['query'],
): object[] => {
  const values = shownValues(RED, id, query);
  if (values && serviceOf(values) === 'simulator')
    return [shown(defaultAdvisor, 'authorized', undefined, [])];
  let connection: Connection | undefined;
  try {
    connection = values && connectionOf(id, values);
  } catch {
    // What is stored can be listed, and disconnected, whatever the form lacks.
  }
  if (connection?.grant === 'client_credentials') {
    return [shown(defaultAdvisor, 'authorized', tokens.client.grant(connection), connection.scopes)];
  }
  const stateNow = (entry: Entry): string =>
    connection && !fits(entry.grant, connection) ? 'authorize_again' : stateOf(entry, systemClock.now());
  return book.list(id, connection).map(([advisor, entry]) => ({
    ...shown(advisor, stateNow(entry), entry.grant, connection?.scopes ?? entry.grant.asked),
    ...(entry.awaiting ? { awaiting: entry.awaiting.identity?.label ?? null } : {}),
  }));
};

/** The connection of a deployed environment, as far as it has one. */
const deployedConnection = (RED: Red, id: string): Connection | undefined => {
  try {
    return findRunning(RED, id)?.connection();
  } catch {
    return undefined;
  }
};

export const adminRoutes = (RED: Red, services: Services): void => {
  const { authorizations, book, log } = services;
  const may = (permission: 'read' | 'write'): RequestHandler =>
    RED.auth.needsPermission(`advisor-texting.${permission}`) as RequestHandler;
  const get = (path: string, work: (request: Request) => unknown): void => {
    RED.httpAdmin.get(`/advisor-texting/:env/${path}`, may('read'), answer(log, work));
  };
  const post = (path: string, work: (request: Request) => unknown): void => {
    RED.httpAdmin.post(`/advisor-texting/:env/${path}`, may('write'), jsonOnly, answer(log, work));
  };

  post('authorize', async (request) => {
    const id = environmentOf(request);
    const connection = codeConnection(id, valuesOf(RED, id, field(request, 'form')));
    return { url: await authorizations.begin(connection, advisorKey(field(request, 'advisor'))) };
  });
  post('link', async (request) => {
    const id = environmentOf(request);
    const { redirectUri } = codeConnection(id, valuesOf(RED, id, undefined));
    const token = await authorizations.createLink(id, advisorKey(field(request, 'advisor')));
    return { url: linkAddress(redirectUri, token) };
  });
  post('complete', async (request) => {
    const finished = await authorizations.finish(queryIn(field(request, 'address')), environmentOf(request));
    if (finished.ok) return { advisor: finished.advisor, state: finished.state };
    throw new Refused(400, `page.${finished.why}.text`);
  });
  get('advisors', (request) => listAdvisors(RED, services, environmentOf(request), request.query));
  post('advisors/:advisor/confirm', async (request) => {
    const id = environmentOf(request);
    const advisor = advisorKey(request.params['advisor']);
    if (await book.confirm(id, advisor, deployedConnection(RED, id))) return { advisor, state: 'authorized' };
    throw new Refused(404, 'refused.nothingToConfirm');
  });
  RED.httpAdmin.delete(
    '/advisor-texting/:env/advisors/:advisor',
    may('write'),
    answer(log, async (request) => {
      const id = environmentOf(request);
      const advisor = advisorKey(request.params['advisor']);
      if (await book.disconnect(id, advisor, deployedConnection(RED, id))) return { advisor };
      throw new Refused(404, 'refused.notConnected');
    }),
  );
  post('test', (request) => {
    const id = environmentOf(request);
    const values = valuesOf(RED, id, field(request, 'form'));
    const advisor = advisorKey(field(request, 'advisor'));
    const deployedAt = deployedOrigin(RED, id, 'baseUrl');
    return runChecks(services, { id, values, advisor, deployedAt }, wordsFor(request));
  });
  get('lookup/:what', (request) => lookUp(findRunning(RED, environmentOf(request)), request));
};
