import type { Drill } from "./drill.ts";
import { broker } from "./list/broker.ts";
import { crash } from "./list/crash.ts";
import { people } from "./list/people.ts";
import { publish } from "./list/publish.ts";
import { stale } from "./list/stale.ts";
import { store } from "./list/store.ts";

/** All drills there are. */
export const drills: readonly Drill[] = [...crash, ...stale, ...store, ...broker, ...publish, ...people];
