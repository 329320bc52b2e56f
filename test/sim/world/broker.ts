import { PawlError } from "../../../shared/errors/errors.ts";
import type { Advisory } from "../../../shared/ports/bus.ts";
import type { Stream } from "./stream.ts";

/** A simulated NATS server: its streams, its word on messages that it gave up, and which life of it this is. */
export class Broker {
  readonly streams = new Map<string, Stream>();
  readonly advisories: Advisory[] = [];
  /** Who answers for the claims with these tokens. */
  readonly holders = new Map<string, () => boolean | undefined>();
  life = 1;
  advisoriesSince: number | undefined;
  private said = 0;

  stream(name: string, what: string): Stream {
    const found = this.streams.get(name);
    if (!found) throw new PawlError("queue_gone", `${what}: there is no stream ${name}`);
    return found;
  }

  advise(advisory: Omit<Advisory, "at">): void {
    if (this.advisoriesSince === undefined) return;
    this.advisories.push({ ...advisory, at: ++this.said });
  }

  restart(forgets: number): void {
    this.life++;
    for (const stream of this.streams.values()) stream.restart(forgets);
  }
}
