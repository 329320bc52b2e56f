import { type ApiError, JetStreamApiError } from "@nats-io/jetstream";
import type { Link } from "./nats-link.ts";
import type { Question } from "./requests.ts";

export interface PublishAck {
  readonly seq: number;
  readonly duplicate?: boolean;
}

/** Publishes to a subject that a stream takes. What the server refuses is thrown as the client throws it. */
export async function publishAck(link: Link, question: Question): Promise<PublishAck> {
  const answer = await link.ask(question);
  const said = JSON.parse(answer.string()) as PublishAck & { readonly error?: ApiError };
  if (said.error) throw new JetStreamApiError(said.error);
  if (typeof said.seq !== "number")
    throw new Error(`${question.subject} was answered by somebody who is no stream`);
  return said;
}
