import type { Wrapped } from './cipher';

/** How a data key is kept: wrapped by a secret of the runtime, or (`null`) in the key file. */
export interface KeptKey {
  readonly at: number;
  readonly wrapped: Wrapped | null;
}

/** `sealed` is null once the record is removed: another process must not bring it back from its older copy. */
export interface KeptRecord {
  readonly at: number;
  readonly sealed: string | null;
}

/** A record that could not be opened. It is never deleted: the right secret may still turn up. */
export interface SetAside {
  readonly name: string;
  readonly at: number;
  readonly sealed: string;
}

/** All that the vault keeps, as one value in the runtime's settings storage. */
export interface VaultDocument {
  readonly version: 1;
  readonly active: { readonly at: number; readonly key: string } | null;
  readonly keys: ReadonlyMap<string, KeptKey>;
  readonly records: ReadonlyMap<string, KeptRecord>;
  readonly aside: readonly SetAside[];
  /** How many entries could not be read this time. */
  readonly damaged: number;
}

export const emptyDocument: VaultDocument = {
  version: 1,
  active: null,
  keys: new Map(),
  records: new Map(),
  aside: [],
  damaged: 0,
};

type Loose = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isString = (value: unknown): value is string => typeof value === 'string';
const timeOf = (value: Loose): number => (typeof value['at'] === 'number' ? value['at'] : 0);

const readKey = (value: unknown): KeptKey | undefined => {
  if (!isObject(value)) return undefined;
  const { wrapped } = value;
  if (wrapped === null) return { at: timeOf(value), wrapped };
  if (!isObject(wrapped) || !isString(wrapped['salt']) || !isString(wrapped['sealed'])) return undefined;
  return { at: timeOf(value), wrapped: { salt: wrapped['salt'], sealed: wrapped['sealed'] } };
};

const readRecord = (value: unknown): KeptRecord | undefined => {
  if (!isObject(value)) return undefined;
  const { sealed } = value;
  return sealed === null || isString(sealed) ? { at: timeOf(value), sealed } : undefined;
};

const readAside = (value: unknown): SetAside | undefined =>
  isObject(value) && isString(value['name']) && isString(value['sealed'])
    ? { name: value['name'], at: timeOf(value), sealed: value['sealed'] }
    : undefined;

/** Reads what it can. What it cannot read it sets aside, so that one damaged entry costs only itself. */
export const readDocument = (stored: unknown): VaultDocument => {
  if (stored === undefined || stored === null) return emptyDocument;
  const aside: SetAside[] = [];
  let count = 0;
  const damaged = (name: string, value: unknown): void => {
    count += 1;
    aside.push({ name, at: 0, sealed: JSON.stringify(value) });
  };
  if (!isObject(stored)) {
    damaged('vault', stored);
    return { ...emptyDocument, aside, damaged: count };
  }
  const each = <T>(section: string, read: (value: unknown) => T | undefined): Map<string, T> => {
    const found = new Map<string, T>();
    const values = stored[section];
    if (values !== undefined && !isObject(values)) damaged(section, values);
    for (const [name, value] of Object.entries(isObject(values) ? values : {})) {
      const entry = read(value);
      if (entry) found.set(name, entry);
      else damaged(name, value);
    }
    return found;
  };
  const keys = each('keys', readKey);
  const records = each('records', readRecord);
  for (const value of Array.isArray(stored['aside']) ? (stored['aside'] as unknown[]) : []) {
    const entry = readAside(value);
    if (entry) aside.push(entry);
    else damaged('aside', value);
  }
  const { active } = stored;
  return {
    version: 1,
    active: isObject(active) && isString(active['key']) ? { at: timeOf(active), key: active['key'] } : null,
    keys,
    records,
    aside,
    damaged: count,
  };
};

export const writeDocument = (document: VaultDocument): object => ({
  version: document.version,
  active: document.active,
  keys: Object.fromEntries(document.keys),
  records: Object.fromEntries(document.records),
  aside: document.aside,
});

const newest = <T extends { readonly at: number }>(
  ours: ReadonlyMap<string, T>,
  theirs: ReadonlyMap<string, T>,
): ReadonlyMap<string, T> => {
  const merged = new Map(ours);
  for (const [name, entry] of theirs) {
    const own = merged.get(name);
    if (!own || entry.at > own.at) merged.set(name, entry);
  }
  return merged;
};

/** Two processes on one user directory: of each entry the newer one counts, and nothing set aside is dropped. */
export const mergeDocuments = (ours: VaultDocument, theirs: VaultDocument): VaultDocument => {
  const known = new Set(ours.aside.map((entry) => entry.sealed));
  return {
    version: 1,
    active: (theirs.active?.at ?? -1) > (ours.active?.at ?? -1) ? theirs.active : ours.active,
    keys: newest(ours.keys, theirs.keys),
    records: newest(ours.records, theirs.records),
    damaged: ours.damaged,
    aside: [...ours.aside, ...theirs.aside.filter((entry) => !known.has(entry.sealed))],
  };
};
