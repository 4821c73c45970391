// The conformance suite's test client for OAuth: the suite's server is mcpx's only
// server. The driver calls its tool with "mcpx exec", and signs in with "mcpx auth login"
// whenever mcpx says so, at most three times. The suite's authorization server agrees at
// once, so curl is browser enough.
//
//   auth_driver.mjs URL
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { config, work } from "./mcpx.mjs";

const url = process.argv.at(-1);
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const auth = { client_metadata_url: "https://conformance-test.local/client-metadata.json" };
for (const key of ["client_id", "client_secret", "issuer"]) if (given[key]) auth[key] = given[key];
if (given.private_key_pem) auth.private_key = given.private_key_pem;
if (given.signing_algorithm) auth.signing_alg = given.signing_algorithm;
if (/client-credentials/.test(process.env.MCP_CONFORMANCE_SCENARIO ?? "")) {
  auth.flow = "client_credentials";
  delete auth.client_metadata_url;
}

const path = config({ auth: { store: "file" }, mcpServers: { suite: { url, auth } } });
const env = { ...process.env, BROWSER: "curl -sL", XDG_STATE_HOME: mkdtempSync(join(work, "state-")) };

// mcpx runs a command and returns what it said.
function mcpx(...args) {
  const run = spawnSync("mcpx", args, { env, encoding: "utf8", timeout: 25_000 });
  console.error(`mcpx ${args.join(" ")}: ${run.status}\n${run.stdout}${run.stderr}`);
  return { ok: run.status === 0, said: run.stdout + run.stderr };
}

for (let signIns = 0; ; signIns++) {
  const call = mcpx("exec", path, "suite", "test-tool", "{}");
  if (call.ok) process.exit(0);
  const more = /needs more access \(([^)]*)\)/.exec(call.said);
  if ((!more && !/needs sign-in/.test(call.said)) || signIns === 3) process.exit(1);
  const scopes = more ? more[1].split(" ").flatMap((scope) => ["--scope", scope]) : [];
  if (!mcpx("auth", "login", path, "suite", ...scopes).ok) process.exit(1);
}
