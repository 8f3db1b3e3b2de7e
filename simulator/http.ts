import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Habits } from './profiles';

export const tooLarge = Symbol('too large');

/** A web framework in front may have already read and parsed the body. */
interface MaybeParsed {
  readonly body?: unknown;
}

export const parsedBody = (request: IncomingMessage): unknown => (request as MaybeParsed).body;

/** The whole body, or `tooLarge` as soon as the limit is exceeded; the rest is then discarded. */
export const readBody = (request: IncomingMessage, limit: number): Promise<Buffer | typeof tooLarge> =>
  new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      request.resume();
      resolve(tooLarge);
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        request.removeAllListeners('data').resume();
        resolve(tooLarge);
      } else {
        chunks.push(chunk);
      }
    });
    request.once('end', () => {
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    });
    request.once('error', reject);
    request.once('close', () => {
      if (!request.complete) reject(new Error('the client went away'));
    });
  });

/** Whether a firewall with these habits lets the request through. */
export const saysWhoItIs = (request: IncomingMessage, { userAgent }: Habits): boolean =>
  userAgent === 'optional' || (request.headers['user-agent'] ?? '').trim() !== '';

export type Headers = Readonly<Record<string, string | number>>;

export const plainText = 'text/plain; charset=utf-8';

export const answer = (
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
  headers: Headers = {},
): void => {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
  response.end(body);
};

export const answerJson = (
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Headers = {},
): void => {
  answer(response, status, 'application/json', JSON.stringify(value), headers);
};

/** Splits path and query without the cost of a URL object. */
export const splitTarget = (target: string): readonly [path: string, query: string] => {
  const at = target.indexOf('?');
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)];
};

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? '');
