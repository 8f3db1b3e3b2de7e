import { rmSync } from 'node:fs';
import should from 'should';
import { closeAll } from '../../support/closing';
import { versions } from '../../support/extent';
import { place } from '../../support/security/canaries';
import {
  addressBook,
  authorizations,
  consents,
  exportedFlows,
  kills,
  questions,
  renewals,
  sends,
} from '../../support/security/paths';
import { CanaryRun } from '../../support/security/run';

/** What a person sees of a failure, without the service's own words. */
const ownWords = (error: unknown): unknown => {
  const { cause, detail, details: _details, ...own } = error as Record<string, unknown>;
  // A rejection quotes the service's reason, whole.
  if (typeof detail === 'string' && typeof own['message'] === 'string')
    own['message'] = own['message'].replace(detail, '');
  return { ...own, ...(typeof cause === 'object' && { cause: ownWords(cause) }) };
};

for (const version of versions) {
  describe(`canaries pushed through every path of Node-RED ${version.toString()}`, function () {
    this.timeout(120_000);
    let run: CanaryRun;

    before(async () => {
      run = await CanaryRun.start(version);
      run.service.person = run.canaries.person('identity');
      await authorizations(run);
      await questions(run);
      await sends(run);
      await consents(run);
      await addressBook(run);
      await renewals(run);
      await kills(run);
      await exportedFlows(run);
      await run.stop();
    });
    after(async () => {
      await run.red.stop();
      await closeAll();
      rmSync(run.red.userDir, { recursive: true, force: true });
    });

    it('have reached the service, and were emitted where they should be', () => {
      const received = place('service', run.service.received);
      const reached = run.canaries.found([received], ['secret', 'text', 'phone', 'person']);
      for (const what of ['client secret', 'api key', 'access token', 'refresh token', 'authorization code'])
        should(reached).containEql(`secret "${what}" in service`);
      should(run.canaries.found([place('messages', run.messages('out'))], ['text']).length).be.above(20);
    });

    it('are nowhere in the log, whatever its level, and numbers show four digits at most', () => {
      should(run.red.log).match(/\[metric\]/);
      should(run.red.log).match(/\[audit\]/);
      const lines = run.red.lines.map((line) => place(line, line));
      should(run.canaries.found(lines, ['secret', 'text', 'phone', 'person'])).deepEqual([]);
    });

    it('are in no status, and in nothing else that the editor receives', () => {
      const statuses = run.messages('told').flatMap((msg) => ('status' in msg ? [msg['status']] : []));
      should(statuses.length).be.above(20);
      should(run.comms.length).be.above(0);
      const told = [place('status', statuses), ...run.comms.map((said) => place(said, said))];
      should(run.canaries.found(told, ['secret', 'text', 'phone', 'person'])).deepEqual([]);
    });

    it('as secrets are in no message', () => {
      const messages = [...run.messages('out'), ...run.messages('told')];
      const places = messages.map((msg) => place(JSON.stringify(msg), msg));
      should(run.canaries.found(places, ['secret'])).deepEqual([]);
    });

    it("as texts and numbers are in no error, except in the service's words", () => {
      const errors = run.messages('out').flatMap((msg) => ('error' in msg ? [ownWords(msg['error'])] : []));
      should(errors.length).be.above(50);
      const places = errors
        .map((error) => place(JSON.stringify(error), error))
        .filter(({ name }) => !name.includes('The service refused the request: Not like this'));
      should(run.canaries.found(places, ['text', 'phone', 'person'])).deepEqual([]);
    });

    it('are sent to no browser: secrets and texts never, people only where they are looked up', () => {
      should(run.canaries.found(run.answers, ['secret', 'text', 'phone'])).deepEqual([]);
      should(run.canaries.found(run.answers, ['person'])).not.be.empty();
      const others = run.answers.filter(({ name }) => !/\/(lookup|advisors)\b/.test(name));
      should(run.canaries.found(others, ['person'])).deepEqual([]);
    });

    it('cannot be read on disk, neither after a kill nor at the end', () => {
      const names = run.disk.map(({ name }) => name).join('\n');
      should(names).match(/advisor-texting\/.*\(after a kill\)/);
      should(names).match(/flows_cred\.json \(at the end\)/);
      const found = run.canaries.found(run.disk, ['secret', 'text', 'phone', 'person']);
      const simulated = /^(text "play"|phone "number, ok") in advisor-texting\/simulator\.json /;
      should(found.filter((one) => !simulated.test(one))).deepEqual([]);
    });
  });
}
