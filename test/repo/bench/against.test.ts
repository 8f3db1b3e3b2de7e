import 'should';
import { rowAgainst } from '../../../bench/against';
import { optionsOf } from '../../../bench/options';
import type { Part } from '../../../bench/part';

describe('a comparison with another commit', () => {
  const run = async () => [];
  const texts: Part = {
    name: 'texts',
    title: '',
    run,
    compared: () => ({ each: 'text', count: 1, works: {} }),
  };
  const size: Part = { name: 'size', title: '', run };
  const parts = [texts, size];

  it('covers the named parts, or all that can be compared', () => {
    optionsOf(['texts', '--against', 'main'], parts).should.containEql({ against: 'main', parts: [texts] });
    optionsOf(['--against', 'main'], parts).parts.should.eql([texts]);
    optionsOf([], parts).parts.should.eql(parts);
  });

  it('is refused for parts that cannot be compared or do not exist', () => {
    (() => optionsOf(['texts', 'size', '--against', 'main'], parts)).should.throw(
      '--against takes only texts.',
    );
    (() => optionsOf(['sizes'], parts)).should.throw('There is no measurement "sizes", only texts, size.');
  });

  it('is never saved, and neither are fewer or smaller rounds', () => {
    optionsOf(['texts'], parts).isComplete.should.be.true();
    for (const less of [
      ['--against', 'main'],
      ['--scale', '0.5'],
      ['--rounds', '4'],
      ['--versions', '5'],
      ['--heap', '64'],
      ['--profile', 'profiles'],
    ])
      optionsOf(['texts', ...less], parts).isComplete.should.be.false(less.join(' '));
  });

  it("reports the CPU time here as a multiple of the other commit's, round by round", () => {
    const costs = (...cpu: number[]) => cpu.map((each) => ({ cpu: each, wall: 1 }));
    rowAgainst(
      'CPU per text',
      100,
      { ours: costs(10, 18, 40), other: costs(20, 20, 20) },
      'abc123',
    ).should.eql({
      measurement: 'CPU per text',
      unit: 'µs',
      ours: { median: 180, low: 100, high: 400 },
      against: { what: 'abc123', figure: { median: 200, low: 200, high: 200 } },
      ratio: { median: 0.9, low: 0.5, high: 2 },
    });
  });
});
