import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Log } from '../../lib/runtime/log';
import { problem, ServiceError } from '../../lib/service/problems';

/** An answer to the editor, other than the result itself. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Answers with what the work returns, as JSON. */
export const answer =
  (log: Log, work: (request: Request) => unknown): RequestHandler =>
  (request, response) => {
    void (async () => work(request))()
      .then((result) => response.set('Cache-Control', 'no-store').json(result))
      .catch((fault: unknown) => {
        fail(log, response, fault);
      });
  };

export const fail = (log: Log, response: Response, fault: unknown): void => {
  if (fault instanceof Refused) {
    response.status(fault.status).json({ message: fault.message });
  } else if (fault instanceof ServiceError) {
    const { code, message } = fault.problem;
    response.status(code === 'network_error' ? 502 : 400).json({ code, message });
  } else {
    log.error(`A request of the editor failed: ${fault instanceof Error ? fault.message : String(fault)}`);
    response.status(500).json({ message: 'Something went wrong here. The log of Node-RED says more.' });
  }
};

/**
 * A page of another site can make a browser post a form, or nothing, but not JSON. Programs, which send no Origin, may
 * leave an empty body untyped.
 */
export const jsonOnly = (request: Request, response: Response, next: NextFunction): void => {
  const isEmpty = !request.headers['content-type'] && !Number(request.headers['content-length'] ?? 0);
  if (request.is('application/json') || (isEmpty && request.headers.origin === undefined)) next();
  else response.status(415).json({ message: 'Send the request as application/json.' });
};

const bodyOf = (request: Request): Readonly<Record<string, unknown>> => {
  const body: unknown = request.body;
  return typeof body === 'object' && body !== null ? (body as Readonly<Record<string, unknown>>) : {};
};

export const field = (request: Request, name: string): unknown =>
  Object.hasOwn(bodyOf(request), name) ? bodyOf(request)[name] : undefined;

/** A key of the integrator's choosing; `default` when nothing is said. */
export const advisorKey = (given: unknown): string => {
  if (given === undefined || given === null || given === '') return 'default';
  const key = typeof given === 'string' ? given.trim() : '';
  if (key === '' || key.length > 200) {
    throw problem('invalid_input', 'The advisor must be a text of 1 to 200 characters.');
  }
  return key;
};
