import { hash, randomBytes } from 'node:crypto';
import { generateChallenge } from 'pkce-challenge';
import { day, minute, second } from '../durations';
import { ServiceError } from '../service/errors';
import type { Connection } from './connection';
import { type TokenAnswer, onTheWire, type TokenResult } from './token-endpoint';
import { newGrant, renewed, stateOf, type GrantState } from './vault';
import type { TokensOptions } from './tokens';

const stateLifetime = 10 * minute;
/** Milliseconds that a mailed link is valid: a mail that is sent on Friday may be read on Monday. */
export const mailedLinkLifetime = 7 * day;
/** Milliseconds that somebody waits in front of the callback page. */
const pageWaitsFor = 20 * second;
/** The most visits of one link that are kept: previews fetch links too, and each visit begins an authorization. */
const visitsPerLink = 20;

interface Pending {
  readonly connection: Connection;
  readonly advisor: string;
  readonly verifier: string;
  readonly expiresAt: number;
  readonly link: string | undefined;
  /** The address of the authorization page, with all parameters. */
  readonly url: string;
  /** Whether the browser returns to the host on which it began, so that a cookie can recognize it. */
  readonly isBound: boolean;
  /** A hash of the secret in the cookie of the browser that began; undefined where there is no cookie. */
  browser?: string;
}

/** The reason why a return from the authorization page failed. */
export type SignInRefusal =
  | 'invalid'
  | 'otherBrowser'
  | 'expired'
  | 'denied'
  | 'declined'
  | 'scopes'
  | 'refused'
  | 'client'
  | 'tokenType'
  | 'later'
  | 'storeAway'
  | 'spentLink';

export type Finished =
  | { readonly ok: true; readonly environment: string; readonly advisor: string; readonly state: GrantState }
  | { readonly ok: false; readonly why: SignInRefusal };

/** The state of the last window that the editor has opened for an advisor. */
export type SignInAttempt =
  { readonly state: 'none' | 'open' } | { readonly state: 'failed'; readonly why: SignInRefusal };

/** How somebody returns: in a browser, with the secret in its cookie, or by pasting the address for an environment. */
export type Returning = { readonly browser: string } | { readonly pastedFor: string };

/** The address of the authorization page, with all parameters (contract, *Authentication*, 6). */
export const authorizationUrl = async (
  connection: Connection,
  state = randomBytes(16).toString('base64url'),
  verifier = randomBytes(32).toString('base64url'),
): Promise<string> =>
  withParameters(connection.authUrl, {
    response_type: 'code',
    client_id: connection.clientId,
    redirect_uri: connection.redirectUri,
    code_challenge: await generateChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    scope: onTheWire(connection.scopes, connection),
  });

const hashOf = (secret: string): string => hash('sha256', secret);

const denied = 'access_denied';
const reasonsGiven = new Map<string, SignInRefusal>([
  [denied, 'denied'],
  ['invalid_scope', 'scopes'],
]);

const attemptOf = (environment: string, advisor: string): string => JSON.stringify([environment, advisor]);

type AuthorizationResponse = NonNullable<ReturnType<typeof readReturn>>;

/**
 * The three parameters that we read; undefined when one is repeated (RFC 6749, section 3.1) or neither code nor error
 * is there.
 */
const readReturn = (query: URLSearchParams) => {
  if (['state', 'code', 'error'].some((name) => query.getAll(name).length > 1)) return undefined;
  const [state, code, error] = [query.get('state') ?? '', query.get('code') ?? '', query.get('error') ?? ''];
  return code === '' && error === '' ? undefined : { state, code, error };
};

/** Adds our parameters at top level beside the address's own query, which stays as it is (contract, *Authentication*, 6). */
const withParameters = (address: string, parameters: Readonly<Record<string, string>>): string => {
  const url = new URL(address);
  const kept = url.search
    .slice(1)
    .split('&')
    .filter(
      (pair) =>
        pair !== '' && !Object.hasOwn(parameters, new URLSearchParams(pair).keys().next().value ?? ''),
    );
  const ours = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${url.origin}${url.pathname}?${[...kept, ...ours].join('&')}`;
};

/** The authorization code flow with PKCE: from a click, or a link sent to an advisor, to a grant in the vault. */
export class Authorizations {
  private readonly pending = new Map<string, Pending>();
  /** The last failure, by environment and advisor. */
  private readonly failures = new Map<string, { readonly at: number; readonly why: SignInRefusal }>();

  constructor(private readonly options: TokensOptions) {}

  /** Begins an authorization; resolves with the address of the authorization page. */
  async begin(connection: Connection, advisor: string, link?: string, isBound = true): Promise<string> {
    this.sweep(link);
    const verifier = randomBytes(32).toString('base64url');
    const state = randomBytes(16).toString('base64url');
    const expiresAt = this.options.clock.now() + stateLifetime;
    const url = await authorizationUrl(connection, state, verifier);
    this.pending.set(state, { connection, advisor, verifier, expiresAt, link, url, isBound });
    if (link === undefined) this.failures.delete(attemptOf(connection.environment, advisor));
    return url;
  }

  /** The state of the last window: the dialog cannot look into it. */
  attempt(environment: string, advisor: string): SignInAttempt {
    const failure = this.failures.get(attemptOf(environment, advisor));
    if (failure) return { state: 'failed', why: failure.why };
    const now = this.options.clock.now();
    const own = [...this.pending.values()].filter(
      (each) =>
        each.link === undefined && each.connection.environment === environment && each.advisor === advisor,
    );
    if (own.some(({ expiresAt }) => now < expiresAt)) return { state: 'open' };
    return own.length > 0 ? { state: 'failed', why: 'expired' } : { state: 'none' };
  }

  isPending(state: string): boolean {
    return this.pending.has(state);
  }

  /**
   * Gives the browser that shows our own page the address of the authorization page. Where the browser returns to this
   * host, the first browser is bound to the request, and others are refused. `browser` is a secret that only this
   * browser has; `isSecure` says whether it returns by HTTPS.
   */
  enter(
    state: string,
    browser: string,
  ): (Pick<Pending, 'url' | 'isBound'> & { readonly isSecure: boolean }) | SignInRefusal {
    const pending = this.pending.get(state);
    if (!pending) return 'invalid';
    if (this.options.clock.now() >= pending.expiresAt) return 'expired';
    const { url, isBound, connection } = pending;
    if (isBound) pending.browser ??= hashOf(browser);
    if (isBound && pending.browser !== hashOf(browser)) return 'otherBrowser';
    return { url, isBound, isSecure: connection.redirectUri.startsWith('https:') };
  }

  /**
   * Handles the query with which the browser returned: only `code`, `state` and `error` are read. A state that is
   * unknown, used, expired, or of another environment or browser changes nothing. A denial is always reported as such,
   * since not every authorization page returns the state with it.
   */
  async finish(query: URLSearchParams, returning: Returning): Promise<Finished> {
    const returned = readReturn(query);
    const pending = returned && this.pending.get(returned.state);
    const isDenied = returned?.error === denied;
    if (!pending || ('pastedFor' in returning && pending.connection.environment !== returning.pastedFor)) {
      return { ok: false, why: isDenied ? 'denied' : 'invalid' };
    }
    if ('browser' in returning && pending.browser !== undefined) {
      const isOther = pending.browser !== hashOf(returning.browser);
      if (isOther) return { ok: false, why: isDenied ? 'denied' : 'otherBrowser' };
    }
    this.pending.delete(returned.state);
    try {
      const finished = await this.conclude(pending, returned);
      if (!finished.ok) this.noteFailure(pending, finished.why);
      return finished;
    } catch (fault) {
      // The dialog, which cannot look into the window, says why nothing was authorized.
      this.noteFailure(pending, fault instanceof ServiceError ? 'refused' : 'storeAway');
      throw fault;
    }
  }

  /** Called when somebody returned while the store was unavailable: the request stays valid for a second try. */
  storeAway(query: URLSearchParams): void {
    const returned = readReturn(query);
    const pending = returned && this.pending.get(returned.state);
    if (pending) this.noteFailure(pending, 'storeAway');
  }

  private noteFailure({ connection, advisor, link }: Pending, why: SignInRefusal): void {
    if (link !== undefined) return;
    this.failures.set(attemptOf(connection.environment, advisor), { at: this.options.clock.now(), why });
  }

  private async conclude(
    { connection, advisor, verifier, link, expiresAt }: Pending,
    { code, error }: AuthorizationResponse,
  ): Promise<Finished> {
    const { clock, vault } = this.options;
    if (clock.now() >= expiresAt) return { ok: false, why: 'expired' };
    if (error !== '') return { ok: false, why: reasonsGiven.get(error) ?? 'declined' };
    // A visit that began in time may end after the link has expired.
    if (link !== undefined && !(await vault.link(link))) return { ok: false, why: 'spentLink' };
    const result = await this.ask(connection, code, verifier);
    if (typeof result === 'string') return { ok: false, why: result };
    // Another visit of the same link may have ended first.
    if (link !== undefined && !(await vault.spendLink(link))) return { ok: false, why: 'spentLink' };
    const now = clock.now();
    const entry = await vault.authorized(connection, renewed(newGrant(connection, advisor), result, now));
    return { ok: true, environment: connection.environment, advisor, state: stateOf(entry, now) };
  }

  /** Limits the wait, because somebody is looking at the page: trouble of the service is reported soon. */
  private async ask(
    connection: Connection,
    code: string,
    verifier: string,
  ): Promise<TokenAnswer | 'refused' | 'client' | 'tokenType' | 'later'> {
    const { clock, endpoints } = this.options;
    const controller = new AbortController();
    const forget = clock.after(pageWaitsFor, () => {
      controller.abort();
    });
    try {
      const attempt = (): Promise<TokenResult> => endpoints.exchangeCode(connection, code, verifier);
      const result = await endpoints.run(connection, attempt, {
        signal: controller.signal,
        isPerson: true,
      });
      return result.outcome === 'issued' ? result.answer : 'refused';
    } catch (fault) {
      if (fault instanceof ServiceError && fault.code === 'not_configured') throw fault;
      if (!(fault instanceof ServiceError) || fault.code !== 'authorization_required') return 'later';
      return fault.problem.wording?.key === 'token_type' ? 'tokenType' : 'client';
    } finally {
      forget();
    }
  }

  private sweep(link: string | undefined): void {
    const now = this.options.clock.now();
    for (const [name, { at }] of this.failures) if (now >= at + 2 * stateLifetime) this.failures.delete(name);
    const visits: string[] = [];
    for (const [state, pending] of this.pending) {
      if (now >= pending.expiresAt + stateLifetime) this.pending.delete(state);
      else if (link !== undefined && pending.link === link) visits.push(state);
    }
    for (const state of visits.slice(0, Math.max(0, visits.length - visitsPerLink + 1)))
      this.pending.delete(state);
  }
}
