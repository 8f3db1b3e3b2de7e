/**
 * Control characters (C0, C1), line and paragraph separators, and characters that turn the direction of what follows:
 * in a log they forge lines or command the terminal, in a status or on a page they disguise the text.
 */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** What cannot be seen is escaped as in JSON, for logs, statuses, pages and terminals; `kept` is shown. */
export const visible = (text: string, kept = ''): string =>
  text.replace(unseen, (sign) =>
    kept.includes(sign)
      ? sign
      : (shortForms[sign] ?? `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
