import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { seed, versions } from '../support/extent';
import type { FlowNode, Message, RealRed } from '../support/node-red';
import { environmentId, numbers, randomFrom, Sandbox } from '../support/sandbox';

/** `npm run proof -- guard-kills 10`: so many kills of each version, and the start of the hours waited for. */
const kills = Number(process.env['GUARD_KILLS'] ?? 0);
const limit = 120_000;
const minute = 60_000;

const timeOfDay = (at: number): string => new Date(at).toISOString().slice(11, 16);
/** The environment's zone: a toll-free number implies none. */
const heldPhone = (n: number): string => `+1800555${String(1000 + n)}`;

const port = (name: string, to: string[] = []): FlowNode => ({
  id: name,
  type: 'test-port',
  z: 'tab',
  name,
  wires: [to],
});
const node = (type: string, id: string, config: object = {}): FlowNode => ({
  id,
  type,
  z: 'tab',
  environment: environmentId,
  wires: ['out', 'out', 'out'].map(() => [`${id} out`]),
  ...config,
});
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Guards' },
  ...['once', 'hold', 'block'].flatMap((id) => [port(`to ${id}`, [id]), port(`${id} out`)]),
  node('advisor-send-text', 'once', { onceKey: 'order', onceKeyType: 'msg', hours: 'any' }),
  node('advisor-send-text', 'hold'),
  node('advisor-do-not-text', 'block'),
];

const codeOf = ({ error }: Message): string | undefined => (error as { code?: string } | undefined)?.code;

/** What left a node for the message with this mark; none leaves twice except as repeated. */
const outcome = async (red: RealRed, from: string, mark: string): Promise<Message> => {
  const isMeant = ({ port: name, msg }: { port: string; msg: Message }): boolean =>
    name === `${from} out` && msg['mark'] === mark;
  return (await red.until(() => red.arrived.find(isMeant), `The outcome of ${mark}`, limit)).msg;
};

/** Resolves when exactly these are held. */
const areHeld = async (red: RealRed, phones: readonly string[]): Promise<void> => {
  const path = `advisor-texting/${environmentId}/queue?state=held&pageSize=100`;
  for (const end = Date.now() + limit; ;) {
    const { text, json } = await red.request('GET', path);
    const { data = [] } = json as { data?: { phone: string }[] };
    if (data.map(({ phone }) => phone).join() === phones.join()) return;
    if (Date.now() > end) throw new Error(`${phones.join()} are not held: ${text}`);
    await pause(20);
  }
};

/** Of texts that the service has accepted. */
const textsTo = ({ simulator }: Sandbox, phone: string, text?: string): number =>
  simulator.ledger
    .entries()
    .filter(
      (entry) =>
        entry.endpoint === 'sendMessage' &&
        entry.processed &&
        entry.phone === phone &&
        (text === undefined || entry.text === text),
    ).length;

for (const version of versions)
  describe(`SIGKILL around the guards of Node-RED ${String(version)}, seed ${String(seed)}`, function () {
    this.timeout(kills > 0 ? 30 * minute : 4 * minute);
    const random = randomFrom(seed + version);
    let on: Sandbox;
    const start = async (from: number, until: number): Promise<void> => {
      on = await Sandbox.start({
        version,
        flows,
        environment: {
          textFrom: timeOfDay(from),
          textUntil: timeOfDay(until),
          outsideHours: 'hold',
          timeZone: 'UTC',
        },
      });
      on.simulator.change({ consentRequired: false });
    };
    afterEach(() => on.close());

    it('a key is sent once, blocked people receive nothing, held texts stay held and can be cancelled', async () => {
      await start(Date.now() + 8 * 60 * minute, Date.now() + 10 * 60 * minute);
      const { red, simulator } = on;
      const held: string[] = [];
      for (let round = 0; round < Math.max(kills, 1); round++) {
        const name = (what: string): string => `${what} ${String(round)}`;
        const [phone = '', blocked = ''] = numbers(2, 2 * round);
        held.push(heldPhone(round));
        await red.send('to hold', { phone: heldPhone(round), text: 'Held', mark: name('held') });
        await areHeld(red, held);
        const order = name('order');
        await red.send('to block', { phone: blocked, mark: name('block') });
        const isBlockAwaited = random(2) === 0;
        if (isBlockAwaited) await outcome(red, 'block', name('block'));
        await red.send('to once', { phone, text: order, order, mark: name('first') });
        await red.send('to once', { phone: blocked, text: order, order, mark: name('refused') });
        await pause(random(40));
        await red.kill9();
        const before = textsTo(on, blocked);
        if (isBlockAwaited) should(before).equal(0);
        await red.run();

        await red.send('to once', { phone, text: order, order, mark: name('second') });
        const second = await outcome(red, 'once', name('second'));
        const received = textsTo(on, phone, order);
        if (codeOf(second) === 'outcome_unknown') should(received).be.belowOrEqual(1);
        else {
          should(second['outcome']).equal('sent');
          should(received).equal(1);
        }
        if (!isBlockAwaited) {
          await red.send('to block', { phone: blocked, mark: name('block again') });
          await outcome(red, 'block', name('block again'));
        }
        const sent = textsTo(on, blocked);
        await red.send('to once', { phone: blocked, text: 'Hi', order: 'other', mark: name('after') });
        should(codeOf(await outcome(red, 'once', name('after')))).equal('blocked');
        should(textsTo(on, blocked)).equal(sent);
        await areHeld(red, held);
      }
      await red.send('to hold', { reset: true });
      for (let round = 0; round < held.length; round++)
        should(codeOf(await outcome(red, 'hold', `held ${String(round)}`))).equal('cancelled');
      for (const phone of held) should(textsTo(on, phone)).equal(0);
      should(simulator.ledger.entries().filter(({ phone }) => held.includes(phone ?? ''))).be.empty();
    });

    if (kills > 0)
      it('held texts leave once, though the process is killed again and again as the hours start', async () => {
        // A whole minute, and long enough for a start; too short for the texts to be spread.
        const opening = (Math.floor(Date.now() / minute) + 2) * minute;
        await start(opening, opening + 4 * minute);
        const { red } = on;
        const held = Array.from({ length: 20 }, (_, n) => heldPhone(n));
        for (const phone of held) await red.send('to hold', { phone, text: 'Held', mark: phone });
        await areHeld(red, held);
        await red.kill9();
        should(held.some((phone) => textsTo(on, phone) > 0)).be.false();
        await red.run();
        await pause(Math.max(0, opening - Date.now() - 1000));
        for (let times = 0; times < 3; times++) {
          await pause(random(1500));
          await red.kill9();
          await red.run();
        }
        for (const phone of held) {
          const told = await red.until(
            () =>
              red.arrived.find(({ port: name, msg }) => name === 'hold out' && msg['mark'] === phone)?.msg,
            `The outcome of ${phone}`,
            5 * minute,
          );
          if (codeOf(told) === 'outcome_unknown') should(textsTo(on, phone)).be.belowOrEqual(1);
          else {
            should(told['outcome']).equal('sent');
            should(textsTo(on, phone)).equal(1);
          }
        }
        for (const { at, phone } of on.simulator.ledger.entries())
          if (held.includes(phone ?? '')) should(at).aboveOrEqual(opening);
      });
  });
