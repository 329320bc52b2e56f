import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newSeed } from "../../infra/creds/jwt.ts";
import { keeping, newPassword } from "../../infra/creds/keep.ts";
import { planOf } from "../../infra/creds/plan.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { familyAgents } from "../support/servers/isolated.ts";
import { CLI } from "../support/servers/runners.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";

/** On a full disk a file is made, and nothing written into it. */
const full = {
  writeFile: async (file: string, _: string, options: object) => {
    await writeFile(file, "", options);
    throw new Error("ENOSPC: no space left on device");
  },
} as Pick<typeof import("node:fs/promises"), "writeFile">;

const agents = tempAgents();
const folder = mkdtempSync(join(tmpdir(), "pawl-creds-"));
beforeAll(() => familyAgents(agents, SHARED));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NAMES = ["api", "dispatch", "reconcile", "operator", "boss", "helper", "stranger"];

const creds = (...args: readonly string[]) => run("creds", ...args);

function run(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const env = { ...process.env, PAWL_AGENTS_DIR: agents };
  return new Promise((resolve) =>
    execFile(process.execPath, [CLI, ...args], { env, cwd: folder }, (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out, err }),
    ),
  );
}

/** All files in it, with what they say. */
function filesIn(at: string, below = ""): Record<string, string> {
  return Object.fromEntries(
    readdirSync(join(at, below), { withFileTypes: true }).flatMap((one) => {
      const name = join(below, one.name);
      return one.isDirectory()
        ? Object.entries(filesIn(at, name))
        : [[name, readFileSync(join(at, name), "utf8")]];
    }),
  );
}

describe.each(["conf", "jwt"])("%s", (format) => {
  const out = join(folder, format);

  test("an identity for each, for its owner's eyes, and keys stay as they were", async () => {
    const first = await creds("--format", format, "--out", out);
    expect(first).toMatchObject({ code: 0, err: "" });
    expect(first.out).toContain("wrote 7 identities");
    const files = filesIn(out);
    for (const name of NAMES) expect(files[`${name}.env`]).toContain("PAWL_ISOLATION=accounts\n");
    for (const name of Object.keys(files)) expect(statSync(join(out, name)).mode & 0o777, name).toBe(0o600);
    expect(files[".gitignore"]).toBe("*\n");
    const keys = Object.entries(files).filter(([name]) => name.startsWith("keys/"));
    const again = JSON.parse((await creds("--format", format, "--out", out, "--json")).out);
    expect(again).toMatchObject({ format, include: "nats.conf", identities: { boss: "boss.env" } });
    expect(again.reused.toSorted()).toEqual(keys.map(([name]) => name).toSorted());
    expect(Object.entries(filesIn(out)).filter(([name]) => name.startsWith("keys/"))).toEqual(keys);
  });
});

test("given keys sign, and are not copied", async () => {
  const [operator, account] = ["operator", "account"].map((kind) => {
    const file = join(folder, `${kind}.nk`);
    writeFileSync(file, newSeed(kind as "operator"));
    return file;
  }) as [string, string];
  const out = join(folder, "given");
  const done = await creds("--format", "jwt", "--operator", operator, "--account", account, "--out", out);
  expect(done).toMatchObject({ code: 0 });
  const keys = Object.keys(filesIn(out)).filter((name) => name.startsWith("keys/"));
  expect(keys).not.toContain("keys/operator-operator.nk");
  expect(keys).not.toContain("keys/account-PAWL.nk");
  expect(JSON.stringify(filesIn(out))).not.toContain(readFileSync(operator, "utf8"));
});

test("a folder that was there keeps its own rules for git", async () => {
  const out = mkdtempSync(join(folder, "there-"));
  await keeping(out);
  expect(Object.keys(filesIn(out))).toEqual([]);
});

test("a key is there as a whole or not at all, also for runs at once", async () => {
  const out = join(folder, "at-once");
  const kept = await keeping(out);
  for (let i = 0; i < 50; i++) {
    const file = `keys/${i}.password`;
    const keys = await Promise.all(Array.from({ length: 8 }, () => kept.key(file, newPassword)));
    expect(new Set(keys)).toEqual(new Set([readFileSync(join(out, file), "utf8").trim()]));
  }
  expect(readdirSync(join(out, "keys"))).toHaveLength(50);
  expect([kept.written.length, kept.reused.length]).toEqual([50, 350]);
});

test("a write that is cut off leaves no key, and the next run makes one", async () => {
  const out = join(folder, "full");
  const kept = await keeping(out);
  await expect((await keeping(out, full)).key("keys/a.password", newPassword)).rejects.toThrow("ENOSPC");
  expect(readdirSync(join(out, "keys"))).toEqual([]);
  expect(await kept.key("keys/a.password", newPassword)).toHaveLength(43);
});

test("a key that was cut off is not used, and its file is named", async () => {
  const out = join(folder, "cut");
  await creds("--out", out);
  for (const left of ["", "short\n"]) {
    writeFileSync(join(out, "keys/boss.password"), left);
    const again = await creds("--out", out);
    expect(again.code).not.toBe(0);
    expect(again.err).toMatch(/keys\/boss\.password is shorter than/);
  }
});

test("for drills there are identities of their own agents, in their own namespace and folder", async () => {
  const out = join(folder, "drills");
  expect(await creds("--drills", "staging-drills")).toMatchObject({ code: 2 });
  const done = JSON.parse((await creds("--drills", "staging-drills", "--out", out, "--json")).out);
  expect(Object.keys(done.identities)).toEqual([...NAMES.slice(0, 4), "drill", "drill-frugal"]);
  const conf = readFileSync(join(out, "nats.conf"), "utf8");
  expect(conf).toContain('"STAGING-DRILLS"');
  expect(conf).not.toContain("boss");
});

test("an agent is not named as an identity of Pawl's own", async () => {
  const made = await run("new", "operator");
  expect(made.code).not.toBe(0);
  expect(made.err).toContain("operator is the name of one of Pawl's functions or identities");
  for (const name of NAMES.slice(0, 4))
    expect(() => planOf(makeSettings({}), [{ name, lanes: 1, children: [] }], true)).toThrow(
      `An agent is named ${name}`,
    );
});

test("what is wrong ends with its code", async () => {
  expect(await creds("--format", "xml")).toMatchObject({ code: 2 });
  expect(await creds("--operator", "x")).toMatchObject({ code: 2 });
  const wrong = join(folder, "wrong.nk");
  writeFileSync(wrong, newSeed("user"));
  const bad = await creds("--format", "jwt", "--operator", wrong, "--out", join(folder, "bad"));
  expect(bad.code).not.toBe(0);
  expect(bad.err).toContain("has no seed of an operator's key: it does not begin with SO");
  expect(
    (await creds("--format", "jwt", "--operator", "nowhere", "--out", join(folder, "bad"))).err,
  ).toContain("can't be read");
  expect((await creds("--help")).out).toMatch(/Examples:\n +pawl creds/);
});
