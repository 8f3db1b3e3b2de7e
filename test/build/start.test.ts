import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import should from 'should';
import { root } from '../support/installation';
import { freePort } from '../support/red-process';

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

  beforeEach(async () => {
    port = await freePort();
  });

  afterEach(() => end());

  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const run = (...flags: string[]): { child: ChildProcess; said: () => string } => {
    let said = '';
    const child = spawn(process.execPath, [join(folder, 'scripts', 'start.mjs'), ...flags], {
      cwd: folder,
      env: { ...process.env, PORT: String(port) },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text));
    return { child, said: () => said };
  };

  /** What was said by the time it is ready. */
  const start = (...flags: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const { child, said } = run(...flags);
      running = child;
      child.stdout?.on('data', () => {
        if (said().includes('Ctrl-C')) resolve(said());
      });
      child.once('exit', () => {
        reject(new Error(`It ended:\n${said()}`));
      });
    });

  /** As Ctrl-C does; gives how it ended. */
  const end = async (): Promise<number | null> => {
    const child = running;
    running = undefined;
    if (!child) return null;
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    return ended;
  };

  const address = (path: string): string => `http://127.0.0.1:${String(port)}/${path}`;
  const flows = async (): Promise<Node[]> => (await fetch(address('flows'))).json() as Promise<Node[]>;
  const labels = (nodes: readonly Node[]): unknown[] =>
    nodes.filter(({ type }) => type === 'tab').map(({ label }) => label);

  it('opens the welcome, every example and the phones', async () => {
    const said = await start();
    said.should.containEql(address(''));
    said.should.containEql(address('advisor-texting/simulator/'));
    const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.json'));
    labels(await flows()).should.have.length(files.length + 1);
    labels(await flows())[0]?.should.equal('Welcome');
    (await fetch(address('advisor-texting/simulator/'))).status.should.equal(200);
    should(await end()).equal(0);
  });

  it('goes on with what a person made of it', async () => {
    await start();
    const all = [...(await flows()), own];
    const headers = { 'content-type': 'application/json' };
    await fetch(address('flows'), { method: 'POST', headers, body: JSON.stringify(all) });
    await end();
    const said = await start();
    said.should.containEql('as you left it');
    labels(await flows()).should.containEql(own.label);
  });

  it('begins anew with --fresh, and keeps what was there', async () => {
    const said = await start('--fresh');
    const aside = /kept in (.+)\.\n/.exec(said)?.[1] ?? 'nowhere';
    labels(await flows()).should.not.containEql(own.label);
    labels(JSON.parse(readFileSync(join(aside, 'flows.json'), 'utf8')) as Node[]).should.containEql(
      own.label,
    );
  });

  it('says which options there are to whoever gives another', async () => {
    const { child, said } = run('--new');
    const code = await new Promise((resolve) => child.once('close', resolve));
    should(code).equal(1);
    said().should.match(/no option --new[\s\S]*--fresh/);
  });
});
