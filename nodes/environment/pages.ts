import { createHash } from 'node:crypto';
import type { Response } from 'express';
import type { Refusal } from '../../lib/auth/authorization';

export interface Words {
  readonly title: string;
  readonly text: string;
}

const again = 'Go back to where you came from and start again.';

/** What a person is told whose authorization came to nothing. Never what came with the request. */
export const refusals: Readonly<Record<Refusal, Words>> = {
  invalid: {
    title: 'This did not work',
    text: `This page was opened without a request that is under way: it was already used, or the address is incomplete. Nothing was changed. ${again}`,
  },
  expired: {
    title: 'This took too long',
    text: `The request is older than ten minutes. Nothing was changed. ${again}`,
  },
  denied: {
    title: 'Access was denied',
    text: 'Access was denied, so nothing was changed. You can close this window.',
  },
  declined: {
    title: 'The authorization service refused',
    text: 'It did not accept the request. Nothing was changed. Ask whoever runs this Node-RED to check the client ID, the redirect address and the permissions.',
  },
  refused: {
    title: 'The authorization was not accepted',
    text: `The authorization service did not accept the code it had given. Nothing was changed. ${again}`,
  },
  client: {
    title: 'The application was not accepted',
    text: 'The authorization service did not accept the client ID or client secret. Nothing was changed. Ask whoever runs this Node-RED to correct them.',
  },
  later: {
    title: 'The authorization service is not available',
    text: `It did not answer properly. Nothing was changed. Wait a minute. ${again}`,
  },
};

export const authorizedPage: Words = {
  title: 'Authorized',
  text: 'Node-RED can now text on behalf of this advisor. You can close this window.',
};

export const confirmPage: Words = {
  title: 'One more step',
  text: 'Somebody else had authorized before, so this has to be confirmed in Node-RED: open the environment and confirm. Until then nothing changes. You can close this window.',
};

export const spentLinkPage: Words = {
  title: 'This link no longer works',
  text: 'It was already used, or it is older than a day. Ask for a new one.',
};

export const notReadyPage: Words = {
  title: 'Not ready yet',
  text: 'This environment is not set up completely. Ask whoever runs this Node-RED to finish it, then open the link again.',
};

const style =
  ':root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1.5rem}h1{font-size:1.5rem}';

const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export const privately = (response: Response): Response =>
  response.set({
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': policy,
  });

export const sendPage = (response: Response, status: number, { title, text }: Words): void => {
  privately(response)
    .status(status)
    .type('html')
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><main><h1>${title}</h1><p>${text}</p></main></body></html>`,
    );
};
