import { locale } from '../../lib/editor/locale';
import type { Form, Say, Values } from '../../lib/editor/red';
import { isSameDay, literalOf, momentOf, shortened } from '../../lib/editor/words';

const timeIn = (values: Values): Date | undefined => {
  const written = literalOf(values, 'deliveryDate');
  if (written === undefined) return undefined;
  const time = new Date(values['deliveryDateType'] === 'num' ? Number(written) : written);
  return Number.isNaN(time.getTime()) ? undefined : time;
};

/** Languages that say “at” a time say something else of a date. */
const atTime = (time: Date, text: string | undefined, say: Say): string => {
  const now = new Date();
  const moment = momentOf(time, now, locale());
  if (isSameDay(time, now))
    return text === undefined ? say('sentence.sendAt', { moment }) : say('sentence.textAt', { text, moment });
  return text === undefined ? say('sentence.sendOn', { moment }) : say('sentence.textOn', { text, moment });
};

export const label = (values: Values, say: Say): string => {
  const written = literalOf(values, 'text');
  const text = written === undefined ? undefined : shortened(written);
  if (values['schedule'] !== 'at')
    return text === undefined ? say('sentence.send') : say('sentence.text', { text });
  const time = timeIn(values);
  if (time !== undefined) return atTime(time, text, say);
  return text === undefined ? say('sentence.schedule') : say('sentence.scheduleText', { text });
};

/** How long a key is remembered means nothing without one. */
export const opened = (form: Form): void => {
  form.onChange((values) => {
    form.row('onceFor').toggle(values['onceKeyType'] !== 'off');
  });
};
