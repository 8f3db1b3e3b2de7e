import should from 'should';
import { numbers } from '../../support/numbers';
import { shouldBeProblem } from '../../support/contract/problem';
import {
  askConsent,
  call,
  consentOf,
  contract,
  deliveryDate,
  habits,
  shouldBeId,
  phones,
  send,
  simulated,
  simulator,
} from '../../support/contract/service';

interface Outcome {
  messageId?: unknown;
  memberId: unknown;
  consentState?: string;
}
const successes = (answer: { body: Record<string, unknown> }): Outcome[] =>
  answer.body['successes'] as Outcome[];
const failures = (answer: { body: Record<string, unknown> }): string[] => answer.body['failures'] as string[];
const shouldBeEmpty = (list: unknown): void => {
  should(list).eql(habits.emptyLists === 'given' ? [] : undefined);
};

contract('texting', () => {
  describe('POST /text/messaging/messages', () => {
    it('answers 200 with a message id and a member id for a recipient who consented', async () => {
      const answer = await send(phones.consented);
      should(answer.status).equal(200);
      shouldBeEmpty(failures(answer));
      should(successes(answer)).have.length(1);
      shouldBeId(successes(answer)[0]?.messageId);
      shouldBeId(successes(answer)[0]?.memberId);
    });

    it('answers 200 with a failure, not an HTTP error, for a recipient who has not consented', async () => {
      const answer = await send(phones.unasked);
      should(answer.status).equal(200);
      shouldBeEmpty(successes(answer));
      should(failures(answer)).have.length(1);
      should(failures(answer)[0]).match(/not consented/);
    });

    it('answers null message ids for a scheduled send', async () => {
      const answer = await send(phones.consented, 'Later', {
        scheduleDelivery: true,
        deliveryDate: deliveryDate(Date.now() + 7 * 24 * 3600_000),
      });
      should(answer.status).equal(200);
      should(successes(answer)[0]?.messageId).be.null();
      shouldBeId(successes(answer)[0]?.memberId);
    });

    simulated('delivers a scheduled text when its time has come, and not before', async () => {
      const { clock } = simulator();
      await send(phones.consented, 'In an hour', {
        scheduleDelivery: true,
        deliveryDate: deliveryDate(clock.now() + 3600_000),
      });
      const arrived = (): boolean | undefined =>
        simulator()
          .state()
          .phones.find(({ phone }) => phone === phones.consented)
          ?.messages.find(({ text }) => text === 'In an hour')?.arrived;
      should(arrived()).be.false();
      await simulator().advance(3601);
      should(arrived()).be.true();
    });

    simulated('creates a contact for an unknown number', async () => {
      const phone = '+12995550101';
      shouldBeProblem(await consentOf(phone), 'not_found');
      should((await send(phone)).status).equal(200);
      should((await consentOf(phone)).body['state']).equal('none');
    });

    simulated('never changes a contact that is there', async () => {
      const { body } = await call('GET', '/core/contact/contacts/1001');
      await send(String(body['phone']));
      should((await call('GET', '/core/contact/contacts/1001')).body).eql(body);
    });

    it('ignores unknown fields', async () => {
      should((await send(phones.consented, 'Extra', { nonsense: { deep: true } })).status).equal(200);
    });

    for (const phone of [
      '2025550113',
      '+0202555011',
      '+1202555',
      '+1234567890123456',
      '+1 202 555 0113',
      '',
    ]) {
      it(`answers 400 for the number "${phone}", which is not E.164`, async () => {
        shouldBeProblem(await send(phone), 'invalid_request');
      });
    }

    it('answers 400 without a phone', async () => {
      shouldBeProblem(
        await call('POST', '/text/messaging/messages', { body: { text: 'Hi' } }),
        'invalid_request',
      );
    });
  });

  describe('POST /text/messaging/consent-requests', () => {
    simulated('answers 200 with a member id and a consent state per target', async () => {
      const answer = await askConsent(numbers.silent, '+12995550102');
      should(answer.status).equal(200);
      should(failures(answer)).eql([]);
      should(successes(answer).map(({ consentState }) => consentState)).eql(['pending', 'pending']);
      for (const { memberId } of successes(answer)) shouldBeId(memberId);
    });

    simulated('creates a contact for an unknown number', async () => {
      await askConsent('+12995550103');
      if (habits.contactDelay > 0) {
        shouldBeProblem(await consentOf('+12995550103'), 'not_found');
        await simulator().advance(habits.contactDelay);
      }
      should((await consentOf('+12995550103')).body['state']).equal('pending');
    });

    simulated('has no cooldown: the same number may be asked again at once', async () => {
      should((await askConsent(numbers.silent)).status).equal(200);
      should((await askConsent(numbers.silent)).status).equal(200);
    });

    it('answers 400 for a number that has already accepted', async () => {
      shouldBeProblem(await askConsent(phones.consented), 'invalid_request');
    });

    simulated('asks nobody when one number of the list has already accepted', async () => {
      shouldBeProblem(await askConsent('+12995550104', phones.consented), 'invalid_request');
      shouldBeProblem(await consentOf('+12995550104'), 'not_found');
    });

    it('answers 400 for an empty list, a missing list and a number that is not E.164', async () => {
      shouldBeProblem(await askConsent(), 'invalid_request');
      shouldBeProblem(
        await call('POST', '/text/messaging/consent-requests', { body: {} }),
        'invalid_request',
      );
      shouldBeProblem(await askConsent('555'), 'invalid_request');
    });

    simulated('answers 409 when the account is not configured for consent collection', async () => {
      simulator().change({ consentConfigured: false });
      shouldBeProblem(await askConsent(numbers.silent), 'conflict');
      simulator().change({ consentConfigured: true });
      should((await askConsent(numbers.silent)).status).equal(200);
    });
  });

  describe('GET /text/messaging/consents', () => {
    it('returns member id, state and when it last changed', async () => {
      const { status, body } = await consentOf(phones.consented);
      should(status).equal(200);
      should(body['state']).equal('accepted');
      shouldBeId(body['memberId']);
      should(body['lastChanged']).be.a.Number();
    });

    it('is none before anybody was asked', async () => {
      should((await consentOf(phones.unasked)).body['state']).equal('none');
    });

    simulated('goes from none to pending when asked, and to accepted when the owner agrees', async () => {
      const phone = '+12145550104';
      should((await consentOf(phone)).body['state']).equal('none');
      await askConsent(phone);
      should((await consentOf(phone)).body['state']).equal('pending');
      simulator().accept(phone);
      should((await consentOf(phone)).body['state']).equal('accepted');
      should(successes(await send(phone))).have.length(1);
    });

    simulated('shows a decline as pending', async () => {
      const phone = '+12155550105';
      await askConsent(phone);
      simulator().decline(phone);
      should((await consentOf(phone)).body['state']).equal('pending');
      should(failures(await send(phone))[0]).match(/not consented/);
    });

    it('accepts a member id too', async () => {
      const { body } = await consentOf(phones.consented);
      const byMember = await call('GET', `/text/messaging/consents?memberId=${String(body['memberId'])}`);
      should(byMember.body).eql(body);
    });

    it('answers 404 when no contact owns the number', async () => {
      shouldBeProblem(await consentOf(phones.unknown), 'not_found');
    });

    it('answers 400 without an identifier, and for a number that is not E.164', async () => {
      shouldBeProblem(await call('GET', '/text/messaging/consents'), 'invalid_request');
      shouldBeProblem(await call('GET', '/text/messaging/consents?phone=12025550113'), 'invalid_request');
    });
  });
});
