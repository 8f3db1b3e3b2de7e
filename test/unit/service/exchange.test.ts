import should from 'should';
import { answerLimit, Exchange } from '../../../lib/service/transport';
import type { Result } from '../../../lib/service/transport';
import { memoryInUse } from '../../support/memory';

describe('a request in flight', () => {
  const start = (
    timeout = 60_000,
  ): { exchange: Exchange; results: Result[]; aborted: () => number; controller: { abort: () => void } } => {
    const exchange = new Exchange();
    const request = { method: 'POST', path: '/', body: '{}' } as const;
    const results: Result[] = [];
    let aborts = 0;
    exchange.start({ dispatch: () => true }, request, timeout, (result) => results.push(result));
    return { exchange, results, aborted: () => aborts, controller: { abort: () => void aborts++ } };
  };

  it('is not sent if it was aborted before a connection was available', () => {
    const { exchange, results, aborted, controller } = start();
    exchange.abandon('timeout');
    should(results).eql([{ state: 'unreached', reason: { reason: 'timeout' } }]);
    exchange.onRequestStart(controller);
    should(aborted()).equal(1);
    should(results).have.length(1);
  });

  it('is never started twice, not even by the pool', () => {
    const { exchange, results, aborted, controller } = start();
    exchange.onRequestStart(controller);
    should(aborted()).equal(0);
    exchange.onRequestStart(controller);
    should(aborted()).equal(1);
    exchange.onResponseError(null, new Error('aborted'));
    should(results).eql([{ state: 'broken', reason: 'Error' }]);
  });

  it('is not sent after the time by which it had to leave, as by a process that stood still meanwhile', () => {
    const late = new Exchange(Date.now() - 1);
    const results: Result[] = [];
    let aborts = 0;
    const request = { method: 'POST', path: '/', body: '{}' } as const;
    late.start({ dispatch: () => true }, request, 60_000, (result) => results.push(result));
    late.onRequestStart({ abort: () => void aborts++ });
    should(results).eql([{ state: 'unreached', reason: { reason: 'timeout' } }]);
    should(aborts).equal(1);
  });

  it('does not time out immediately when its limit exceeds the range of a timer', async () => {
    const { exchange, results } = start(2 ** 31);
    await new Promise((resolve) => setTimeout(resolve, 20));
    should(results).be.empty();
    exchange.abandon('timeout');
  });

  it('settles once, regardless of what follows', () => {
    const { exchange, results, controller } = start();
    exchange.onRequestStart(controller);
    exchange.onResponseStart(null, 200, {});
    exchange.onResponseData(null, Buffer.from('{"a":'));
    exchange.onResponseData(null, Buffer.from('"ä"}'));
    exchange.onResponseEnd();
    exchange.onResponseError(null, new Error('late'));
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
        const { exchange, results, controller } = start();
        exchange.onRequestStart(controller);
        exchange.onResponseStart(null, 200, {});
        const bytes = Buffer.from(body);
        for (let at = 0; at < bytes.length; at += size)
          exchange.onResponseData(null, bytes.subarray(at, at + size));
        exchange.onResponseEnd();
        should(results).eql([{ state: 'answered', status: 200, text, retryAfter: undefined }]);
      }
    }
  });

  it('joins a character that arrived in two pieces', () => {
    const { exchange, results, controller } = start();
    const bytes = Buffer.from('"€"');
    exchange.onRequestStart(controller);
    exchange.onResponseStart(null, 429, { 'retry-after': '7' });
    exchange.onResponseData(null, bytes.subarray(0, 2));
    exchange.onResponseData(null, bytes.subarray(2));
    exchange.onResponseEnd();
    should(results).eql([{ state: 'answered', status: 429, text: '"€"', retryAfter: '7' }]);
  });

  for (const size of [3000, 300_000]) {
    it(`joins interleaved answers of ${size.toLocaleString()} bytes without mixing them up`, () => {
      const texts = ['€', 'ä', 'x'].map((letter) => JSON.stringify(letter.repeat(size / 3)));
      const answers = texts.map((text) => ({ ...start(), bytes: Buffer.from(text) }));
      for (const { exchange, controller } of answers) {
        exchange.onRequestStart(controller);
        exchange.onResponseStart(null, 200, {});
      }
      const step = 1 + Math.floor(size / 7);
      for (let at = 0; at < size + 2; at += step)
        for (const { exchange, bytes } of answers)
          exchange.onResponseData(null, bytes.subarray(at, at + step));
      for (const { exchange } of answers) exchange.onResponseEnd();
      should(answers.map(({ results }) => results)).eql(
        texts.map((text) => [{ state: 'answered', status: 200, text, retryAfter: undefined }]),
      );
    });
  }

  it('uses as much memory as its answer needs, however small the chunks are', () => {
    const megabyte = 1024 * 1024;
    const answers = Array.from({ length: 16 }, () => start());
    const before = memoryInUse();
    for (const { exchange, controller } of answers) {
      exchange.onRequestStart(controller);
      exchange.onResponseStart(null, 200, {});
      for (let at = 0; at < 64 * 1024; at++) exchange.onResponseData(null, Buffer.from('x'));
    }
    should(memoryInUse() - before).be.below(16 * megabyte);
    for (const { exchange } of answers) exchange.onResponseEnd();
    for (const { results } of answers)
      should(results).eql([
        { state: 'answered', status: 200, text: 'x'.repeat(64 * 1024), retryAfter: undefined },
      ]);
  });

  it('is refused when its headers or chunk framing exceed the limit', () => {
    const parts: readonly ((exchange: Exchange) => void)[] = [
      (exchange) => {
        exchange.onResponseStart(null, 103, { link: ' '.repeat(10_000) });
      },
      (exchange) => {
        exchange.onResponseData(null, Buffer.from('x'));
      },
    ];
    for (const part of parts) {
      const { exchange, results, controller, aborted } = start();
      exchange.onRequestStart(controller);
      exchange.onResponseStart(null, 200, {});
      let count = 0;
      for (; results.length === 0 && count < 2_000_000; count++) part(exchange);
      should(count).be.below(2_000_000);
      should(results).have.length(1);
      should(results[0]).containEql({ state: 'answered', text: undefined });
      should(aborted()).equal(1);
    }
  });

  it('keeps how long a refused answer asks to wait', () => {
    const { exchange, results, controller } = start();
    const date = 'Thu, 01 Jan 2026 00:00:00 GMT';
    exchange.onRequestStart(controller);
    exchange.onResponseStart(null, 429, { 'retry-after': '7', date });
    exchange.onResponseData(null, Buffer.alloc(answerLimit + 1));
    should(results).eql([{ state: 'answered', status: 429, text: undefined, retryAfter: '7', date }]);
  });
});
