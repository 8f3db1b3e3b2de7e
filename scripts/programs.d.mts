export function findChromium(
  env?: Readonly<Record<string, string | undefined>>,
  exists?: (path: string) => boolean,
): string | undefined;
export function findPostgres(): string | undefined;
export function chromiumPath(): string;
