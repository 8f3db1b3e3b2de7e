import type { NodeSpec } from '../../lib/runtime/spec';

export function formOf(
  spec: NodeSpec,
  said: (key: string) => boolean,
  needs: (scope: string) => string[],
): string;
