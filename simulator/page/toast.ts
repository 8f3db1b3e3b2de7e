import { byId } from './dom';
import { say } from './words';

const toast = byId('toast', HTMLElement);
const text = byId('toast-text', HTMLElement);

/** Shows one sentence at a time, until somebody closes it or does something else. */
const show = (kind: 'notice' | 'failure', sentence: string): void => {
  toast.dataset['kind'] = kind;
  toast.hidden = false;
  text.textContent = sentence;
};

export const notice = (sentence: string): void => {
  show('notice', sentence);
};

export const complain = (error: unknown): void => {
  const reason = error instanceof Error ? error.message : String(error);
  show('failure', say('toast.failed', { reason }));
};

export const clearToast = (): void => {
  toast.hidden = true;
  text.textContent = '';
};

export const startToast = (): void => {
  byId('toast-close', HTMLButtonElement).addEventListener('click', () => {
    clearToast();
    byId('main', HTMLElement).focus({ preventScroll: true });
  });
};
