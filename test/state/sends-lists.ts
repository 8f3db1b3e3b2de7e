import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../lib/state/embedded';
import { Journal, type JournalEntry } from '../../lib/state/journal';
import { sealerOf } from './sealer';

type Outcome = 'sent' | 'unknown' | 'stale';
const lists = 4;
const size = 150;
const singles = 100;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * A send node with everything but the network: what the service received and what the next node was told are lines in
 * files, which outlive a kill. What was offered and not accepted before a kill is not offered again.
 */
const run = async (directory: string): Promise<void> => {
  const store = await openStore({ directory, sealer: sealerOf('test'), warn: console.error });
  const journal = new Journal<string, Outcome>(store, 'node', () => Date.now());
  const note = (file: string, line: string): void => {
    appendFileSync(join(directory, file), `${line}\n`);
  };
  const tell = (entry: JournalEntry<Outcome>, index: number, name: string, outcome: string): void => {
    setImmediate(() => {
      note('told', `${name} ${outcome}`);
      console.log(name);
    });
    entry.told(index);
  };
  const send = async (entry: JournalEntry<Outcome>, index: number, name: string): Promise<void> => {
    await entry.begin(index);
    note('received', name);
    for (let turns = Math.floor(Math.random() * 6); turns > 0; turns--) await turn();
    await entry.outcome(index, 'sent');
    tell(entry, index, name, 'sent');
  };
  const inFours = async (work: readonly (() => Promise<void>)[]): Promise<void> => {
    const left = [...work];
    const lane = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift()) await next();
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
  };

  const running: Promise<void>[] = [];
  for (const { entry, open } of await journal.resume(3_600_000)) {
    const work = open.map((todo) => async (): Promise<void> => {
      const { index, recipient } = todo;
      if (todo.what === 'send') return send(entry, index, recipient);
      if (todo.what === 'tell') {
        tell(entry, index, recipient, `${todo.outcome} repeated`);
        return;
      }
      await entry.outcome(index, todo.what);
      tell(entry, index, recipient, todo.what);
    });
    running.push(inFours(work));
  }

  const offered = existsSync(join(directory, 'offered'))
    ? readFileSync(join(directory, 'offered'), 'utf8').split('\n').length - 1
    : 0;
  for (let job = offered; job < lists + singles; job++) {
    const recipients = Array.from(
      { length: job < lists ? size : 1 },
      (_, n) => `${String(job)}-${String(n)}`,
    );
    note('offered', String(job));
    const entry = journal.accept({ message: { payload: job }, recipients });
    const work = recipients.map((name, index) => () => send(entry, index, name));
    running.push(inFours(work));
    await journal.settle();
    note('accepted', String(job));
    if (job >= lists) await turn();
  }
  await Promise.all(running);
  await journal.settle();
  await store.close();
  await turn();
  console.log('done');
};

void run(process.argv[2] ?? '');
