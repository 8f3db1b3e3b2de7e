import { byId, button } from './dom';
import { clockSeconds, clockTime, fullDay, isoTime, span } from './when';
import { amount, say } from './words';

const time = byId('time', HTMLTimeElement);
const date = byId('date', HTMLElement);
const ahead = byId('ahead', HTMLElement);

/** Less than this is the time a request takes, not a clock that was moved. */
const noticeable = 2000;

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
  ahead.hidden = offset < noticeable;
  ahead.textContent = say('clock.ahead', { span: span(Math.round(offset / 1000) * 1000) });
};

/** The simulator's time, as far as the page knows. */
export const simulatorNow = (): number => Date.now() + (offset ?? 0);

export const showClock = (now: number): void => {
  offset = now - Date.now();
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
