import type { Phone } from './shape';

/** The text of the filter; a number in any notation is reduced to its digits. */
export const wantedBy = (filter: string): string => {
  const wanted = filter.trim().toLowerCase();
  const digits = wanted.replace(/\D/gu, '');
  return digits !== '' && /^[+\d\s().-]+$/u.test(wanted) ? digits : wanted;
};

export const matches = (phone: Phone, filter: string): boolean => {
  const wanted = wantedBy(filter);
  return (
    phone.phone.includes(wanted) ||
    phone.name.toLowerCase().includes(wanted) ||
    phone.lines.some(({ messages }) => messages.some(({ text }) => text.toLowerCase().includes(wanted)))
  );
};
