import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { KeyPair } from "@nats-io/nkeys";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import { confOf, userOf } from "./conf.ts";
import { type KeyKind, keyOf, newSeed, signed } from "./jwt.ts";
import { envText, type Kept, keeping, newPassword } from "./keep.ts";
import type { Plan } from "./plan.ts";

/** Where to, where nobody says it. */
export const FOLDER = ".pawl/creds";
export const FORMATS = ["conf", "jwt"] as const;
export type Format = (typeof FORMATS)[number];

export interface Writing {
  readonly plan: Plan;
  readonly format: Format;
  readonly folder: string;
  /** Files with seeds of keys that are there already: of the operator, and of the core account. */
  readonly operator?: string;
  readonly account?: string;
}

export interface Written {
  readonly folder: string;
  /** What the server's configuration includes. */
  readonly include: string;
  /** What each function or command has in its environment, by identity: files of this folder. */
  readonly identities: Readonly<Record<string, string>>;
  readonly written: readonly string[];
  /** Keys and passwords that were there, and are as they were. */
  readonly reused: readonly string[];
}

const INCLUDE = "nats.conf";

/** Writes an identity for each function and agent, and what the server has to know of them. */
export async function writeCreds(writing: Writing): Promise<Written> {
  const { plan, format, folder } = writing;
  const kept = await keeping(folder);
  const names = [...plan.core.identities, ...plan.agents.map(({ identity }) => identity)].map(
    ({ name }) => name,
  );
  if (format === "conf") await writeConf(plan, names, kept);
  else await writeJwt(writing, kept);
  return {
    folder,
    include: INCLUDE,
    identities: Object.fromEntries(names.map((name) => [name, `${name}.env`])),
    written: kept.written,
    reused: kept.reused,
  };
}

async function writeConf(plan: Plan, names: readonly string[], kept: Kept): Promise<void> {
  const passwords = new Map<string, string>();
  for (const name of names) passwords.set(name, await kept.key(`keys/${name}.password`, newPassword));
  for (const [name, password] of passwords)
    await kept.write(
      `${name}.env`,
      envText({ NATS_USER: userOf(plan.core.name, name), NATS_PASSWORD: password }),
    );
  await kept.write(INCLUDE, confOf(plan, passwords));
}

async function writeJwt({ plan, folder, operator, account }: Writing, kept: Kept): Promise<void> {
  const given = new Map<string, string>();
  if (operator !== undefined) given.set("operator/operator", operator);
  if (account !== undefined) given.set(`account/${plan.core.name}`, account);
  const keys = new Map<string, KeyPair>();
  const prepare = async (kind: KeyKind, name: string) => {
    const id = `${kind}/${name}`;
    const theirs = given.get(id);
    const file = theirs ?? `keys/${kind}-${name}.nk`;
    const seed = theirs ? await readSeed(theirs) : await kept.key(file, () => newSeed(kind));
    keys.set(id, keyOf(seed, kind, file));
  };
  await prepare("operator", "operator");
  for (const name of ["system", plan.core.name, ...plan.agents.map((one) => one.name)])
    await prepare("account", name);
  for (const { name } of [...plan.core.identities, ...plan.agents.map((one) => one.identity)])
    await prepare("user", name);
  const { conf, accounts, creds } = signed(plan, (kind, name) => keys.get(`${kind}/${name}`) as KeyPair);
  for (const [name, token] of Object.entries(accounts))
    await kept.write(`accounts/${name}.jwt`, `${token}\n`);
  for (const [name, text] of Object.entries(creds)) {
    await kept.write(`${name}.creds`, text);
    await kept.write(`${name}.env`, envText({ NATS_CREDS: join(resolve(folder), `${name}.creds`) }));
  }
  await kept.write(INCLUDE, conf);
}

async function readSeed(file: string): Promise<string> {
  return readFile(file, "utf8").catch((error: unknown) => {
    throw new PawlError("setting_invalid", `${file} can't be read: ${messageOf(error)}`);
  });
}
