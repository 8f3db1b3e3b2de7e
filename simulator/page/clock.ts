import { byId, button } from './dom';
import { clockSeconds, clockTime, fullDay, isoTime, span } from './when';
import { amount, say } from './words';
import { hour, minute, second } from '../../lib/durations';

const time = byId('time', HTMLTimeElement);
const date = byId('date', HTMLElement);
const ahead = byId('ahead', HTMLElement);
const back = byId('back', HTMLElement);

let offset: number | undefined;

const tick = (): void => {
  if (offset === undefined) return;
  const now = simulatorNow();
  time.dateTime = isoTime(now);
  time.textContent = clockSeconds(now);
  date.textContent = fullDay(now);
  const minute = clockTime(now);
  for (const shown of document.querySelectorAll('.phone-time')) {
    if (shown.textContent !== minute) shown.textContent = minute;
  }
};

/** The simulator's time, as far as the page knows it. */
export const simulatorNow = (): number => Date.now() + (offset ?? 0);

/**
 * Waits that a move triggers take a while, so the span that was moved comes out a little short: it is rounded, and a
 * day shows as a day.
 */
const roundings = [
  { from: 12 * hour, to: 5 * minute },
  { from: 30 * minute, to: minute },
] as const;

const rounded = (ms: number): number => {
  const to = roundings.find(({ from }) => ms >= from)?.to ?? 5 * second;
  return Math.max(0, Math.round(ms / to) * to);
};

export const showClock = (now: number, moved: number): void => {
  offset = now - Date.now();
  const lead = rounded(moved);
  ahead.hidden = lead === 0;
  back.hidden = lead === 0;
  ahead.textContent = say('clock.ahead', { span: span(lead) });
  tick();
};

const steps = [
  ['second', 30, 30],
  ['minute', 5, 300],
  ['hour', 1, 3600],
  ['day', 1, 86_400],
] as const;

export const startClock = (advance: (seconds: number) => void): void => {
  byId('advance', HTMLElement).append(
    ...steps.map(([unit, count, seconds]) =>
      button(amount(count, unit, 'always'), '', () => {
        advance(seconds);
      }),
    ),
  );
  setInterval(tick, 250);
};
