/**
 * Something still being put together. Objects made once per text are filled in field by field: to spread others into
 * them costs ten times as much on Node 20.
 */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
