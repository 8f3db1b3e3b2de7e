import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Finished } from '../../lib/auth/authorization';
import { VaultAway } from '../../lib/auth/vault';
import { problemOf } from '../../lib/runtime/errors';
import { wordsIn } from '../../lib/runtime/language';
import type { Red } from '../../lib/runtime/red';
import { connectionIn } from './config';
import { cookieOf, privately, sendPage } from './pages';
import { findRunning, runningOf } from './running';
import type { Services } from './services';

/** Reads the raw address: a query parser that makes arrays and objects of parameters could be tricked. */
const queryOf = (request: Request): URLSearchParams => {
  const at = request.originalUrl.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : request.originalUrl.slice(at + 1));
};

export type OpenRoutes = Readonly<
  Record<'callback' | 'link', (request: Request, response: Response) => void>
>;

/** Seconds; an authorization request is valid for as long. */
const cookieLifetime = 600;
/** The prefix makes browsers refuse the cookie from any other host; it needs TLS (RFC 6265bis, section 4.1.3.2). */
const cookieNames = ['advisor-texting', '__Host-advisor-texting'] as const;

/** The secret in this browser's cookie; empty when it has none. */
const browserOf = (request: Request): string =>
  [...cookieNames]
    .reverse()
    .map((name) => cookieOf(request, name))
    .find((value) => /^[\w-]{43}$/.test(value)) ?? '';

/** Whether the callback will be on this host, so that a cookie set here is sent with it. */
export const comesBackHere = (request: Request, redirectUri: string): boolean => {
  const { origin, host } = new URL(redirectUri);
  // Behind a proxy, only the browser knows the public host: it sends it as `Origin` with every POST.
  return request.headers.origin === undefined
    ? request.headers.host === host
    : request.headers.origin === origin;
};

/** Routes for people without a login here: to the authorization page and back, and links for advisors. */
export const openRoutes = (RED: Red, services: Services): OpenRoutes => {
  const { log } = services;
  /** An environment with a database has its own authorizations. */
  const everywhere = (): Set<Services> =>
    new Set([services, ...Array.from(runningOf(RED), (environment) => environment.services)]);
  /** The services in which the authorization request is pending. */
  const whereBegun = (state: string): Services =>
    [...everywhere()].find(({ authorizations }) => authorizations.isPending(state)) ?? services;

  const guarded =
    (work: (request: Request, response: Response) => void | Promise<void>) =>
    (request: Request, response: Response): void => {
      void (async () => work(request, response))().catch((fault: unknown) => {
        log.error(`An authorization failed: ${wordsIn().problem(problemOf(fault))}`);
        sendPage(request, response, 400, 'later');
      });
    };

  /** Sets a cookie for all paths: the callback may be under another root than this page. */
  const enter = (request: Request, response: Response, state: string): void => {
    const browser = browserOf(request) || randomBytes(32).toString('base64url');
    const entered = whereBegun(state).authorizations.enter(state, browser);
    if (typeof entered === 'string') {
      sendPage(request, response, 400, entered);
      return;
    }
    const [name, secure] = entered.isSecure ? [cookieNames[1], '; Secure'] : [cookieNames[0], ''];
    const age = String(cookieLifetime);
    const cookie = `${name}=${browser}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${age}${secure}`;
    if (entered.isBound) response.set('Set-Cookie', cookie);
    privately(response).redirect(entered.url);
  };

  const callback = guarded(async (request, response) => {
    const query = queryOf(request);
    const { authorizations, vault } = whereBegun(query.get('state') ?? '');
    const finish = (): Promise<Finished> => authorizations.finish(query, { browser: browserOf(request) });
    const finished = await vault.useNow(finish).catch((fault: unknown): Finished => {
      if (!(fault instanceof VaultAway)) throw fault;
      authorizations.storeAway(query);
      return { ok: false, why: 'storeAway' };
    });
    if (!finished.ok) {
      sendPage(request, response, 400, finished.why);
      return;
    }
    const { environment, advisor, state } = finished;
    log.info(
      `${state === 'confirm' ? 'An authorization is waiting for confirmation' : 'Authorized'}: environment ${environment}, advisor ${advisor}.`,
    );
    sendPage(request, response, 200, state === 'confirm' ? 'confirm' : 'authorized');
  });

  const link = guarded(async (request, response) => {
    const token = request.params['token'] ?? '';
    let found: { services: Services; owner: { environment: string; advisor: string } } | undefined;
    for (const each of everywhere()) {
      const { vault } = each;
      const owner = await vault.useNow(() => vault.readLink(token)).catch(() => undefined);
      if (owner) found = { services: each, owner };
    }
    if (!found) {
      // The token is not a link for an advisor: it is the state of a window that the editor has opened.
      if (whereBegun(token).authorizations.isPending(token)) enter(request, response, token);
      else sendPage(request, response, 400, 'spentLink');
      return;
    }
    const { owner } = found;
    const connection = connectionIn(owner.environment, findRunning(RED, owner.environment)?.values);
    // The person who opened the link cannot change that the environment lacks something, or that nobody has to sign in.
    if (connection?.grant !== 'authorization_code' || connection.service === 'simulator') {
      sendPage(request, response, 400, 'notReady');
      return;
    }
    const isBound = comesBackHere(request, connection.redirectUri);
    const url = await found.services.authorizations.begin(connection, owner.advisor, token, isBound);
    enter(request, response, new URL(url).searchParams.get('state') ?? '');
  });

  return { callback, link };
};
