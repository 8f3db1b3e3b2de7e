import { byId } from './dom';

export const tabs = ['phones', 'messages', 'contacts'] as const;
export type Tab = (typeof tabs)[number];

const tabButton = (tab: Tab): HTMLButtonElement => byId(`tab-${tab}`, HTMLButtonElement);

/** Tabs as in the ARIA Authoring Practices: one tab stop, and arrow keys move between tabs. The address keeps the choice. */
export const startTabs = (changed: (tab: Tab) => void): void => {
  const choose = (chosen: Tab): void => {
    for (const tab of tabs) {
      const is = tab === chosen;
      tabButton(tab).setAttribute('aria-selected', String(is));
      tabButton(tab).tabIndex = is ? 0 : -1;
      byId(tab, HTMLElement).hidden = !is;
    }
    history.replaceState(null, '', chosen === 'phones' ? location.pathname + location.search : `#${chosen}`);
    changed(chosen);
  };
  for (const [index, tab] of tabs.entries()) {
    tabButton(tab).addEventListener('click', () => {
      choose(tab);
    });
    tabButton(tab).addEventListener('keydown', (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1, Home: -index, End: tabs.length - 1 - index }[event.key];
      const target = move === undefined ? undefined : tabs[(index + move + tabs.length) % tabs.length];
      if (target === undefined) return;
      event.preventDefault();
      choose(target);
      tabButton(target).focus();
    });
  }
  choose(tabs.find((tab) => `#${tab}` === location.hash) ?? 'phones');
};
