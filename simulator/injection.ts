import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/service/clock';
import { retryAfterOnWire } from './contract/wire';
import { defaultDelay, effectName, isProcessed, type Effect } from './effects';
import { answer, type Headers } from './http';
import type { LedgerEntry } from './ledger';
import { defaultRetryAfter, injected, problemBody, type Refusal } from './problem';
import type { State } from './state/state';
import { second } from '../lib/durations';

/** The effect with its *Retry-After* as this service writes it. */
const inHabits = (effect: Effect, { clock, settings }: State): Effect => {
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

export const problem = (refusal: Refusal, instance: string): Ready => ({
  status: refusal.status,
  type: 'application/problem+json',
  body: refusal.isBare ? '' : problemBody(refusal, instance),
  headers: refusal.headers,
});

const gatewayPage =
  '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>';

const bare = (status: number, headers: Headers = {}): Ready => ({ status, type: '', body: '', headers });

const half = (text: string): string => text.slice(0, Math.floor(text.length / 2));

const cut = (response: ServerResponse): void => {
  response.socket?.destroy();
};

/**
 * Answers as the effect says, or not at all. `carriedOut` is the honest answer to a request that was processed. Returns
 * the status that the client may have seen, 0 for none.
 */
const perform = (
  effect: Effect,
  response: ServerResponse,
  clock: Clock,
  carriedOut: Ready | undefined,
  { scope, path }: { readonly scope: string; readonly path: string },
): number => {
  const say = (ready: Ready): number => {
    writeReady(response, ready);
    return ready.status;
  };
  if (effect.code !== undefined) return say(problem(injected(effect.code, scope, effect.retryAfter), path));
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

/** Answers a request that `run` carries out, or does what the effect says; the ledger's entry shows what happened. */
export const respond = async (
  response: ServerResponse,
  state: State,
  met: Effect | undefined,
  entry: LedgerEntry,
  scope: string,
  run: () => Ready | Promise<Ready>,
): Promise<void> => {
  if (met === undefined) {
    const ready = await run();
    entry.status = ready.status;
    writeReady(response, ready);
    return;
  }
  const effect = inHabits(met, state);
  const carriedOut = isProcessed(effect) ? await run() : undefined;
  // The ledger shows what a cut request did; its status shows that it was cut.
  if (carriedOut === undefined) entry.outcome = effectName(effect);
  entry.status = perform(effect, response, state.clock, carriedOut, { scope, path: entry.path });
};
