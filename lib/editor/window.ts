import { ask, editorAddress } from './ask';
import { environmentSays as say } from './locale';

/**
 * Browsers open a window only on a click: it is opened immediately, and gets its address when that is known, from a route
 * that answers with it as `{ url }`.
 */
export const openWindow = async (path: string, body: object, query = '') => {
  const opened = window.open('', '_blank', 'width=600,height=780');
  if (opened) {
    opened.document.body.textContent = say('window.moment');
    // The page in the window must have no access to the editor.
    opened.opener = null;
  }
  try {
    const { url } = (await ask('POST', path, body)) as { url: string };
    const address = editorAddress(url + query);
    opened?.location.replace(address);
    return {
      url: address,
      /** The browser has not opened it. */
      isBlocked: !opened,
      isClosed: () => opened?.closed === true,
    };
  } catch (fault) {
    opened?.close();
    throw fault;
  }
};

export type OpenedWindow = Awaited<ReturnType<typeof openWindow>>;

/** A link for when the browser has blocked the window. */
export const linkTo = (url: string, words: string): JQuery =>
  $('<a>', { href: url, target: '_blank', rel: 'noopener noreferrer', text: words });
