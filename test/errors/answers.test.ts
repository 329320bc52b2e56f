import { expect, test, vi } from "vitest";
import { sayError } from "../../infra/cli/output.ts";
import { type ErrorCode, errorKinds, PawlError } from "../../shared/errors/errors.ts";
import { problemOf } from "../../shared/web/problem.ts";

const words = (text: string) => text.trim().split(/\s+/);

/** What callers rely on: a client by the status, a script by the exit code. */
const ANSWERS: Record<string, string[]> = {
  "400, 1": ["request_cut_off"],
  "401, 1": ["token_expired", "unauthorised"],
  "403, 1": ["scope_missing"],
  "404, 1": ["not_found", "report_unknown", "task_unknown"],
  "405, 1": ["method_not_allowed"],
  "409, 1": words(
    "illegal_transition msg_id_taken question_moved redrive_refused signal_refused signal_unasked",
  ),
  "409, 2": ["id_conflict"],
  "413, 2": ["input_too_large"],
  "422, 1": ["idempotency_key_reused"],
  "422, 2": words("agent_name_invalid agent_unknown input_invalid task_id_invalid"),
  "429, 1": ["quota_exceeded", "too_many_requests"],
  "500, 1":
    words(`agent_mismatch approval_rejected approval_timeout attempts_exhausted audit_unreadable budget_exceeded
    budget_unbounded bundle_too_large call_invalid child_failed crash_loop deliveries_exhausted deploy_failed deploy_incomplete
    document_altered document_missing document_refused document_too_large document_unreadable effect_in_doubt
    envelope_invalid envelope_version execution_over fatal journal_altered journal_full journal_mismatch lease_lost
    mcp_invalid model_context model_invalid model_output model_refusal model_stop model_truncated model_turns period_expired price_unknown queue_drift
    replay_differs result_invalid result_too_large seal_key_unknown step_too_large store_refused stores_differ
    unexpected`),
  "500, 2": ["agent_invalid", "secret_missing", "setting_invalid", "usage"],
  "503, 1":
    words(`bus_refused bus_unavailable handler_failed mcp_unavailable model_unavailable queue_full queue_gone queue_missing
    server_too_old store_full store_unavailable task_timeout unhealthy`),
};

test("every error has the status and the exit code that callers rely on", () => {
  const silent = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const codes = (Object.keys(errorKinds) as ErrorCode[]).sort();
  const answers = Object.groupBy(codes, (code) => {
    const error = new PawlError(code, "what happened");
    return `${problemOf(error, () => {}).status}, ${sayError(error, true)}`;
  });
  silent.mockRestore();
  expect(answers).toEqual(ANSWERS);
});

test("what Pawl has no word for is 500, and exit code 1", () => {
  const silent = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const error = new Error("out of the blue");
  const answer = [problemOf(error, () => {}).status, sayError(error, true)];
  silent.mockRestore();
  expect(answer).toEqual([500, 1]);
});

test("a caller is told when to come again, where that may help", () => {
  const after = (code: ErrorCode) =>
    problemOf(new PawlError(code, "what happened"), () => {}).headers.get("retry-after");
  expect(after("store_unavailable")).toBe("60");
  expect(after("store_refused")).toBe(null);
});
