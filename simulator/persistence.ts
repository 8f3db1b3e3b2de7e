import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { contactFields } from './contract/declaration';
import type { Simulation } from './simulation';
import { settingsSchema } from './state/settings';

const whole = z.int();
const contact = z.object({
  contactId: whole,
  fields: contactFields,
  source: whole,
  created: z.number(),
  modified: z.number(),
  groupIds: z.array(whole).readonly(),
  bornToday: z.literal(true).optional(),
});
const group = z.object({
  groupId: whole,
  name: z.string().nullable(),
  externalId: z.string().nullable(),
  created: z.number(),
  contactCount: whole,
});
const message = z.object({
  id: whole,
  at: z.number(),
  kind: z.enum(['text', 'consent-request', 'reply']),
  text: z.string(),
  messageId: whole.nullable(),
  scheduledFor: z.number().nullable(),
});
const line = z.object({
  phone: z.string(),
  asked: z.boolean(),
  answer: z.enum(['accepted', 'declined']).nullable(),
  lastChanged: z.number(),
  checks: whole,
  struck: z.array(z.string()),
  messages: z.array(message),
  touched: z.number(),
});
const account = z.object({
  contacts: z.object({ seeded: whole, nextId: whole, deleted: z.array(whole), changed: z.array(contact) }),
  groups: z.object({ nextId: whole, groups: z.array(group) }),
  lines: z.array(line),
});
const family = z.object({
  id: z.string(),
  advisor: z.string(),
  scopes: z.array(z.string()),
  refreshToken: z.string().nullable(),
  expiresAt: z.number(),
  ended: z.boolean(),
});

const snapshotSchema = z.object({
  version: z.literal(1),
  /** How far the clock was moved ahead, in ms. */
  ahead: z.number(),
  state: z.object({
    messageId: whole,
    settings: settingsSchema,
    accounts: z.array(z.object({ advisor: z.string(), account })),
  }),
  tokens: z.object({ key: z.string(), families: z.array(family) }),
});

type Snapshot = z.output<typeof snapshotSchema>;

const ahead = ({ clock }: Simulation): number => clock.now() - Date.now();

const take = (simulation: Simulation): Snapshot => ({
  version: 1,
  ahead: ahead(simulation),
  state: simulation.state.record(),
  tokens: simulation.tokens.record(),
});

/**
 * Takes up what `file` holds, if it is there. A file that cannot be read as ours is set aside and named in the
 * result: a damaged file must not keep the simulator from starting.
 */
export const restore = async (simulation: Simulation, file: string): Promise<string | undefined> => {
  if (!existsSync(file)) return undefined;
  let snapshot: Snapshot;
  try {
    snapshot = snapshotSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    const aside = `${file}.damaged-${String(Date.now())}`;
    renameSync(file, aside);
    return `The simulator's data in ${file} could not be read. It was set aside as ${aside}; starting afresh.`;
  }
  simulation.state.restore(snapshot.state);
  simulation.tokens.restore(snapshot.tokens);
  // Time must not run backwards for waits and tokens that were begun when the clock had been moved.
  const behind = snapshot.ahead - ahead(simulation);
  if (behind > 1000) await simulation.clock.move(behind);
  return undefined;
};

/** Changes are written together, this long after the first; a large state takes longer turns. */
const shortestPause = 200;

/** Keeps the state in a file, whole at every moment: written beside it, then renamed over it. */
export class Keeper {
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private pause = shortestPause;
  private stale = false;

  constructor(
    private readonly simulation: Simulation,
    private readonly file: string,
    private readonly warn: (message: string) => void,
  ) {
    mkdirSync(dirname(file), { recursive: true });
  }

  changed(): void {
    this.stale = true;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.write();
    }, this.pause).unref();
  }

  /** Resolves when all changes so far are on disk. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.write();
  }

  private write(): Promise<void> {
    this.writing = this.writing.then(async () => {
      if (!this.stale) return;
      this.stale = false;
      const began = performance.now();
      try {
        await replace(this.file, JSON.stringify(take(this.simulation)));
      } catch (error) {
        this.stale = true;
        this.warn(`The simulator's data cannot be written to ${this.file}: ${String(error)}`);
      }
      this.pause = Math.max(shortestPause, 10 * (performance.now() - began));
    });
    return this.writing;
  }
}

const replace = async (file: string, text: string): Promise<void> => {
  const beside = `${file}.${String(process.pid)}.new`;
  const handle = await open(beside, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, file);
};
