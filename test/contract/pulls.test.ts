import { connect } from "node:net";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { Msg, MsgCallback, NatsConnection, SubscriptionOptions } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { natsLink } from "../../shared/adapters/jetstream/nats-link.ts";
import { pulls } from "../../shared/adapters/jetstream/pull.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { subjectPrefix } from "../../shared/task/names.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Publishes as the protocol has it, whatever the client would say of these headers. */
async function publishRaw(url: string, subject: string, header: string, body: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const headers = `NATS/1.0\r\n${header}\r\n\r\n`;
  const sizes = `${Buffer.byteLength(headers)} ${Buffer.byteLength(headers + body)}`;
  const socket = connect(Number(port), hostname);
  socket.write(
    `CONNECT {"verbose":false,"headers":true}\r\nHPUB ${subject} ${sizes}\r\n${headers}${body}\r\nPING\r\n`,
  );
  await new Promise<void>((resolve, reject) => {
    let seen = "";
    socket.on("error", reject);
    socket.on("data", (data) => {
      seen += data;
      if (seen.includes("PONG")) resolve();
    });
  });
  socket.destroy();
}

test.each(["My Key: 1", "Key: a\rb", "Kéy: 1"])(
  "a message whose headers can't be read (%j) is delivered as if it had none, and stops nobody",
  async (header) => {
    await using deps = await wired(world(nats, "nats-kv").config);
    const queue = { namespace: deps.settings.namespace, agent: "a", lane: 0, generation: 1 };
    await deps.bus.ensure(queue);
    const pull = deps.bus.pull(queue, 10_000);
    await publishRaw(nats.url, `${subjectPrefix(queue)}t`, header, '{"v":1,"input":{}}');
    const held = await pull.delivery;
    expect(held).toMatchObject({ subject: `${subjectPrefix(queue)}t`, headers: new Map() });
    // The connection still hears.
    await held?.ack();
    expect(await deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
  },
);

/** A connection of which a test plays the server. */
function connection() {
  const subscriptions: { subject: string; hear: MsgCallback<Msg>; isOver: boolean; drained?: () => void }[] =
    [];
  const asked: string[] = [];
  const nc = {
    info: { version: "2.15.1", jetstream: true },
    async *status() {},
    closed: () => new Promise(() => {}),
    subscribe: (subject: string, { callback }: SubscriptionOptions) => {
      const one: (typeof subscriptions)[number] = {
        subject,
        hear: callback as MsgCallback<Msg>,
        isOver: false,
      };
      subscriptions.push(one);
      return {
        isClosed: () => one.isOver,
        isDraining: () => one.drained !== undefined,
        unsubscribe: () => {
          one.isOver = true;
        },
        drain: () =>
          new Promise<void>((resolve) => {
            one.drained = () => {
              one.isOver = true;
              resolve();
            };
          }),
      };
    },
    publish: (_: string, __: unknown, { reply }: { reply: string }) => void asked.push(reply),
  } as unknown as NatsConnection;
  const jsm = { getOptions: () => ({}) } as unknown as JetStreamManager;
  const settings = makeSettings({});
  const pull = pulls(nc, jsm, natsLink(nc, 1_000), settings);
  const queue = { namespace: "t", agent: "a", lane: 0, generation: 1 };
  return { pull: () => pull(queue, 60_000), subscriptions, asked };
}

const timedOut = { data: new Uint8Array(), headers: { code: 408, description: "Request Timeout" } } as Msg;

describe("a subscription is passed on to the next pull", () => {
  test("once its pull was answered", async () => {
    const { pull, subscriptions, asked } = connection();
    for (let i = 0; i < 3; i++) {
      const { delivery } = pull();
      subscriptions[0]?.hear(null, timedOut);
      expect(await delivery).toBeUndefined();
    }
    expect([subscriptions.length, new Set(asked).size]).toEqual([1, 1]);
  });

  test("not if its pull was withdrawn, though the answer still came", async () => {
    const { pull, subscriptions, asked } = connection();
    const { delivery, cancel } = pull();
    const cancelled = cancel();
    subscriptions[0]?.hear(null, timedOut);
    expect(await delivery).toBeUndefined();
    subscriptions[0]?.drained?.();
    await cancelled;
    const next = pull();
    expect(asked.at(-1)).toBe(subscriptions[1]?.subject);
    subscriptions[1]?.hear(null, timedOut);
    expect(await next.delivery).toBeUndefined();
  });

  test("not if the server has closed it meanwhile", async () => {
    const { pull, subscriptions, asked } = connection();
    const { delivery } = pull();
    subscriptions[0]?.hear(null, timedOut);
    await delivery;
    const [first] = subscriptions;
    if (first) first.isOver = true;
    first?.hear(new Error("Permissions Violation"), timedOut);
    void pull();
    expect(asked.at(-1)).toBe(subscriptions[1]?.subject);
  });
});
