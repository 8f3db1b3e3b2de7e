import type { FaultInput } from '../faults';
import type { SettingsChange } from '../state/settings';
import type { ContactPage, SimulatorState } from './shape';

/** Relative, so that the page works wherever it is mounted. */
const address = (path: string): string => `control/${path}`;

const request = async (method: string, path: string, body?: unknown): Promise<Response> => {
  const response = await fetch(address(path), {
    method,
    cache: 'no-store',
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(await reason(response));
  return response;
};

const reason = async (response: Response): Promise<string> => {
  try {
    const body = (await response.json()) as { detail?: unknown; title?: unknown };
    if (typeof body.detail === 'string') return body.detail;
    if (typeof body.title === 'string') return body.title;
  } catch {
    // A proxy's page or nothing at all: the status has to do.
  }
  return `the simulator answered ${String(response.status)}`;
};

const read = async <T>(path: string): Promise<T> => (await (await request('GET', path)).json()) as T;
const tell = async (method: string, path: string, body?: unknown): Promise<void> => {
  await request(method, path, body);
};

export type Answer = 'accept' | 'decline' | 'reset';

export const control = {
  state: () => read<SimulatorState>('state'),
  contacts: (advisor: string, page: number, pageSize: number, filter: string) =>
    read<ContactPage>(
      `contacts?${new URLSearchParams({ advisor, page: String(page), pageSize: String(pageSize), filter }).toString()}`,
    ),
  answer: (phone: string, advisor: string, answer: Answer) =>
    tell('POST', `phones/${encodeURIComponent(phone)}/${answer}`, { advisor }),
  advance: (seconds: number) => tell('POST', 'clock', { advance: seconds }),
  addFault: (fault: FaultInput) => tell('POST', 'faults', fault),
  clearFaults: () => tell('DELETE', 'faults'),
  change: (settings: SettingsChange) => tell('PUT', 'settings', settings),
  reset: () => tell('POST', 'reset'),
};

export type Connection = 'connecting' | 'live' | 'lost';

/**
 * Calls `changed` now and after every change in the simulator, one reading at a time; a change during a reading
 * leads to exactly one more. EventSource reconnects by itself except after an HTTP error, which is handled here.
 */
export const follow = (
  changed: () => Promise<void>,
  connection: (state: Connection) => void,
  retryAfter = 2000,
): void => {
  let reading = false;
  let again = false;
  const update = async (): Promise<void> => {
    again = true;
    if (reading) return;
    reading = true;
    try {
      while (again) {
        again = false;
        await changed();
      }
    } catch {
      connection('lost');
      setTimeout(() => void update(), retryAfter);
    } finally {
      reading = false;
    }
  };
  const connect = (): void => {
    const events = new EventSource(address('events'));
    events.onopen = () => {
      connection('live');
      void update();
    };
    events.onmessage = () => void update();
    events.onerror = () => {
      connection('lost');
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, retryAfter);
    };
  };
  void update();
  connect();
};
