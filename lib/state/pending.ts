type Task = () => void;

/** Writes that are gathered, by key: a later one takes the place of an earlier one. */
export class Pending {
  #young = new Map<string, Task>();
  #old = new Map<string, Task>();

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get all(): readonly Task[] {
    return [...this.#old.values(), ...this.#young.values()];
  }

  /** Those that were there when it aged: due now. */
  get old(): readonly Task[] {
    return [...this.#old.values()];
  }

  has(key: string): boolean {
    return this.#young.has(key) || this.#old.has(key);
  }

  add(key: string, task: Task): void {
    this.#old.delete(key);
    this.#young.set(key, task);
  }

  drop(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** The old ones are written; the young are old. */
  age(): void {
    this.#old = this.#young;
    this.#young = new Map();
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
