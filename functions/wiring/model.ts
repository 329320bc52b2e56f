import { anthropic } from "../../shared/adapters/anthropic.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Config } from "./config.ts";

/** The model, where there is a key for one. Only what runs handlers needs it: it is a third of a bundle. */
export function modelOf({ model }: Pick<Config, "model">): Pick<Deps, "model"> {
  return model ? { model: anthropic(model) } : {};
}
