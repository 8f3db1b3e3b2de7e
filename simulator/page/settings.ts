import { byId, element, showList } from './dom';
import { say } from './words';
import type { Settings, SettingsChange } from '../state/settings';

const switches = ['consentConfigured', 'consentRequired', 'rotateRefreshTokens'] as const;

const box = byId('settings', HTMLElement);

export const showSettings = (settings: Settings, change: (settings: SettingsChange) => void): void => {
  showList(box, switches, {
    key: (name) => name,
    version: (name) => String(settings[name]),
    draw: (name) => {
      const input = element('input', { type: 'checkbox', 'data-action': name });
      input.checked = settings[name];
      input.addEventListener('change', () => {
        change({ [name]: input.checked });
      });
      return element(
        'label',
        { class: 'switch' },
        input,
        element('span', {}, say(`settings.${name}`), element('small', {}, say(`settings.${name}Hint`))),
      );
    },
  });
};
