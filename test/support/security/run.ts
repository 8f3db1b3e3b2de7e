import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'undici';
import { freshUserDir } from '../installation';
import { startRed, type Answer, type FlowNode, type Message, type RealRed } from '../node-red';
import { Canaries, filesIn, place, type Place } from './canaries';
import { canaryFlow, officeOn, type Way } from './flow';
import { EchoingService } from './service';

/** What the editor receives without asking: statuses, and errors for its sidebar. */
const listen = (red: RealRed): Promise<{ said: string[]; close: () => void }> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`${red.url.replace('http', 'ws')}/comms`);
    const said: string[] = [];
    socket.addEventListener('message', ({ data }) => said.push(String(data)));
    socket.addEventListener('error', () => {
      reject(new Error('The editor could not listen.'));
    });
    socket.addEventListener('open', () => {
      resolve({
        said,
        close: () => {
          socket.close();
        },
      });
    });
  });

/** A whole Node-RED with canaries wherever a secret, a text or a person can be. */
export class CanaryRun {
  readonly answers: Place[] = [];
  readonly disk: Place[] = [];
  readonly comms: string[] = [];
  private stopListening = (): void => undefined;
  private expected = 0;
  private errors = 0;

  private constructor(
    readonly canaries: Canaries,
    readonly service: EchoingService,
    readonly red: RealRed,
  ) {}

  static async start(
    version: 4 | 5,
    more: {
      /** Adds to the user directory. */
      readonly prepare?: (userDir: string) => void;
      readonly settings?: Readonly<Record<string, unknown>>;
    } = {},
  ): Promise<CanaryRun> {
    const canaries = new Canaries();
    const service = new EchoingService(canaries);
    await service.start();
    const userDir = freshUserDir();
    mkdirSync(join(userDir, 'tmp'));
    more.prepare?.(userDir);
    const red = await startRed({
      version,
      userDir,
      env: { SEED: canaries.secret('seed'), TMPDIR: join(userDir, 'tmp') },
      settings: {
        logging: { console: { level: 'trace', metrics: true, audit: true } },
        verbose: true,
        ...more.settings,
      },
    });
    const run = new CanaryRun(canaries, service, red);
    await run.listen();
    const secrets = { clientSecret: canaries.secret('client secret'), apiKey: canaries.secret('api key') };
    await red.deploy(canaryFlow(run.office, secrets));
    return run;
  }

  get office(): FlowNode {
    return officeOn(this.service.url, `${this.red.adminUrl}/advisor-texting/callback`);
  }

  private async listen(): Promise<void> {
    const { said, close } = await listen(this.red);
    this.comms.push(...said);
    this.stopListening = () => {
      this.comms.push(...said.splice(0));
      close();
    };
  }

  async ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.red.request(method, path, body);
    this.answers.push(place(`${method} ${path}`, answer.text));
    return answer;
  }

  /** As a browser without a login. */
  async open(address: string, headers: Record<string, string> = {}): Promise<Response> {
    const answer = await fetch(address, { redirect: 'manual', headers });
    this.answers.push(place(`GET ${new URL(address).pathname}`, await answer.text()));
    return answer;
  }

  /** The redirect from the authorization page at `url`. */
  back(url: string, more: Readonly<Record<string, string>> = {}): string {
    const { searchParams } = new URL(url);
    const query = new URLSearchParams({
      code: this.canaries.secret('authorization code'),
      state: searchParams.get('state') ?? '',
      ...more,
    });
    return `${searchParams.get('redirect_uri') ?? ''}?${query.toString()}`;
  }

  async begin(advisor: string): Promise<string> {
    const answer = await this.ask('POST', 'advisor-texting/office/authorize', { advisor });
    return (answer.json as { url: string }).url;
  }

  async authorize(advisor = 'default'): Promise<void> {
    const { status } = await this.open(this.back(await this.begin(advisor)));
    if (status !== 200) throw new Error(`The callback was answered with ${status.toString()}.`);
  }

  /** Sends it to a node, and waits for the result. */
  async pass(kind: string, msg: Message, way: Way = 'wired'): Promise<void> {
    await this.red.send(`${kind}-${way}`, msg);
    await this.outcomes(1, way);
  }

  async outcomes(count: number, way: Way = 'wired'): Promise<void> {
    if (way !== 'logged') {
      this.expected += count;
      await this.red.messages('out', this.expected);
      return;
    }
    const errors = (this.errors += count);
    const logged = (): number => this.red.lines.filter((line) => line.includes('[error] [advisor-')).length;
    await this.red.until(() => logged() >= errors || undefined, 'An error in the log', 20_000);
  }

  keepDisk(moment: string): void {
    this.disk.push(
      ...filesIn(this.red.userDir).map((file) => ({ ...file, name: `${file.name} (${moment})` })),
    );
  }

  async kill(): Promise<void> {
    this.stopListening();
    await this.red.kill9();
    this.keepDisk('after a kill');
    await this.red.run();
    await this.listen();
  }

  async stop(): Promise<void> {
    this.stopListening();
    await this.red.stop();
    this.keepDisk('at the end');
  }

  messages(port: string): Message[] {
    return this.red.arrived.filter((one) => one.port === port).map(({ msg }) => msg);
  }
}
