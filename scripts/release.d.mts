export function notesOf(changelog: string, version: string): string;
export function withVersion(changelog: string, version: string, date: string): string;
export function checkTag(
  tag: string,
  release: { readonly version: string; readonly changelog: string; readonly isSnapshotKept: boolean },
): void;
export function billOfMaterials(): {
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly 'bom-ref': string }[];
};
