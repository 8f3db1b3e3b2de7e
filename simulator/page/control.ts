import type { Fault } from '../effects';
import type { SettingsChange } from '../state/settings';
import type { ContactPage, SimulatorState } from './shape';
import { language, say } from './words';

/** The address is relative, so that the page works wherever it is mounted. */
export const address = (path: string): string => `control/${path}`;

/** A server that admits people by a cookie, as Node-RED does, rejects them when it has expired. */
export class PassExpired extends Error {
  constructor() {
    super(say('toast.expired'));
  }
}

const request = async (method: string, path: string, body?: unknown): Promise<Response> => {
  const response = await fetch(address(path), {
    method,
    cache: 'no-store',
    // Errors are in the language of this page, not of the browser.
    headers: {
      'accept-language': language,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error(say('toast.unreachable'));
  });
  if (response.status === 401) throw new PassExpired();
  if (!response.ok) throw new Error(await reason(response));
  return response;
};

const reason = async (response: Response): Promise<string> => {
  try {
    const body = (await response.json()) as { detail?: unknown; title?: unknown };
    if (typeof body.detail === 'string') return body.detail;
    if (typeof body.title === 'string') return body.title;
  } catch {
    // The answer is a proxy's page or empty: only the status can be shown.
  }
  return say('toast.status', { status: response.status });
};

const read = async <T>(path: string): Promise<T> => (await (await request('GET', path)).json()) as T;
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  await request(method, path, body);
};

type ConsentReply = 'accept' | 'decline' | 'reset';

export const control = {
  /** The state of one advisor, or of all. */
  state: (advisor: string) =>
    read<SimulatorState>(advisor === '' ? 'state' : `state?${new URLSearchParams({ advisor }).toString()}`),
  contacts: (advisor: string, page: number, pageSize: number, filter: string) =>
    read<ContactPage>(
      `contacts?${new URLSearchParams({ ...(advisor !== '' && { advisor }), page: String(page), pageSize: String(pageSize), filter }).toString()}`,
    ),
  answer: (phone: string, advisor: string, answer: ConsentReply) =>
    send('POST', `phones/${encodeURIComponent(phone)}/${answer}`, { advisor }),
  advance: (seconds: number) => send('POST', 'clock', { advance: seconds }),
  addFault: (fault: Fault) => send('POST', 'faults', fault),
  clearFaults: () => send('DELETE', 'faults'),
  change: (settings: SettingsChange) => send('PUT', 'settings', settings),
  reset: () => send('POST', 'reset'),
};
