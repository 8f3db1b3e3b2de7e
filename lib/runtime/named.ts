import type { Language } from '../languages';
import type { MessageValues } from '../service/messages';
import { fieldLabel, sentence } from './catalogue';

const labelOf = (language: Language, setting: string): string =>
  sentence(language, `setting.${setting}`) ?? setting;

/** `advisor-send-text.phone` */
const propertyOf = (language: Language, property: string): string => {
  const [type = '', field = ''] = property.split('.');
  return fieldLabel(language, type, field) ?? field;
};

/** Names of settings and properties become what the form calls them; short reasons of ours are said in the language too. */
export const named = (values: MessageValues, language: Language): MessageValues => {
  const list = (items: readonly string[]): string => new Intl.ListFormat(language).format(items);
  const said = ([name, value]: [string, string | number]): string | number => {
    const text = String(value);
    if (name === 'settings') return list(text.split(',').map((setting) => labelOf(language, setting)));
    if (name === 'variables') return list(text.split(','));
    if (name === 'where')
      return text.replace(/^"(.+)"$/, (_, property: string) => `"${propertyOf(language, property)}"`);
    if (name === 'property') return propertyOf(language, text);
    if (name === 'setting') return labelOf(language, text);
    if (name === 'reason') return sentence(language, `reason.${text.replaceAll(' ', '_')}`) ?? value;
    return value;
  };
  return Object.fromEntries(Object.entries(values).map((entry) => [entry[0], said(entry)]));
};
