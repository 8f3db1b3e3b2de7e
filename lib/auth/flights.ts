/** Work by name: whoever asks while it is under way gets the same result. */
export class Flights {
  readonly #underWay = new Map<string, Promise<string>>();

  has(name: string): boolean {
    return this.#underWay.has(name);
  }

  join(name: string, work: () => Promise<string>): Promise<string> {
    const present = this.#underWay.get(name);
    if (present) return present;
    const flight = work().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, flight);
    return flight;
  }
}
