import should from 'should';
import { Exchange } from '../../../lib/service/transport';
import type { Result } from '../../../lib/service/transport';
import { memoryInUse } from '../../support/memory';

describe('a request in flight', () => {
  const start = (
    timeout = 60_000,
  ): { exchange: Exchange; results: Result[]; aborted: () => number; abort: () => void } => {
    const exchange = new Exchange();
    const request = { method: 'POST', path: '/', body: '{}' } as const;
    const results: Result[] = [];
    let aborts = 0;
    exchange.start({ dispatch: () => true }, request, timeout, (result) => results.push(result));
    return { exchange, results, aborted: () => aborts, abort: () => aborts++ };
  };

  it('is not sent if it was aborted before a connection was available', () => {
    const { exchange, results, aborted, abort } = start();
    exchange.abandon('timeout');
    should(results).eql([{ state: 'unreached', reason: { reason: 'timeout' } }]);
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

  it('does not time out immediately when its limit exceeds the range of a timer', async () => {
    const { exchange, results } = start(2 ** 31);
    await new Promise((resolve) => setTimeout(resolve, 20));
    should(results).be.empty();
    exchange.abandon('timeout');
  });

  it('settles once, regardless of what follows', () => {
    const { exchange, results, abort } = start();
    exchange.onConnect(abort);
    exchange.onHeaders(200, []);
    exchange.onData(Buffer.from('{"a":'));
    exchange.onData(Buffer.from('"ä"}'));
    exchange.onComplete();
    exchange.onError(new Error('late'));
    exchange.abandon('aborted');
    should(results).eql([{ state: 'answered', status: 200, text: '{"a":"ä"}', retryAfter: undefined }]);
  });

  it('strips a byte order mark, and nothing else', () => {
    for (const [body, text] of [
      ['\ufeff{"a":1}', '{"a":1}'],
      ['\ufeff', ''],
      ['{"a":"\ufeff"}', '{"a":"\ufeff"}'],
    ] as const) {
      for (const size of [1, 100]) {
        const { exchange, results, abort } = start();
        exchange.onConnect(abort);
        exchange.onHeaders(200, []);
        const bytes = Buffer.from(body);
        for (let at = 0; at < bytes.length; at += size) exchange.onData(bytes.subarray(at, at + size));
        exchange.onComplete();
        should(results).eql([{ state: 'answered', status: 200, text, retryAfter: undefined }]);
      }
    }
  });

  it('joins a character that arrived in two pieces', () => {
    const { exchange, results, abort } = start();
    const bytes = Buffer.from('"€"');
    exchange.onConnect(abort);
    exchange.onHeaders(429, [Buffer.from('Retry-After'), Buffer.from('7')]);
    exchange.onData(bytes.subarray(0, 2));
    exchange.onData(bytes.subarray(2));
    exchange.onComplete();
    should(results).eql([{ state: 'answered', status: 429, text: '"€"', retryAfter: '7' }]);
  });

  for (const size of [3000, 300_000]) {
    it(`joins interleaved answers of ${size.toLocaleString()} bytes without mixing them up`, () => {
      const texts = ['€', 'ä', 'x'].map((letter) => JSON.stringify(letter.repeat(size / 3)));
      const answers = texts.map((text) => ({ ...start(), bytes: Buffer.from(text) }));
      for (const { exchange, abort } of answers) {
        exchange.onConnect(abort);
        exchange.onHeaders(200, []);
      }
      const step = 1 + Math.floor(size / 7);
      for (let at = 0; at < size + 2; at += step)
        for (const { exchange, bytes } of answers) exchange.onData(bytes.subarray(at, at + step));
      for (const { exchange } of answers) exchange.onComplete();
      should(answers.map(({ results }) => results)).eql(
        texts.map((text) => [{ state: 'answered', status: 200, text, retryAfter: undefined }]),
      );
    });
  }

  it('uses as much memory as its answer needs, however small the chunks are', () => {
    const megabyte = 1024 * 1024;
    const answers = Array.from({ length: 16 }, () => start());
    const before = memoryInUse();
    for (const { exchange, abort } of answers) {
      exchange.onConnect(abort);
      exchange.onHeaders(200, []);
      for (let at = 0; at < 64 * 1024; at++) exchange.onData(Buffer.from('x'));
    }
    should(memoryInUse() - before).be.below(16 * megabyte);
    for (const { exchange } of answers) exchange.onComplete();
    for (const { results } of answers)
      should(results).eql([
        { state: 'answered', status: 200, text: 'x'.repeat(64 * 1024), retryAfter: undefined },
      ]);
  });

  it('is refused when its headers or chunk framing exceed the limit', () => {
    const parts: readonly ((exchange: Exchange) => boolean)[] = [
      (exchange) => exchange.onHeaders(103, [Buffer.from('link'), Buffer.alloc(10_000)]),
      (exchange) => exchange.onData(Buffer.from('x')),
    ];
    for (const part of parts) {
      const { exchange, results, abort, aborted } = start();
      exchange.onConnect(abort);
      exchange.onHeaders(200, []);
      let count = 0;
      while (part(exchange) && count < 2_000_000) count += 1;
      should(count).be.below(2_000_000);
      should(results).have.length(1);
      should(results[0]).containEql({ state: 'answered', text: undefined });
      should(aborted()).equal(1);
    }
  });
});
