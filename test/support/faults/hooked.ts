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
  return new Proxy(nc, {
    get: (_, name) => {
      if (name === "request") return request;
      const value = Reflect.get(nc, name) as unknown;
      return typeof value === "function" ? value.bind(nc) : value;
    },
  });
}
