/** Numbers that the simulator documents. */
export const numbers = {
  /** Has not answered, and will not. */
  silent: '+12025550111',
  notConsented: '+12025550112',
  consented: '+12025550113',
  optedOut: '+12025550114',
  landline: '+12025550115',
} as const;
