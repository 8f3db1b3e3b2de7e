import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import should from 'should';
import { root } from '../../support/installation';
import { freePort } from '../../support/red-process';

const notCopied = new Set(['.git', 'node_modules', 'dist', 'bench']);

interface Node {
  readonly id: string;
  readonly type: string;
  readonly label?: string;
}

const own: Node = { id: 'mine000000000000', type: 'tab', label: 'Mine' };

describe('npm start', function () {
  this.timeout(120_000);
  let folder: string;
  let port: number;
  let running: ChildProcess | undefined;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'advisor-texting-start-'));
    cpSync(root, folder, {
      recursive: true,
      filter: (path) => !notCopied.has(basename(path)) && !basename(path).startsWith('.data'),
    });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  });

  after(async () => {
    await end();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Further variables of the process. */
  let variables: Record<string, string> = {};

  const run = (...flags: string[]): { child: ChildProcess; said: () => string } => {
    let said = '';
    const child = spawn(process.execPath, [join(folder, 'scripts', 'start.mjs'), ...flags], {
      cwd: folder,
      env: { ...process.env, ...variables, PORT: String(port) },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    return { child, said: () => said };
  };

  /** Its output by the time it is ready. */
  const start = (...flags: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const { child, said } = run(...flags);
      running = child;
      child.stdout?.on('data', () => {
        if (said().includes('To stop, press Ctrl-C')) resolve(said());
      });
      child.once('exit', () => {
        reject(new Error(`It ended:\n${said()}`));
      });
    });

  /** For one that exits by itself; it is stopped if it does not. */
  const outcome = async (...flags: string[]): Promise<{ code: unknown; said: string }> => {
    const { child, said } = run(...flags);
    const lastResort = setTimeout(() => child.kill(), 30_000);
    const [code] = (await once(child, 'close')) as unknown[];
    clearTimeout(lastResort);
    return { code, said: said() };
  };

  /** Like Ctrl-C; returns how it exited. */
  const end = async (): Promise<number | null> => {
    const child = running;
    running = undefined;
    if (!child) return null;
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    return ended;
  };

  /** As no signal handler can notice; Node-RED has its stderr open as long as it runs. */
  const killed = async (): Promise<void> => {
    const child = running;
    running = undefined;
    child?.kill('SIGKILL');
    try {
      if (child) await once(child, 'close', { signal: AbortSignal.timeout(30_000) });
    } finally {
      child?.stdout?.destroy();
      child?.stderr?.destroy();
    }
  };

  const address = (path: string): string => `http://127.0.0.1:${String(port)}/${path}`;
  const flows = async (): Promise<Node[]> => (await fetch(address('flows'))).json() as Promise<Node[]>;
  const labels = (nodes: readonly Node[]): unknown[] =>
    nodes.filter(({ type }) => type === 'tab').map(({ label }) => label);

  const isServed = (): Promise<boolean> =>
    fetch(address('')).then(
      () => true,
      () => false,
    );
  const note = (): string => join(folder, '.data-running.json');
  const dataFolders = (): string[] => readdirSync(folder).filter((name) => name.startsWith('.data'));
  const pidOf = (child?: ChildProcess): string => `process ${String(child?.pid)}`;

  const deploy = (nodes: readonly Node[]): Promise<unknown> =>
    fetch(address('flows'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(nodes),
    });
  const environment = (name: string, service: string, more: object = {}): Node => ({
    ...more,
    id: name.toLowerCase(),
    type: 'advisor-environment',
    ...{ name, service },
  });

  const userOf = (name: string): Node =>
    ({
      id: `${name} user`,
      type: 'advisor-events',
      z: own.id,
      environment: name.toLowerCase(),
      wires: [[]],
    }) as Node;

  describe('for the first time', () => {
    let said: string;
    before(async () => {
      port = await freePort();
      said = await start();
    });
    after(killed);

    it('opens the welcome, every example and the phones', async () => {
      said.should.containEql(address(''));
      said.should.containEql(address('advisor-texting/simulator/'));
      const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.json'));
      labels(await flows()).should.have.length(files.length + 1);
      labels(await flows())[0]?.should.equal('Welcome');
      (await fetch(address('advisor-texting/simulator/'))).status.should.equal(200);
    });

    it('refuses --fresh while it runs, and sets nothing aside', async () => {
      const before = dataFolders();
      const { code, said: refusal } = await outcome('--fresh');
      should(code).equal(1);
      refusal.should
        .containEql('Nothing was set aside')
        .and.containEql(address(''))
        .and.containEql(pidOf(running));
      dataFolders().should.eql(before);
    });

    it('leaves it to the one that is already running, whatever the port, and says where that is', async () => {
      const [first, taken] = [address(''), port];
      port = await freePort();
      const { code, said: heard } = await outcome();
      should(code).equal(0);
      heard.should.containEql(first).and.containEql(pidOf(running)).and.not.containEql('Built');
      (await isServed()).should.be.false();
      port = taken;
    });

    it('says after a deploy which environment leads elsewhere than to the simulator', async () => {
      said.should.containEql('Everything here runs on the simulator: nobody is really texted.');
      const heard = new Promise<void>((resolve) => {
        running?.stdout?.on('data', (text: string) => {
          if (text.includes('"Live" leads to production: real people are texted')) resolve();
        });
      });
      await deploy([
        ...(await flows()),
        environment('Live', 'production'),
        environment('Trial', '${THE_STAGE}'),
        environment('Unset', '${NO_STAGE}'),
        environment('Odd', 'prodution'),
        environment('Off', 'production', { d: true }),
        { ...own, env: [{ name: 'TAB_STAGE', value: 'production', type: 'str' }] } as Node,
        environment('Inner', '${TAB_STAGE}', { z: own.id }),
        ...['Live', 'Trial', 'Unset', 'Odd', 'Off', 'Inner'].map(userOf),
        environment('Spare', 'production'),
      ]);
      await heard;
    });
  });

  describe('after it was killed, when its port is taken', () => {
    let said: string;
    let wasServed: boolean;
    let noted: string;
    before(async () => {
      wasServed = await isServed();
      noted = readFileSync(note(), 'utf8');
      const something = createServer().listen(port, '127.0.0.1');
      await once(something, 'listening');
      variables = { THE_STAGE: 'sandbox' };
      said = await start();
      variables = {};
      something.close();
    });

    it('had taken Node-RED with it', () => {
      wasServed.should.be.false();
      noted.should.containEql(address(''));
    });

    it("takes the next port, and continues with the user's flows", async () => {
      said.should.containEql('as you left them');
      port = Number(/is in use: using (\d+)/.exec(said)?.[1]);
      labels(await flows())
        .should.containEql('Welcome')
        .and.containEql(own.label);
    });

    it('says which environments lead elsewhere than to the simulator', () => {
      said.should.not.containEql('Everything here runs on the simulator');
      said.should.containEql('"Live" leads to production: real people are texted.');
      said.should.containEql('"Trial" leads to sandbox (${THE_STAGE}): ');
      said.should.containEql('"Unset" leads to nothing, because ${NO_STAGE} is not set.');
      said.should.containEql('"Odd" leads to nothing: this service does not exist.');
      said.should.containEql(
        '"Inner" leads to the service that ${TAB_STAGE} names in the flows, which may be the real one.',
      );
      for (const name of ['"Off"', '"Spare"']) said.should.not.containEql(name);
    });

    it('exits cleanly on Ctrl-C', async () => {
      should(await end()).equal(0);
    });
  });

  describe('with --fresh, when the process id and port of a killed one are those of other programs', () => {
    let said: string;
    before(async () => {
      const program = createServer((socket) => socket.end('220 mail')).listen(0, '127.0.0.1');
      await once(program, 'listening');
      const door = (program.address() as AddressInfo).port;
      writeFileSync(note(), JSON.stringify({ pid: process.pid, door, address: address('') }));
      said = await start('--fresh');
      program.close();
    });
    after(end);

    it('starts from scratch, keeps what was there, and says how to go back to it', async () => {
      const aside = /are now in (.+)\.\n/.exec(said)?.[1] ?? 'nowhere';
      labels(await flows())
        .should.containEql('Welcome')
        .and.not.containEql(own.label);
      labels(JSON.parse(readFileSync(join(aside, 'flows.json'), 'utf8')) as Node[]).should.containEql(
        own.label,
      );
      said.should.containEql('rename .data to something else and that folder to .data');
    });
  });

  it('lists the options if it gets an unknown one', async () => {
    const { code, said } = await outcome('--new');
    should(code).equal(1);
    said.should.match(/no option --new[\s\S]*--fresh/);
  });

  for (const flag of ['--help', '-h'])
    it(`lists the options, and nothing more, with ${flag}`, async () => {
      const { code, said } = await outcome(flag);
      should(code).equal(0);
      said.should.match(/^npm start .*\n.*--fresh/).and.not.containEql('no option');
    });
});
