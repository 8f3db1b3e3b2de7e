import { hash } from 'node:crypto';
import type { Clock } from '../service/clock';
import { type ReasonWord, serviceError, ServiceError } from '../service/errors';
import { Limits } from '../service/limits';
import { contractScope, usualPrefixes, wireScope } from '../service/prefixes';
import { backoff, readRetryAfter, Retries, type Happened } from '../service/retry';
import type { postForm } from '../service/transport';
import type { Connection } from './connection';
import { second } from '../durations';
import { isRecord, tried } from '../kinds';
import { Listeners } from '../listeners';
import { orMake } from '../process-memory';

export type PostForm = typeof postForm;

/**
 * The most milliseconds for a request, whatever the environment allows for others: other processes take a refresh that
 * lasts longer for one that was killed, and may use the refresh token a second time (`renewingLimit` in `vault`).
 */
const timeLimit = 30 * second;
/** Milliseconds: shorter pauses are over before anybody could read about them. */
const leastTold = 5 * second;
/** The most requests at once to one token endpoint; one while it is in trouble. */
const mostAtOnce = 4;

/** The identity in a token: for display, and to notice that another person has authorized; never for deciding access. */
export interface Identity {
  readonly subject: string;
  readonly label: string;
}

type Claims = Readonly<Record<string, unknown>>;

/** The members of an object in JSON; of any other text, none. */
const membersOf = (json: string): Claims => {
  const value = tried(() => JSON.parse(json) as unknown);
  return isRecord(value) ? value : {};
};

const claimsOf = (token: unknown): Claims => {
  const [, payload = '', ...rest] = typeof token === 'string' ? token.split('.') : [];
  return rest.length === 1 ? membersOf(Buffer.from(payload, 'base64url').toString()) : {};
};

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const identityIn = (token: unknown): Identity | undefined => {
  const claims = claimsOf(token);
  const subject = text(claims['sub']);
  if (subject === undefined) return undefined;
  const label = [claims['name'], claims['email'], claims['preferred_username']].map(text).find(Boolean);
  return { subject, label: (label ?? subject).slice(0, 200) };
};

export const splitScopes = (scope: string): string[] => scope.split(/\s+/).filter(Boolean);

/** The scopes that an access token itself names, in the words of the service (RFC 9068, section 2.2.3). */
export const scopesIn = (token: string): string[] | undefined => {
  const claims = claimsOf(token);
  const said = claims['scope'] ?? claims['scp'];
  if (typeof said === 'string') return splitScopes(said);
  return Array.isArray(said) ? said.filter((scope) => typeof scope === 'string') : undefined;
};

/** Seconds. A token that ends later never ends: beyond the year 275760 there are no dates (ECMA-262, section 21.4.1.1). */
const longestLifetime = 1e12;

/** Undefined when the text is not a token answer. */
const readTokenAnswer = (body: string) => {
  const fields = membersOf(body);
  const accessToken = text(fields['access_token']);
  if (accessToken === undefined || /[^\x21-\x7e]/.test(accessToken)) return undefined;
  const seconds = Number(fields['expires_in'] ?? Number.NaN);
  const { scope, token_type: type } = fields;
  const [signedIn, inAccessToken] = [identityIn(fields['id_token']), identityIn(accessToken)];
  return {
    accessToken,
    refreshToken: text(fields['refresh_token']) ?? null,
    expiresIn: seconds > 0 && seconds <= longestLifetime ? seconds * second : null,
    scopes: typeof scope === 'string' ? splitScopes(scope) : null,
    identity: signedIn ?? inAccessToken ?? null,
    /** How an answer with an identity token names the person; its access token may do so in another way. */
    subjects: signedIn ? [signedIn.subject, inAccessToken?.subject] : [],
    /** Empty where the answer does not name it. */
    tokenType: type == null ? '' : typeof type === 'string' ? type : JSON.stringify(type),
  };
};

export type TokenAnswer = NonNullable<ReturnType<typeof readTokenAnswer>>;

/** The type of a token is compared without regard to case (RFC 6749, section 5.1). */
const isBearer = ({ tokenType }: TokenAnswer): boolean =>
  tokenType === '' || tokenType.toLowerCase() === 'bearer';

/** `refused`: the code or the refresh token is invalid. Any failure that does not say so is `Trouble`. */
export type TokenResult =
  | { readonly outcome: 'issued'; readonly answer: TokenAnswer }
  | { readonly outcome: 'refused'; readonly error: unknown };

/** The endpoint refused the application, could not decide, or could not be reached. */
class Trouble extends Error {
  constructor(
    readonly happened: Happened,
    readonly fault: (connection: Connection) => ServiceError,
    /** Milliseconds that the endpoint asks for, also with a 503 (RFC 9110, section 10.2.3). */
    readonly retryAfter = 0,
  ) {
    super('the token endpoint is in trouble');
  }
}

const clientRefused = ({ name }: Connection): ServiceError =>
  serviceError('authorization_required', 'client_refused', { name });

const scopesRefused = ({ name }: Connection): ServiceError =>
  serviceError('authorization_required', 'scopes_refused', { name });

const typeRefused =
  (type: string) =>
  ({ name }: Connection): ServiceError =>
    serviceError('authorization_required', 'token_type', { name, type: type.slice(0, 40) });

export const tryLater =
  (reason: ReasonWord) =>
  ({ name }: Connection): ServiceError =>
    serviceError('network_error', 'token_later', { name, reason });

/** The error when the store takes no writes. */
export const notStored = ({ name }: Connection): ServiceError =>
  serviceError('network_error', 'token_unstored', { name });

export const authorizeAgain = ({ name }: Connection, advisor: string): ServiceError =>
  serviceError('authorization_required', 'authorization_ended', { advisor, name });

export const notAuthorized = ({ name }: Connection, advisor: string): ServiceError =>
  serviceError('authorization_required', 'not_authorized', { advisor, name });

export const operationScopesOf = ({ scopes }: Connection): string[] =>
  scopes.filter((scope) => scope !== 'openid' && scope !== 'offline_access');

/** The scopes of a client credentials request, for which no refresh token is issued (RFC 6749, section 4.4.3). */
const clientScopes = ({ scopes }: Connection): string[] =>
  scopes.filter((scope) => scope !== 'offline_access');

export const onTheWire = (
  scopes: readonly string[],
  { prefixes = usualPrefixes }: Pick<Connection, 'prefixes'>,
): string => scopes.map((scope) => wireScope(scope, prefixes)).join(' ');

const inContractWords = (result: TokenResult, { prefixes = usualPrefixes }: Connection): TokenResult => {
  if (result.outcome !== 'issued' || result.answer.scopes === null) return result;
  const scopes = result.answer.scopes.map((scope) => contractScope(scope, prefixes));
  return { ...result, answer: { ...result.answer, scopes } };
};

/** Errors about the application, not about its code or token (RFC 6749, section 5.2). */
export const clientErrors: readonly unknown[] = ['invalid_client', 'unauthorized_client'];
/** Errors about the request itself (RFC 6749, section 5.2): they say nothing about a refresh token. */
const requestErrors: readonly unknown[] = ['invalid_request', 'invalid_scope', 'unsupported_grant_type'];
/** Errors of other endpoints (RFC 6749, section 4.1.2.1; RFC 8628, section 3.5) that some token endpoints send with a 400. */
const passingErrors: readonly unknown[] = ['temporarily_unavailable', 'server_error', 'slow_down'];

/** The error in an answer of a token endpoint (RFC 6749, section 5.2). */
export const errorIn = (text: string): unknown => membersOf(text)['error'];

/**
 * `invalid_grant` means that the code or the refresh token is invalid, also with a 401 or 403, which some servers send.
 * So does any other 400: the contract names only the status (*Authentication*, 9 and 10).
 */
const read = (
  { status, text, retryAfter, date }: Awaited<ReturnType<PostForm>>,
  now: number,
): TokenResult => {
  const said = `HTTP ${String(status)}`;
  if (status >= 200 && status < 300) {
    const answer = readTokenAnswer(text);
    if (answer && isBearer(answer)) return { outcome: 'issued', answer };
    const fault = answer ? typeRefused(answer.tokenType) : tryLater({ reason: 'no_token' });
    throw new Trouble({ what: 'refused', status }, fault);
  }
  const after = readRetryAfter(retryAfter, now, date);
  if (status === 429) throw new Trouble({ what: 'limited', retryAfter: after }, tryLater(said), after);
  const error = errorIn(text);
  if (status >= 500 || (status === 400 && passingErrors.includes(error))) {
    throw new Trouble({ what: 'gateway' }, tryLater(said), after);
  }
  if (status >= 400 && error === 'invalid_grant') return { outcome: 'refused', error };
  if (status === 401 || status === 403 || (status === 400 && clientErrors.includes(error))) {
    throw new Trouble({ what: 'refused', status }, clientRefused);
  }
  if (status === 400) return { outcome: 'refused', error };
  throw new Trouble({ what: 'refused', status }, tryLater(said));
};

/** What all requests of one application to one token endpoint for the same scopes share, for all advisors. */
class EndpointAccess {
  limits: Limits;
  /** How many times in a row all attempts have failed. */
  givenUp = 0;
  /** The number of failures: requests that failed together count as one. */
  failures = 0;
  /** How long the last pause is, in milliseconds. */
  pauseLength = 0;
  /** The last failure, which holds until the pause is over. */
  remembered: Trouble | undefined;

  constructor(
    private readonly clock: Clock,
    readonly retries: Retries,
  ) {
    this.limits = this.unpaused();
  }

  private unpaused(): Limits {
    const { retries } = this;
    const most = (): number => (retries.retried + retries.limited + this.givenUp > 0 ? 1 : mostAtOnce);
    return new Limits(this.clock, mostAtOnce, 0, most);
  }

  /** Ends the pause: all who wait ask for their turn again. */
  resume(): void {
    const { limits } = this;
    this.limits = this.unpaused();
    limits.close();
  }

  pause(ms: number): void {
    this.pauseLength = ms;
    this.limits.pause(ms);
  }

  recovered(): void {
    Object.assign(this.retries, { retried: 0, limited: 0 });
    Object.assign(this, { givenUp: 0, remembered: undefined });
    this.retries.budget.refund();
    if (this.limits.pausedUntil > 0) this.resume();
  }
}

export interface TokenEndpointsOptions {
  readonly clock: Clock;
  readonly post: PostForm;
  readonly random?: () => number;
}

/**
 * Requests to token endpoints, retried as other requests are. While an endpoint fails, all wait for a single attempt.
 * When that gives up, its failure applies to all until the backoff is over.
 */
export class TokenEndpoints {
  private readonly accesses = new Map<string, EndpointAccess>();
  private readonly listeners = new Listeners();
  readonly onPause = this.listeners.add;

  constructor(private readonly options: TokenEndpointsOptions) {}

  /** The time until which no request is made for a connection; 0 when there is no pause worth reporting. */
  pausedUntil(connection: Connection): number {
    const { limits, pauseLength } = this.accessOf(connection);
    return pauseLength >= leastTold ? limits.pausedUntil : 0;
  }

  /** Makes one request; `run` handles what it throws. */
  exchangeCode(connection: Connection, code: string, verifier: string): Promise<TokenResult> {
    return this.ask(connection, {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      redirect_uri: connection.redirectUri,
    });
  }

  async refresh(connection: Connection, refreshToken: string): Promise<TokenResult> {
    const fields = { grant_type: 'refresh_token', refresh_token: refreshToken };
    const result = await this.ask(connection, fields);
    if (result.outcome === 'issued' || !requestErrors.includes(result.error)) return result;
    const fault = result.error === 'invalid_scope' ? scopesRefused : tryLater('HTTP 400');
    throw new Trouble({ what: 'refused', status: 400 }, fault);
  }

  async clientCredentials(connection: Connection): Promise<TokenAnswer> {
    const scopes = clientScopes(connection);
    const result = await this.ask(connection, {
      grant_type: 'client_credentials',
      ...(scopes.length > 0 ? { scope: onTheWire(scopes, connection) } : {}),
    });
    if (result.outcome === 'issued') return result.answer;
    // `invalid_scope` is about the scopes, all others about the application (RFC 6749, section 5.2).
    const fault = result.error === 'invalid_scope' ? scopesRefused : clientRefused;
    throw new Trouble({ what: 'refused', status: 400 }, fault);
  }

  /**
   * Makes attempts until one succeeds. Rejects with ServiceError when it gives up, or when the signal aborts. For a
   * person, who may just have corrected a setting, one attempt is made even if a failure is remembered.
   */
  async run<T>(
    connection: Connection,
    attempt: () => Promise<T>,
    { signal, isPerson = false }: { readonly signal?: AbortSignal; readonly isPerson?: boolean } = {},
  ): Promise<T> {
    const access = this.accessOf(connection);
    if (isPerson && access.remembered) access.resume();
    for (;;) {
      const { limits, remembered } = access;
      if (signal?.aborted === true) throw serviceError('cancelled', 'abandoned');
      if (remembered && limits.pausedUntil > 0) throw remembered.fault(connection);
      if (!(await limits.enter({ lane: '', priority: 'normal', front: false, signal }))) continue;
      access.remembered = undefined;
      const { failures } = access;
      try {
        const value = await attempt();
        access.recovered();
        return value;
      } catch (fault) {
        if (!(fault instanceof Trouble)) throw fault;
        if (access.failures === failures) this.check(access, fault, connection);
      } finally {
        limits.leave();
      }
    }
  }

  private check(access: EndpointAccess, trouble: Trouble, connection: Connection): void {
    access.failures++;
    // After all attempts have failed, the endpoint gets single attempts until it answers.
    const retries = access.givenUp > 0 ? 0 : connection.retries;
    const decision = access.retries.after('read', trouble.happened, { retries, repeatSends: 'contract' });
    if ('ms' in decision) access.pause(Math.max(decision.ms, trouble.retryAfter));
    else {
      Object.assign(access.retries, { retried: 0, limited: 0 });
      Object.assign(access, { givenUp: access.givenUp + 1, remembered: trouble });
      // Those who wait fail too.
      access.resume();
      // Without jitter: no other request returns at this time, and a short pause would cause a storm of requests.
      access.pause(Math.max(backoff(access.givenUp - 1, 1), trouble.retryAfter));
    }
    if (this.pausedUntil(connection) > 0) this.listeners.call();
  }

  private async ask(connection: Connection, fields: Readonly<Record<string, string>>): Promise<TokenResult> {
    const { clock, post } = this.options;
    const { tokenUrl, clientId, clientSecret, proxy } = connection;
    const timeout = Math.min(connection.timeout ?? timeLimit, timeLimit);
    const all = { ...fields, client_id: clientId, client_secret: clientSecret };
    const release = clock.keepStill?.();
    try {
      const answer = read(await post(tokenUrl, all, { timeout, proxy }), clock.now());
      return inContractWords(answer, connection);
    } catch (fault) {
      if (fault instanceof Trouble) throw fault;
      const { code, wording } = fault instanceof ServiceError ? fault.problem : {};
      if (code === 'not_configured') throw fault;
      const { reason = { reason: 'unreachable' } } = wording?.values ?? {};
      throw new Trouble({ what: 'unreached' }, tryLater(reason as ReasonWord));
    } finally {
      release?.();
    }
  }

  /** A corrected secret or scope makes another `EndpointAccess`: the remembered failure does not hold for it. */
  private accessOf(connection: Connection): EndpointAccess {
    const { tokenUrl, clientId, clientSecret, scopes } = connection;
    const about = [tokenUrl, clientId, clientSecret, onTheWire(scopes, connection)];
    const name = hash('sha256', JSON.stringify(about));
    const { clock, random = Math.random } = this.options;
    return orMake(this.accesses, name, () => new EndpointAccess(clock, new Retries(clock, random)));
  }
}
