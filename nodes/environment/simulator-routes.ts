import { randomBytes } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import { isSpoken } from '../../lib/languages';
import { systemLanguage, type Red } from '../../lib/runtime/red';
import { hour, minute, second } from '../../lib/durations';
import { cookieOf } from './pages';
import { replyFault, smallJsonOnly, Refused, reply, soon, type Mounts } from './reply';
import type { Services } from './services';

const cookie = 'advisor-texting-simulator';
const keyLifetime = minute;
const sessionLifetime = 12 * hour;
const mostSessions = 8;

/** Cookies do not distinguish ports (RFC 6265, section 8.5): the passes of all Node-REDs on a host share one. */
const passesOf = (request: Request): string[] => cookieOf(request, cookie).match(/[\w-]{32}/g) ?? [];

/** Secrets that are valid until they expire. */
class Passes {
  private readonly passes = new Map<string, number>();

  constructor(readonly lifetime: number) {}

  issue(): string {
    const now = Date.now();
    for (const [pass, expiresAt] of this.passes) if (now >= expiresAt) this.passes.delete(pass);
    const pass = randomBytes(24).toString('base64url');
    this.passes.set(pass, now + this.lifetime);
    return pass;
  }

  has(pass: string): boolean {
    return Date.now() < (this.passes.get(pass) ?? 0);
  }

  spend(pass: string): boolean {
    const isGood = this.has(pass);
    this.passes.delete(pass);
    return isGood;
  }
}

/**
 * The phones page. A new window carries no login, so the editor opens it with a single-use key, which is exchanged for
 * a cookie of this page alone.
 */
export const simulatorRoutes = (RED: Red, mounts: Mounts, { log, simulator }: Services): void => {
  const keys = new Passes(keyLifetime);
  const sessions = new Passes(sessionLifetime);

  const mayOpen = RED.auth.needsPermission('advisor-texting.write') as RequestHandler;
  mounts.post('/advisor-texting/simulator/open', mayOpen, smallJsonOnly, (request, response) => {
    void reply({ log, request, response, mayWrite: true }, () => {
      if (!simulator.isWanted) throw new Refused(409, 'refused.noSimulator');
      const clock = isSpoken(systemLanguage(RED.settings)) ? '' : '&clock=h23';
      return { url: `advisor-texting/simulator/?key=${keys.issue()}${clock}` };
    });
  });

  /**
   * The cookie has no `Path`, so the browser takes that of this page (RFC 6265, section 5.1.4): behind a proxy, only
   * the browser knows it.
   */
  const admit = (request: Request, response: Response): void => {
    const secure = request.secure ? '; Secure' : '';
    const age = String(sessionLifetime / second);
    const session = `${cookie}=${[...passesOf(request), sessions.issue()].slice(-mostSessions).join('.')}`;
    response.set('Set-Cookie', `${session}; HttpOnly; SameSite=Strict; Max-Age=${age}${secure}`);
  };

  const serve = async (request: Request, response: Response): Promise<void> => {
    if (!simulator.isWanted) throw new Refused(409, 'refused.noSimulator');
    await (await soon(simulator.start())).handle(request, response);
  };

  mounts.use('/advisor-texting/simulator', (request, response) => {
    const { key } = request.query;
    const handle = (): void => {
      serve(request, response).catch((fault: unknown) =>
        replyFault({ log, request, response, mayWrite: true }, fault),
      );
    };
    const isKeyed = typeof key === 'string' && request.path === '/' && keys.spend(key);
    if (isKeyed) admit(request, response);
    if (isKeyed || passesOf(request).some((pass) => sessions.has(pass))) handle();
    // Where Node-RED has no logins, this page needs none.
    else mayOpen(request, response, handle);
  });
};
