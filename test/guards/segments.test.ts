import should from 'should';
import { countText, signsOutsideGsm } from '../../lib/guards/segments';

const a = (times: number): string => 'a'.repeat(times);

describe('the count of a text message', () => {
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

  it('takes braces as they stand', () => {
    countText('Hi {{Ann}}').should.containEql({ units: 14, encoding: 'gsm7' });
  });

  it('names the first signs that make it Unicode, each once', () => {
    signsOutsideGsm('Hi Ann — see you 😀 — “bye”', 3).should.eql(['—', '😀', '“']);
    signsOutsideGsm('Hi Ann', 3).should.eql([]);
  });
});
