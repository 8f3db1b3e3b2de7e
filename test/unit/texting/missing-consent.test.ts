import should from 'should';
import { consentTest } from '../../../nodes/send-text/answer';

describe('a rejection that a consent request can fix', () => {
  const refusals: [isMissing: boolean, code: string | null | undefined, text: string][] = [
    [true, undefined, 'Recipient has no CONSENT'],
    [false, undefined, 'Landline'],
    [false, undefined, 'Consent was withdrawn'],
    [false, undefined, 'No consent: the recipient opted out'],
    [false, undefined, 'Replied STOP, no consent'],
    [true, 'consent_required', 'Not sent. The footer was: reply STOP to end'],
    [false, 'consent_revoked', 'No consent'],
    [false, 'unsubscribed', 'No consent'],
    [false, 'consent_stopped', 'No consent'],
    [false, 'ConsentStopped', 'No consent'],
    [false, undefined, 'USER_STOP: no consent'],
    [true, undefined, 'No consent of Christopher'],
    [true, null, 'No consent'],
    [true, 'refused', 'No consent'],
    [false, 'refused', 'Consent was revoked'],
  ];
  for (const [isMissing, code, text] of refusals) {
    it(`${isMissing ? 'is' : 'is not'} one with the code ${String(code)} and the text "${text}"`, () => {
      const details = code === undefined ? {} : { failureDetails: [{ code }] };
      should(consentTest('')({ failures: [text], ...details })).equal(isMissing);
    });
  }

  it('is recognized by a code anywhere in the details', () => {
    const isMissing = consentTest('');
    const wherever = (code: string): unknown[] => [
      [{ code }],
      { code },
      code,
      [code],
      [{ phone: '+12025550123', reason: { code, title: 'Not sent' } }],
      { '+12025550123': { errors: [{ reasonCode: code }] } },
    ];
    for (const failureDetails of wherever('CONSENT_REQUIRED'))
      should(isMissing({ failures: ['Not sent'], failureDetails })).equal(true);
    for (const failureDetails of wherever('OPTED_OUT'))
      should(isMissing({ failures: ['No consent'], failureDetails })).equal(false);
  });

  it('is not recognized by words in the details that mean something else', () => {
    const isMissing = consentTest('');
    const checked = [{ checked: ['consent', 'carrier'] }];
    should(isMissing({ failures: ['Number is a landline'], failureDetails: checked })).equal(false);
    const links = [{ links: ['https://service.example/consent-and-opt-out'] }];
    should(isMissing({ failures: ['Member has not consented'], failureDetails: links })).equal(true);
    should(isMissing({ failures: ['Not sent'], failureDetails: { codes: ['consent_required'] } })).equal(
      true,
    );
  });

  it('is recognized by the text when the details contain no code', () => {
    const isMissing = consentTest('');
    const nested = JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown;
    for (const failureDetails of [null, 7, '', {}, [], [null], { text: 'a b' }, { code: 5 }, nested]) {
      should(isMissing({ failures: ['No consent'], failureDetails })).equal(true);
      should(isMissing({ failures: ['Landline'], failureDetails })).equal(false);
      should(isMissing({ failures: null, failureDetails })).equal(false);
    }
  });

  it("is recognized by the environment's pattern alone, in texts and in codes", () => {
    const isMissing = consentTest('permission');
    should(isMissing({ failures: ['No Permission yet'] })).equal(true);
    should(isMissing({ failures: ['No consent'] })).equal(false);
    should(isMissing({ failures: ['Permission revoked'] })).equal(true);
    should(isMissing({ failures: ['No permission'], failureDetails: [{ code: 'opted_out' }] })).equal(true);
    should(isMissing({ failures: ['Not sent'], failureDetails: [{ code: 'no_permission' }] })).equal(true);
    should(isMissing({ failures: ['Not sent'], failureDetails: [{ code: 'consent_required' }] })).equal(
      false,
    );
  });
});
