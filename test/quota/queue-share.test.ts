import { expect, test } from "vitest";
import { admit } from "../../shared/quota/admit.ts";
import { setQuota } from "../../shared/quota/quotas.ts";
import { endless, queue, admitting as stage } from "../support/admitting.ts";

const limit = 100_000;

test("one owner gets half of it by default; others, other queues and the same task again are taken", async () => {
  let bytes = 0;
  const s = stage({}, endless, () => ({ bytes, limit }));
  const api = s.instance();
  for (let i = 0; i < 7; i++) expect(await s.submit(api, { bytes: 5_000, id: `a${i}` })).toBe("taken");
  // Below the half nothing is counted at all.
  expect(s.calls).toEqual({ list: 0, records: 0 });
  bytes = 50_000;
  s.pass(6_000);
  // What was submitted before anybody counted is counted too.
  expect(await s.submit(api, { bytes: 10_000 })).toMatch(
    /^owner:ann in PAWL_echo_0_g1 has 39\d\d\d of the 50000 bytes of inputs .* in one queue/,
  );
  expect(await s.submit(api, { owner: "bob", bytes: 10_000 })).toBe("taken");
  const elsewhere = { agent: "other", queue: { ...queue, agent: "other" } };
  expect(await s.submit(api, { ...elsewhere, bytes: 10_000 })).toBe("taken");
  await admit(api, s.wanted({ id: "a0", bytes: 5_000 }));
  for (const id of ["a0", "a1"]) await s.end(id);
  s.pass(6_000);
  expect(await s.submit(api, { bytes: 10_000 })).toBe("taken");
});

test("what is due later is counted from the first on: it comes into the queue all at once", async () => {
  const s = stage({}, endless, () => ({ bytes: 0, limit }));
  const api = s.instance();
  for (let i = 0; i < 8; i++)
    expect(await s.submit(api, { bytes: 5_000, id: `a${i}`, isLater: true })).toBe("taken");
  expect(await s.submit(api, { bytes: 5_000, isLater: true })).toMatch(/^owner:ann in PAWL_echo_0_g1 has/);
  // Nor is there as much again for what is due at once.
  expect(await s.submit(s.instance(), { bytes: 5_000 })).toMatch(/^owner:ann in PAWL_echo_0_g1 has/);
});

const usages = (names: readonly string[]) => names.filter((name) => name.startsWith("usage-"));

test("a submit of who was never counted, or has little, costs the store one look a second, and no write", async () => {
  const s = stage({}, endless, () => ({ bytes: 0, limit }));
  const api = s.instance();
  const crowd = async () => {
    const before = s.calls.records;
    const looked = s.looked.length;
    for (let i = 0; i < 10; i++) expect(await s.submit(api)).toBe("taken");
    await Promise.all(Array.from({ length: 10 }, () => s.submit(api)));
    return { looks: usages(s.looked.slice(looked)).length, writes: s.calls.records - before };
  };
  expect(await crowd()).toEqual({ looks: 1, writes: 0 });
  s.pass(1_001);
  expect(await crowd()).toEqual({ looks: 1, writes: 0 });
  // One that is due later leaves a record, and costs those that are due at once nothing.
  s.pass(1_001);
  expect(await s.submit(api, { isLater: true })).toBe("taken");
  expect(await crowd()).toEqual({ looks: 0, writes: 0 });
  s.pass(1_001);
  expect(await crowd()).toEqual({ looks: 1, writes: 0 });
  s.pass(700_000);
  expect(await crowd()).toEqual({ looks: 1, writes: 0 });
  expect(s.calls.list).toBe(0);
});

test("who was counted while the queue was full costs one write more when it has drained, and nothing from then on", async () => {
  let bytes = 60_000;
  const s = stage({}, endless, () => ({ bytes, limit }));
  const api = s.instance();
  expect(await s.submit(api)).toBe("taken");
  expect(s.calls.list).toBe(1);
  bytes = 0;
  s.pass(1_001);
  s.calls.records = 0;
  for (let i = 0; i < 20; i++) {
    expect(await s.submit(api)).toBe("taken");
    s.pass(100);
  }
  expect(s.calls).toEqual({ list: 1, records: 1 });
});

test("what was submitted uncounted after a count is found when the queue fills again", async () => {
  let bytes = 60_000;
  const s = stage({}, endless, () => ({ bytes, limit }));
  const api = s.instance();
  expect(await s.submit(api, { bytes: 1_000 })).toBe("taken");
  bytes = 0;
  s.pass(6_000);
  for (let i = 0; i < 8; i++) expect(await s.submit(api, { bytes: 5_000 })).toBe("taken");
  bytes = 60_000;
  s.pass(6_000);
  expect(await s.submit(api, { bytes: 10_000 })).toMatch(
    /^owner:ann in PAWL_echo_0_g1 has 4\d\d\d\d of the 50000/,
  );
});

test("what is due later is counted in the documents no sooner than it comes near the limit, idle for long or not", async () => {
  const s = stage({}, endless, () => ({ bytes: 0, limit }));
  const api = s.instance();
  for (let i = 0; i < 8; i++) {
    expect(await s.submit(api, { bytes: 5_000, isLater: true })).toBe("taken");
    s.pass(700_000);
  }
  expect(s.calls.list).toBe(0);
  expect(await s.submit(api, { bytes: 10_000, isLater: true })).toMatch(/^owner:ann in PAWL_echo_0_g1 has/);
  expect(s.calls.list).toBe(1);
});

test("a share of its own, or none, can be set for one", async () => {
  const s = stage({}, endless, () => ({ bytes: 60_000, limit }));
  await setQuota(s.store, { kind: "owner", name: "ann" }, { queue: 5_000 });
  await setQuota(s.store, { kind: "owner", name: "bob" }, { queue: null });
  const api = s.instance();
  expect(await s.submit(api, { bytes: 5_000 })).toMatch(/has 0 of the 5000/);
  for (let i = 0; i < 3; i++) expect(await s.submit(api, { owner: "bob", bytes: 5_000 })).toBe("taken");
});

test("whose fill can't be seen has no limit meanwhile, which is said once, and again after it was seen", async () => {
  let isRefused = true;
  const look = () => {
    if (isRefused) throw new Error("permissions violation");
    return undefined;
  };
  const s = stage({}, look, look);
  const api = s.instance();
  const round = async () => {
    expect(await s.submit(api)).toBe("taken");
    s.pass(1_001);
  };
  for (let i = 0; i < 3; i++) await round();
  const once = ["store of echo", "PAWL_echo_0_g1"].map((of) => `quota.unseen ${of} permissions violation`);
  expect(s.said).toEqual(once);
  isRefused = false;
  await round();
  isRefused = true;
  await round();
  expect(s.said).toEqual([...once, ...once]);
});
