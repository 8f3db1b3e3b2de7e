import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

export type Kind = 'secret' | 'text' | 'phone' | 'person';

export interface Canary {
  readonly kind: Kind;
  /** What it stands for, reported when it is found. */
  readonly what: string;
  /** The part that occurs nowhere else. */
  readonly core: string;
  readonly value: string;
}

/** A place to search. */
export interface Place {
  readonly name: string;
  readonly bytes: Buffer;
}

export const unique = (): string => `canary${randomBytes(12).toString('hex')}`;

/** The part of a base64 text that is the same whatever surrounds the value, for each position. */
const base64Of = (core: string): string[] =>
  [0, 1, 2].flatMap((before) => {
    const whole = Buffer.from('-'.repeat(before) + core);
    const from = Math.ceil((before * 8) / 6);
    const plain = whole.toString('base64').replace(/=+$/, '');
    const steady = plain.slice(from, Math.floor((whole.length * 8) / 6));
    return [steady, steady.replaceAll('+', '-').replaceAll('/', '_')];
  });

const spellingsOf = ({ core, value }: Canary): Buffer[] => {
  const texts = [
    core,
    encodeURIComponent(value),
    new URLSearchParams({ v: value }).toString().slice(2),
    ...base64Of(core),
    Buffer.from(core).toString('hex'),
    Buffer.from(core).toString('hex').toUpperCase(),
  ];
  return [...new Set(texts)].map((text) => Buffer.from(text)).concat(Buffer.from(core, 'utf16le'));
};

/** Unique values, and the search for them: raw, base64, URL-encoded, hexadecimal, UTF-16. */
export class Canaries {
  readonly all: Canary[] = [];
  private readonly spellings = new Map<Canary, Buffer[]>();

  add(
    kind: Kind,
    what: string,
    value: string,
    core = /canary[0-9a-f]{24}/.exec(value)?.[0] ?? value,
  ): string {
    const canary = { kind, what, value, core };
    if (!this.all.some((one) => one.core === core)) {
      this.all.push(canary);
      this.spellings.set(canary, spellingsOf(canary));
    }
    return value;
  }

  /** With characters that URLs and forms encode differently. */
  secret(what: string): string {
    return this.add('secret', what, `${what.replaceAll(' ', '-')}/${unique()}+x=1`);
  }

  text(what: string): string {
    return this.add('text', what, `Bonjour & à bientôt, ${what} ${unique()} <b>`);
  }

  person(what: string): string {
    return this.add('person', what, `Zoë ${unique()}`);
  }

  /** Fictional, and recognizable by its digits in any format that keeps them together. */
  phone(what: string): string {
    const area = (201 + this.all.length).toString();
    const value = `+1${area}555${(100 + (this.all.length % 100)).toString().padStart(4, '0')}`;
    return this.add('phone', what, value, value.slice(2));
  }

  /** Which of these values are in a place, as `what in where`. */
  found(places: readonly Place[], kinds: readonly Kind[]): string[] {
    const everything = Buffer.concat(places.map(({ bytes }) => bytes));
    return this.all
      .filter((canary) => kinds.includes(canary.kind) && this.isIn(everything, canary))
      .flatMap((canary) =>
        places
          .filter(({ bytes }) => this.isIn(bytes, canary))
          .map(({ name }) => `${canary.kind} "${canary.what}" in ${name}`),
      );
  }

  private isIn(bytes: Buffer, canary: Canary): boolean {
    return this.spellings.get(canary)?.some((spelling) => bytes.includes(spelling)) === true;
  }
}

export const place = (name: string, content: unknown): Place => ({
  name,
  bytes: Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)),
});

/** Every file that the process may have written, including its name. */
export const filesIn = (userDir: string): Place[] =>
  readdirSync(userDir, { withFileTypes: true, recursive: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !relative(userDir, path).startsWith('node_modules'))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .map((path) => {
      const name = relative(userDir, path);
      return { name, bytes: Buffer.concat([Buffer.from(`${name}\n`), readFileSync(path)]) };
    });
