import type { Simulator } from '../../../simulator';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

const readAnswer = async (response: Response): Promise<Answer> => {
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  let body: Record<string, unknown> = {};
  try {
    if (isJson) body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Some answers are broken on purpose.
  }
  return { status: response.status, headers: response.headers, text, body };
};

/** Requests of one advisor, and of the person at the control API. */
export class Caller {
  constructor(
    readonly simulator: Simulator,
    readonly advisor = 'default',
    readonly token = (): string => simulator.accessToken(advisor),
  ) {}

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const { baseUrl, credentials } = this.simulator;
    const headers = {
      authorization: `Bearer ${this.token()}`,
      'x-api-key': credentials.apiKey,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    return readAnswer(await fetch(baseUrl + path, { method, headers, ...payload }));
  }

  send(phone: string, text = 'Hello', more: object = {}): Promise<Answer> {
    return this.call('POST', '/text/messaging/messages', { phone, text, ...more });
  }

  ask(phone: string): Promise<Answer> {
    return this.call('POST', '/text/messaging/consent-requests', { phoneNumbers: [phone] });
  }

  check(phone: string): Promise<Answer> {
    return this.call('GET', `/text/messaging/consents?phone=${encodeURIComponent(phone)}`);
  }

  async control(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    return readAnswer(
      await fetch(`${this.simulator.url}/control/${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...payload,
      }),
    );
  }

  /** The texts that reached a phone, as its owner sees them. */
  textsOn(phone: string): string[] {
    const found = this.simulator.state(this.advisor).phones.find((one) => one.phone === phone);
    return (found?.messages ?? []).filter(({ kind }) => kind === 'text').map(({ text }) => text);
  }
}

export const shouldBeCut = async (request: Promise<unknown>): Promise<void> => {
  try {
    await request;
  } catch {
    return;
  }
  throw new Error('the connection was expected to be cut');
};
