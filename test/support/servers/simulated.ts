import { makeSettings, type Settings } from "../../../shared/settings/settings.ts";
import { memoryStore } from "../../../shared/testing/memory-store.ts";
import { Broker } from "../../sim/world/broker.ts";
import { simulatedBus } from "../../sim/world/bus.ts";
import { Network } from "../../sim/world/network.ts";
import { Process } from "../../sim/world/process.ts";
import { random } from "../../sim/world/random.ts";
import { Copies, simulatedStore } from "../../sim/world/store.ts";
import { Time } from "../../sim/world/time.ts";

/** All promises that can go on have gone on when this one does. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** The simulator's world with one process that nothing happens to. Its time passes while somebody waits, and only then. */
export class CalmWorld {
  readonly settings: Settings;
  /** As on this machine, for tests that compare a server's time with ours. */
  readonly time = new Time(Date.now());
  readonly broker = new Broker();
  readonly network: Network;
  readonly process: Process;
  /** Answers that somebody waits for. */
  private awaited = 0;
  private isGoing = false;
  /** Code of the process has run since the last step. */
  private hasRun = false;

  constructor(given: Partial<Settings> = {}) {
    this.settings = makeSettings({ namespace: "sim", ...given });
    this.network = new Network(this.time, this.settings.requestTimeout, () => {});
    this.process = new Process({
      name: "calm",
      time: this.time,
      random: random(1, "calm"),
      skew: 0,
      mishapsAt: () => [],
      ran: () => {
        this.hasRun = true;
      },
      told: () => {},
    });
  }

  /** Lets time pass until there is an answer. */
  until<T>(answer: Promise<T>): Promise<T> {
    this.awaited++;
    void this.goOn();
    return answer.finally(() => {
      this.awaited--;
    });
  }

  async pass(ms: number): Promise<void> {
    const end = this.time.now + ms;
    while (this.time.step(end)) await settled();
    this.time.now = end;
  }

  /** However many wait, time passes once. */
  private async goOn(): Promise<void> {
    if (this.isGoing) return;
    this.isGoing = true;
    for (await settled(); this.awaited > 0; ) {
      this.hasRun = false;
      if (!this.time.step(Number.POSITIVE_INFINITY) || this.hasRun) await settled();
    }
    this.isGoing = false;
  }

  /** The same, with time passing during each of its requests. */
  driven<T extends object>(port: T): T {
    const drive = (made: unknown) => (made instanceof Promise ? this.until(made) : made);
    return Object.fromEntries(
      Object.entries(port).map(([name, one]) => [
        name,
        typeof one === "function" ? (...given: unknown[]) => drive(one(...given)) : one,
      ]),
    ) as T;
  }

  bus() {
    const { time, network, broker, settings, process } = this;
    return simulatedBus({ time, network, broker, settings, left: () => {} }, process);
  }

  /** `isReplicated`: one whose reads may be stale, so that leases are attested. */
  store(isReplicated = false) {
    const { time, network, process } = this;
    const documents = memoryStore({ now: () => Math.floor(time.now) });
    const copies = isReplicated ? { copies: new Copies() } : {};
    return this.driven(simulatedStore({ time, network, documents, ...copies }, process));
  }
}
