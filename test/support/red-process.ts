import { type ChildProcess, spawn } from 'node:child_process';
import { once as eventOf } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { commandOf, type Version } from './installation';

export type FlowNode = Readonly<Record<string, unknown>> & { readonly id: string; readonly type: string };
export type Message = Record<string, unknown>;

export interface RedOptions {
  readonly version: Version;
  /** Merged over the tests' own; anything that JSON can represent. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly flows?: readonly FlowNode[];
  readonly env?: Readonly<Record<string, string>>;
  /** With all nodes and the code editor of an installation; else without what no test and no example uses. */
  readonly isWhole?: boolean;
  /** Used as it is and kept; else a fresh one with the package installed, removed by `close`. */
  readonly userDir?: string;
}

/** Core nodes whose loading takes a third of a start. */
export const unusedNodes = [
  '90-exec.js',
  '10-mqtt.js',
  '21-httprequest.js',
  '22-websocket.js',
  '31-tcpin.js',
  '32-udp.js',
  '70-HTML.js',
  '70-XML.js',
  '70-YAML.js',
  '10-file.js',
  '23-watch.js',
];

const defaultWait = 60_000;

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await eventOf(server, 'listening');
  const address = server.address();
  server.close();
  await eventOf(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No free port was found.');
  return address.port;
};

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A Node-RED process: its life cycle, its log, and the messages of its `test-port` nodes. */
export class RedProcess {
  readonly lines: string[] = [];
  /** The messages that reached the `test-port` nodes, in order, and when. */
  readonly arrived: { port: string; msg: Message; at: number }[] = [];

  private child: ChildProcess | undefined;
  private readonly questions = new Map<number, (answer: unknown) => void>();
  private readonly watchers = new Set<() => void>();
  private lastQuestion = 0;

  protected constructor(
    protected readonly options: RedOptions,
    readonly userDir: string,
    readonly port: number,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port.toString()}`;
  }

  get log(): string {
    return this.lines.join('\n');
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Takes effect at the next `restart`. */
  writeSettings(changes: Readonly<Record<string, unknown>> = {}): void {
    const { isWhole = false } = this.options;
    const settings = {
      lang: 'en-US',
      uiPort: this.port,
      uiHost: '127.0.0.1',
      flowFile: 'flows.json',
      credentialSecret: 'only for tests',
      telemetry: { enabled: false },
      editorTheme: {
        tours: false,
        palette: { catalogues: [] },
        // Monaco takes a third of the cost of opening the editor.
        ...(isWhole ? {} : { codeEditor: { lib: 'ace' } }),
      },
      nodesExcludes: isWhole ? [] : unusedNodes,
      logging: { console: { level: 'info', metrics: false, audit: false } },
      ...this.options.settings,
      ...changes,
    };
    writeFileSync(join(this.userDir, 'settings.js'), `module.exports = ${JSON.stringify(settings)};\n`);
  }

  async run(): Promise<void> {
    const { node, script } = commandOf(this.options.version);
    const from = this.lines.length;
    const child = spawn(node, [script, '-u', this.userDir, '-s', join(this.userDir, 'settings.js')], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '', ...this.options.env },
    });
    this.child = child;
    running.add(child);
    for (const stream of [child.stdout, child.stderr]) this.read(stream);
    child.on('message', (message) => {
      this.hear(message as { id?: number; answer?: unknown; port?: string; msg?: Message });
    });
    child.once('exit', () => {
      running.delete(child);
      this.lines.push('[process ended]');
      this.look();
    });
    await this.logged(/Server now running at|Server wird jetzt auf|Admin UI disabled|\[process ended\]/i, {
      from,
    });
    await this.logged(
      /Started flows|Flows sind gestartet|Waiting for missing|Flows stopped|Stopped flows|safe mode|\[process ended\]/i,
      { from },
    );
    if (child.exitCode !== null) throw new Error(`Node-RED did not start:\n${this.log}`);
  }

  private read(stream: NodeJS.ReadableStream | null): void {
    let rest = '';
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      this.lines.push(...parts);
      this.look();
    });
  }

  private hear({
    id,
    answer,
    port,
    msg,
  }: {
    id?: number;
    answer?: unknown;
    port?: string;
    msg?: Message;
  }): void {
    if (port !== undefined && msg !== undefined) {
      this.arrived.push({ port, msg, at: Date.now() });
      this.look();
    } else if (id !== undefined) {
      this.questions.get(id)?.(answer);
      this.questions.delete(id);
    }
  }

  private look(): void {
    for (const watcher of [...this.watchers]) watcher();
  }

  /** Waits until `found` returns something; names what it waited for if it never does. */
  until<T>(found: () => T | undefined, what: string, wait: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.watchers.delete(watcher);
        act();
      };
      const watcher = (): void => {
        const value = found();
        if (value !== undefined)
          settle(() => {
            resolve(value);
          });
      };
      const timer = setTimeout(() => {
        settle(() => {
          const came = this.arrived.slice(-5).map((one) => JSON.stringify(one).slice(0, 600));
          reject(
            new Error(
              `${what} did not come. What came last:\n${came.join('\n')}\nThe log:\n${this.lines.slice(-60).join('\n')}`,
            ),
          );
        });
      }, wait);
      this.watchers.add(watcher);
      watcher();
    });
  }

  /** The first matching line of the log. */
  logged(pattern: RegExp, { from = 0, wait = 60_000 } = {}): Promise<string> {
    return this.until(
      () => this.lines.slice(from).find((line) => pattern.test(line)),
      `A line like ${pattern.source}`,
      wait,
    );
  }

  /** The messages that reached the `test-port` of this name, once there are `count` of them. */
  messages(port: string, count = 1, wait = defaultWait): Promise<Message[]> {
    const here = (): Message[] => this.arrived.filter((one) => one.port === port).map((one) => one.msg);
    return this.until(
      () => (here().length >= count ? here() : undefined),
      `Message ${count.toString()} at ${port}`,
      wait,
    );
  }

  private ask(question: Readonly<Record<string, unknown>>): Promise<unknown> {
    const id = ++this.lastQuestion;
    return new Promise((resolve) => {
      this.questions.set(id, resolve);
      this.child?.send({ id, ...question });
    });
  }

  /** Sends a message from the `test-port` of this name. */
  async send(port: string, msg: Message): Promise<void> {
    if ((await this.ask({ port, msg })) !== true)
      throw new Error(`There is no test-port ${port} in the flow.`);
  }

  /** The files of all scripts that the process has loaded so far. */
  async scripts(): Promise<string[]> {
    return (await this.ask({ ask: 'scripts' })) as string[];
  }

  async memory(): Promise<NodeJS.MemoryUsage> {
    return (await this.ask({ ask: 'memory' })) as NodeJS.MemoryUsage;
  }

  async cpu(): Promise<NodeJS.CpuUsage> {
    return (await this.ask({ ask: 'cpu' })) as NodeJS.CpuUsage;
  }

  /** What keeps the process running, by name: timers, sockets, servers. */
  async resources(): Promise<string[]> {
    return (await this.ask({ ask: 'resources' })) as string[];
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM');
  }

  async kill9(): Promise<void> {
    await this.end('SIGKILL');
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.child;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const gone = eventOf(child, 'exit');
    const lastResort = setTimeout(() => child.kill('SIGKILL'), defaultWait);
    child.kill(signal);
    await gone;
    clearTimeout(lastResort);
  }

  async restart(changes?: Readonly<Record<string, unknown>>): Promise<void> {
    await this.stop();
    if (changes) this.writeSettings(changes);
    await this.run();
  }

  /** Stops it and removes the user directory, unless that was given. */
  async close(): Promise<void> {
    await this.stop();
    if (this.options.userDir === undefined) rmSync(this.userDir, { recursive: true, force: true });
  }
}
