import {
  LIST,
  type Listed,
  type ReportList,
  readReportList,
  textName,
} from "../../../shared/reconcile/books/reports.ts";
import { reconciled } from "../reconciling.ts";
import type { Planted, Stage } from "./planting.ts";

const PROGRESS = "reconcile-progress";

/** Writes a record past Pawl. */
async function put(s: Stage, name: string, text: string): Promise<void> {
  const { store } = s.b.deps;
  const there = await store.getRecord(name);
  await store.putRecord(name, text, there?.revision);
}

const ledgerText = async ({ b }: Stage) => (await b.deps.store.getRecord(LIST))?.text ?? "";
const ledgerOf = (s: Stage): Promise<ReportList> => readReportList(s.b.deps.store);

const LEDGER = "books_altered list of reports";

const books = (name: string, plant: Planted["plant"]): Planted => ({
  name,
  isAlone: true,
  before: async (s, id) => {
    await s.submit(id);
    await s.submit(`${id}waits`, "wait");
  },
  plant,
});

const ledger = (name: string, change: (s: Stage) => Promise<void>): Planted =>
  books(`the list of reports ${name}`, async (s) => {
    await change(s);
    return [LEDGER];
  });

const progress = (name: string, text: string): Planted =>
  books(`a progress record that ${name}`, async (s) => {
    await put(s, PROGRESS, text);
    return [`unreadable record ${PROGRESS}`];
  });

/** Of this week's report. */
async function weekOf(s: Stage): Promise<Listed> {
  return (await ledgerOf(s)).reports.find(({ name }) => name.includes("W")) as Listed;
}

const openPart = async (s: Stage) => (await ledgerOf(s)).open?.parts[0] as string;

/** A task that ended since the last report and is gone, so that nobody explains its sequence. */
async function lose(s: Stage, id: string): Promise<string> {
  await s.submit(id);
  await s.drain();
  const [{ seq } = { seq: 0 }] = (await s.b.task(id)).settled;
  await s.raw.removeTask(id);
  return `unexplained ${s.stream}#${seq}`;
}

/** Another text in the same record: which store has it makes no difference. */
const onKv = (fault: Planted): Planted => ({ ...fault, store: "nats-kv" });

export const plantedBooks: readonly Planted[] = [
  progress("is no JSON", "none"),
  onKv(progress("is null", "null")),
  onKv(progress("is an empty object", "{}")),
  books("a checkpoint set forward over a lost sequence", async (s, id) => {
    const lost = await lose(s, `${id}lost`);
    const now = await ledgerOf(s);
    const mark = now.marks[s.stream];
    if (!mark) throw new Error("no mark");
    const marks = { ...now.marks, [s.stream]: { ...mark, upTo: mark.upTo + 1 } };
    await put(s, LIST, JSON.stringify({ ...now, marks }));
    return [LEDGER, lost];
  }),
  books("the time of the last report set forward over a lost sequence", async (s, id) => {
    const lost = await lose(s, `${id}lost`);
    const now = await ledgerOf(s);
    await put(s, LIST, JSON.stringify({ ...now, at: (now.at ?? 0) + 3_600_000 }));
    return [LEDGER, lost];
  }),
  ledger("removed", (s) => s.raw.removeRecord(LIST)),
  ledger("that is no JSON", (s) => put(s, LIST, "none")),
  onKv(ledger("that is other JSON", (s) => put(s, LIST, "{}"))),
  ledger("without its seal", async (s) => {
    const { seal: _, ...now } = await ledgerOf(s);
    await put(s, LIST, JSON.stringify(now));
  }),
  ledger("with a report taken out", async (s) => {
    const now = await ledgerOf(s);
    await put(s, LIST, JSON.stringify({ ...now, reports: now.reports.slice(1) }));
  }),
  ledger("replaced by an older one", async (s) => {
    const older = await ledgerText(s);
    await s.submit("more");
    await s.drain();
    await reconciled(s.b.deps);
    await put(s, LIST, older);
  }),
  books("the list of reports removed over a lost sequence", async (s, id) => {
    const lost = await lose(s, `${id}lost`);
    await s.raw.removeRecord(LIST);
    return [LEDGER, lost];
  }),
  books("this week's report removed", async (s) => {
    const week = await weekOf(s);
    await s.b.deps.store.removeTexts((part) => part === textName(week, "json"));
    return [`books_altered report ${week.name}`];
  }),
  books("this week's report altered", async (s) => {
    const week = await weekOf(s);
    const { store } = s.b.deps;
    const text = (await store.getText(textName(week, "json"))) ?? "";
    await store.putText(textName(week, "json"), text.replace('"runs":1', '"runs":7'));
    return [`books_altered report ${week.name}`];
  }),
  books("a part of the open tasks removed", async (s) => {
    const name = await openPart(s);
    await s.b.deps.store.removeTexts((part) => part === name);
    return ["books_altered open tasks 1"];
  }),
  books("a part of the open tasks altered", async (s, id) => {
    const name = await openPart(s);
    const { store } = s.b.deps;
    const text = (await store.getText(name)) ?? "";
    await store.putText(name, text.replace(`${id}waits`, "another"));
    return ["books_altered open tasks 1"];
  }),
];
