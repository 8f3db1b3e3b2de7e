import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface Counts {
  readonly texts: number;
  readonly polls: number;
  readonly pages: number;
  readonly refreshes: number;
  readonly rejected: number;
  /** Texts that got a 429. */
  readonly limited: number;
  /** Epoch milliseconds of the first text and the first poll since the reset; 0 when there was none. */
  readonly first: { readonly text: number; readonly poll: number };
  /** The current access token. */
  readonly token: string;
}

export interface Service {
  readonly url: string;
  /** Does some work, for which the server must have counted exactly so many requests: none lost, none made twice. */
  counting<T>(
    expected: Readonly<Partial<Record<'texts' | 'pages', number>>>,
    work: () => Promise<T>,
  ): Promise<T>;
  counts(): Promise<Counts>;
  reset(): Promise<Counts>;
  expire(): Promise<Counts>;
  setContacts(count: number): Promise<Counts>;
  /** The answer to every poll of a consent. */
  setConsent(state: 'pending' | 'accepted'): Promise<Counts>;
  /** Every text gets a 429 that asks for half an hour. */
  limit(isOn: boolean): Promise<Counts>;
  close(): void;
}

/** The lean server in its own process. */
export const startService = async (): Promise<Service> => {
  const child = fork(join(__dirname, 'server.ts'), { execArgv: ['--require', require.resolve('tsx/cjs')] });
  const [message] = (await once(child, 'message')) as [{ readonly port: number }];
  const url = `http://127.0.0.1:${String(message.port)}`;
  const control = async (order: string): Promise<Counts> => {
    const answer = await fetch(`${url}/control/${order}`);
    return (await answer.json()) as Counts;
  };
  return {
    url,
    async counting(expected, work) {
      await control('reset');
      const result = await work();
      const counted = await control('counts');
      for (const name of ['texts', 'pages'] as const) {
        const wanted = expected[name] ?? 0;
        if (counted[name] === wanted) continue;
        throw new Error(
          `The service counted ${String(counted[name])} ${name} where ${String(wanted)} were due.`,
        );
      }
      return result;
    },
    counts: () => control('counts'),
    reset: () => control('reset'),
    expire: () => control('expire'),
    setContacts: (count) => control(`contacts/${String(count)}`),
    setConsent: (state) => control(`consent/${state}`),
    limit: (isOn) => control(`limit/${isOn ? 'on' : 'off'}`),
    close: () => {
      child.disconnect();
    },
  };
};
