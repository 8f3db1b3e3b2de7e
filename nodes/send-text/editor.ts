import { locale } from '../../lib/editor/locale';
import type { Say, Values } from '../../lib/editor/red';
import { literalOf, momentOf, shortened } from '../../lib/editor/words';

const momentIn = (values: Values): string | undefined => {
  const written = literalOf(values, 'deliveryDate');
  if (written === undefined) return undefined;
  const time = new Date(values['deliveryDateType'] === 'num' ? Number(written) : written);
  return Number.isNaN(time.getTime()) ? undefined : momentOf(time, new Date(), locale());
};

export const label = (values: Values, say: Say): string => {
  const written = literalOf(values, 'text');
  const text = written === undefined ? undefined : shortened(written);
  if (values['schedule'] !== 'at')
    return text === undefined ? say('sentence.send') : say('sentence.text', { text });
  const moment = momentIn(values);
  if (moment === undefined) {
    return text === undefined ? say('sentence.schedule') : say('sentence.scheduleText', { text });
  }
  return text === undefined ? say('sentence.sendAt', { moment }) : say('sentence.textAt', { text, moment });
};
