import { placeholder } from '../runtime/kinds';

/** How a text travels: in the 7-bit alphabet of GSM 03.38, or, if one sign is not in it, as UCS-2. */
export interface Counted {
  readonly encoding: 'gsm7' | 'ucs2';
  /** Length as the network counts it: some signs take the room of two. */
  readonly units: number;
  readonly segments: number;
  /** How many units fit into that many segments. */
  readonly room: number;
  /** The first few signs that are not in the 7-bit alphabet. */
  readonly foreign: readonly string[];
  /** There are `{{placeholders}}`, so that the text will be at least this long. */
  readonly isOpen: boolean;
}

const basic = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
    '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
/** Sent as an escape and a second sign. */
const extended = new Set('\f^{}\\[~]|€');

const limits = {
  gsm7: { alone: 160, each: 153 },
  ucs2: { alone: 70, each: 67 },
} as const;

const shownForeign = 3;

/** No sign is cut in two between segments, so that a segment may end a unit early. */
const segmentsOf = (sizes: readonly number[], each: number): number => {
  let segments = 1;
  let filled = 0;
  for (const size of sizes) {
    if (filled + size > each) {
      segments += 1;
      filled = 0;
    }
    filled += size;
  }
  return segments;
};

export const countText = (text: string): Counted => {
  const fixed = text.replace(placeholder, '');
  const signs = Array.from(fixed);
  const foreign = [...new Set(signs.filter((sign) => !basic.has(sign) && !extended.has(sign)))];
  const encoding = foreign.length === 0 ? 'gsm7' : 'ucs2';
  const sizes = signs.map((sign) => (encoding === 'ucs2' ? sign.length : extended.has(sign) ? 2 : 1));
  const units = sizes.reduce((sum, size) => sum + size, 0);
  const { alone, each } = limits[encoding];
  const segments = units <= alone ? Math.min(units, 1) : segmentsOf(sizes, each);
  return {
    encoding,
    units,
    segments,
    room: segments > 1 ? segments * each : alone,
    foreign: foreign.slice(0, shownForeign),
    isOpen: fixed !== text,
  };
};
