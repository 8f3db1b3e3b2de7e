import { environmentSays as say, language } from './locale';

const sentenceOf = (fault: JQuery.jqXHR): string => {
  if (fault.status === 401 || fault.status === 403) return say('ask.notAllowed');
  if (!fault.status) return say('ask.offline');
  const { message } = (fault.responseJSON ?? {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message : say('ask.failed');
};

/** An error has a sentence for the user. The address is relative: the editor adds the login only to those. */
export const ask = async (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body: object = {},
): Promise<unknown> => {
  const sent = method === 'POST' ? { contentType: 'application/json', data: JSON.stringify(body) } : {};
  try {
    return (await $.ajax({
      url: `advisor-texting/${path}`,
      method,
      dataType: 'json',
      cache: method !== 'GET',
      // The editor may be set to another language than the browser.
      headers: { 'Accept-Language': language() },
      ...sent,
    })) as unknown;
  } catch (fault) {
    throw new Error(sentenceOf(fault as JQuery.jqXHR), { cause: fault });
  }
};

export const faultText = (fault: unknown): string => (fault instanceof Error ? fault.message : String(fault));

/** An absolute address below the editor. Only the browser knows it, behind a proxy or another path. */
export const editorAddress = (path: string): string =>
  new URL(path, window.location.origin + window.location.pathname).href;
