import { epochOf, offsetAt, offsetName, ownTimeZone, writtenOffset } from '../../lib/runtime/dates';
import { localMoment, zoneOfEnvironment } from '../../lib/editor/locale';
import type { Form, Say, Values } from '../../lib/editor/red';
import { isSameDay, literalOf, shortLabel } from '../../lib/editor/words';

const timeIn = (values: Values, zone: string): Date | undefined => {
  const written = literalOf(values, 'deliveryDate');
  const epoch = epochOf(written, zone);
  return Number.isNaN(epoch) ? undefined : new Date(epoch);
};

const later = (time: Date, milliseconds: number): Date => new Date(time.getTime() + milliseconds);

/** Some languages use one word before a time and another before a date, so each has its own sentence. */
const atTime = (values: Values, at: Date, own: string, text: string | undefined, say: Say): string => {
  const offset = writtenOffset(values['deliveryDate']);
  const isForeign = offset !== undefined && offset !== offsetAt(own, at.getTime());
  const [zone, by] = isForeign ? ['UTC', offset] : [own, 0];
  const time = later(at, by);
  const now = later(new Date(), by);
  const moment = localMoment(time, now, zone) + (isForeign ? ` ${offsetName(offset)}` : '');
  if (isSameDay(time, now, zone))
    return text === undefined ? say('sentence.sendAt', { moment }) : say('sentence.textAt', { text, moment });
  return text === undefined ? say('sentence.sendOn', { moment }) : say('sentence.textOn', { text, moment });
};

export const label = (values: Values, say: Say): string => {
  const written = literalOf(values, 'text');
  const text = written === undefined ? undefined : shortLabel(written);
  if (values['schedule'] !== 'at')
    return text === undefined ? say('sentence.send') : say('sentence.text', { text });
  // The time as the node's status will show it.
  const zone = zoneOfEnvironment(values['environment']) || ownTimeZone();
  const time = timeIn(values, zone);
  if (time !== undefined) return atTime(values, time, zone, text, say);
  return text === undefined ? say('sentence.schedule') : say('sentence.scheduleText', { text });
};

/** Without a key, neither the time for which it is remembered nor its hint means anything. */
export const opened = (form: Form): void => {
  const hint = form.row('onceKey').children('.advisor-hint');
  form.onChange(({ onceKeyType }) => {
    const isOnce = onceKeyType !== 'off';
    form.row('onceFor').toggle(isOnce);
    hint.toggle(isOnce).text(form.say(onceKeyType === 'text' ? 'hint.onceText' : 'hint.onceKey'));
  });
};
