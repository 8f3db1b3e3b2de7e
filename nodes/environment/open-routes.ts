import type { Request, Response } from 'express';
import type { Red } from '../../lib/runtime/red';
import { privately, sendPage } from './pages';
import { findRunning } from './running';
import type { Services } from './services';

/** Read from the raw address: a parser that makes arrays and objects of parameters has no part in this. */
const queryOf = (request: Request): URLSearchParams => {
  const at = request.originalUrl.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : request.originalUrl.slice(at + 1));
};

export type OpenRoutes = Readonly<
  Record<'callback' | 'link', (request: Request, response: Response) => void>
>;

/** For people who have no login here: the way back from the authorization page, and links sent to advisors. */
export const openRoutes = (RED: Red, { authorizations, log }: Services): OpenRoutes => {
  const guarded =
    (work: (request: Request, response: Response) => Promise<void>) =>
    (request: Request, response: Response): void => {
      work(request, response).catch((fault: unknown) => {
        log.error(`An authorization failed: ${fault instanceof Error ? fault.message : String(fault)}`);
        sendPage(request, response, 400, 'later');
      });
    };

  const callback = guarded(async (request, response) => {
    const finished = await authorizations.finish(queryOf(request));
    if (!finished.ok) {
      sendPage(request, response, 400, finished.why);
      return;
    }
    const { environment, advisor, state } = finished;
    log.info(state === 'confirm' ? 'An authorization awaits confirmation.' : 'Authorized.', {
      environment,
      advisor,
    });
    sendPage(request, response, 200, state === 'confirm' ? 'confirm' : 'authorized');
  });

  const link = guarded(async (request, response) => {
    const token = request.params['token'] ?? '';
    const owner = authorizations.readLink(token);
    if (!owner) {
      sendPage(request, response, 400, 'spentLink');
      return;
    }
    const environment = findRunning(RED, owner.environment);
    let connection;
    try {
      connection = environment?.connection();
    } catch {
      // The person who opened the link cannot mend it; whoever runs Node-RED sees it in the environment.
    }
    if (connection)
      privately(response).redirect(await authorizations.begin(connection, owner.advisor, token));
    else sendPage(request, response, 400, 'notReady');
  });

  return { callback, link };
};
