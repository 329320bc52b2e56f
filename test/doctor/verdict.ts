import type { NatsConnection } from "@nats-io/nats-core";
import type { Contract } from "../../infra/doctor/contract.ts";
import { findings } from "../../infra/doctor/rule.ts";
import { contractRules } from "../../infra/doctor/rules.ts";
import type { Made } from "./configs.ts";

interface Answer {
  readonly error?: { readonly err_code: number; readonly description: string };
}

/** What a real server takes, against what the doctor says that it takes. By raw requests: the client would correct some. */
export async function disagreements(nc: NatsConnection, made: readonly Made[]) {
  const server = nc.info?.version ?? "";
  const ask = async (subject: string, body: object): Promise<Answer["error"]> =>
    (await nc.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 30_000 })).json<Answer>().error;
  const wrong: object[] = [];
  let accepted = 0;
  for (const { stream, consumer } of made) {
    const contract: Contract = { name: "q", stream, consumer, application: {}, server, unknown: [] };
    const refused = findings(contractRules, contract, "q").filter((one) => one.refused !== undefined);
    const parts = ["stream", "consumer"].filter((part) =>
      refused.some(({ field }) => field.startsWith(part)),
    );
    const ofStream = await ask("STREAM.CREATE.S", { name: "S", ...stream });
    const ofConsumer = ofStream
      ? undefined
      : await ask("CONSUMER.DURABLE.CREATE.S.c", { stream_name: "S", config: consumer });
    if (!ofStream) await ask("STREAM.DELETE.S", {});
    if (!ofStream && !ofConsumer) accepted++;
    const said = ofStream ? "stream" : ofConsumer ? "consumer" : undefined;
    // Of a stream that is not there no server says anything about its consumer.
    const code = (ofStream ?? ofConsumer)?.err_code;
    if (parts[0] !== said || (code && !refused.some((one) => one.refused === code)))
      wrong.push({
        stream,
        consumer,
        server: ofStream ?? ofConsumer ?? "accepted",
        doctor: refused.map(({ rule, is }) => `${rule}: ${is}`),
      });
  }
  return { accepted, wrong };
}
