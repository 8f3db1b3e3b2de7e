import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  environmentFor,
  type LedgerEntry,
  profiles,
  type ProfileName,
  type StateView,
} from '../../../simulator';
import { versions } from '../extent';
import { root } from '../installation';
import { type FlowNode, type Message, type RealRed, startRed } from '../node-red';

export interface Example {
  /** As the Import menu shows it. */
  readonly title: string;
  readonly text: string;
  readonly nodes: readonly FlowNode[];
}

export const examplesIn = (folder: string): Example[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      return { title: name.replace(/\.json$/, ''), text, nodes: JSON.parse(text) as FlowNode[] };
    });

export const examples: readonly Example[] = examplesIn(join(root, 'examples'));

export const examplesWithDashboard = examplesIn(join(root, 'examples', 'with Dashboard 2'));

/** The dashboard is not installed: a node in place of its page receives what it would show. */
export const withDashboard: Example = {
  title: 'with Dashboard 2',
  text: '',
  nodes: examplesWithDashboard
    .flatMap(({ nodes }) => nodes)
    .filter(({ type }) => !['ui-group', 'ui-page', 'ui-base', 'ui-theme'].includes(type))
    .map((node) => (node.type === 'ui-template' ? { ...node, type: 'debug' } : node)),
};

export const exampleOf = (number: number): Example => {
  const found = examples[number - 1];
  if (!found) throw new Error(`There is no example ${number.toString()}.`);
  return found;
};

export const nameOf = ({ name }: FlowNode): string => (typeof name === 'string' ? name : '');

export const tabOf = (nodes: readonly FlowNode[]): string =>
  nodes.find(({ type }) => type === 'tab')?.id ?? '';

const everyRun = [
  { version: 4, profile: 'usual' },
  { version: 5, profile: 'usual' },
  { version: 5, profile: 'foreign' },
] as const;

export type Run = (typeof everyRun)[number];

/** The versions of Node-RED, and both services; the version makes no difference to a service. */
export const runs: readonly Run[] = everyRun.filter(({ version }) => versions.includes(version));

export const titleOf = ({ version, profile }: Run): string =>
  `on Node-RED ${version.toString()} and a service of the ${profile} profile`;

/** Examples, and what a test adds to them, with the environments that the service needs. */
export const startExamples = async (
  { version, profile }: Run,
  nodes: readonly FlowNode[],
): Promise<{ readonly red: RealRed; readonly phones: Phones }> => {
  const flows = nodes.map((node) =>
    node.type === 'advisor-environment' ? { ...node, ...environmentFor(profiles[profile]) } : node,
  );
  const red = await startRed({ version, flows });
  return { red, phones: await Phones.open(red, profile) };
};

/** The example as imported, except that debug output and statuses are sent to the test. */
export const overheard = ({ nodes }: Example): FlowNode[] => {
  const z = tabOf(nodes);
  const hears = nodes.map((node) =>
    node.type === 'debug' ? { ...node, type: 'test-port', name: `${z} ${nameOf(node)}` } : node,
  );
  return [
    ...hears,
    { id: `${z}statuses`, type: 'status', z, scope: null, wires: [[`${z}status`]] },
    { id: `${z}status`, type: 'test-port', z, name: `${z} status`, wires: [] },
  ];
};

/** One example on a running Node-RED: its buttons, and what its debug nodes would show. */
export class Clicked {
  private readonly tab: string;
  private readonly seen = new Map<string, number>();

  constructor(
    private readonly red: RealRed,
    private readonly example: Example,
  ) {
    this.tab = tabOf(example.nodes);
  }

  /** As if the button was pressed, or with other values. */
  async press(button: string, values?: Readonly<Record<string, unknown>>): Promise<void> {
    const found = this.example.nodes.find((node) => node.type === 'inject' && nameOf(node) === button);
    if (!found) throw new Error(`${this.example.title} has no button ${button}.`);
    await this.red.inject(found.id, values);
  }

  /** The next messages at the debug node of this name. */
  async shown(debug: string, count = 1, wait?: number): Promise<Message[]> {
    const from = this.seen.get(debug) ?? 0;
    this.seen.set(debug, from + count);
    const all = await this.red.messages(`${this.tab} ${debug}`, from + count, wait);
    return all.slice(from, from + count);
  }

  /** Resolves when a node of the tab shows it. */
  async status(pattern: RegExp): Promise<void> {
    let text: string;
    do text = String(((await this.one('status'))['status'] as Message)['text']);
    while (!pattern.test(text));
  }

  async one(debug: string): Promise<Message> {
    const [msg] = await this.shown(debug);
    if (!msg) throw new Error(`Nothing came out at ${debug}.`);
    return msg;
  }
}

/** The simulator inside a Node-RED, reached like its phones page. */
export class Phones {
  private constructor(
    private readonly red: RealRed,
    private readonly profile: ProfileName,
    private readonly cookie: string,
  ) {}

  static async open(red: RealRed, profile: ProfileName = 'usual'): Promise<Phones> {
    const { json } = await red.request('POST', 'advisor-texting/simulator/open', {});
    const entered = await fetch(`${red.adminUrl}/${(json as { url: string }).url}`, { redirect: 'manual' });
    return new Phones(red, profile, (entered.headers.get('set-cookie') ?? '').split(';')[0] ?? '');
  }

  /** A reset alone gives a service of the usual profile. */
  async reset(): Promise<void> {
    await this.control('POST', 'reset');
    if (this.profile !== 'usual') await this.control('PUT', 'settings', { profile: this.profile });
  }

  async control(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.red.request(method, `advisor-texting/simulator/control/${path}`, body, {
      cookie: this.cookie,
    });
    if (answer.status >= 300) throw new Error(`${method} ${path} was answered with ${answer.text}`);
    return answer.json;
  }

  async ledger(endpoint: string): Promise<LedgerEntry[]> {
    const { entries } = (await this.control('GET', `ledger?endpoint=${endpoint}`)) as {
      entries: LedgerEntry[];
    };
    return entries;
  }

  /** The messages that arrived at a number, the oldest first. */
  async texts(phone: string, advisor = 'default', kind = 'text'): Promise<string[]> {
    const { phones } = (await this.control('GET', `state?advisor=${advisor}`)) as StateView;
    const messages = phones.find((one) => one.phone === phone)?.messages ?? [];
    return messages.filter((one) => one.kind === kind && one.arrived).map(({ text }) => text);
  }

  /** Moves the clock until what is awaited has happened: how many polls fit in a while depends on the machine. */
  async advanceUntil<T>(coming: Promise<T>, seconds = 5): Promise<T> {
    const state = { isOver: false };
    void coming.catch(() => undefined).finally(() => (state.isOver = true));
    while (!state.isOver) await this.advance(seconds);
    return coming;
  }

  async advance(seconds: number): Promise<void> {
    await this.control('POST', 'clock', { advance: seconds });
  }

  async accept(phone: string): Promise<void> {
    await this.control('POST', `phones/${encodeURIComponent(phone)}/accept`, {});
  }
}

export const payloadOf = (msg: Message): Record<string, unknown> => msg['payload'] as Record<string, unknown>;
