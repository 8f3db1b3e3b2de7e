import { mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { describeInLongRun } from '../support/extent';
import { addTestPort, install, tarball } from '../support/installation';
import { leaveOut } from '../support/machine';
import { type FlowNode, type RealRed, startRed } from '../support/node-red';
import { until } from '../support/until';

const port: FlowNode = { id: 'in', type: 'test-port', name: 'in', z: 'tab', wires: [[]] };
const without: readonly FlowNode[] = [{ id: 'tab', type: 'tab', label: 'removal' }, port];
const outcomes = [['out'], ['out'], ['out']];
const using: readonly FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'removal' },
  { id: 'environment', type: 'advisor-environment', service: 'simulator' },
  { ...port, wires: [['send', 'check']] },
  { id: 'send', type: 'advisor-send-text', z: 'tab', environment: 'environment', wires: outcomes },
  {
    id: 'check',
    type: 'advisor-check-consent',
    z: 'tab',
    environment: 'environment',
    mode: 'wait',
    wires: outcomes,
  },
  { id: 'events', type: 'advisor-events', z: 'tab', environment: 'environment', wires: [['out']] },
  { id: 'out', type: 'test-port', name: 'out', z: 'tab', wires: [] },
];

const openFiles = (pid: number): string[] =>
  readdirSync(`/proc/${String(pid)}/fd`).flatMap((name) => {
    try {
      return readlinkSync(`/proc/${String(pid)}/fd/${name}`);
    } catch {
      return [];
    }
  });

const timersIn = (resources: readonly string[]): number =>
  resources.filter((name) => name === 'Timeout').length;

describeInLongRun('the package, removed from the palette', function () {
  this.timeout(180_000);
  let userDir: string;
  let red: RealRed;
  let timersBefore: number;

  before(async () => {
    // A separate directory: npm writes into the files of an installation.
    userDir = mkdtempSync(join(tmpdir(), 'advisor-texting-removal-'));
    install(userDir, tarball());
    addTestPort(userDir);
    red = await startRed({ version: 5, userDir, flows: without });
    timersBefore = timersIn(await red.resources());
    await red.deploy(using);
    await red.send('in', { phone: '+12175550107', text: 'Hello' });
    await red.messages('out');
    should((await red.request('GET', 'advisor-texting/environment/waits')).status).equal(200);
    await red.deploy(without);
    should((await red.request('DELETE', 'nodes/@advisor-texting/node-red')).status).equal(204);
  });

  after(async () => {
    await red.close();
    rmSync(userDir, { recursive: true, force: true });
  });

  it('leaves no file open', function () {
    if (process.platform !== 'linux') leaveOut(this, 'open files are seen on Linux');
    should(openFiles(red.pid ?? 0).filter((path) => path.includes('advisor-texting/store'))).eql([]);
  });

  it('leaves no timer running', async () => {
    // Node-RED itself has a timer now and then, such as that of a connection which is kept open for a moment.
    await until(
      async () => timersIn(await red.resources()) <= timersBefore,
      'A moment with no more timers than before',
    );
  });

  it('answers on none of its routes', async () => {
    const paths = ['health', 'callback', 'link/x', 'environment/waits', 'environment/advisors', 'simulator/'];
    const answers = await Promise.all(
      paths.map(async (path) => ({
        path,
        status: (await red.request('GET', `advisor-texting/${path}`)).status,
      })),
    );
    should(answers.filter(({ status }) => status !== 404)).eql([]);
  });

  it('keeps what it has stored, for a later installation', () => {
    should(readdirSync(join(userDir, 'advisor-texting'))).containEql('store.mdb');
  });

  it('installed again without a restart, texts and answers on its routes', async () => {
    const body = new FormData();
    body.append('tarball', new Blob([readFileSync(tarball())]), 'package.tgz');
    const headers = { accept: 'application/json' };
    should((await fetch(`${red.adminUrl}/nodes`, { method: 'POST', headers, body })).status).equal(200);
    await red.deploy(using);
    await red.send('in', { phone: '+12175550107', text: 'Hello again' });
    await red.messages('out', 2);
    should((await red.request('GET', 'advisor-texting/environment/waits')).status).equal(200);
  });
});

describe('the package, whose files are missing for a moment because npm updates it', function () {
  this.timeout(120_000);
  let red: RealRed;

  before(async () => {
    red = await startRed({ version: 5, flows: using });
  });
  after(() => red.close());

  it('outlasts a deploy, tells nobody where its files were, and goes on', async () => {
    const text = { phone: '+12175550107', text: 'Hello' };
    await red.send('in', text);
    await red.messages('out');
    const folder = join(red.userDir, 'node_modules', '@advisor-texting');
    renameSync(folder, `${folder}-away`);
    await red.deploy(using);
    for (const path of ['callback', 'link/x', 'environment/waits']) {
      const { status, text: said } = await red.request('GET', `advisor-texting/${path}`);
      should([path, status, said]).eql([path, 503, 'Service Unavailable']);
    }
    renameSync(`${folder}-away`, folder);
    should((await red.request('GET', 'advisor-texting/environment/waits')).status).equal(200);
    await red.send('in', text);
    await red.messages('out', 2);
  });
});
