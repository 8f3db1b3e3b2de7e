import { createServer, type Socket } from 'node:net';
import { contactsPage } from './contacts';

/**
 * The leanest possible service, in a separate process: bare sockets and ready-made answers, so that a
 * measurement shows the cost of the client and not of the server.
 */

const counts = { texts: 0, polls: 0, pages: 0, refreshes: 0, rejected: 0, limited: 0 };
/** Epoch milliseconds of the first text and the first poll that were counted. */
const first = { text: 0, poll: 0 };
let isLimited = false;
let consent = 'pending';
let contacts = 100_000;
let generation = 1;

const tokenOf = (of: number): string => `bench-token-${String(of)}`;

const answer = (status: string, body: string): string =>
  `HTTP/1.1 ${status}\r\ndate: Sat, 01 Jan 2000 00:00:00 GMT\r\ncontent-type: application/json\r\n` +
  `content-length: ${String(Buffer.byteLength(body))}\r\nconnection: keep-alive\r\n\r\n${body}`;

const ok = (body: string): string => answer('200 OK', body);

const expired = (): string => {
  counts.rejected += 1;
  const problem = {
    type: 'about:blank',
    title: 'Unauthorized',
    status: 401,
    detail: 'expired',
    instance: '/',
  };
  return answer(
    '401 Unauthorized',
    JSON.stringify({ ...problem, code: 'unauthorized', traceId: 'bench', retryable: false }),
  );
};

const refreshed = (): string => {
  counts.refreshes += 1;
  return ok(
    JSON.stringify({
      access_token: tokenOf(generation),
      token_type: 'Bearer',
      expires_in: 86_400,
      refresh_token: 'bench-refresh',
      scope: 'openid core.contacts.read text.messaging.read text.messaging.write',
    }),
  );
};

/** The commands and questions of the measuring side: the counts, the number of contacts, that the token has expired. */
const control = (path: string): string => {
  const [, , order, value] = path.split('/');
  if (order === 'contacts') contacts = Number(value);
  if (order === 'consent' && value !== undefined) consent = value;
  if (order === 'expire') generation += 1;
  if (order === 'limit') isLimited = value === 'on';
  if (order === 'reset') {
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] = 0;
    first.text = first.poll = 0;
  }
  return ok(JSON.stringify({ ...counts, first, token: tokenOf(generation) }));
};

const number = (path: string, name: string): number =>
  Number(new RegExp(`[?&]${name}=(\\d+)`).exec(path)?.[1] ?? 1);

const served = (head: string): string => {
  const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' ', head.indexOf(' ') + 1));
  if (path.startsWith('/control/')) return control(path);
  if (path.startsWith('/oauth/token')) return refreshed();
  if (!head.includes(`Bearer ${tokenOf(generation)}\r\n`)) return expired();
  if (path.startsWith('/v1/text/messaging/messages')) {
    if (isLimited) {
      counts.limited += 1;
      return answer('429 Too Many Requests\r\nretry-after: 1800', '{}');
    }
    first.text ||= Date.now();
    counts.texts += 1;
    return ok(`{"successes":[{"messageId":${String(counts.texts)},"memberId":7}],"failures":[]}`);
  }
  if (path.startsWith('/v1/text/messaging/consents')) {
    first.poll ||= Date.now();
    counts.polls += 1;
    return ok(`{"memberId":7,"state":"${consent}","lastChanged":1700000000000}`);
  }
  if (path.startsWith('/v1/core/contact/contacts')) {
    counts.pages += 1;
    return ok(contactsPage(contacts, number(path, 'page'), number(path, 'pageSize')));
  }
  return answer('404 Not Found', '{}');
};

const lengthOf = (head: string): number => {
  const found = /content-length: *(\d+)/i.exec(head);
  if (!found && /transfer-encoding/i.test(head)) throw new Error('this server takes no chunked bodies');
  return Number(found?.[1] ?? 0);
};

const serve = (socket: Socket): void => {
  let rest = '';
  socket.setNoDelay(true).setEncoding('latin1');
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    rest += String(chunk);
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = rest.slice(0, end + 2);
      const whole = end + 4 + lengthOf(head);
      if (rest.length < whole) return;
      rest = rest.slice(whole);
      socket.write(served(head));
    }
  });
};

const server = createServer(serve).listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') process.send?.({ port: address?.port });
});
process.on('disconnect', () => process.exit());
