import should from 'should';
import { Exchange } from '../../lib/service/exchange';
import type { Result } from '../../lib/service/exchange';

describe('one request on its way', () => {
  const start = (
    timeout = 60_000,
  ): { exchange: Exchange; results: Result[]; aborted: () => number; abort: () => void } => {
    const exchange = new Exchange({ method: 'POST', path: '/', headers: [], body: '{}' });
    const results: Result[] = [];
    let aborts = 0;
    exchange.start({ dispatch: () => true }, timeout, (result) => results.push(result));
    return { exchange, results, aborted: () => aborts, abort: () => aborts++ };
  };

  it('given up before there was a connection is not sent when one comes', () => {
    const { exchange, results, aborted, abort } = start();
    exchange.abandon('timeout');
    should(results).eql([{ state: 'unreached', reason: 'timeout' }]);
    exchange.onConnect(abort);
    should(aborted()).equal(1);
    should(results).have.length(1);
  });

  it('is never started twice, not even by the pool', () => {
    const { exchange, results, aborted, abort } = start();
    exchange.onConnect(abort);
    should(aborted()).equal(0);
    exchange.onConnect(abort);
    should(aborted()).equal(1);
    exchange.onError(new Error('aborted'));
    should(results).eql([{ state: 'broken', reason: 'Error' }]);
  });

  it('settles once, whatever comes after', () => {
    const { exchange, results, abort } = start();
    exchange.onConnect(abort);
    exchange.onHeaders(200, []);
    exchange.onData(Buffer.from('{"a":'));
    exchange.onData(Buffer.from('"ä"}'));
    exchange.onComplete();
    exchange.onError(new Error('late'));
    exchange.abandon('late');
    should(results).eql([{ state: 'answered', status: 200, text: '{"a":"ä"}', retryAfter: undefined }]);
  });

  it('joins a character that came in two pieces', () => {
    const { exchange, results, abort } = start();
    const bytes = Buffer.from('"€"');
    exchange.onConnect(abort);
    exchange.onHeaders(429, [Buffer.from('Retry-After'), Buffer.from('7')]);
    exchange.onData(bytes.subarray(0, 2));
    exchange.onData(bytes.subarray(2));
    exchange.onComplete();
    should(results).eql([{ state: 'answered', status: 429, text: '"€"', retryAfter: '7' }]);
  });
});
