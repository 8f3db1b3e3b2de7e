const two = (part: number): string => String(part).padStart(2, '0');

/** As `datetime-local` wants it: the clock on the wall of whoever looks, to the minute. */
export const wallClock = (written: string): string => {
  const time = new Date(written);
  if (Number.isNaN(time.getTime())) return '';
  const date = `${String(time.getFullYear()).padStart(4, '0')}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date}T${two(time.getHours())}:${two(time.getMinutes())}`;
};

/** With the zone of whoever chose it, so that it is the same moment wherever the flow runs. */
export const withZone = (wall: string): string => {
  const time = new Date(wall);
  if (Number.isNaN(time.getTime())) return '';
  const ahead = -time.getTimezoneOffset();
  const zone = `${ahead < 0 ? '-' : '+'}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return `${wallClock(wall)}:00${zone}`;
};
