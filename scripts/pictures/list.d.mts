import type { Picture } from './stage.mjs';

export const themes: readonly ('light' | 'dark')[];
export const pictures: readonly Picture[];
