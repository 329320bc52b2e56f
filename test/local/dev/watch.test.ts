import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { changedSince, stampsOf } from "../../../infra/local/dev/changes/look.ts";
import { watching } from "../../../infra/local/dev/changes/watch.ts";
import { until } from "../../support/time/until.ts";

/** A folder that is watched as dev watches it: what each look found to be changed. */
async function watchedFolder() {
  const folder = await mkdtemp(join(tmpdir(), "pawl-test-"));
  const beside = join(await mkdtemp(join(tmpdir(), "pawl-test-")), "settings");
  const watched = { trees: [folder], files: [beside] };
  let stamps = stampsOf(watched);
  const looks: string[][] = [];
  const watch = watching(
    () => {
      const now = stampsOf(watched);
      const changed = changedSince(stamps, now);
      stamps = now;
      if (changed.length > 0) looks.push(changed);
      watch.watch(watched);
    },
    (line) => looks.push([line]),
  );
  watch.watch(watched);
  const seen = async (work: () => Promise<unknown>) => {
    looks.length = 0;
    await work();
    await until("a change was seen", async () => looks.length > 0);
    return looks.flat();
  };
  return { folder, beside, looks, seen, [Symbol.dispose]: () => watch[Symbol.dispose]() };
}

test("a file that is saved by a rename is seen each time; so are new, changed and removed ones, folders among them", async () => {
  using watched = await watchedFolder();
  const { folder, seen } = watched;
  const file = join(folder, "hello.ts");
  expect(await seen(() => writeFile(file, "1"))).toEqual([file]);
  for (const text of ["2", "3", "4"])
    expect(
      await seen(async () => {
        await writeFile(join(folder, ".hello.ts.tmp"), text);
        await rename(join(folder, ".hello.ts.tmp"), file);
      }),
    ).toEqual([file]);
  const inner = join(folder, "lib", "deep", "part.ts");
  expect(
    await seen(async () => {
      await mkdir(join(folder, "lib", "deep"), { recursive: true });
      await writeFile(inner, "1");
    }),
  ).toEqual([inner]);
  expect(await seen(() => writeFile(inner, "changed"))).toEqual([inner]);
  expect(await seen(() => rm(join(folder, "lib"), { recursive: true }))).toEqual([inner]);
  expect(await seen(() => writeFile(watched.beside, "A=1"))).toEqual([watched.beside]);
});

test("what is no source counts for nothing, and several saves at once are one change", async () => {
  using watched = await watchedFolder();
  const { folder, looks, seen } = watched;
  const files = ["a.ts", "b.ts", "c.json"].map((name) => join(folder, name));
  const changed = await seen(async () => {
    for (const name of ["4913", ".a.ts.swp", "notes.md"]) await writeFile(join(folder, name), "x");
    for (const file of files) await writeFile(file, "1");
  });
  await until("all were seen", async () => new Set(looks.flat()).size === 3);
  expect(new Set([...changed, ...looks.flat()])).toEqual(new Set(files));
});
