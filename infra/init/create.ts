/** `npm create pawl@latest`: a package of its own, made of this folder alone, so that there is little to fetch. */
import { parseArgs } from "node:util";
import { errorKinds, isPawlError, messageOf } from "../../shared/errors/errors.ts";
import { PLATFORMS, STORES } from "./choice.ts";
import { init, told } from "./init.ts";

const HELP = `Usage: npm create pawl@latest [name] -- [options]

Makes a project of agents that run on Pawl, in the folder of this name; "." for this one. What is there stays as it is.

Options:
  --platform <name>   where it will run: ${PLATFORMS.join(", ")}
  --store <name>      where tasks are kept: ${STORES.join(", ")}
  --yes               ask nothing: ${PLATFORMS[0]}, ${STORES[0]}
  --no-install        write the files only
  --pawl <from>       where the package pawl comes from: a version, or the path of a tarball
  --json              answer in JSON, and ask nothing
  --help

Exit codes: 0 done, 1 something is wrong, 2 used wrongly
Example:
  npm create pawl@latest my-agents -- --platform gcp --store firestore`;

async function main(args: string[]): Promise<number> {
  const isJson = args.includes("--json");
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const wrong = (code: string, message: string, exitCode: number) => {
    if (isJson) say(JSON.stringify({ error: { code, message } }));
    else process.stderr.write(`create-pawl: ${message}\n`);
    return exitCode;
  };
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        platform: { type: "string" },
        store: { type: "string" },
        pawl: { type: "string" },
        yes: { type: "boolean", short: "y" },
        "no-install": { type: "boolean" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      say(HELP);
      return 0;
    }
    if (positionals.length > 1) return wrong("usage", `Give one name, not ${positionals.length}`, 2);
    const { "no-install": none, help: _, ...options } = values;
    const done = await init(positionals[0], { ...options, install: !none });
    say(isJson ? JSON.stringify(done) : told(done).join("\n"));
    return 0;
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (code.startsWith("ERR_PARSE_ARGS")) return wrong("usage", messageOf(error), 2);
    const kind = isPawlError(error) ? error.code : "unexpected";
    return wrong(kind, messageOf(error), errorKinds[kind].exitCode);
  }
}

process.exitCode = await main(process.argv.slice(2));
