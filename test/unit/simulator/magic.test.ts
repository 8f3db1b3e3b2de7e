import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import { serviceCodes } from '../../../lib/service/errors';
import { magicNumbers, startSimulator, type Magic, type Simulator } from '../../../simulator';
import { nextIteration } from '../../support/event-loop';
import { Caller, shouldBeCut, type Answer } from '../../support/simulator/caller';

const failureOf = ({ body }: Answer): string => (body['failures'] as string[])[0] ?? '';
const isSent = ({ status, body }: Answer): boolean =>
  status === 200 && (body['successes'] as unknown[]).length === 1;
const named = (name: string): string => {
  const magic = magicNumbers.find((one) => one.name === name);
  if (magic === undefined) throw new Error(`no magic number is named ${name}`);
  return magic.phone;
};

describe('magic numbers', () => {
  let simulator: Simulator;
  let caller: Caller;

  before(async () => {
    simulator = await startSimulator();
  });
  after(() => simulator.close());
  beforeEach(async () => {
    await simulator.reset();
    caller = new Caller(simulator);
  });

  it('are all fictional and distinct', () => {
    for (const { phone } of magicNumbers) should(phone).match(/^\+1[2-9]\d\d55501\d\d$/);
    should(new Set(magicNumbers.map(({ phone }) => phone)).size).equal(magicNumbers.length);
  });

  it('are in the docs, each with its effect', async () => {
    const docs = await readFile(join(__dirname, '..', '..', '..', 'docs', 'simulator.md'), 'utf8');
    const lines = docs.split('\n');
    const heading = lines.findIndex((line) => /^\| number +\| does/.test(line));
    const cells = lines
      .slice(heading + 2, lines.indexOf('', heading))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    should(cells).eql(magicNumbers.map(({ phone, does }) => ['', `\`${phone}\``, does, '']));
  });

  it('accept immediately', async () => {
    const phone = named('Accepts At Once');
    should(failureOf(await caller.send(phone))).match(/not consented/);
    should((await caller.ask(phone)).body['successes']).containDeep([{ consentState: 'accepted' }]);
    should(isSent(await caller.send(phone))).be.true();
  });

  for (let checks = 1; checks <= 9; checks++) {
    it(`accept after ${String(checks)} checks`, async () => {
      const phone = `+1202555010${String(checks)}`;
      should((await caller.check(phone)).body['state']).equal('none');
      await caller.ask(phone);
      for (let check = 1; check <= checks; check++) {
        should((await caller.check(phone)).body['state']).equal('pending');
      }
      should((await caller.check(phone)).body['state']).equal('accepted');
      should(isSent(await caller.send(phone))).be.true();
    });
  }

  it('accept and are still rejected for lack of consent', async () => {
    const phone = named('Is Not Believed');
    should((await caller.check(phone)).body['state']).equal('accepted');
    should(failureOf(await caller.send(phone))).match(/not consented/);
  });

  it('decline', async () => {
    const phone = named('Declines');
    await caller.ask(phone);
    should((await caller.check(phone)).body['state']).equal('pending');
    should(simulator.state().phones.find((one) => one.phone === phone)?.declined).be.true();
  });

  it('stay silent, however often they are polled', async () => {
    const phone = named('Stays Silent');
    await caller.ask(phone);
    for (let check = 0; check < 298; check++) await caller.check(phone);
    should((await caller.check(phone)).body['state']).equal('pending');
  });

  it('have not consented', async () => {
    const phone = named('Has Not Consented');
    should((await caller.check(phone)).body['state']).equal('none');
    should(failureOf(await caller.send(phone))).match(/not consented/);
  });

  it('have consented', async () => {
    const phone = named('Has Consented');
    should((await caller.check(phone)).body['state']).equal('accepted');
    should(isSent(await caller.send(phone))).be.true();
    should((await caller.ask(phone)).status).equal(400);
  });

  it('reject for another reason', async () => {
    should(failureOf(await caller.send(named('Opted Out')))).match(/opted out/);
    should(failureOf(await caller.ask(named('Opted Out')))).match(/opted out/);
    should(failureOf(await caller.send(named('Is A Landline')))).match(/landline/);
  });

  const erring = magicNumbers.filter(({ effect }) => effect?.code !== undefined);
  const requests: readonly [string, (phone: string) => Promise<Answer>][] = [
    ['send', (phone) => caller.send(phone)],
    ['consent request', (phone) => caller.ask(phone)],
    ['consent status', (phone) => caller.check(phone)],
  ];

  for (const { phone, effect, once, name } of erring) {
    it(`answer ${effect?.code ?? ''} ${once === true ? 'once per endpoint, then succeed' : 'always'} (${name})`, async () => {
      const status = serviceCodes[effect?.code ?? 'internal_error'].status;
      for (const [, request] of requests) {
        should((await request(phone)).body).containEql({ code: effect?.code, status });
        should((await request(phone)).status).equal(once === true ? 200 : status);
      }
    });
  }

  it('are fine in the address book, because their errors are those of texting', async () => {
    for (const { phone } of magicNumbers) {
      const { status, body } = await caller.call('POST', '/core/contact/contacts', { phone });
      should(status).equal(200);
      const changed = await caller.call('PUT', `/core/contact/contacts/${String(body['id'])}`, { phone });
      should(changed.status).equal(200);
    }
  });

  it('cover every error code, once and always', () => {
    for (const kind of [true, undefined]) {
      const codes = erring.filter(({ once }) => once === kind).map(({ effect }) => effect?.code);
      should(codes).eql(Object.keys(serviceCodes));
    }
  });

  it('answer slowly, by the clock of the simulator', async () => {
    const begin = Date.now();
    const frozen = await startSimulator({ clock: new MovableClock(() => begin) });
    try {
      for (const [name, seconds] of [
        ['Slow', 3],
        ['Very Slow', 60],
      ] as const) {
        let answered = false;
        const slow = new Caller(frozen).send(named(name)).finally(() => (answered = true));
        while (new Caller(frozen).textsOn(named(name)).length === 0) await nextIteration();
        await frozen.advance(seconds - 1);
        should(answered).be.false();
        await frozen.advance(1);
        should(isSent(await slow)).be.true();
      }
    } finally {
      await frozen.close();
    }
  });

  it('cut the connection before the request is processed, once or always', async () => {
    await shouldBeCut(caller.send(named('Cut Before Once')));
    should(caller.textsOn(named('Cut Before Once'))).eql([]);
    should(isSent(await caller.send(named('Cut Before Once')))).be.true();
    await shouldBeCut(caller.send(named('Cut Before')));
    await shouldBeCut(caller.send(named('Cut Before')));
    should(caller.textsOn(named('Cut Before'))).eql([]);
  });

  it('cut the connection after the request was processed, once or always', async () => {
    await shouldBeCut(caller.send(named('Cut After Once'), 'First'));
    should(isSent(await caller.send(named('Cut After Once'), 'Second'))).be.true();
    should(caller.textsOn(named('Cut After Once'))).eql(['First', 'Second']);
    await shouldBeCut(caller.send(named('Cut After'), 'First'));
    await shouldBeCut(caller.send(named('Cut After'), 'Second'));
    should(caller.textsOn(named('Cut After'))).eql(['First', 'Second']);
  });

  it('cut the connection in the middle of the answer', async () => {
    await shouldBeCut(caller.send(named('Cut Inside')));
    should(caller.textsOn(named('Cut Inside'))).eql(['Hello']);
  });

  it('answer like gateways and bugs', async () => {
    const page = await caller.send(named('Gateway Page'));
    should(page.status).equal(502);
    should(page.text).match(/<html>/);
    const empty = await caller.send(named('Empty 502'));
    should([empty.status, empty.text]).eql([502, '']);
    const truncated = await caller.send(named('Truncated'));
    should(truncated.status).equal(200);
    should(() => JSON.parse(truncated.text) as unknown).throw();
    const malformed = await caller.send(named('Malformed'));
    should([malformed.status, malformed.body]).eql([200, { unexpected: true }]);
    const processed = (phone: string): number => caller.textsOn(phone).length;
    should(['Gateway Page', 'Empty 502', 'Truncated', 'Malformed'].map((name) => processed(named(name)))).eql(
      [0, 0, 1, 1],
    );
  });

  it('all have a test', () => {
    const tested = (magic: Magic): boolean =>
      magic.effect?.code !== undefined || /^\+1202555010[1-9]$/.test(magic.phone) || names.has(magic.name);
    const names = new Set([
      ...['Accepts At Once', 'Declines', 'Stays Silent', 'Has Not Consented', 'Has Consented', 'Opted Out'],
      ...[
        'Is A Landline',
        'Is Not Believed',
        'Slow',
        'Very Slow',
        'Cut Before Once',
        'Cut Before',
        'Cut After Once',
        'Cut After',
      ],
      ...['Cut Inside', 'Gateway Page', 'Empty 502', 'Truncated', 'Malformed'],
    ]);
    should(magicNumbers.filter((magic) => !tested(magic))).eql([]);
  });
});
