import { ask, editorAddress, faultText } from './ask';
import type { Say } from './red';

interface Errand {
  readonly say: Say;
  /** The route that answers with the address of the window, as `{ url }`. */
  readonly path: string;
  readonly body?: object;
  readonly query?: string;
}

export type Sent =
  | { readonly state: 'opened' | 'blocked'; readonly url: string; readonly isClosed: () => boolean }
  | { readonly state: 'failed'; readonly message: string };

/** Browsers open a window only on a click: it is opened immediately, and gets its address when that is known. */
export const openWindow = async ({ say, path, body, query = '' }: Errand): Promise<Sent> => {
  const opened = window.open('', '_blank', 'width=600,height=780');
  if (opened) {
    opened.document.body.textContent = say('window.moment');
    // The page in the window must have no access to the editor.
    opened.opener = null;
  }
  try {
    const { url } = (await ask(say, 'POST', path, body)) as { url: string };
    const address = editorAddress(url + query);
    opened?.location.replace(address);
    return { state: opened ? 'opened' : 'blocked', url: address, isClosed: () => opened?.closed === true };
  } catch (fault) {
    opened?.close();
    return { state: 'failed', message: faultText(fault) };
  }
};

/** A link for when the browser has blocked the window. */
export const linkTo = (url: string, words: string): JQuery =>
  $('<a>', { href: url, target: '_blank', rel: 'noopener noreferrer', text: words });
