import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Sandbox } from '../support/sandbox';

const minutes = Number(process.argv[2] ?? 10);
const perSecond = Number(process.argv[3] ?? 200);
const second = 1000;
const minute = 60 * second;
/** Of all requests, together one in a hundred. */
const faults = ['cut-before', 'cut-after', 'cut-inside', 'gateway', 'empty'] as const;

interface Sample {
  readonly at: string;
  readonly memory: number;
  readonly descriptors: number;
  readonly store: number;
}

const main = async (): Promise<void> => {
  const on = await Sandbox.start({ version: 5, simulator: { ledgerLimit: 10_000_000 } });
  const { red, simulator } = on;
  simulator.change({ consentRequired: false });
  for (const kind of faults)
    simulator.faults.add({ kind, endpoint: 'sendMessage', rate: 0.01 / faults.length });

  const asked = new Set<string>();
  const outcomes = new Map<string, string[]>();
  const take = (): void => {
    for (const { port, msg } of red.arrived.splice(0)) {
      const phone = String(msg['phone']);
      // What was emitted first may have been lost with the process that emitted it.
      if (msg['repeated'] === true && outcomes.has(phone)) continue;
      const code = (msg['error'] as { code?: string } | undefined)?.code ?? port;
      outcomes.set(phone, [...(outcomes.get(phone) ?? []), code]);
    }
  };
  const samples: Sample[] = [];
  const sample = (): void => {
    const of = `/proc/${String(red.pid)}`;
    const memory = Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`${of}/status`, 'utf8'))?.[1] ?? 0) / 1024;
    const store = statSync(join(red.userDir, 'advisor-texting', 'store.mdb')).size / 1024 / 1024;
    const taken = {
      at: `${((Date.now() - began) / minute).toFixed(1)} min`,
      memory: Math.round(memory),
      descriptors: readdirSync(`${of}/fd`).length,
      store: Math.round(store * 10) / 10,
    };
    samples.push(taken);
    console.log(
      `${taken.at}: ${String(taken.memory)} MB, ${String(taken.descriptors)} descriptors, store ${String(taken.store)} MB; ${String(outcomes.size)} of ${String(asked.size)} told`,
    );
  };

  const began = Date.now();
  let [deploys, kills, lastSample] = [0, 0, 0];
  for (let now = 0; now < minutes * minute; now = Date.now() - began) {
    const due = Math.floor((now / second) * perSecond) - asked.size;
    if (due > 0) {
      const phones = Array.from({ length: due }, (_, n) => `+447${String(asked.size + n).padStart(9, '0')}`);
      for (const phone of phones) asked.add(phone);
      await red.send('send', { phone: phones, text: 'Hello' });
    }
    take();
    if (now - lastSample > minute / 2) {
      lastSample = now;
      sample();
    }
    if (Math.floor(now / (5 * minute)) > kills) {
      kills += 1;
      // An input is promised once it is saved.
      await pause(second);
      await red.kill9();
      await red.run();
    } else if (Math.floor(now / minute) > deploys) {
      deploys += 1;
      await red.deploy(await red.flows());
    }
    await pause(100);
  }
  const end = Date.now() + 5 * minute;
  while (outcomes.size < asked.size && Date.now() < end) {
    await pause(200);
    take();
  }
  sample();

  const sent = new Map<string, number>();
  for (const { endpoint, phone, processed } of simulator.ledger.entries())
    if (endpoint === 'sendMessage' && processed) sent.set(String(phone), (sent.get(String(phone)) ?? 0) + 1);
  const codes: Record<string, number> = {};
  const wrong: string[] = [];
  for (const phone of asked) {
    const [code, ...more] = outcomes.get(phone) ?? ['nothing'];
    codes[code ?? ''] = (codes[code ?? ''] ?? 0) + 1;
    if (more.length > 0) wrong.push(`${phone} had two outcomes`);
    if (code === 'nothing') wrong.push(`${phone} had no outcome`);
    if ((sent.get(phone) ?? 0) > 1) wrong.push(`${phone} was texted twice`);
    if ((code === 'sent') !== sent.has(phone) && code !== 'outcome_unknown')
      wrong.push(`${phone} was emitted as ${String(code)}`);
  }
  console.log(
    `${String(asked.size)} texts in ${String(minutes)} minutes, ${String(deploys)} deploys, ${String(kills)} kills:`,
    codes,
  );
  console.log(wrong.length === 0 ? 'The ledger balances.' : wrong.slice(0, 20).join('\n'));
  await on.close();
  process.exit(wrong.length === 0 ? 0 : 1);
};

void main();
