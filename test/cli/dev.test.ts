import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { burden, descendants, devProject, readyDev } from "../support/servers/dev.ts";
import { SHARED } from "../support/temp-agents.ts";
import { until } from "../support/time/until.ts";

const SECRET = "a secret of the author's";
const ENV = 'const { env } = await import("cloudflare:workers" as string);';

const project = devProject('A = "vars"\nB = "vars"\nC = "vars"\n');

/** Cron is an hour away in all of this: whatever runs was woken. */
test("an author's day: variables, waking, saves by rename, agents that come and go, a model's script", async () => {
  writeFileSync(join(project.folder, ".dev.vars"), `B=dev\nC=dev\nTOKEN=${SECRET}\n`);
  const hello = (answer: string) =>
    project.agent(
      "hello",
      `run: async () => { ${ENV} return ["${answer}", env.A, env.B, env.C, env.HOME ?? env.TOKEN ?? null]; }`,
    );
  hello("first");
  project.agent(
    "parent",
    'children: ["hello"], run: async ({ submit }) => (await submit("hello", {}, { key: "a" })).result()',
  );
  project.agent("asker", 'run: async ({ approval }) => (await approval("go")).by');
  project.agent(
    "thinker",
    `run: async ({ llm }) => {
      const look = tool({ name: "look", description: "Looks", input: z.object({ n: z.int().min(3) }), readOnly: true, run: ({ n }) => ({ n }) });
      const { text } = await llm("think", { model: "claude-sonnet-5-5", maxTokens: 100, prompt: "Think", tools: [look] });
      return text;
    }`,
  );
  const needy = (name: string, secret: string) =>
    project.save(
      `agents/${name}.ts`,
      `import { defineAgent } from "../${SHARED}/agent.ts";
const agent = defineAgent({ run: async () => { ${ENV} return env.${secret}.length; } });
export default { ...agent, secrets: ["${secret}"] };\n`,
    );
  needy("needy", "TOKEN");
  needy("poor", "OTHER");
  const shell = { C: "shell", PAWL_CORS_ORIGIN: "https://app.example.com", PAWL_NAMESPACE: "mine" };
  const dev = project.start(shell, "--submit", "hello={}");
  await using ready = await readyDev(dev);
  const { run, call } = ready;
  const first = process.platform === "linux" ? burden(dev.pid) : { megabytes: 0 };
  expect(Object.keys(ready.urls).sort()).toEqual(
    ["api", "asker", "dispatch", "hello", "needy", "parent", "poor", "reconcile", "thinker"].sort(),
  );
  expect(ready.env).toMatchObject({ PAWL_NAMESPACE: "mine", PAWL_STORE: "nats-kv", PAWL_ACK_WAIT: "6s" });

  await dev.says(/"event":"task","agent":"hello",.*"state":"completed","outcome":\["first","vars","dev",/);

  // The author's variables, the strongest first; a secret for who declares it; CORS as the API has it.
  expect(await run("parent", "p-1")).toEqual(["first", "vars", "dev", "shell", null]);
  expect(await run("needy", "n-1")).toBe(SECRET.length);
  await dev.says(/! poor needs OTHER: write it into .dev.vars, or set it in the shell/);
  const preflight = await call("OPTIONS", "/v1/tasks", undefined, {
    origin: "https://app.example.com",
    "access-control-request-method": "POST",
  });
  expect(preflight.headers.get("access-control-allow-origin")).toBe("https://app.example.com");

  // An answer wakes whoever waits for it.
  await call("POST", "/v1/tasks", { agent: "asker", id: "a-1", input: {} });
  await ready.state("a-1", "waiting");
  expect((await call("POST", "/v1/tasks/a-1/approvals/go", { approved: true })).ok).toBe(true);
  expect((await ready.state("a-1", "completed")).state).toBe("completed");

  // The stand-in asks for the tool with an input that fits, then by the script beside the agent.
  expect(await run("thinker", "t-1")).toBe('The stand-in for the model got: {"n":3}');
  project.save("agents/thinker.model.ts", 'export default ["as the script says"];');
  await dev.says(/the stand-in answers thinker by/);
  expect(await run("thinker", "t-2")).toBe("as the script says");

  // Saved by a rename, again and again; broken, and mended.
  const workerds = () =>
    descendants(dev.pid)
      .filter(({ command }) => isWorkerd(command))
      .map(({ pid }) => pid);
  const before = workerds();
  const answers = (wanted: string, id: string) =>
    until(`hello answers ${wanted}`, async () => {
      const [answer] = (await run("hello", `${id}-${Date.now()}`)) as string[];
      return answer === wanted;
    });
  hello("second");
  await answers("second", "s");
  expect(workerds().filter((pid) => before.includes(pid))).toHaveLength(before.length - 1);
  hello("third");
  await answers("third", "th");
  project.save("agents/hello.ts", "export default {");
  await dev.says(/not rebuilt: hello: [^"]*hello\.ts:1:16/);
  await answers("third", "kept");
  hello("mended");
  await answers("mended", "m");

  // What a change cuts off is taken over, though cron is far away.
  project.agent("slow", "run: () => new Promise((resolve) => setTimeout(resolve, 600_000))");
  await dev.says(/new: slow runs/);
  await call("POST", "/v1/tasks", { agent: "slow", id: "cut-off", input: {} });
  await ready.state("cut-off", "running");
  project.agent("slow", 'run: () => "taken over"');
  expect(await ready.state("cut-off", "completed")).toMatchObject({ result: "taken over" });

  // A new one, with code that is shared, which the API knows; and gone again.
  project.save("shared.ts", 'export const word = "new";');
  project.agent("fresh", "limits: { lanes: 2 }, run: () => word", 'import { word } from "../shared.ts";');
  await dev.says(/new: fresh runs/);
  expect(await run("fresh", "f-1")).toBe("new");
  project.save("shared.ts", 'export const word = "shared code changed";');
  await until("the shared code is the new one", async () => {
    return (await run("fresh", `f-${Date.now()}`)) === "shared code changed";
  });
  rmSync(join(project.agents, "fresh.ts"));
  await dev.says(/gone: fresh is stopped/);
  await until("the API knows it no more", async () => {
    return (await call("POST", "/v1/tasks", { agent: "fresh", id: "f-9", input: {} })).status === 422;
  });

  // What differs in .dev.vars is taken over; what can't be is said.
  writeFileSync(join(project.folder, ".dev.vars"), `B=changed\nTOKEN=${SECRET}\n`);
  await until("the variable is the new one", async () => {
    return ((await run("hello", `v-${Date.now()}`)) as string[])[2] === "changed";
  });
  writeFileSync(join(project.folder, ".dev.vars"), "PAWL_RATE_LIMIT=many\n");
  await dev.says(/The settings are not taken over: PAWL_RATE_LIMIT is .{1,4}many/);

  // A dozen builds leave no process behind and hardly any memory, nothing is done for nothing, and no secret is printed.
  await until("the builder is gone", async () => !descendants(dev.pid).some(isOfBuild));
  if (process.platform === "linux") {
    const [then] = [burden(dev.pid), await new Promise((resolve) => setTimeout(resolve, 3_000))];
    expect(then.megabytes).toBeLessThan(first.megabytes + 100);
    expect(burden(dev.pid).computed - then.computed).toBeLessThan(500);
  }
  expect(dev.text()).not.toContain(SECRET);
  expect(statSync(ready.envFile).mode & 0o777).toBe(0o600);
  expect(readFileSync(ready.envFile, "utf8")).toContain("export PAWL_NAMESPACE='mine'");
  await dev.kill("SIGINT");
  expect(await dev.exited).toBe(0);
}, 600_000);

const isWorkerd = (command: string) => /^\S*workerd serve/.test(command);
const isOfBuild = ({ command }: { command: string }) => /builder\.ts|esbuild/.test(command);
