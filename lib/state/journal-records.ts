/** A job's own record; its key ends in `/a`. Recipients beyond the first hundred are in `/b` records. */
export interface JobRecord<R> {
  readonly at: number;
  readonly message: Record<string, unknown>;
  readonly dropped: boolean;
  readonly count: number;
  readonly recipients: readonly R[];
  /** Those begun in the turn of the event loop in which the job was accepted. */
  readonly begun: readonly number[];
  readonly context?: unknown;
}

export interface RecipientsRecord<R> {
  readonly from: number;
  readonly recipients: readonly R[];
}

/** What happened to a job's recipients in one turn of the event loop; keys end in `/c` and a number. */
export interface LogRecord<O> {
  readonly begun?: readonly number[];
  /** Begun, and certainly not carried out. */
  readonly undone?: readonly number[];
  readonly outcomes?: readonly (readonly [index: number, outcome: O])[];
}

/** Keys end in `/d` and a number of their own: these are written later, and may be lost in a kill. */
export interface ToldRecord {
  readonly told: readonly number[];
}

/**
 * The outcomes, in one turn of the event loop, of messages that had one recipient each, by the id of the message. Such a
 * record is kept beside those of the messages, and goes with the last of them.
 */
export interface EndsRecord<O> {
  readonly ends: readonly (readonly [id: string, outcome: O])[];
}

/** A record of one message. */
export type MessageRecord<R, O> = JobRecord<R> | RecipientsRecord<R> | LogRecord<O> | ToldRecord;

export type JournalRecord<R, O> = MessageRecord<R, O> | EndsRecord<O>;

export const recipientsPerRecord = 100;

const numbered = (key: string, kind: 'b' | 'c' | 'd', number: number): string =>
  `${key}/${kind}${String(number).padStart(8, '0')}`;

export const jobKey = (key: string): string => `${key}/a`;
export const recipientsKey = (key: string, from: number): string => numbered(key, 'b', from);
export const logKey = (key: string, sequence: number): string => numbered(key, 'c', sequence);
/** What the keys of a job's logs begin with. */
export const logsPrefix = (key: string): string => `${key}/c`;
/** The id of a message, from the key of its records. */
export const idIn = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
export const endsKey = (node: string, id: string): string => `${node}/ends/${id}`;
export const toldKey = (key: string, sequence: number): string => numbered(key, 'd', sequence);

/** Every record of a job. */
export const keysOf = (key: string, count: number, logs: number, tolds: number): string[] => {
  const keys = [jobKey(key)];
  for (let from = recipientsPerRecord; from < count; from += recipientsPerRecord)
    keys.push(recipientsKey(key, from));
  for (let sequence = 0; sequence < logs; sequence++) keys.push(logKey(key, sequence));
  for (let sequence = 0; sequence < tolds; sequence++) keys.push(toldKey(key, sequence));
  return keys;
};

/**
 * What a restart has to do for one recipient: `send` it, for nobody has begun; call it `stale`, for it waited too long;
 * call its outcome `unknown`, for its request had begun; or `tell` the outcome again, which may have been told.
 */
export type Todo<R, O> = { readonly index: number; readonly recipient: R } & (
  { readonly what: 'send' | 'stale' | 'unknown' } | { readonly what: 'tell'; readonly outcome: O }
);

interface Found<R, O> {
  readonly job: JobRecord<R>;
  readonly todos: readonly Todo<R, O>[];
  /** The numbers that the next log record and the next told record take. */
  readonly logs: number;
  readonly tolds: number;
}

/** What the records of one job, in key order, and its outcome in a record of ends come to. Undefined when its own record is gone. */
export const replay = <R, O>(
  records: readonly (readonly [key: string, record: MessageRecord<R, O>])[],
  end: O | undefined,
  staleBefore: number,
  isLogLost: boolean,
): Found<R, O> | undefined => {
  let job: JobRecord<R> | undefined;
  const recipients = new Map<number, R>();
  const begun = new Set<number>();
  // An end is older than any log of its message, so what those say comes after it.
  const outcomes = new Map<number, O>(end === undefined ? [] : [[0, end]]);
  const told = new Set<number>();
  let logs = 0;
  let logsRead = 0;
  let tolds = 0;

  for (const [key, record] of records) {
    if ('message' in record) {
      job = record;
      record.recipients.forEach((recipient, index) => recipients.set(index, recipient));
      for (const index of record.begun) begun.add(index);
    } else if ('from' in record) {
      record.recipients.forEach((recipient, index) => recipients.set(record.from + index, recipient));
    } else if ('told' in record) {
      tolds = Number(key.slice(-8)) + 1;
      for (const index of record.told) told.add(index);
    } else {
      logs = Number(key.slice(-8)) + 1;
      logsRead += 1;
      for (const index of record.begun ?? []) begun.add(index);
      for (const index of record.undone ?? []) begun.delete(index);
      for (const [index, outcome] of record.outcomes ?? []) outcomes.set(index, outcome);
    }
  }
  if (!job) return undefined;

  // A log record that could not be read may have said "begun": sending would then be a second time.
  const unbegun = isLogLost || logsRead < logs ? 'unknown' : job.at < staleBefore ? 'stale' : 'send';
  const todos: Todo<R, O>[] = [];
  for (const [index, recipient] of recipients) {
    const outcome = outcomes.get(index);
    if (told.has(index)) continue;
    if (outcome !== undefined) todos.push({ index, recipient, what: 'tell', outcome });
    else todos.push({ index, recipient, what: begun.has(index) ? 'unknown' : unbegun });
  }
  return { job, todos, logs, tolds };
};
