import { byId, element, showList } from './dom';
import type { Settings, SettingsChange } from '../state/settings';

const switches = [
  ['consentConfigured', 'Set up for consent collection', 'When off, a consent request answers 409.'],
  ['consentRequired', 'Texts need consent', 'When off, texts reach anybody, asked or not.'],
  ['rotateRefreshTokens', 'Rotate refresh tokens', 'Each refresh ends the refresh token before it.'],
] as const;

const box = byId('settings', HTMLElement);

export const showSettings = (settings: Settings, change: (settings: SettingsChange) => void): void => {
  showList(box, switches, {
    key: ([name]) => name,
    version: ([name]) => String(settings[name]),
    draw: ([name, label, hint]) => {
      const input = element('input', { type: 'checkbox', 'data-action': name });
      input.checked = settings[name];
      input.addEventListener('change', () => {
        change({ [name]: input.checked });
      });
      return element(
        'label',
        { class: 'switch' },
        input,
        element('span', {}, label, element('small', {}, hint)),
      );
    },
  });
};
