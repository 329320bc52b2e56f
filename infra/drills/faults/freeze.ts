import { execFileSync } from "node:child_process";
import { until } from "../until.ts";

/** SIGSTOP, and certain that it has stopped: the signal is sent at once, but a busy process may answer once more. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until(`process ${pid} is stopped`, async () =>
    execFileSync("ps", ["-o", "stat=", "-p", String(pid)])
      .toString()
      .startsWith("T"),
  );
}
