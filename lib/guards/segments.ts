const basic =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
  '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
/** Characters that are sent as an escape and a second septet. */
const extended = '\f^{}\\[~]|€';

const lastInAlphabet = 0x20ac;
/** The number of septets of each character, by its code; 0 for those that are not in the alphabet. */
const septets = new Uint8Array(lastInAlphabet + 1);
for (const sign of basic) septets[sign.charCodeAt(0)] = 1;
for (const sign of extended) septets[sign.charCodeAt(0)] = 2;

const limits = {
  gsm7: { alone: 160, each: 153 },
  ucs2: { alone: 70, each: 67 },
} as const;

/** Undefined when a character is not in the alphabet. */
const septetsIn = (text: string): number | undefined => {
  let sum = 0;
  for (let at = 0; at < text.length; at++) {
    const size = septets[text.charCodeAt(at)] ?? 0;
    if (size === 0) return undefined;
    sum += size;
  }
  return sum;
};

/** No character is divided between two segments, so a segment may end a unit early. */
const segmentsOf = (text: string, each: number, sizeOf: (sign: string) => number): number => {
  let segments = 1;
  let filled = 0;
  for (const sign of text) {
    const size = sizeOf(sign);
    if (filled + size > each) {
      segments += 1;
      filled = 0;
    }
    filled += size;
  }
  return segments;
};

/**
 * The length of a text in units, of which some characters take two; its segments; and how many units these have room for:
 * as carriers count them.
 */
export const countText = (text: string) => {
  const inSeptets = septetsIn(text);
  // The 7-bit alphabet of 3GPP TS 23.038, or UCS-2 if a character is not in it.
  const encoding = inSeptets === undefined ? 'ucs2' : 'gsm7';
  const units = inSeptets ?? text.length;
  const { alone, each } = limits[encoding];
  const sizeOf = (sign: string): number =>
    encoding === 'ucs2' ? sign.length : (septets[sign.charCodeAt(0)] ?? 0);
  const segments = units <= alone ? Math.min(units, 1) : segmentsOf(text, each, sizeOf);
  return { encoding, units, segments, room: segments > 1 ? segments * each : alone };
};

/** The first few characters that are not in the 7-bit alphabet, each once. */
export const signsOutsideGsm = (text: string, most: number): readonly string[] => {
  const found = new Set<string>();
  for (const sign of text) {
    if (sign.length > 1 || (septets[sign.charCodeAt(0)] ?? 0) === 0) found.add(sign);
    if (found.size === most) break;
  }
  return [...found];
};
