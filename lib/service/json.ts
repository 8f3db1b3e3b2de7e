/** Whether a value of JSON is an object or an array. */
const hasParts = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** A deeper answer is hostile: code that clones or prints it later recurses on the stack. */
const deepest = 64;
/** Characters: shorter texts are parsed quickly at any depth, and the value is then quicker to check than the text. */
const quickToParse = 256 * 1024;

const isTooDeep = (text: string): boolean => {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (quoted) {
      if (char === 0x5c) at++;
      else if (char === 0x22) quoted = false;
    } else if (char === 0x22) quoted = true;
    else if (char === 0x7b || char === 0x5b) {
      if (++depth > deepest) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return false;
};

/** The value of a JSON text; undefined, which no JSON text gives, when it is not valid. */
export const parse = (text: string): unknown => {
  if (text.length > quickToParse && isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const isDigit = (char: number): boolean => char >= 0x30 && char <= 0x39;
const longInteger = /^-?\d{16,}$/;
/** All characters of a JSON number (RFC 8259, section 6). */
const inNumber = new Set(Array.from('0123456789+-.eE', (char) => char.charCodeAt(0)));

/** The JSON text in which every integer that a number would round is a string. */
const quoteLongIntegers = (text: string): string => {
  let written = '';
  let kept = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++)
        if (text.charCodeAt(at) === 0x5c) at++;
    } else if (char === 0x2d || isDigit(char)) {
      const from = at;
      while (inNumber.has(text.charCodeAt(at + 1))) at++;
      const number = text.slice(from, at + 1);
      if (!longInteger.test(number) || Number.isSafeInteger(Number(number))) continue;
      written += `${text.slice(kept, from)}"${number}"`;
      kept = at + 1;
    }
  }
  return written + text.slice(kept);
};

/** Sixteen digits in a row: without them, nothing was rounded. */
const mayBeRounded = /\d{16}/;

/** The value of a text, in which long integers are exact. */
export const exact = (value: unknown, text: string): unknown =>
  hasParts(value) && mayBeRounded.test(text) ? parse(quoteLongIntegers(text)) : value;

const goesDeeper = (value: object, than: number): boolean => {
  if (than === 0) return true;
  for (const key in value) {
    const inner = (value as Readonly<Record<string, unknown>>)[key];
    if (hasParts(inner) && goesDeeper(inner, than - 1)) return true;
  }
  return false;
};

/** The value of a text, or undefined when it is nested too deeply. */
export const shallow = (value: unknown, text: string): unknown =>
  hasParts(value) && text.length > 2 * deepest && goesDeeper(value, deepest) ? undefined : value;

export const parseShallow = (text: string): unknown => shallow(exact(parse(text), text), text);
