import { z } from 'zod';
import { seededGroups, seededGroupsOf } from './seed';
import type { Direction } from './contact-book';

const groupSchema = z.object({
  groupId: z.int(),
  name: z.string().nullable(),
  externalId: z.string().nullable(),
  created: z.number(),
  /** The number of members, kept up to date as they come and go. */
  contactCount: z.int(),
});
export type Group = z.output<typeof groupSchema>;

export const groupBookSchema = z.object({ nextId: z.int(), groups: z.array(groupSchema) });
type GroupBookRecord = z.output<typeof groupBookSchema>;

const seededAt = Date.UTC(2023, 0, 2, 9);

/** An advisor's contact groups. */
export class GroupBook {
  private readonly groups: Map<number, Group>;
  private nextId: number;
  private byName: Group[] | undefined;

  constructor(record: GroupBookRecord) {
    this.nextId = record.nextId;
    this.groups = new Map(record.groups.map((group) => [group.groupId, group]));
  }

  static fresh(seededContacts: number): GroupBookRecord {
    const counts = new Map<number, number>();
    for (let index = 0; index < seededContacts; index++) {
      for (const groupId of seededGroupsOf(index)) counts.set(groupId, (counts.get(groupId) ?? 0) + 1);
    }
    return {
      nextId: 101 + seededGroups.length,
      groups: seededGroups.map(({ groupId, name }) => ({
        groupId,
        name,
        externalId: null,
        created: seededAt,
        contactCount: counts.get(groupId) ?? 0,
      })),
    };
  }

  record(): GroupBookRecord {
    return { nextId: this.nextId, groups: [...this.groups.values()] };
  }

  get count(): number {
    return this.groups.size;
  }

  ids(): number[] {
    return [...this.groups.keys()];
  }

  get(groupId: number): Group | undefined {
    return this.groups.get(groupId);
  }

  add(name: string | null, externalId: string | null, created: number): Group {
    const group: Group = { groupId: this.nextId++, name, externalId, created, contactCount: 0 };
    this.groups.set(group.groupId, group);
    this.byName = undefined;
    return group;
  }

  remove(groupId: number): boolean {
    this.byName = undefined;
    return this.groups.delete(groupId);
  }

  moveMember(from: readonly number[], to: readonly number[]): void {
    for (const groupId of from) this.tally(groupId, -1);
    for (const groupId of to) this.tally(groupId, 1);
  }

  page(direction: Direction, page: number, pageSize: number): Group[] {
    this.byName ??= [...this.groups.values()].sort(compareNames);
    const ordered = direction === 'asc' ? this.byName : this.byName.toReversed();
    return ordered.slice((page - 1) * pageSize, page * pageSize);
  }

  private tally(groupId: number, by: 1 | -1): void {
    const group = this.groups.get(groupId);
    if (group !== undefined) group.contactCount += by;
  }
}

const compareNames = (one: Group, other: Group): number => {
  const [name, otherName] = [one.name?.toLowerCase() ?? '', other.name?.toLowerCase() ?? ''];
  if (name === otherName) return one.groupId - other.groupId;
  return name < otherName ? -1 : 1;
};
