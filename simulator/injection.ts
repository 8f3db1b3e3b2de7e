import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/service/clock';
import { retryAfterOnWire } from './contract/wire';
import { defaultDelay, type Effect } from './effects';
import { answer, type Headers } from './http';
import { defaultRetryAfter } from './problem';
import type { State } from './state/state';
import { second } from '../lib/durations';

/** The effect with its *Retry-After* as this service writes it. */
export const inHabits = (effect: Effect, { clock, settings }: State): Effect => {
  if (effect.code !== 'rate_limited' && effect.retryAfter === undefined) return effect;
  const { retryAfter = defaultRetryAfter } = effect;
  return { ...effect, retryAfter: retryAfterOnWire(retryAfter, clock.now(), settings.habits) };
};

/** An answer that has not been written yet. */
export interface Ready {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Headers;
}

export const writeReady = (response: ServerResponse, { status, type, body, headers }: Ready): void => {
  if (body === '') response.writeHead(status, headers).end();
  else answer(response, status, type, body, headers);
};

const gatewayPage =
  '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>';

const bare = (status: number, headers: Headers = {}): Ready => ({ status, type: '', body: '', headers });

const half = (text: string): string => text.slice(0, Math.floor(text.length / 2));

const cut = (response: ServerResponse): void => {
  response.socket?.destroy();
};

/**
 * Answers as the effect says, or not at all. `carriedOut` is the honest answer to a request that was processed;
 * `refuse` returns the problem of a code. Returns the status that the client may have seen, 0 for none.
 */
export const perform = (
  effect: Effect,
  response: ServerResponse,
  clock: Clock,
  carriedOut: Ready | undefined,
  refuse: (effect: Effect) => Ready,
): number => {
  const say = (ready: Ready): number => {
    writeReady(response, ready);
    return ready.status;
  };
  if (effect.code !== undefined) return say(refuse(effect));
  if (effect.status !== undefined) {
    return say(
      bare(effect.status, effect.retryAfter === undefined ? {} : { 'retry-after': effect.retryAfter }),
    );
  }
  const ready = carriedOut ?? bare(502);
  switch (effect.kind) {
    case 'slow':
      clock.after((effect.delay ?? defaultDelay) * second, () => {
        writeReady(response, ready);
      });
      return ready.status;
    case 'gateway':
      return say({ status: 502, type: 'text/html', body: gatewayPage });
    case 'empty':
      return say(bare(502));
    case 'truncated':
      return say({ ...ready, body: half(ready.body) });
    case 'malformed':
      return say({ ...ready, status: 200, type: 'application/json', body: '{"unexpected":true}' });
    case 'cut-inside':
      response.writeHead(ready.status, { 'content-type': ready.type, 'content-length': ready.body.length });
      response.write(half(ready.body), () => {
        cut(response);
      });
      return 0;
    case 'cut-before':
    case 'cut-after':
    case undefined:
      cut(response);
      return 0;
  }
};
