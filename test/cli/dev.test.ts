import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configFrom } from "../../functions/wiring/config.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { CLI, startProcess } from "../support/servers/runners.ts";
import { emulatorHost, hasEmulator, wired } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";
import { until } from "../support/time/until.ts";

const agents = tempAgents();

function writeAgent(answer: string): void {
  const source = `import { defineAgent } from "${SHARED}/agent.ts";
export default defineAgent({ run: () => ${JSON.stringify(answer)} });\n`;
  writeFileSync(join(agents, "hello.ts"), source);
}

test("everything runs: woken by a submit and by cron, rebuilt on change; Ctrl-C leaves nothing behind", async () => {
  writeAgent("first");
  const own = {
    PAWL_AGENTS_DIR: agents,
    HOME: process.env.HOME ?? "",
    XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? "",
  };
  const env = { ...own, ...(hasEmulator && { FIRESTORE_EMULATOR_HOST: emulatorHost }) };
  const dev = startProcess([CLI, "dev", "--json", "--cron-every", "2s"], env);
  const ready = JSON.parse(await dev.says(/"ready":true/, 180_000)) as {
    urls: Record<string, string>;
    env: Record<string, string>;
  };
  expect(Object.keys(ready.urls)).toEqual(["hello", "api", "dispatch", "reconcile"]);
  expect((await fetch(`${ready.urls.api}/health`)).status).toBe(200);

  const { PAWL_WAKE_URL: _, ...asleep } = ready.env;
  await using deps = await wired(configFrom({ ...ready.env, PAWL_NAMESPACE: "pawl" }));
  await using quiet = await wired(configFrom(asleep));
  const result = async (id: string) =>
    until(`${id} is completed`, async () => {
      const task = (await deps.store.get(id))?.task;
      return task?.state === "completed" && task.result;
    });
  const submitted = (id: string, by = deps) => submit(by, { agent: "hello", lanes: 1, id, input: {} });
  const stamp = Date.now();
  await submitted(`woken-${stamp}`);
  expect(await result(`woken-${stamp}`)).toBe("first");
  await submitted(`cron-${stamp}`, quiet);
  expect(await result(`cron-${stamp}`)).toBe("first");
  expect(dev.text()).toMatch(/"event":"task.handled","function":"hello"/);

  writeAgent("second");
  await dev.says(/rebuilt in/);
  await until("the new one answers", async () => {
    const id = `changed-${Date.now()}`;
    await submitted(id);
    return (await result(id)) === "second";
  });
  writeFileSync(join(agents, "hello.ts"), "export default {");
  await dev.says(/not rebuilt: .*hello.ts/);
  await submitted(`kept-${stamp}`);
  expect(await result(`kept-${stamp}`)).toBe("second");

  dev.child.kill("SIGINT");
  expect(await dev.exited).toBe(0);
  await expect(fetch(ready.urls.hello as string)).rejects.toThrow();
  const { port, hostname } = new URL(ready.env.NATS_URL as string);
  await expect(fetch(`http://${hostname}:${port}`)).rejects.toThrow();
}, 300_000);
