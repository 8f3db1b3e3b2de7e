import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface Counts {
  readonly texts: number;
  readonly polls: number;
  readonly pages: number;
  readonly refreshes: number;
  readonly rejected: number;
  /** The access token that holds now. */
  readonly token: string;
}

export interface Service {
  readonly url: string;
  counts(): Promise<Counts>;
  reset(): Promise<Counts>;
  expire(): Promise<Counts>;
  setContacts(count: number): Promise<Counts>;
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
    counts: () => control('counts'),
    reset: () => control('reset'),
    expire: () => control('expire'),
    setContacts: (count) => control(`contacts/${String(count)}`),
    close: () => {
      child.disconnect();
    },
  };
};
