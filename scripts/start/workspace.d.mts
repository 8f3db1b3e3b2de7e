export function workspaceFlows(
  root: string,
): (Readonly<Record<string, unknown>> & { readonly id: string; readonly type: string })[];
export function layWorkspace(root: string, data: string): boolean;
