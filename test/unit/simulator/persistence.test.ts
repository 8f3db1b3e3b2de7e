import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { profiles, startSimulator, type Simulator } from '../../../simulator';
import { asCompiled } from '../../support/compiled';
import { Caller } from '../../support/simulator/caller';
import { until } from '../../support/until';

const phone = '+12145550104';
const once500 = '+12025550161';

describe("the simulator's data file", () => {
  let directory: string;
  let file: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'simulator-'));
    file = join(directory, 'deep', 'state.json');
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const during = async <T>(
    task: (simulator: Simulator, caller: Caller) => Promise<T>,
    warn?: (text: string) => void,
  ) => {
    const simulator = await startSimulator({
      data: file,
      contacts: 50,
      ...(warn === undefined ? {} : { warn }),
    });
    try {
      return await task(simulator, new Caller(simulator));
    } finally {
      await simulator.close();
    }
  };

  it('keeps the profile over a restart, and treats a file without one as the usual profile', async () => {
    await during(async (simulator) => {
      simulator.change({ profile: 'foreign' });
    });
    await during(async ({ settings }) => {
      should(settings.habits).eql(profiles.foreign);
    });
    const saved = JSON.parse(await readFile(file, 'utf8')) as { state: { settings: { habits?: unknown } } };
    delete saved.state.settings.habits;
    await writeFile(file, JSON.stringify(saved));
    const warnings: string[] = [];
    await during(
      async ({ settings }) => {
        should(settings.habits).eql(profiles.usual);
      },
      (text) => warnings.push(text),
    );
    should(warnings).eql([]);
  });

  it('keeps contacts, groups, consent, messages, settings, tokens and the clock over a restart', async () => {
    const [token, moved] = await during(async (simulator, caller) => {
      await caller.ask(phone);
      simulator.accept(phone);
      await caller.send(phone, 'Remembered');
      await caller.send(once500);
      await caller.call('DELETE', '/core/contact/contacts/1002');
      await caller.call('PUT', '/core/contact/contacts/1003', { firstName: 'Changed' });
      await caller.call('POST', '/core/contact/groups', { name: 'New' });
      simulator.change({ rotateRefreshTokens: true });
      await simulator.advance(600);
      return [simulator.accessToken('default'), simulator.clock.now()] as const;
    });
    await during(async (simulator) => {
      const caller = new Caller(simulator, 'default', () => token);
      should(caller.textsOn(phone)).eql(['Remembered']);
      should((await caller.check(phone)).body['state']).equal('accepted');
      should((await caller.send(once500)).status).equal(200);
      should((await caller.call('GET', '/core/contact/contacts/1002')).status).equal(404);
      should((await caller.call('GET', '/core/contact/contacts/1003')).body['firstName']).equal('Changed');
      should((await caller.call('GET', '/core/contact/groups')).text).match(/"New"/);
      should(simulator.settings.rotateRefreshTokens).be.true();
      should(simulator.clock.now()).be.aboveOrEqual(moved);
    });
  });

  it('keeps a birthday that is always today in a changed contact, until it gets another', async () => {
    const birthDate = '1980-05-06';
    await during(async (_simulator, caller) => {
      await caller.call('PUT', '/core/contact/contacts/1001/groups', { groupIds: [104] });
      await caller.call('PUT', '/core/contact/contacts/1002', { firstName: 'Ben', birthDate });
    });
    // As if it had been saved on another day.
    const saved = await readFile(file, 'utf8');
    const [, today = ''] = /"birthDate":"1960-(\d\d-\d\d)"/.exec(saved) ?? [];
    await writeFile(file, saved.replace(`1960-${today}`, `1960-${today === '01-02' ? '01-03' : '01-02'}`));
    await during(async (_simulator, caller) => {
      const ann = (await caller.call('GET', '/core/contact/contacts/1001')).body;
      should(ann).containEql({ groupIds: [104] });
      const [year, month, day] = String(ann['birthDate']).split('-').map(Number);
      const now = new Date();
      should([year, month, day]).eql([1960, now.getMonth() + 1, now.getDate()]);
      const ben = (await caller.call('GET', '/core/contact/contacts/1002')).body;
      should(ben).containEql({ birthDate });
    });
  });

  it('lets a setting of this start override the saved one', async () => {
    await during((simulator) => {
      simulator.change({ accessTokenLifetime: 60 });
      return Promise.resolve();
    });
    const simulator = await startSimulator({ data: file, settings: { accessTokenLifetime: 10 } });
    should(simulator.settings.accessTokenLifetime).equal(10);
    await simulator.close();
  });

  it('is readable by its owner only', async () => {
    await during((_simulator, caller) => caller.send(phone));
    should((await stat(file)).mode & 0o077).equal(0);
  });

  for (const damage of ['', '{"version":1', '{"version":1,"state":{}}', 'null']) {
    it(`is set aside with a warning when it is damaged (${damage || 'empty'})`, async () => {
      await during(() => Promise.resolve());
      await writeFile(file, damage);
      const warnings: string[] = [];
      await during(
        (_simulator, caller) => caller.send(phone),
        (text) => warnings.push(text),
      );
      should(warnings).have.length(1);
      const aside = (await readdir(join(directory, 'deep'))).find((name) => name.includes('damaged')) ?? '';
      should(await readFile(join(directory, 'deep', aside), 'utf8')).equal(damage);
    });
  }

  it('survives a kill: what was written is complete and restored', async () => {
    const child: ChildProcess = spawn(
      process.execPath,
      [
        ...asCompiled,
        join(__dirname, '..', '..', '..', 'simulator', 'cli.ts'),
        'simulator',
        '--port',
        '0',
        '--data',
        file,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    try {
      let said = '';
      while (!said.includes('Ctrl-C'))
        said += String(((await once(child.stdout ?? child, 'data')) as [Buffer])[0]);
      const url = /phones\s+(\S+)\//.exec(said)?.[1] ?? '';
      const accept = (): Promise<Response> =>
        fetch(`${url}/control/phones/${encodeURIComponent(phone)}/accept`, { method: 'POST', body: '{}' });
      const written = async (): Promise<boolean> =>
        (await readFile(file, 'utf8').catch(() => '')).includes(phone);
      await accept();
      await until(written);
      for (let index = 0; index < 20; index++) await accept();
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await during(async (_simulator, caller) => {
      should((await caller.check(phone)).body['state']).equal('accepted');
    });
  });
});
