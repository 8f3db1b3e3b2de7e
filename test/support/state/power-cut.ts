import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What a process did to one file, and what it had acknowledged, in order. */
export type Event =
  | {
      readonly kind: 'write';
      readonly at: number;
      readonly bytes: Buffer;
      readonly isSynced: boolean;
      readonly id: number;
    }
  /** The write has returned. */
  | { readonly kind: 'written'; readonly id: number }
  /** The file has its name from here on. */
  | { readonly kind: 'named' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'sync-started'; readonly id: number }
  | { readonly kind: 'synced'; readonly id: number }
  | { readonly kind: 'said'; readonly text: string };

const calls = [
  'openat',
  'rename',
  'renameat',
  'renameat2',
  'close',
  'lseek',
  'write',
  'writev',
  'pwrite64',
  'pwritev',
  'fdatasync',
  'fsync',
  'msync',
  'ftruncate',
];

const howToGetStrace =
  'The power cuts are rehearsed from a trace of system calls, which needs strace and the right to trace a process. ' +
  'Debian: sudo apt-get install strace. In a container: --cap-add=SYS_PTRACE.';

/** Runs a command under strace; the trace covers the file at `path` and the output. */
export const traceOf = (command: readonly string[], path: string, traceFile: string): readonly Event[] => {
  const options = [
    '-f',
    '-y',
    '-xx',
    '-s',
    '100000000',
    '-e',
    `trace=${calls.join()}`,
    '-e',
    'signal=none',
    '-o',
    traceFile,
  ];
  const run = spawnSync('strace', [...options, '--', ...command], { encoding: 'utf8', maxBuffer: 1e9 });
  if (run.error) throw new Error(`${howToGetStrace} (${run.error.message})`, { cause: run.error });
  if (run.status !== 0) {
    const refused = /ptrace|PTRACE|not permitted/.test(run.stderr);
    throw new Error(`${refused ? howToGetStrace : 'The traced process failed.'}\n${run.stderr.slice(-2000)}`);
  }
  return parse(readFileSync(traceFile, 'latin1'), path);
};

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex');
const stringsIn = (args: string): Buffer[] =>
  [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) => bytesOf(hex));

export const parse = (trace: string, path: string): readonly Event[] => {
  const events: Event[] = [];
  const unfinished = new Map<string, { readonly call: string; readonly args: string; readonly id: number }>();
  const synced = new Set<string>();
  const positions = new Map<string, number>();
  let nextId = 0;
  const isOurName = (name: string): boolean =>
    name === path || (name.startsWith(`${path}.new-`) && !name.endsWith('-lock'));
  const isOurs = (args: string): boolean => {
    const name = /<([^>]*)>/.exec(args)?.[1] ?? '';
    return isOurName(name.startsWith('\\x') ? bytesOf(name).toString() : name);
  };
  const descriptorOf = (args: string): string => /^(\d+)/.exec(args)?.[1] ?? '';

  const begin = (call: string, args: string): number => {
    const id = nextId++;
    if (call === 'fdatasync' || call === 'fsync' || call === 'msync') {
      if (isOurs(args) || call === 'msync') events.push({ kind: 'sync-started', id });
    } else if (call === 'write' && args.startsWith('1<')) {
      events.push({ kind: 'said', text: Buffer.concat(stringsIn(args)).toString() });
    } else if (call.includes('write') && isOurs(args)) {
      const descriptor = descriptorOf(args);
      const bytes = Buffer.concat(stringsIn(args));
      const at = call.startsWith('p')
        ? Number(/, (\d+)\)?$/.exec(args)?.[1])
        : (positions.get(descriptor) ?? 0);
      if (!call.startsWith('p')) positions.set(descriptor, at + bytes.length);
      events.push({ kind: 'write', at, bytes, isSynced: synced.has(descriptor), id });
    } else if (call === 'lseek' && isOurs(args)) {
      const [, offset] = args.split(', ');
      positions.set(descriptorOf(args), Number(offset));
    } else if (call.startsWith('rename') && stringsIn(args).at(-1)?.toString() === path) {
      events.push({ kind: 'named' });
    } else if (call === 'ftruncate' && isOurs(args)) {
      events.push({ kind: 'length', bytes: Number(args.split(', ')[1]) });
    }
    return id;
  };

  const end = (call: string, args: string, result: string, id: number): void => {
    if (call === 'openat' && isOurs(result)) {
      const descriptor = descriptorOf(result);
      positions.set(descriptor, 0);
      if (/O_D?SYNC/.test(args)) synced.add(descriptor);
      else synced.delete(descriptor);
    } else if (call === 'fdatasync' || call === 'fsync' || call === 'msync') {
      if (result.trim().startsWith('0')) events.push({ kind: 'synced', id });
    } else if (call.includes('write') && isOurs(args)) events.push({ kind: 'written', id });
  };

  for (const line of trace.split('\n')) {
    const whole = /^(\d+) +(\w+)\((.*)\) += (.*)$/.exec(line);
    const started = /^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$/.exec(line);
    const resumed = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$/.exec(line);
    if (resumed) {
      const [, thread = '', call = '', , result = ''] = resumed;
      const before = unfinished.get(thread);
      if (before?.call === call) end(call, before.args, result, before.id);
      unfinished.delete(thread);
    } else if (started) {
      const [, thread = '', call = '', args = ''] = started;
      unfinished.set(thread, { call, args, id: begin(call, args) });
    } else if (whole) {
      const [, , call = '', args = '', result = ''] = whole;
      end(call, args, result, begin(call, args));
    }
  }
  return events;
};

/** A disk writes these atomically. */
const sector = 512;

/**
 * The file as a power cut after `events[cut - 1]` may leave it: everything that was synced, and any sectors
 * of what came after it, in any order. `keeps` decides for each.
 */
export const imageAt = (
  events: readonly Event[],
  cut: number,
  keeps: () => boolean,
): { image: Buffer | undefined; said: string } => {
  let isNamed = false;
  let image: Buffer = Buffer.alloc(0);
  let pending: { at: number; bytes: Buffer; id: number; isSynced: boolean }[] = [];
  const issuedBefore = new Map<number, Set<number>>();
  let said = '';
  const lengthen = (length: number): void => {
    if (length > image.length) image = Buffer.concat([image, Buffer.alloc(length - image.length)]);
  };
  const apply = ({ at, bytes }: { at: number; bytes: Buffer }): void => {
    lengthen(at + bytes.length);
    bytes.copy(image, at);
  };
  for (const event of events.slice(0, cut)) {
    if (event.kind === 'write') pending.push(event);
    else if (event.kind === 'named') isNamed = true;
    else if (event.kind === 'length')
      image = Buffer.concat([
        image.subarray(0, event.bytes),
        Buffer.alloc(Math.max(0, event.bytes - image.length)),
      ]);
    else if (event.kind === 'said') said += event.text;
    else if (event.kind === 'sync-started') issuedBefore.set(event.id, new Set(pending.map(({ id }) => id)));
    else {
      const isDone = (each: { id: number; isSynced: boolean }): boolean =>
        event.kind === 'synced'
          ? (issuedBefore.get(event.id)?.has(each.id) ?? false)
          : each.isSynced && each.id === event.id;
      for (const each of pending.filter(isDone)) apply(each);
      pending = pending.filter((each) => !isDone(each));
    }
  }
  for (const { at, bytes } of pending)
    for (let from = 0; from < bytes.length;) {
      const to = Math.min(bytes.length, from + sector - ((at + from) % sector));
      if (keeps()) apply({ at: at + from, bytes: bytes.subarray(from, to) });
      from = to;
    }
  return { image: isNamed ? image : undefined, said };
};
