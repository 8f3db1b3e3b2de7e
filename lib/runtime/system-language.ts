/** The language as Node-RED itself chooses it: the one in its settings, else the system's; empty when neither names one. */
export const systemLanguage = (settings: object): string => {
  const { lang } = settings as { lang?: unknown };
  if (typeof lang === 'string' && lang !== '') return lang;
  const { LC_ALL, LC_MESSAGES, LANG } = process.env;
  const named = [LC_ALL, LC_MESSAGES, LANG].find((each) => each !== undefined && each !== '');
  const [system = ''] = (named ?? '').split(/[.@]/);
  return system === 'C' || system === 'POSIX' ? '' : system.replace('_', '-');
};
