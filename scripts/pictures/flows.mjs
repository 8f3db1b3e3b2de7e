/** The flow that README.md builds, tidied up, and an environment as it may be in production. */
const tab = 'picture-flow';
const node = (id, type, x, y, wires, more = {}) => ({
  id,
  type,
  z: tab,
  x,
  y,
  wires,
  ...(type === 'debug' ? { active: true, tosidebar: true } : {}),
  ...(type.startsWith('advisor-') ? { environment: 'picture-simulator' } : {}),
  ...more,
});

export const flows = [
  { id: tab, type: 'tab', label: 'Text Grace' },
  node('inject', 'inject', 120, 100, [['send-text']], {
    name: 'Text Grace',
    props: [{ p: 'payload' }],
    payload: '',
    payloadType: 'date',
    repeat: '',
    crontab: '',
    once: false,
    onceDelay: 0.1,
    topic: '',
  }),
  node('send-text', 'advisor-send-text', 350, 100, [['sent'], ['failed'], ['request-consent']], {
    phone: '+12175550107',
    phoneType: 'str',
    text: 'Hello Grace, shall we talk on Friday?',
    textType: 'str',
  }),
  node('sent', 'debug', 610, 80, [], { name: 'sent', complete: 'payload', targetType: 'msg' }),
  node('request-consent', 'advisor-request-consent', 320, 240, [['check-consent'], ['failed']]),
  node('check-consent', 'advisor-check-consent', 560, 240, [['send-text'], ['failed'], ['silent']], {
    mode: 'wait',
    pollEvery: 5,
  }),
  node('failed', 'debug', 790, 140, [], { name: 'failed', complete: 'error', targetType: 'msg' }),
  node('silent', 'debug', 830, 260, [], {
    name: 'no answer in a day',
    complete: 'payload',
    targetType: 'msg',
  }),
  { id: 'picture-simulator', type: 'advisor-environment', name: '', service: 'simulator' },
  {
    id: 'picture-production',
    type: 'advisor-environment',
    name: 'Texting, whole office',
    service: 'production',
    baseUrl: 'https://service.example/v1',
    authUrl: 'https://login.example/authorize',
    tokenUrl: 'https://login.example/token',
    redirectUri: 'https://flows.office.example/advisor-texting/callback',
    grant: 'authorization_code',
    credentials: { clientId: 'office-flows', clientSecret: 'not a real secret', apiKey: 'not a real key' },
  },
];
