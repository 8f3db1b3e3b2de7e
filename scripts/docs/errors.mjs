import { readJson } from '../build/folders.mjs';
import { table } from './table.mjs';

/** An explanation of every code. If a code and its explanation do not match, `npm run docs` fails. */
const words = {
  consent_required: [
    'The person has not consented, and nothing is wired to _needs consent_ (or to _not accepted_).',
    'Wire that output to _request consent_. Do not send again until they accept.',
  ],
  rejected: [
    'The service refused this recipient: they opted out, the number cannot receive texts, or the service keeps refusing for lack of consent although it reports the consent as accepted. `detail` has the service’s own words.',
    'Do not retry, and do not ask for consent again.',
  ],
  invalid_input: [
    'Something in the message or the node is missing or wrong: an invalid number, an empty text, a date in the past, or no advisor where there are several. Nothing was sent.',
    '`message` says what is wrong: correct it.',
  ],
  authorization_required: [
    'The advisor has not authorized, or the authorization has ended. Nothing was sent.',
    'Open the environment and press _Authorize_, or send the advisor a link. Then send the message again.',
  ],
  network_error: [
    'No attempt reached the service, a read kept failing, or another process had taken over the store. Nothing was sent.',
    'It is safe to send again. _Test connection_ in the environment shows whether the address or the network is the problem.',
  ],
  outcome_unknown: [
    'The request had gone out when the connection broke, a gateway answered in place of the service, or Node-RED was killed. It may or may not have been carried out.',
    'Check first (in the archive, the address book or on the phone). Sending again may text somebody twice.',
  ],
  invalid_response: [
    'The service gave an answer that does not match its contract. If it reported success, the request was probably carried out; `message` then says so.',
    'If it was probably carried out, check before you retry. Otherwise check the service address, then contact the operator.',
  ],
  consent_limit: [
    'This number has been asked as often as the node allows and has not accepted.',
    'Reach the person another way. The limit is set in _request consent_.',
  ],
  cancelled: [
    'It was cancelled before it started: by `msg.reset`, in the sidebar, or because the node or its environment was switched.',
    'Nothing was sent. Send it again if you still want to.',
  ],
  stale: [
    'Its node or Node-RED was not running when it was due, for longer than _Resume within_ allows.',
    'Nothing was sent. Decide whether the text still makes sense, and send it again.',
  ],
  queue_full: [
    'Nothing can be saved at the moment (disk or database), and 32 MB of messages are already waiting.',
    'Nothing was sent. The status and the log say what is wrong with the store. Fix it, then send again.',
  ],
  blocked: [
    'The number is on the do-not-text list, or part of that list cannot be read. Nothing was sent.',
    'Do not text this person. If they want to be texted again, take them off the list with _do not text_.',
  ],
  quiet_hours: [
    'This recipient may not be texted at this hour; `notBefore` says until when, in epoch milliseconds. Nothing was sent.',
    'Send it again then, or set the environment to hold texts until the hours begin.',
  ],
  not_configured: [
    'The environment is missing, or not filled in.',
    'Open the node or the environment, and fill in the marked fields.',
  ],
  invalid_request: [
    'The service did not accept the request.',
    '`detail` says why; a number or a field is probably wrong.',
  ],
  unauthorized: [
    'The service refused the sign-in, even after a fresh token. The authorization is kept.',
    'Check the API key, then authorize again.',
  ],
  forbidden: [
    'A permission is missing; `detail` names it. Without a `detail`, a gateway or firewall in front of the service refused.',
    'Select the permission in the environment and authorize again; ask the operator if it was not provisioned. Without a `detail`, check the API key and the service address first.',
  ],
  not_found: [
    'There is no such contact or group; for a consent lookup, nobody in the address book has the number. Without a `detail`, a gateway or firewall answered.',
    'Check the id or the number; without a `detail`, the service address and its prefixes.',
  ],
  conflict: [
    'The advisor’s account is not set up to collect consent.',
    'Contact the operator of the service.',
  ],
  version_mismatch: [
    'The service reports a version mismatch. Its contract does not say which version is meant.',
    'Read `detail`, then ask the operator and quote the `traceId`.',
  ],
  rate_limited: [
    'The service kept asking to slow down for an hour. During that time, the nodes wait and retry on their own.',
    'Send fewer texts at a time, or set _Requests per second_.',
  ],
  payload_too_large: ['The request was too large.', 'Shorten the text.'],
  unsupported_media_type: [
    'The service did not accept the format of the request.',
    'Contact the operator and quote the `traceId`.',
  ],
  downstream_timeout: [
    'Part of the service has a problem. The request was tried several times.',
    'Try again later.',
  ],
  downstream_unavailable: [
    'Part of the service has a problem. The request was tried several times.',
    'Try again later.',
  ],
  internal_error: [
    'The service has a problem. The request was tried several times.',
    'Try again later. If it keeps happening, contact the operator and quote the `traceId`.',
  ],
};

const fields = [
  ['`message`', 'what happened and what to do, in a sentence'],
  ['`code`', 'one of the codes below, or a code of the service that this version does not know'],
  [
    '`status`, `title`, `detail`, `details`, `traceId`, `instance`, `type`',
    'what the service said, if it said something',
  ],
  [
    '`retryable`',
    'whether the same request may succeed later: as the service says; otherwise true only for `network_error` and `authorization_required`',
  ],
  ['`attempts`', 'how many requests were made'],
  ['`source`', '`{ id, type, name }` of the node'],
];

/** The status text of a code, without the time. */
const statusOf = (code) => {
  const { status } = readJson('locales', 'en-US', 'common.json');
  const { failed } = readJson('locales', 'en-US', 'runtime.json');
  const action = { authorization_required: status.authorizeAgain, not_configured: status.notConfigured };
  return action[code] ?? failed[code];
};

export const errorsPage = ({ serviceCodes, ownCodes }) => {
  const codes = [...ownCodes, ...Object.keys(serviceCodes)];
  const speechless = codes.find((code) => !(code in words));
  const surplus = Object.keys(words).find((code) => !codes.includes(code));
  if (speechless ?? surplus)
    throw new Error(`scripts/docs/errors.mjs and lib/service/errors.ts differ in ${speechless ?? surplus}.`);
  return [
    '# How do I handle failures?',
    '',
    'Wire the second output, _failed_. Each failure is a message with `msg.error`; `msg.payload` stays as it was. If nothing is wired there, Catch nodes get it: `msg.error.code` is the same, and `msg.error.cause` has all the fields below.',
    '',
    '```js',
    "if (msg.error.code === 'outcome_unknown') return [null, msg]; // a person looks first",
    'if (msg.error.retryable) return [msg, null]; // a Delay node, then back to send text',
    'return [null, msg];',
    '```',
    '',
    table(['field of `msg.error`', 'meaning'], fields),
    '',
    'The status of the node shows the last failure and its time, such as `not found 14:05`; the second column below lists them. For an invalid input, it says what is invalid: a number, a text or a date.',
    '',
    '## From this package',
    '',
    table(
      ['code', 'status', 'what happened', 'what to do'],
      ownCodes.map((code) => [`\`${code}\``, statusOf(code), ...words[code]]),
    ),
    '',
    '## From the service',
    '',
    table(
      ['code', 'status', 'HTTP', 'retryable', 'what happened', 'what to do'],
      Object.entries(serviceCodes).map(([code, { status, retryable }]) => [
        `\`${code}\``,
        statusOf(code),
        status,
        retryable ? 'yes' : 'no',
        ...words[code],
      ]),
    ),
    '',
    '## What is retried',
    '',
    'Reads, updates and deletes are retried if the outcome is unknown: doing them twice changes nothing. A text, a consent request or a new contact is retried only if it cannot have been carried out (no connection, 429, 401), or if the service says that it may be retried. _Retry sends_ in the environment makes that stricter (`never`) or looser (`always`, which can text somebody twice).',
    '',
    'Generated by `npm run docs`.',
    '',
  ].join('\n');
};
