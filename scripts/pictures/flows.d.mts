export const flows: readonly (Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly type: string;
})[];
