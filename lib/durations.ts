/** In milliseconds, as durations are everywhere but in settings, which have seconds or hours. */
export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;
