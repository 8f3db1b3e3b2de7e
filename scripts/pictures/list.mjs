import { nodeTypes } from '../docs/nodes.mjs';
/**
 * The pictures in docs/pictures, as data; each is taken in both themes. `open` is how to get there (see stage.mjs),
 * `of` what is in the picture, and `shows` what must be visible for the picture to be true.
 */
export const themes = ['light', 'dark'];

export const pictures = [
  {
    name: 'consent-flow',
    open: ['flow'],
    of: 'flow',
    viewport: { width: 1500, height: 700 },
    shows: [
      '.red-ui-flow-node-status-label:has-text("sim needs consent")',
      '.red-ui-flow-node-status-label:has-text("sim asked")',
      '.red-ui-flow-node-status-label:has-text("sim 1 waiting")',
    ],
  },
  {
    name: 'phones',
    open: ['phones'],
    of: 'page',
    viewport: { width: 1000, height: 800 },
    shows: ['article:has-text("+1 217 555 0107") [data-action=accept]', '#clock-title'],
  },
  {
    name: 'palette',
    open: ['palette', 'advisor'],
    of: '.red-ui-palette-category:has([data-palette-type=advisor-send-text])',
    // Node-RED 5 divides its sidebars in two.
    viewport: { width: 1280, height: 1350 },
    shows: nodeTypes
      .filter((type) => type !== 'advisor-environment')
      .map((type) => `[data-palette-type="${type}"]`),
  },
  {
    name: 'sidebar',
    open: ['sidebar'],
    of: '.advisor-side-environment:has(.advisor-side-waits li)',
    margin: 10,
    viewport: { width: 1500, height: 1400 },
    shows: [
      '.advisor-side-waits li:has-text("+12175550107")',
      '.advisor-side-advisors li:has-text("authorized")',
      '.advisor-sidebar button:has-text("Download a support bundle")',
    ],
  },
  {
    name: 'send-text',
    open: ['node', 'send-text'],
    of: 'dialog',
    shows: ['phone', 'text', 'schedule'].map(
      (field) => `.advisor-form[data-type="advisor-send-text"] [data-field=${field}]`,
    ),
  },
  {
    name: 'check-consent',
    open: ['node', 'check-consent'],
    of: 'dialog',
    viewport: { width: 1280, height: 1100 },
    shows: ['mode', 'pollEvery', 'giveUpAfter'].map(
      (field) => `.advisor-form[data-type="advisor-check-consent"] [data-field=${field}]`,
    ),
  },
  {
    name: 'environment-simulator',
    open: ['environment', 'picture-simulator'],
    of: 'dialog',
    viewport: { width: 1280, height: 1000 },
    shows: [
      '.advisor-form[data-type="advisor-environment"] button:has-text("Open the phones")',
      '.advisor-form[data-type="advisor-environment"] [data-field=service]',
      '.advisor-form[data-type="advisor-environment"] .advisor-advanced summary',
    ],
  },
  {
    name: 'environment-production',
    open: ['environment', 'picture-production'],
    of: 'dialog',
    viewport: { width: 1280, height: 1900 },
    shows: ['service', 'baseUrl', 'redirectUri', 'clientId', 'scopes']
      .map((field) => `.advisor-form[data-type="advisor-environment"] [data-field=${field}]`)
      .concat('.advisor-form button:has-text("Authorize")'),
  },
  {
    name: 'import',
    open: ['import'],
    of: '.ui-dialog:visible',
    shows: ['.red-ui-treeList-label:has-text("Ask for consent, then text")'],
  },
];
