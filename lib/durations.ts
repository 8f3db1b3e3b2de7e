/** In milliseconds, as all durations but those in settings, which are in seconds or hours. */
export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** How long the runtime gives a node to close. */
export const nodeCloseTime = 15 * second;
