import type { NatsConnection } from "@nats-io/nats-core";

/** The same connection; `before` is called with the subject of each request, and may hold it up or fail it. */
export function hooked(
  nc: NatsConnection,
  before: (subject: string) => void | Promise<void>,
): NatsConnection {
  const request: NatsConnection["request"] = async (subject, ...rest) => {
    await before(subject);
    return nc.request(subject, ...rest);
  };
  // A message that asks for a reply is a request too. One that fails later than at once is never answered.
  const publish: NatsConnection["publish"] = (subject, data, options) => {
    const send = () => nc.publish(subject, data, options);
    const held = options?.reply ? before(subject) : undefined;
    if (held) held.then(send, () => {});
    else send();
  };
  return new Proxy(nc, {
    get: (_, name) => {
      if (name === "request") return request;
      if (name === "publish") return publish;
      const value = Reflect.get(nc, name) as unknown;
      return typeof value === "function" ? value.bind(nc) : value;
    },
  });
}
