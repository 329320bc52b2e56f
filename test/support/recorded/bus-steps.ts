import type { Delivery } from "../../../shared/ports/bus.ts";
import { message } from "../servers/bus.ts";
import type { BusWorld } from "../servers/buses.ts";

/** Something that is done to a bus. Deliveries are named by the order in which they came. */
export type BusStep =
  | { readonly do: "publish"; readonly task: string; readonly msgId: string }
  | { readonly do: "pull" | "state" | "inspect" | "advisories" | "purge" }
  | { readonly do: "ack" | "working" | "current"; readonly of: number }
  /** It passes the delay, unless that is for good. */
  | { readonly do: "nak"; readonly of: number; readonly delay: number }
  | { readonly do: "lookup"; readonly task: string }
  | { readonly do: "remove"; readonly seq: number }
  | { readonly do: "survivors"; readonly from: number; readonly limit: number }
  | { readonly do: "change"; readonly maxDeliver: number; readonly maxAckPending: number }
  | { readonly do: "pass"; readonly ms: number };

/** A delay that no recording sees the end of. */
export const FOR_GOOD = 3_600_000;
/** What a short delay may be late by. */
const LATE = 400;
/** So long nothing is delivered where nothing is expected. */
const NOTHING = 200;
/** Longer than a simulated network takes for a pull and its message. */
const IMAGINED = 20;

/** Does the step and says what came of it, but for what is another in each world: times, names, texts of errors. */
export async function busAnswer(
  world: BusWorld,
  step: BusStep,
  deliveries: Delivery[],
  expected?: { readonly answer: unknown },
): Promise<unknown> {
  const { bus, queue } = world;
  const one = "of" in step ? (deliveries[step.of] as Delivery) : undefined;
  switch (step.do) {
    case "publish":
      return bus.publish(queue, message(step.task, step.msgId));
    case "pull": {
      const delivery = await pulled(world, expected);
      if (!delivery) return "nothing";
      deliveries.push(delivery);
      const { seq, deliveries: times, redelivered, subject } = delivery;
      return { seq, times, redelivered, task: subject.split(".").at(-1) };
    }
    case "state":
      return bus.state(queue);
    case "inspect": {
      const { consumer, ...info } = await bus.inspect(queue);
      const { now: _, createdAt: __, oldestAt: ___, ...counts } = info;
      return { ...counts, delivered: consumer?.delivered, ackFloor: consumer?.ackFloor };
    }
    case "advisories":
      return (await bus.advisories(20)).map(({ at, seq, deliveries: times }) => ({ at, seq, times }));
    case "purge":
      return world.purge();
    case "ack":
      return one?.ack();
    case "working":
      return one?.working();
    case "current":
      return one?.current();
    case "nak":
      await one?.nak(step.delay);
      if (step.delay > 0 && step.delay < FOR_GOOD) await world.pass(step.delay + LATE);
      return undefined;
    case "lookup": {
      const found = await bus.lookup(queue, step.task);
      return found && { seq: found.seq, headers: [...found.headers].sort() };
    }
    case "remove":
      return bus.remove(queue, step.seq);
    case "survivors": {
      const found = await bus.survivors(queue, step.from, step.limit);
      return found.map(({ seq, subject }) => `${seq} ${subject.split(".").at(-1)}`);
    }
    case "change":
      return world.change(step);
    case "pass":
      return world.pass(step.ms);
    default:
      return step satisfies never;
  }
}

/** Where something is expected it is waited for however long it takes: a slow machine is no difference. */
async function pulled(
  { bus, queue, served, pass }: BusWorld,
  expected: { readonly answer: unknown } | undefined,
): Promise<Delivery | undefined> {
  const pull = bus.pull(queue, 20_000);
  if (expected && expected.answer !== "nothing") return served(pull);
  await pass(expected ? NOTHING : IMAGINED);
  await pull.cancel();
  return served(pull);
}
