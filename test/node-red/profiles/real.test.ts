import should from 'should';
import {
  environmentFor,
  type Habits,
  profiles,
  type ProfileName,
  startSimulator,
  type Simulator,
} from '../../../simulator';
import { authorizeOn, deployOn, environmentId, sandboxFlow } from '../../support/auth/real';
import { isLong } from '../../support/extent';
import { type FlowNode, type RealRed, startRed } from '../../support/node-red';
import { numbers } from '../../support/numbers';

const unknown = '+12995550101';
const { consented } = numbers;
const advisor = 'Alice';
const z = 'f1f1f1f1f1f1f1f1';

/** The rule of the contract as a flow: send, else ask, wait, and send again. */
const canonical: FlowNode[] = [
  { id: 'start', type: 'test-port', z, name: 'start', wires: [['send']] },
  {
    id: 'send',
    type: 'advisor-send-text',
    z,
    environment: environmentId,
    wires: [['end'], ['end'], ['request']],
  },
  {
    id: 'request',
    type: 'advisor-request-consent',
    z,
    environment: environmentId,
    wires: [['check'], ['end']],
  },
  {
    id: 'check',
    type: 'advisor-check-consent',
    z,
    environment: environmentId,
    mode: 'wait',
    pollEvery: 1,
    wires: [['send'], ['end'], ['end']],
  },
  { id: 'end', type: 'test-port', z, name: 'end', wires: [] },
];

// The profiles in between, which differ only in their contacts, are in `unit/profiles`.
for (const profile of (isLong ? ['usual', 'foreign'] : ['foreign']) satisfies ProfileName[]) {
  describe(`a real Node-RED on a service of the ${profile} profile`, function () {
    this.timeout(180_000);
    const habits: Habits = profiles[profile];
    let simulator: Simulator;
    let red: RealRed;

    before(async () => {
      simulator = await startSimulator({ profile, settings: { redirectUris: ['loopback'] } });
      red = await startRed({ version: 5, settings: { disableEditor: true } });
    });
    after(async () => {
      await red.close();
      await simulator.close();
    });

    const deploy = (changes: object = {}): Promise<void> =>
      deployOn(red, [
        ...sandboxFlow(red, simulator, { ...environmentFor(habits), ...changes }),
        ...canonical,
      ]);
    const texts = (phone: string, account: string): string[] =>
      (simulator.state(account).phones.find((one) => one.phone === phone)?.messages ?? [])
        .filter(({ kind }) => kind === 'text')
        .map(({ text }) => text);
    const looks = (): number =>
      simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'getConsent').length;
    const lookedAgain = async (): Promise<void> => {
      const before = looks();
      while (looks() < before + 2) await new Promise((resolve) => setTimeout(resolve, 50));
    };

    it('is authorized, asks an unknown number, waits over a restart, and texts it once it has accepted', async () => {
      await deploy();
      should((await authorizeOn(red, 'default', advisor)).status).equal(200);
      await red.send('start', { phone: unknown, text: 'Your review is ready.' });
      await lookedAgain();
      await red.restart();
      await lookedAgain();
      should(red.arrived.filter(({ port }) => port === 'end')).eql([]);
      await simulator.advance(habits.contactDelay);
      simulator.accept(unknown);
      const [ended] = await red.messages('end', 1);
      should(ended).containEql({ phone: unknown }).and.not.have.property('error');
      should(texts(unknown, advisor)).eql(['Your review is ready.']);
    });

    it('texts with client credentials, too', async () => {
      await deploy({ grant: 'client_credentials', redirectUri: '', authUrl: '' });
      red.arrived.length = 0;
      await red.send('start', { phone: consented, text: 'By itself' });
      const [ended] = await red.messages('end', 1);
      should(ended).containEql({ phone: consented }).and.not.have.property('error');
    });
  });
}
