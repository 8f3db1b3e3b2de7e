import { createHash } from 'node:crypto';
import { scopeMeanings } from '../contract/rules';
import { scopeOnWire } from '../contract/wire';
import { escapeHtml } from '../http';
import type { Habits } from '../profiles';
import type { AdvisorIdentity } from '../state/identities';
import type { AuthorizationRequest } from './authorize';

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { display: grid; place-items: center; min-height: 100vh; margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 30rem; margin: 1rem; padding: 1.5rem 2rem; border: 1px solid GrayText; border-radius: 12px; }
h1 { font-size: 1.3rem; }
fieldset { border: 1px solid GrayText; border-radius: 8px; }
label { display: block; padding: .2rem 0; }
li code { font-size: .9rem; }
.buttons { display: flex; gap: .75rem; margin-top: 1.25rem; }
button { flex: 1; padding: .6rem; font: inherit; border-radius: 8px; border: 1px solid GrayText; cursor: pointer; }
button.main { background: #14532d; color: #fff; }
small { display: block; margin-top: 1rem; opacity: .8; }`;

const styleHash = createHash('sha256').update(style).digest('base64');

const meaningOf = (onWire: string, habits: Habits): string =>
  Object.entries(scopeMeanings).find(([scope]) => scopeOnWire(scope, habits) === onWire)?.[1] ?? onWire;

/** Browsers also apply `form-action` to the redirect that answers the form, so the application's origin is allowed. */
export const pagePolicy = (redirectUri?: string): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    `form-action 'self'${redirectUri === undefined ? '' : ` ${new URL(redirectUri).origin}`}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');

const page = (title: string, content: string): string =>
  `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${style}</style></head>
<body><main>${content}<small>Simulator: nobody is really texted.</small></main></body>
</html>
`;

const identityChoice = ({ advisor, name, email }: AdvisorIdentity, index: number): string =>
  `<label><input type="radio" name="advisor" value="${escapeHtml(advisor)}"${index === 0 ? ' checked' : ''}> ` +
  `${escapeHtml(name)} (${escapeHtml(email)})</label>`;

const scopeItem = (scope: string, habits: Habits): string =>
  `<li>${escapeHtml(meaningOf(scope, habits))} <code>${escapeHtml(scope)}</code></li>`;

export const authorizePage = (
  clientId: string,
  asked: AuthorizationRequest,
  identities: readonly AdvisorIdentity[],
  habits: Habits,
): string =>
  page(
    'Authorize texting',
    `<h1>Allow “${escapeHtml(clientId)}” to text for you?</h1>
<form method="post">
<fieldset><legend>Sign in as</legend>${identities.map(identityChoice).join('')}</fieldset>
<p>It asks to:</p><ul>${asked.scopes.map((scope) => scopeItem(scope, habits)).join('')}</ul>
<p>Then you return to <code>${escapeHtml(asked.redirectUri)}</code></p>
<div class="buttons"><button name="decision" value="deny">Deny</button>
<button class="main" name="decision" value="approve">Approve</button></div>
</form>`,
  );

export const refusalPage = (message: string): string =>
  page('Cannot authorize', `<h1>This request cannot be authorized</h1><p>${escapeHtml(message)}</p>`);
