import { createVerify, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseServiceAccount, serviceAccountToken } from "../../shared/adapters/firestore/google-token.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const private_key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** Google's token endpoint, as far as it checks an assertion. */
const requests: { claims: Record<string, unknown>; valid: boolean }[] = [];
let answer: { status: number; body: unknown };
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const form = new URLSearchParams(body);
    const [head = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
    const valid =
      form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
      JSON.parse(Buffer.from(head, "base64url").toString()).alg === "RS256" &&
      createVerify("RSA-SHA256").update(`${head}.${claims}`).verify(publicKey, signature, "base64url");
    requests.push({ claims: JSON.parse(Buffer.from(claims, "base64url").toString()), valid });
    response
      .writeHead(answer.status, { "content-type": "application/json" })
      .end(JSON.stringify(answer.body));
  });
});
let token_uri = "";
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  token_uri = `http://127.0.0.1:${typeof address === "object" && address?.port}/token`;
});
afterAll(() => server.close());

const account = () => ({ client_email: "robot@project.iam", private_key, token_uri });

test("a signed assertion is exchanged once for all callers, and again shortly before it expires", async () => {
  requests.length = 0;
  let now = 1_700_000_000_000;
  const token = serviceAccountToken(account(), () => now);
  answer = { status: 200, body: { access_token: "first", expires_in: 3600 } };
  expect(await Promise.all([token(), token(), token()])).toEqual(["first", "first", "first"]);
  expect(requests).toHaveLength(1);
  expect(requests[0]).toMatchObject({
    valid: true,
    claims: {
      iss: "robot@project.iam",
      aud: token_uri,
      scope: "https://www.googleapis.com/auth/datastore",
      iat: 1_700_000_000,
      exp: 1_700_003_600,
    },
  });
  now += 3_400_000;
  expect(await token()).toBe("first");
  now += 100_000;
  answer = { status: 200, body: { access_token: "second", expires_in: 3600 } };
  expect(await token()).toBe("second");
  expect(requests).toHaveLength(2);
});

test("a refusal is an error with its reason, and is not remembered", async () => {
  const token = serviceAccountToken(account());
  answer = { status: 400, body: { error: "invalid_grant", error_description: "Invalid JWT Signature." } };
  await expect(token()).rejects.toMatchObject({
    code: "store_refused",
    message: "No access token for robot@project.iam: Invalid JWT Signature.",
  });
  answer = { status: 503, body: {} };
  await expect(token()).rejects.toMatchObject({ code: "store_unavailable" });
  answer = { status: 200, body: { access_token: "now", expires_in: 3600 } };
  expect(await token()).toBe("now");
});

test("a key file that is none is refused without being quoted", async () => {
  expect(() => parseServiceAccount("-----BEGIN PRIVATE KEY----- abc", "key.json")).toThrow(
    /^key\.json is not JSON\. It should/,
  );
  expect(() => parseServiceAccount("{}", "key.json")).toThrow("no client_email and private_key");
  const broken = serviceAccountToken({
    ...account(),
    private_key: "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
  });
  const error = await broken().catch((e: Error) => e);
  expect(error).toMatchObject({ code: "setting_invalid" });
  expect(String(error)).not.toContain("c2VjcmV0");
});

test("a token that was refused is asked for anew, also by the Firestore client", async () => {
  requests.length = 0;
  const token = serviceAccountToken(account());
  answer = { status: 200, body: { access_token: "old", expires_in: 3600 } };
  expect(await token()).toBe("old");
  answer = { status: 200, body: { access_token: "new", expires_in: 3600 } };
  expect(await token("refused")).toBe("new");
  expect(await token()).toBe("new");
  const seen: (string | undefined)[] = [];
  const firestore = createServer((request, response) => {
    seen.push(request.headers.authorization);
    const isNew = request.headers.authorization === "Bearer newer";
    const body = isNew ? [{ missing: "x" }] : { error: { status: "UNAUTHENTICATED", message: "expired" } };
    response.writeHead(isNew ? 200 : 401).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => firestore.listen(0, "127.0.0.1", resolve));
  const address = firestore.address();
  const origin = `http://127.0.0.1:${typeof address === "object" && address?.port}`;
  answer = { status: 200, body: { access_token: "newer", expires_in: 3600 } };
  const store = firestoreRest({ projectId: "p", namespace: "n", requestTimeout: 2_000, origin, token });
  expect(await store.get("x")).toBeUndefined();
  expect(seen).toEqual(["Bearer new", "Bearer newer"]);
  firestore.close();
});
