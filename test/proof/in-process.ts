import { Pool, type Dispatcher } from 'undici';
import type { Exchange } from '../../lib/service/transport';
import { answerLimit } from '../../lib/service/transport';
import type { Answer } from './answers';

/** What undici rejects before it connects. */
const invalidPath = /[^\u0021-\u00ff]/;

const fault = (code: string): Error => Object.assign(new Error(code), { code });

/** Calls the client's handler as undici calls it for this answer. */
const deliver = (answer: Answer, handler: Exchange): void => {
  const { status, body, delivery = 'whole', at = 0 } = answer;
  if (delivery === 'refused') {
    handler.onResponseError(null, fault('ECONNREFUSED'));
    return;
  }
  const aborting = new AbortController();
  const isAborted = (): boolean => aborting.signal.aborted;
  handler.onRequestStart({
    abort(error) {
      if (isAborted()) return;
      aborting.abort();
      handler.onResponseError(null, error);
    },
  });
  if (isAborted()) return;
  if (delivery === 'cutBeforeHead') {
    handler.onResponseError(null, fault('UND_ERR_SOCKET'));
    return;
  }
  if (delivery === 'earlyHints') handler.onResponseStart(null, 103, {});
  handler.onResponseStart(null, status, answer.headers);
  const bytes = Buffer.from(delivery === 'tooLarge' ? ' '.repeat(answerLimit) + body : body);
  // An answer of this kind has no content (RFC 9110, sections 15.3.5 and 15.4.5).
  const content = status === 204 || status === 304 ? Buffer.alloc(0) : bytes;
  const cut = Math.floor(at * content.length);
  const pieces =
    delivery === 'pieces'
      ? [content.subarray(0, cut), content.subarray(cut)]
      : delivery === 'cutInBody'
        ? [content.subarray(0, cut)]
        : [content];
  for (const piece of pieces) if (!isAborted() && piece.length > 0) handler.onResponseData(null, piece);
  if (isAborted()) return;
  if (delivery === 'cutInBody') handler.onResponseError(null, fault('UND_ERR_SOCKET'));
  else handler.onResponseEnd();
};

/**
 * From now on, requests get these answers instead of a network: everything but undici's connections and its
 * parser runs as in production. The result ends it.
 */
export const answerInProcess = (answer: (method: string, path: string) => Answer): (() => void) => {
  const prototype = Pool.prototype as Pick<Dispatcher, 'dispatch'>;
  const inherited = Object.getOwnPropertyDescriptor(prototype, 'dispatch');
  let waiting: (() => void)[] = [];
  prototype.dispatch = ({ method, path }, handler) => {
    const exchange = handler as unknown as Exchange;
    if (invalidPath.test(path)) {
      exchange.onResponseError(null, fault('UND_ERR_INVALID_ARG'));
      return true;
    }
    // One timer for all requests of a tick.
    if (waiting.length === 0)
      setImmediate(() => {
        const due = waiting;
        waiting = [];
        for (const go of due) go();
      });
    waiting.push(() => {
      deliver(answer(method, path), exchange);
    });
    return true;
  };
  return () => {
    if (inherited) Object.defineProperty(prototype, 'dispatch', inherited);
    else Reflect.deleteProperty(prototype, 'dispatch');
  };
};
