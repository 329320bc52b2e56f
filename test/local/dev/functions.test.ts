import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { functionsIn } from "../../../infra/local/dev/functions.ts";
import { descendants } from "../../support/servers/dev.ts";
import { until } from "../../support/time/until.ts";

/** A bundle that says a word, and a variable. */
const saying = (word: string) =>
  `export default { fetch: (_, env) => new Response(${JSON.stringify(word)} + env.V), scheduled() {} };`;

test("a function keeps its address from version to version; one that does not start leaves the last; what dies comes back", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  const copies = join(folder, "copies");
  const [said, failed, started]: [string[], string[], string[]] = [[], [], []];
  await using functions = await functionsIn({
    folder: copies,
    tell: (line) => said.push(line),
    hear: () => {},
    started: (name) => started.push(name),
    fail: (why) => failed.push(why),
  });
  const bundle = join(folder, "index.js");
  const put = async (text: string, V = "1") => {
    await writeFile(bundle, text);
    return functions.put("hello", bundle, { V });
  };
  const answer = async (url = functions.urls.hello as string) => (await fetch(url)).text();

  expect(await put(saying("one"))).toBe(true);
  const url = functions.urls.hello as string;
  expect(await answer(url)).toBe("one1");
  expect(await put(saying("one"))).toBe(false);
  expect(await put(saying("one"), 'a line\nand \u0001 \\u0041 "quoted"')).toBe(true);
  expect(await answer(url)).toBe('onea line\nand \u0001 \\u0041 "quoted"');
  expect(await put(saying("two"))).toBe(true);
  expect(await answer(url)).toBe("two1");

  await expect(put("throw new Error('not today');")).rejects.toThrow(/not today/);
  expect(await answer(url)).toBe("two1");
  // It is not tried again and again.
  expect(await put("throw new Error('not today');")).toBe(false);
  expect(await readdir(copies)).toHaveLength(1);

  const seen = started.length;
  const ours = () =>
    descendants(process.pid).filter(({ command }) => /^\S*workerd serve.*pawl-workerd-/.test(command));
  for (let death = 1; death <= 5; death++) {
    const [one] = await until("it runs", async () => {
      const found = ours();
      return started.length === seen + death - 1 && found.length === 1 && found;
    });
    process.kill(one?.pid ?? Number.NaN, "SIGKILL");
    if (death < 5) await until("it was started again", async () => started.length === seen + death);
    if (death === 1) expect(await answer(url)).toBe("two1");
  }
  await until("it was given up", async () => failed.length > 0);
  expect(failed).toEqual(["The function hello died too often, the last time with 137"]);
  expect(said).toEqual(Array(4).fill("! The function hello died (137). It is started again"));
  await functions.remove("hello");
  expect(functions.has("hello")).toBe(false);
});
