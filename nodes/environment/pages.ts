import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { SignInRefusal } from '../../lib/auth/authorization';
import { wordsForRequest } from './reply';

/** The pages are static: none shows anything from the request. */
export type BrowserPage = SignInRefusal | 'authorized' | 'confirm' | 'notReady';

const style =
  ':root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1.5rem}h1{font-size:1.5rem}';

const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export const cookieOf = (request: Request, name: string): string =>
  (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .find(([each]) => each === name)?.[1] ?? '';

export const privately = (response: Response): Response =>
  response.set({
    'Cache-Control': 'no-store',
    Vary: 'Accept-Language',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': policy,
  });

export const sendPage = (request: Request, response: Response, status: number, page: BrowserPage): void => {
  const { language, say } = wordsForRequest(request);
  const title = say(`page.${page}.title`);
  const text = say(`page.${page}.text`);
  privately(response)
    .status(status)
    .type('html')
    .send(
      `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><main><h1>${title}</h1><p>${text}</p></main></body></html>`,
    );
};
