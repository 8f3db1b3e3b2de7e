import should from 'should';
import { invalidInput } from '../../../lib/runtime/errors';
import type { Red } from '../../../lib/runtime/red';
import { wordsIn, wordsOf } from '../../../lib/runtime/language';
import { type Problem, type ReasonWord, serviceError } from '../../../lib/service/errors';

const at = new Date(2030, 0, 31, 14, 5).getTime();

describe('the words of the runtime', () => {
  it('are in the language of the settings', () => {
    const words = wordsOf({ settings: { lang: 'de' } } as unknown as Red);
    words.say('status.sent', { time: words.time(at, at) }).should.equal('gesendet 14:05');
    words
      .say('status.progress', { done: words.number(350), total: words.number(12400) })
      .should.equal('350 / 12.400');
  });

  it('are made once for a thousand nodes', () => {
    const red = (lang: string): Red => ({ settings: { lang } }) as unknown as Red;
    should(wordsOf(red('de'))).equal(wordsOf(red('de')));
    should(wordsOf(red('de'))).not.equal(wordsOf(red('ja')));
  });

  it('include the day of a time that is not today, or is planned', () => {
    const tomorrow = at + 86_400_000;
    wordsIn('en-US').time(at, tomorrow).should.equal('Jan 31, 2:05 PM');
    wordsIn('de').time(at, tomorrow).should.equal('31. Jan., 14:05');
    wordsIn('en-US')
      .moment(Date.UTC(2030, 0, 31, 15, 0), 'America/Chicago')
      .should.equal('Jan 31, 9:00 AM');
  });

  it('show the time in 12 or 24 hours as usual in the language, and in 24 without one', () => {
    const times = {
      'en-US': '2:05 PM',
      'en-GB': '14:05',
      de: '14:05',
      'es-ES': '14:05',
      ja: '14:05',
      '': '14:05',
    };
    for (const [wanted, time] of Object.entries(times)) should(wordsIn(wanted).time(at, at)).equal(time);
    should(wordsIn('fr').time(at, at)).equal('14:05');
    const morning = at - 9 * 60 * 60 * 1000;
    const mornings = {
      'en-US': '5:05 AM',
      'en-GB': '05:05',
      de: '05:05',
      'es-ES': '5:05',
      ja: '5:05',
      '': '05:05',
    };
    for (const [wanted, time] of Object.entries(mornings))
      should(wordsIn(wanted).time(morning, morning)).equal(time);
  });

  it('are in the language for any of its regions, with the numbers of that region', () => {
    wordsIn('es-MX').language.should.equal('es-ES');
    wordsIn('de-CH').say('status.notAuthorized').should.equal('nicht autorisiert');
    wordsIn('de-CH').number(12400).should.equal(new Intl.NumberFormat('de-CH').format(12400));
    wordsIn('ja-JP').language.should.equal('ja');
  });

  it('are English for an untranslated language, for none, and for nonsense', () => {
    for (const wanted of ['fr', '', '*', 'C.UTF-8', '__proto__', '../../etc']) {
      wordsIn(wanted).say('status.sim').should.equal('sim');
      wordsIn(wanted).language.should.equal('en-US');
      wordsIn(wanted).number(12400).should.equal('12,400');
    }
  });

  it('are in the first of several languages that is available', () => {
    wordsIn('fr', 'ja', 'de').language.should.equal('ja');
  });

  it('express an error with its values, whatever they contain', () => {
    const { problem } = invalidInput('placeholder_missing', { field: '__where__' });
    wordsIn('de')
      .problem(problem)
      .should.match(/kein „__where__“ zum Einsetzen/);
    wordsIn('fr').problem(problem).should.equal(problem.message);
  });

  it('name the fields of an environment as its form does', () => {
    const { problem } = serviceError('not_configured', 'settings_missing', {
      name: 'Office',
      settings: ['baseUrl', 'clientId', 'apiKey'].map((setting) => ({ setting })),
    });
    wordsIn('en')
      .problem(problem)
      .should.match(/fill in Service address, Client ID, and API key\./);
    wordsIn('de')
      .problem(problem)
      .should.match(/Dienstadresse, Client-ID und API-Schlüssel\./);
    wordsIn('ja')
      .problem(problem)
      .should.match(/サービス アドレス、クライアントID、APIキー/);
  });

  it('name the fields of a node as its form does', () => {
    const said = (property: string, language: string): string =>
      wordsIn(language).problem(invalidInput('property_json', { property: { field: property } }).problem);
    said('advisor-send-text.phone', 'de').should.match(/Feld „Telefonnummer“/);
    said('advisor-group.groupId', 'es').should.match(/campo «Grupo»/);
    said('advisor-contact.birthDate', 'ja').should.match(/「生年月日」/);
    said('advisor-contact.unheardOf', 'en').should.match(/field "unheardOf"/);
  });

  it('put a field that names a place into the quotation marks of the language', () => {
    const where = { field: 'advisor-send-text.phone', isQuoted: true };
    const { problem } = invalidInput('phone_missing', { where });
    wordsIn('en')
      .problem(problem)
      .should.match(/^There is no phone number in "Phone number":/);
    wordsIn('de')
      .problem(problem)
      .should.match(/„Telefonnummer“/);
    wordsIn('es').problem(problem).should.match(/«.+»/);
    wordsIn('ja')
      .problem(problem)
      .should.match(/^「.+」/);
  });

  it('translate short reasons too, and leave those of the platform unchanged', () => {
    const reasoned = (reason: ReasonWord): string =>
      wordsIn('es').problem(serviceError('network_error', 'unreached', { reason }).problem);
    reasoned({ reason: 'timeout' }).should.match(/\(tiempo agotado\)/);
    reasoned('ECONNREFUSED').should.match(/\(ECONNREFUSED\)/);
    reasoned('HTTP 503').should.match(/\(HTTP 503\)/);
  });

  it('say what was saved', () => {
    const { problem } = serviceError('network_error', 'unreached', { reason: { reason: 'timeout' } });
    const recorded = JSON.parse(JSON.stringify(problem)) as typeof problem;
    should(wordsIn('de').problem(recorded)).match(/^Der Dienst war nicht erreichbar \(Zeitüberschreitung\)/);
    should(wordsIn('en').problem(recorded)).equal(problem.message);
  });

  it('leave the words of an older record unchanged', () => {
    const { wording: _wording, ...older } = serviceError('conflict', 'conflict').problem;
    should(wordsIn('de').problem(older)).equal(older.message);
    const unheardOf = { ...older, wording: { key: 'unheard_of', values: {} } };
    should(wordsIn('de').problem(unheardOf)).equal(older.message);
    const platformWord = { key: 'unreached', values: { reason: { reason: 'ECONNREFUSED' } } };
    const recorded = { ...older, wording: platformWord } as Problem;
    should(wordsIn('de').problem(recorded)).match(/\(ECONNREFUSED\)/);
  });
});
