import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Deps } from "../../shared/ports/deps.ts";
import { admit } from "../../shared/quota/admit.ts";
import { type Subject, setQuota } from "../../shared/quota/quotas.ts";
import type { Quota } from "../../shared/settings/quota.ts";
import { admitting as stage } from "../support/admitting.ts";

const ann: Subject = { kind: "owner", name: "ann" };

const quota = (ownerQuota: Quota) => ({ ownerQuota });

describe("tasks that are not over", () => {
  test("the one too many is refused, with which quota, how much is used, of what, and when to try again", async () => {
    const s = stage(quota({ tasks: 3 }));
    const api = s.instance();
    for (let i = 0; i < 3; i++) expect(await s.submit(api)).toBe("taken");
    await expect(admit(api, s.wanted())).rejects.toMatchObject({
      code: "quota_exceeded",
      message: expect.stringMatching(
        /^owner:ann has 3 of the 3 tasks that are not over that its quota allows\. Try again in \d+ s$/,
      ),
      after: expect.any(Number),
    });
    expect(await s.submit(api, { owner: "bob" })).toBe("taken");
    // What an operator submits has no owner.
    expect(await s.submit(api, { owner: undefined })).toBe("taken");
  });

  test("the same task again is never refused", async () => {
    const s = stage(quota({ tasks: 1, submits: 1 }));
    const api = s.instance();
    expect(await s.submit(api, { id: "same" })).toBe("taken");
    await admit(api, s.wanted({ id: "same" }));
    await expect(admit(api, s.wanted())).rejects.toMatchObject({ code: "quota_exceeded" });
  });

  test("holds for several instances together, also when they are asked at once", async () => {
    const s = stage(quota({ tasks: 5 }));
    const [a, b, c] = [s.instance(), s.instance(), s.instance()];
    const answers = await Promise.all([a, b, c, a, b, c, a, b, c].map((one) => s.submit(one)));
    expect(answers.filter((answer) => answer === "taken")).toHaveLength(5);
  });

  test("what is over comes back, though nobody says so: the documents are counted", async () => {
    const s = stage(quota({ tasks: 2 }));
    const api = s.instance();
    await s.submit(api, { id: "a" });
    await s.submit(api, { id: "b" });
    await s.end("a");
    s.pass(6_000);
    expect(await s.submit(api)).toBe("taken");
    expect(await s.submit(api)).toMatch(/has 2 of the 2/);
  });

  test("what was let through and never stored comes back too", async () => {
    const s = stage(quota({ tasks: 2 }));
    const api = s.instance();
    await admit(api, s.wanted());
    await admit(api, s.wanted());
    s.pass(6_000);
    expect(await s.submit(api)).toBe("taken");
  });

  test("a crowd that is refused makes nobody count more than once in five seconds", async () => {
    const s = stage(quota({ tasks: 1 }));
    const instances = [s.instance(), s.instance()];
    await s.submit(instances[0] as Deps);
    s.pass(6_000);
    s.calls.list = 0;
    const crowd = Array.from({ length: 40 }, (_, i) => s.submit(instances[i % 2] as Deps));
    expect((await Promise.all(crowd)).filter((answer) => answer === "taken")).toEqual([]);
    expect(s.calls.list).toBe(1);
  });
});

test("tasks that were there before the quota count", async () => {
  const s = stage();
  for (let i = 0; i < 4; i++) await s.submit(s.instance());
  expect(s.calls).toEqual({ list: 0, records: 0 });
  await setQuota(s.store, ann, { tasks: 5 });
  const api = s.instance();
  expect(await s.submit(api)).toBe("taken");
  expect(await s.submit(api)).toMatch(/has 5 of the 5/);
});

test("an owner that comes back after ten idle minutes is counted anew where it has half of its quota, and not before", async () => {
  const s = stage(quota({ tasks: 10 }));
  const api = s.instance();
  expect(await s.submit(api)).toBe("taken");
  // Without a quota nothing is added.
  await setQuota(s.store, ann, { tasks: null });
  s.pass(5_001);
  for (let i = 0; i < 6; i++) expect(await s.submit(api)).toBe("taken");
  await setQuota(s.store, ann, undefined);
  s.pass(700_000);
  s.calls.list = 0;
  expect(await s.submit(api)).toBe("taken");
  expect(s.calls.list).toBe(0);
  for (let i = 0; i < 2; i++) expect(await s.submit(api)).toBe("taken");
  expect(s.calls.list).toBe(0);
  for (let i = 0; i < 4; i++) await s.submit(api);
  expect(s.calls.list).toBe(1);
  expect(await s.submit(api)).toMatch(/has 1\d of the 10/);
});

test("what an operator sets for one holds for that one within five seconds, and no longer when it is cleared", async () => {
  const s = stage(quota({ tasks: 1 }));
  const api = s.instance();
  await s.submit(api);
  await s.submit(api, { owner: "bob" });
  await setQuota(s.store, ann, { tasks: 2 });
  s.pass(5_001);
  expect(await s.submit(api)).toBe("taken");
  expect(await s.submit(api, { owner: "bob" })).toMatch(/owner:bob has 1 of the 1/);
  await setQuota(s.store, ann, undefined);
  s.pass(5_001);
  expect(await s.submit(api)).toMatch(/has 2 of the 1/);
  await setQuota(s.store, ann, { tasks: null });
  s.pass(5_001);
  expect(await s.submit(api)).toBe("taken");
});

test("an agent's quota holds whoever submits, and who is refused by it has used nothing of its own", async () => {
  const s = stage({ ownerQuota: { tasks: 2 }, agentQuota: { tasks: 1 } });
  const api = s.instance();
  expect(await s.submit(api, { owner: undefined })).toBe("taken");
  for (let i = 0; i < 3; i++) expect(await s.submit(api)).toMatch(/^agent:echo has 1 of the 1/);
  for (let i = 0; i < 2; i++)
    expect(await s.submit(api, { agent: "other" })).toMatch(i === 0 ? /taken/ : /agent:other/);
});

test("submits a minute are refused beyond the quota, until the minute is over", async () => {
  const s = stage(quota({ submits: 3 }));
  const api = s.instance();
  for (let i = 0; i < 3; i++) expect(await s.submit(api)).toBe("taken");
  expect(await s.submit(s.instance())).toMatch(/has 3 of the 3 tasks taken in a minute .* Try again in 60 s/);
  s.pass(120_000);
  expect(await s.submit(api)).toBe("taken");
});

test("dollars: what an owner's tasks spent today stops its next submits, not another's, and not tomorrow's", async () => {
  // The meter has the machine's clock, and midnight must not pass between the two.
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 5, 12), toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const s = stage(quota({ usd: 1 }));
  const api = s.instance();
  s.pass(Date.now() - s.now());
  expect(await s.submit(api)).toBe("taken");
  api.meter.spent?.({ agent: "echo", owner: "ann" }, 0.6);
  await api.meter.flush();
  api.meter.spent?.({ agent: "echo", owner: "ann" }, 0.6);
  api.meter.count("model_usd", { agent: "echo" }, 0.6);
  await api.meter.flush();
  s.pass(5_001);
  expect(await s.submit(api)).toMatch(/owner:ann has 1.2 of the 1 dollars spent since midnight UTC/);
  expect(await s.submit(api, { owner: "bob" })).toBe("taken");
  s.pass(86_400_000);
  expect(await s.submit(api)).toBe("taken");
});

describe("where the store has an end", () => {
  const fillOf = (bytes: number) => () => ({ bytes, limit: 100_000 });

  test("one owner gets half of it by default, finished tasks included; others go on", async () => {
    let bytes = 10_000;
    const s = stage({}, () => ({ bytes, limit: 100_000 }));
    const api = s.instance();
    for (let i = 0; i < 10; i++) {
      expect(await s.submit(api, { bytes: 5_000, id: `a${i}` })).toBe("taken");
      s.pass(1_001);
    }
    for (let i = 0; i < 10; i++) await s.end(`a${i}`);
    // Below the half nothing is counted at all.
    expect(s.calls).toEqual({ list: 0, records: 0 });
    bytes = 60_000;
    s.pass(6_000);
    expect(await s.submit(api, { bytes: 5_000 })).toMatch(/owner:ann has \d+ of the 50000 bytes/);
    expect(await s.submit(api, { owner: "bob", bytes: 5_000 })).toBe("taken");
  });

  test("nobody's submit is taken that leaves less than a fifth of it", async () => {
    const s = stage({}, fillOf(75_000));
    const api = s.instance();
    await expect(admit(api, s.wanted({ bytes: 5_000 }))).rejects.toMatchObject({
      code: "store_full",
      after: 30,
      message: expect.stringContaining("memory has 75000 of 100000 bytes"),
    });
    expect(await s.submit(api, { bytes: 1_000, owner: undefined })).toBe("taken");
    // What was taken since the store was asked is there too.
    const crowd = Array.from({ length: 20 }, () => s.submit(api, { bytes: 1_000, owner: undefined }));
    expect((await Promise.all(crowd)).filter((answer) => answer === "taken")).toHaveLength(1);
  });
});

describe("where each agent has a bucket of its own", () => {
  const full = () => ({ bytes: 60_000, limit: 100_000 });

  test("a share is of one bucket, and what an owner has in others' leaves it whole", async () => {
    const s = stage({ isolation: "documents" }, full);
    const api = s.instance();
    const fill = async (agent: string, times: number) => {
      for (let i = 0; i < times; i++) {
        expect(await s.submit(api, { bytes: 5_000, agent })).toBe("taken");
        s.pass(1_001);
      }
    };
    await fill("echo", 4);
    await fill("other", 4);
    s.pass(6_000);
    for (const agent of ["echo", "other"]) {
      await fill(agent, 3);
      expect(await s.submit(api, { bytes: 10_000, agent })).toMatch(
        new RegExp(
          `^owner:ann in the bucket of ${agent} has \\d+ of the 50000 bytes of its tasks' documents`,
        ),
      );
    }
  });

  test("so many bytes are of all buckets together, however little is in one", async () => {
    const s = stage({ isolation: "documents", ownerQuota: { bytes: 20_000, tasks: 100 } }, () => ({
      bytes: 0,
      limit: 100_000,
    }));
    const api = s.instance();
    for (const agent of ["echo", "other"]) expect(await s.submit(api, { bytes: 5_000, agent })).toBe("taken");
    expect(await s.submit(api, { bytes: 8_000, agent: "third" })).toMatch(/^owner:ann has \d+ of the 20000/);
  });
});
