import type { Message } from '../node-red';
import type { Way } from './flow';
import type { CanaryRun } from './run';
import type { Manner, TokenManner } from './service';

/** How a send can go wrong; no report of it may reveal too much. */
const failing: readonly Manner[] = [
  'noConsent',
  'rejected',
  'refused',
  'forbidden',
  'unauthorized',
  'failing',
  'gateway',
  'shape',
  'no JSON',
  'redirect',
  'cut',
  'silent',
];
const ways: readonly Way[] = ['wired', 'caught', 'logged'];
const route = (path: string): string => `advisor-texting/office/${path}`;

/** A number that the service treats in this manner. */
const numberFor = ({ canaries, service }: CanaryRun, manner: Manner): string => {
  const phone = canaries.phone(`number, ${manner}`);
  service.manners.set(phone, manner);
  return phone;
};

/** A failure that leaves by an output, one for Catch and one for the log. */
const failEveryWay = (run: CanaryRun, kind: string, message: () => Message): Promise<unknown> =>
  Promise.all(ways.map((way) => run.pass(kind, message(), way)));

export const authorizations = async (run: CanaryRun): Promise<void> => {
  const { canaries, service } = run;
  await run.ask('POST', route('test'), { advisor: 'default' });
  await run.authorize();
  const denied = { error: canaries.secret('error'), error_description: canaries.secret('description') };
  await run.open(run.back(await run.begin('bob'), denied));
  await run.open(run.back(`${service.url}?redirect_uri=${run.red.adminUrl}/advisor-texting/callback`));
  await run.ask('POST', route('complete'), { address: run.back(await run.begin('ann')) });
  await run.ask('POST', route('complete'), { address: run.back(await run.begin('ann'), { state: 'wrong' }) });
  const link = await run.red.request('POST', route('link'), { advisor: 'carol' });
  const visit = await run.open((link.json as { url: string }).url);
  const [cookie = ''] = (visit.headers.get('set-cookie') ?? '').split(';');
  for (const headers of [{}, { cookie }])
    await run.open(run.back(visit.headers.get('location') ?? ''), headers);
  for (const manner of ['refuse', 'unavailable', 'malformed', 'wrong client'] as const) {
    service.tokens = manner;
    await run.open(run.back(await run.begin('dave')));
  }
  service.tokens = 'issue';
  const { person } = service;
  service.person = canaries.person('another identity');
  await run.authorize('ann');
  service.person = person;
  await run.ask('GET', route('advisors'));
  await run.ask('POST', route('advisors/ann/confirm'), {});
  await run.ask('DELETE', route('advisors/ann'));
  await run.ask('DELETE', route('advisors/carol'));
};

/** The editor's other requests, answered well and badly, for the deployed form and for one still open. */
export const questions = async (run: CanaryRun): Promise<void> => {
  const { canaries, service } = run;
  const typed = { clientSecret: canaries.secret('typed secret'), apiKey: canaries.secret('typed key') };
  const form = { ...run.office, clientId: 'client', ...typed };
  const ask = async (): Promise<void> => {
    await run.ask('POST', route('test'), { advisor: 'default' });
    await run.ask('POST', route('test'), { advisor: 'default', form });
    for (const what of ['contacts', 'groups', 'content'])
      await run.ask('GET', route(`lookup/${what}?advisor=default&filter=a`));
  };
  await ask();
  for (const manner of ['refused', 'unauthorized', 'gateway', 'shape', 'redirect', 'cut'] as const) {
    service.manners.set('/v1/', manner);
    await ask();
  }
  service.manners.delete('/v1/');
};

export const sends = async (run: CanaryRun): Promise<void> => {
  const { canaries } = run;
  const ok = ['ok', 'expired once'] as const;
  const text = (manner: Manner) => (): Message => ({
    phone: numberFor(run, manner),
    text: canaries.text(manner),
  });
  for (const manner of ok) await run.pass('send', text(manner)());
  await Promise.all(failing.map((manner) => failEveryWay(run, 'send', text(manner))));
  const phone = numberFor(run, 'ok');
  for (const wrong of [`${phone}0000000`, phone.slice(1)])
    await failEveryWay(run, 'send', () => ({ phone: wrong, text: canaries.text('to a wrong number') }));
  await failEveryWay(run, 'jsonata', () => ({ phone, text: canaries.text('for an expression') }));
  for (const kind of ['headless', 'machine', 'play'])
    await run.pass(kind, { phone: numberFor(run, 'ok'), text: canaries.text(kind) });
};

export const consents = async (run: CanaryRun): Promise<void> => {
  const { canaries } = run;
  const message = (manner: Manner) => (): Message => ({
    phone: numberFor(run, manner),
    text: canaries.text('with a question'),
    recipient: { name: canaries.person('recipient') },
  });
  const manners: readonly Manner[] = ['refused', 'unauthorized', 'gateway', 'shape', 'redirect', 'cut'];
  for (const kind of ['ask', 'look', 'wait']) {
    await run.pass(kind, message('ok')());
    // Only a rejection ends a wait.
    for (const manner of kind === 'wait' ? manners.slice(0, 1) : manners)
      await failEveryWay(run, kind, message(manner));
  }
};

export const addressBook = async (run: CanaryRun): Promise<void> => {
  const { canaries, service } = run;
  const message = (kind: string) => (): Message => ({
    contactId: 71,
    groupId: 4,
    payload:
      kind === 'group' || kind === 'content'
        ? canaries.person(kind)
        : { firstName: canaries.person('contact'), phone: canaries.phone('contact') },
  });
  const kinds = ['create', 'update', 'get', 'remove', 'search', 'group', 'join', 'content'];
  for (const kind of kinds) await run.pass(kind, message(kind)());
  for (const manner of ['refused', 'missing', 'unauthorized', 'gateway', 'shape', 'cut'] as const) {
    service.manners.set('/v1/core', manner);
    // A delete returns nothing that could have another shape, and an id of any shape is passed on.
    const shapeless = ['remove', 'create', 'group', 'update'];
    const failing = kinds.filter((kind) => manner !== 'shape' || !shapeless.includes(kind));
    await Promise.all(failing.map((kind) => failEveryWay(run, kind, message(kind))));
  }
  service.manners.delete('/v1/core');
};

/** An expired access token, and a token endpoint that fails. */
export const renewals = async (run: CanaryRun): Promise<void> => {
  const { canaries, service } = run;
  const manners: readonly TokenManner[] = ['unavailable', 'malformed', 'wrong client', 'refuse'];
  for (const manner of manners) {
    service.tokens = manner;
    await failEveryWay(run, 'send', () => ({
      phone: numberFor(run, 'unauthorized'),
      text: canaries.text(manner),
    }));
  }
  await run.ask('GET', route('advisors'));
  service.tokens = 'issue';
  await run.authorize();
};

/** Killed with a text in flight, others behind it and a wait that continues. */
export const kills = async (run: CanaryRun): Promise<void> => {
  const { canaries, service, red } = run;
  const waiting = numberFor(run, 'pending');
  await red.send('wait-wired', { phone: waiting, text: canaries.text('waiting') });
  await service.reached(waiting);
  const first = numberFor(run, 'silent');
  const phones = [first, ...Array.from({ length: 40 }, () => numberFor(run, 'silent'))];
  const list = phones.map((phone) => ({ phone, name: canaries.person('listed') }));
  await red.send('send-wired', { phone: list, text: canaries.text('list') });
  await service.reached(first);
  await run.kill();
  for (const phone of phones) service.manners.set(phone, 'ok');
  await run.outcomes(phones.length);
  service.manners.set(waiting, 'ok');
  await run.outcomes(1);
};

/** Everything that the admin API returns about a flow. */
export const exportedFlows = async (run: CanaryRun): Promise<void> => {
  for (const path of ['flows', 'flow/wired', 'settings', 'context/global', 'nodes', 'diagnostics'])
    await run.ask('GET', path);
  for (const id of ['office', 'headless', 'machine', 'play']) {
    await run.ask('GET', `credentials/advisor-environment/${id}`);
    await run.ask('GET', `advisor-texting/${id}/advisors`);
    await run.ask('GET', `advisor-texting/${id}/bundle`);
  }
};
