import {
  DiscardPolicy,
  type JetStreamManager,
  jetstream,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { PawlError } from "../../errors/errors.ts";
import type { Settings } from "../../settings/settings.ts";
import { confinedPrefix } from "../../task/names.ts";
import { apiCode, GONE, NO_ROOM } from "../jetstream/nats-errors.ts";
import type { Place } from "./bucket.ts";

/**
 * `allow_direct` off: a follower's stale answer could prolong a lease that is lost. So could a leader's that was cut off
 * from the other copies, which nothing turns off: with more copies than one, claims are attested.
 */
export async function openBucket(
  nc: NatsConnection,
  place: Place,
  settings: Settings,
): Promise<{ bucket: KV; copies: number }> {
  const { name, agent, isConfined } = place;
  const js = jetstream(nc, optionsOf(settings, place));
  const kvm = new Kvm(js);
  if (agent !== undefined && !isConfined)
    await makeForAgent(await js.jetstreamManager(false), name, settings);
  const opening =
    agent !== undefined
      ? kvm.open(name)
      : kvm.create(name, {
          history: 1,
          replicas: settings.replicas,
          allow_direct: false,
          max_bytes: settings.storeBytes,
        });
  const bucket = await opening.catch((error: unknown) => {
    throw apiCode(error) === NO_ROOM ? noRoom(name, settings) : error;
  });
  const { streamInfo } = await bucket.status();
  if (streamInfo.config.allow_direct) {
    throw new PawlError(
      "setting_invalid",
      `KV bucket ${name} allows direct gets, which may be stale. Turn it off: nats stream edit KV_${name} --no-allow-direct`,
    );
  }
  return { bucket, copies: streamInfo.config.num_replicas };
}

/**
 * The client would let its writers empty the whole bucket with a header (a roll-up); an agent's relatives may write there.
 * Two who make it at once make the same.
 */
async function makeForAgent(jsm: JetStreamManager, name: string, settings: Settings): Promise<void> {
  const stream = `KV_${name}`;
  try {
    await jsm.streams.info(stream);
  } catch (error) {
    if (!GONE.has(apiCode(error) ?? 0)) throw error;
    await jsm.streams
      .add({
        name: stream,
        subjects: [`$KV.${name}.>`],
        retention: RetentionPolicy.Limits,
        storage: StorageType.File,
        discard: DiscardPolicy.New,
        max_msgs_per_subject: 1,
        max_bytes: settings.storeBytes,
        num_replicas: settings.replicas,
        allow_direct: false,
        allow_rollup_hdrs: false,
        deny_delete: true,
      })
      .catch((failed: unknown) => {
        throw apiCode(failed) === NO_ROOM ? noRoom(name, settings) : failed;
      });
  }
}

function noRoom(name: string, { storeBytes }: Settings): PawlError {
  return new PawlError(
    "setting_invalid",
    `KV bucket ${name} can't be made: the NATS server has no ${storeBytes} bytes left to set aside for it. Set PAWL_STORE_BYTES lower, or raise the server's max_file_store`,
  );
}

export function optionsOf(settings: Settings, { isConfined }: Place) {
  return {
    timeout: settings.requestTimeout,
    ...(isConfined && { apiPrefix: confinedPrefix(settings) }),
  };
}
