import fc from 'fast-check';
import should from 'should';
import { countText, signsOutsideGsm } from '../../../lib/guards/segments';

const a = (times: number): string => 'a'.repeat(times);

describe('the segment count of a text', () => {
  const cases: [
    what: string,
    text: string,
    encoding: string,
    units: number,
    segments: number,
    room: number,
  ][] = [
    ['nothing', '', 'gsm7', 0, 0, 160],
    ['one sign', 'a', 'gsm7', 1, 1, 160],
    ['a full segment', a(160), 'gsm7', 160, 1, 160],
    ['one sign more', a(161), 'gsm7', 161, 2, 306],
    ['two full segments', a(306), 'gsm7', 306, 2, 306],
    ['three segments', a(307), 'gsm7', 307, 3, 459],
    [
      'the letters and signs of the basic alphabet that are not in ASCII',
      '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ ¤¡ÄÖÑÜ§¿äöñüà',
      'gsm7',
      45,
      1,
      160,
    ],
    ['a sign of the extension table, which counts double', '€', 'gsm7', 2, 1, 160],
    ['the whole extension table', '\f^{}\\[~]|€', 'gsm7', 20, 1, 160],
    ['80 euro signs', '€'.repeat(80), 'gsm7', 160, 1, 160],
    ['81 euro signs: none is cut in two, so that 76 fit into a segment', '€'.repeat(81), 'gsm7', 162, 2, 306],
    ['153 euro signs, which need a third segment', '€'.repeat(153), 'gsm7', 306, 3, 459],
    ['a letter that is not in the alphabet', 'č', 'ucs2', 1, 1, 70],
    ['a small c with a cedilla, of which GSM has only the large one', 'ç', 'ucs2', 1, 1, 70],
    ['a typographic apostrophe', `it’s ${a(65)}`, 'ucs2', 70, 1, 70],
    ['71 signs in UCS-2', `č${a(70)}`, 'ucs2', 71, 2, 134],
    ['134 signs in UCS-2', `č${a(133)}`, 'ucs2', 134, 2, 134],
    ['135 signs in UCS-2', `č${a(134)}`, 'ucs2', 135, 3, 201],
    ['an emoji, which takes two units', '😀', 'ucs2', 2, 1, 70],
    ['35 emojis', '😀'.repeat(35), 'ucs2', 70, 1, 70],
    ['67 emojis: none is cut in two, so that 33 fit into a segment', '😀'.repeat(67), 'ucs2', 134, 3, 201],
    ['a euro sign in UCS-2, which counts once there', '€č', 'ucs2', 2, 1, 70],
    ['Japanese', 'こんにちは', 'ucs2', 5, 1, 70],
  ];

  for (const [what, text, encoding, units, segments, room] of cases) {
    it(`of ${what}: ${units.toString()} in ${segments.toString()}`, () => {
      should(countText(text)).containEql({ encoding, units, segments, room });
    });
  }

  /** 3GPP TS 23.038, 6.2.1: the default alphabet, by code; 0x1b leads to the extension table of 6.2.1.1. */
  const table = [
    '@£$¥èéùìòÇ\nØø\rÅå',
    'Δ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ',
    ' !"#¤%&\'()*+,-./',
    '0123456789:;<=>?',
    '¡ABCDEFGHIJKLMNO',
    'PQRSTUVWXYZÄÖÑÜ§',
    '¿abcdefghijklmno',
    'pqrstuvwxyzäöñüà',
  ].join('');
  /** By code: form feed, ^, {, }, \\, [, ~, ], | and the euro sign. */
  const extension = new Map([
    [0x0a, '\f'],
    [0x14, '^'],
    [0x28, '{'],
    [0x29, '}'],
    [0x2f, '\\'],
    [0x3c, '['],
    [0x3d, '~'],
    [0x3e, ']'],
    [0x40, '|'],
    [0x65, '€'],
  ]);

  it('follows both tables of 3GPP TS 23.038, character by character, and treats everything else as UCS-2', () => {
    should(table.length).equal(128);
    const doubled = new Set(extension.values());
    const single = new Set(table.replace('\x1b', ''));
    for (let code = 0; code < 0x3000; code++) {
      const sign = String.fromCharCode(code);
      const { encoding, units } = countText(sign);
      const expected = single.has(sign) ? 'gsm7 1' : doubled.has(sign) ? 'gsm7 2' : 'ucs2 1';
      should(`${encoding} ${units.toString()}`).equal(expected, `U+${code.toString(16)}`);
    }
  });

  it('has the limits of 3GPP TS 23.040, 9.2.3.24.1: 160 or 70 alone, 153 or 67 each behind a header of six octets', () => {
    const limits: [text: string, alone: number, each: number][] = [
      ['a', 160, 153],
      ['č', 70, 67],
    ];
    for (const [sign, alone, each] of limits)
      for (let segments = 1; segments < 6; segments++) {
        const most = segments === 1 ? alone : segments * each;
        should(countText(sign.repeat(most)).segments).equal(segments);
        should(countText(sign.repeat(most + 1)).segments).equal(segments + 1);
      }
  });

  it('splits no character of the extension table and no surrogate pair, wherever they are', () => {
    const signs = fc.constantFrom('a', '€', '{', 'č', '😀', 'é', '\ud83d');
    fc.assert(
      fc.property(fc.array(signs, { maxLength: 400, size: 'max' }), (all) => {
        const text = all.join('');
        const { encoding, units, segments } = countText(text);
        const sizeOf = (sign: string): number =>
          encoding === 'ucs2' ? sign.length : [...extension.values()].includes(sign) ? 2 : 1;
        const sizes = Array.from(text, sizeOf);
        should(units).equal(sizes.reduce((sum, size) => sum + size, 0));
        const [alone, each] = encoding === 'gsm7' ? [160, 153] : [70, 67];
        // Filled from the first to the last, as a phone does it.
        const filled = [0];
        for (const size of sizes)
          if ((filled.at(-1) ?? 0) + size > each) filled.push(size);
          else filled[filled.length - 1] = (filled.at(-1) ?? 0) + size;
        should(segments).equal(units === 0 ? 0 : units <= alone ? 1 : filled.length);
      }),
      { numRuns: 300 },
    );
  });

  it('counts braces literally', () => {
    countText('Hi {{Ann}}').should.containEql({ units: 14, encoding: 'gsm7' });
  });

  it('names the first characters that make it Unicode, each once', () => {
    signsOutsideGsm('Hi Ann — see you 😀 — “bye”', 3).should.eql(['—', '😀', '“']);
    signsOutsideGsm('Hi Ann', 3).should.eql([]);
  });
});
