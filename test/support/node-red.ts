import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshUserDir } from './installation';
import { type FlowNode, freePort, type RedOptions, RedProcess } from './red-process';

export type { FlowNode, Message, RedOptions } from './red-process';
export type DeployType = 'full' | 'nodes' | 'flows' | 'reload';

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

export const adminPassword = 'only for tests';
const hash = '$2b$04$YH3b1tvPWmof8BFH6xrurO/GdwS9SJbzRjUdPgyNKi0E.A1TAmxNi';

/** Like the setting `adminAuth`: `admin` may do everything, `reader` only read, both with the password above. */
export const adminAuth = {
  type: 'credentials',
  users: [
    { username: 'admin', password: hash, permissions: '*' },
    { username: 'reader', password: hash, permissions: 'read' },
  ],
};

/** Node-RED treats a node with wires but no place on the canvas as a config node: set one. */
const placed = (flows: readonly FlowNode[]): readonly FlowNode[] =>
  flows.map((node) => ('wires' in node && !('x' in node) ? { ...node, x: 100, y: 100 } : node));

export interface Audited {
  /** Without `advisor-texting.`. */
  readonly event: string;
  readonly username: string | undefined;
  readonly environment: string;
  readonly advisor: string | undefined;
}

/** Our entries in the audit log, from a line on. */
export const auditIn = ({ lines }: RedProcess, from: number): Audited[] =>
  lines
    .slice(from)
    .flatMap((line) => /\{"event":"advisor-texting\..*\}/.exec(line)?.[0] ?? [])
    .map((entry) => {
      const { event, user, environment, advisor } = JSON.parse(entry) as {
        event: string;
        user?: { username: string };
        environment: string;
        advisor?: string;
      };
      return { event: event.replace('advisor-texting.', ''), username: user?.username, environment, advisor };
    });

/** A real Node-RED in its own process, with the packed package installed, and its admin API. */
export class RealRed extends RedProcess {
  /** The login, once there is one. */
  token: string | undefined;

  static async start(options: RedOptions): Promise<RealRed> {
    const red = new RealRed(options, options.userDir ?? freshUserDir(), await freePort());
    if (options.flows) writeFileSync(join(red.userDir, 'flows.json'), JSON.stringify(placed(options.flows)));
    red.writeSettings();
    await red.run();
    return red;
  }

  /** The address of the admin API, without a trailing slash. */
  get adminUrl(): string {
    const path = this.options.settings?.['httpAdminRoot'];
    return `${this.url}${typeof path === 'string' && path !== '/' ? path.replace(/\/$/, '') : ''}`;
  }

  /** The admin API; `path` without a leading slash. */
  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const response = await fetch(`${this.adminUrl}/${path}`, {
      method,
      redirect: 'manual',
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, text, json: isJson && text !== '' ? JSON.parse(text) : undefined };
  }

  /** With adminAuth: later requests carry the login. */
  async login(username = 'admin', password = adminPassword): Promise<void> {
    const answer = await this.request('POST', 'auth/token', {
      client_id: 'node-red-admin',
      grant_type: 'password',
      scope: '',
      username,
      password,
    });
    if (answer.status !== 200) throw new Error(`The login was answered with ${answer.status.toString()}.`);
    this.token = (answer.json as { access_token: string }).access_token;
  }

  async flows(): Promise<FlowNode[]> {
    return (await this.request('GET', 'flows')).json as FlowNode[];
  }

  /** Credentials are passed as `credentials` of a node. Resolves when the flows run. */
  async deploy(flows: readonly FlowNode[], type: DeployType = 'full'): Promise<void> {
    const from = this.lines.length;
    const answer = await this.request('POST', 'flows', type === 'reload' ? undefined : placed(flows), {
      'Node-RED-Deployment-Type': type,
    });
    if (answer.status >= 300)
      throw new Error(`The deploy was answered with ${answer.status.toString()}: ${answer.text}`);
    await this.logged(/Started (modified )?(flows|nodes)|Waiting for missing/, { from });
  }

  /** Presses the button of an inject node, or injects other values. */
  async inject(id: string, values?: Readonly<Record<string, unknown>>): Promise<void> {
    const props = Object.entries(values ?? {}).map(([p, v]) => ({ p, v: JSON.stringify(v), vt: 'json' }));
    const body = values === undefined ? {} : { __user_inject_props__: props };
    const answer = await this.request('POST', `inject/${id}`, body);
    if (answer.status !== 200) throw new Error(`The inject was answered with ${answer.status.toString()}.`);
  }
}

export const startRed = (options: RedOptions): Promise<RealRed> => RealRed.start(options);
