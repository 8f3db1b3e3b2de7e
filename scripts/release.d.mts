export function notesOf(changelog: string, version: string): string;
export function checkTag(tag: string, version: string, changelog: string): void;
