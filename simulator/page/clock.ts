import { byId } from './dom';
import { clockSeconds, clockTime, fullDay, isoTime, span } from './when';

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
  ahead.textContent = `${span(Math.round(offset / 1000) * 1000)} ahead of real time`;
};

/** The simulator's time, as far as the page knows. */
export const simulatorNow = (): number => Date.now() + (offset ?? 0);

export const showClock = (now: number): void => {
  offset = now - Date.now();
  tick();
};

export const startClock = (): void => {
  setInterval(tick, 250);
};
