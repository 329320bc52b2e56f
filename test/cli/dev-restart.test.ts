import { expect, test } from "vitest";
import { descendants, devProject, isAlive, readyDev, serverOf } from "../support/servers/dev.ts";
import { until } from "../support/time/until.ts";

const project = devProject("");

test("what dies is started again, one dev is enough for a project, and what was done survives a kill", async () => {
  project.agent("hello", 'run: () => "done"');
  const dev = project.start();
  await using ready = await readyDev(dev);
  expect(await ready.run("hello", "h-1")).toBe("done");

  const second = project.start();
  expect(await second.exited).toBe(2);
  expect(second.text()).toContain(`Another dev runs in this project (process ${dev.pid})`);

  const port = new URL(ready.urls.hello as string).port;
  process.kill(serverOf(dev, /^\S*workerd serve/).pid, "SIGKILL");
  await dev.says(/! The function \w+ died \(137\). It is started again/);
  process.kill(serverOf(dev, /nats-server/).pid, "SIGKILL");
  await dev.says(/! nats-server died \(137\)/);
  await dev.says(/nats-server is back/);
  expect(await ready.run("hello", "h-2")).toBe("done");
  expect(new URL(ready.urls.hello as string).port).toBe(port);

  // Killed: nothing of it is left, and the next one goes on from its store.
  const left = descendants(dev.pid).map(({ pid }) => pid);
  expect(left.length).toBeGreaterThan(4);
  await dev.kill("SIGKILL");
  await until("nothing is left", async () => !left.some(isAlive));
  const next = project.start();
  await using again = await readyDev(next);
  expect((await again.deps.store.get("h-1"))?.task.state).toBe("completed");
  expect(await again.run("hello", "h-3")).toBe("done");

  const rest = descendants(next.pid).map(({ pid }) => pid);
  next.child.kill("SIGINT");
  expect(await next.exited).toBe(0);
  await until("nothing is left", async () => !rest.some(isAlive));

  const anew = project.start({}, "--fresh");
  await using empty = await readyDev(anew);
  expect(await empty.deps.store.get("h-1")).toBeUndefined();
  anew.child.kill("SIGTERM");
  expect(await anew.exited).toBe(0);
}, 600_000);
