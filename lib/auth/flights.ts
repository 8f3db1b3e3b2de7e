interface Flight {
  readonly result: Promise<string>;
  readonly controller: AbortController;
  /** On whose behalf it is under way. */
  readonly passengers: Set<object>;
}

/** Work by name: whoever asks while it is under way gets the same result. */
export class Flights {
  readonly #underWay = new Map<string, Flight>();

  has(name: string): boolean {
    return this.#underWay.has(name);
  }

  join(name: string, passenger: object, work: (signal: AbortSignal) => Promise<string>): Promise<string> {
    const present = this.#underWay.get(name);
    if (present) {
      if (present.controller.signal.aborted) {
        const again = (): Promise<string> => this.join(name, passenger, work);
        return present.result.then(again, again);
      }
      present.passengers.add(passenger);
      return present.result;
    }
    const controller = new AbortController();
    const result = work(controller.signal).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, { result, controller, passengers: new Set([passenger]) });
    return result;
  }

  /** Aborts what is under way for nobody else. */
  leave(passenger: object): void {
    for (const { passengers, controller } of this.#underWay.values()) {
      passengers.delete(passenger);
      if (passengers.size === 0) controller.abort();
    }
  }
}
