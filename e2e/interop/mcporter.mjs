// mcporter against mcpx, over stdio and HTTP.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { check, finish } from "./report.mjs";
import { config, everything, serve, work } from "./mcpx.mjs";

const run = promisify(execFile);
const path = config(everything);
const front = await serve(path);
const own = `${work}/mcporter.json`;
writeFileSync(own, JSON.stringify({ imports: [], mcpServers: { stdio: { command: "mcpx", args: [path] }, http: { baseUrl: front.url + "/mcp" } } }));
const mcporter = async (...args) => (await run("mcporter", ["--config", own, ...args], { env: { ...process.env, HOME: work }, maxBuffer: 1 << 24 })).stdout;

for (const name of ["stdio", "http"]) {
  await check(`${name}: list --schema`, async () => {
    const listing = await mcporter("list", name, "--schema");
    assert.match(listing, /inspect/);
    assert.match(listing, /exec/);
  });
  await check(`${name}: call inspect`, async () => {
    assert.match(await mcporter("call", `${name}.inspect`, "server_name=everything"), /get-sum\(a: number, b: number\)/);
  });
  await check(`${name}: call exec with arguments as JSON`, async () => {
    const args = JSON.stringify({ server_name: "everything", tool_name: "get-sum", arguments: { a: 19, b: 23 } });
    assert.match(await mcporter("call", `${name}.exec`, "--args", args), /42/);
  });
  await check(`${name}: call exec with arguments as a JSON string`, async () => {
    assert.match(await mcporter("call", `${name}.exec`, "server_name=everything", "tool_name=get-sum", 'arguments={"a":19,"b":23}'), /42/);
  });
  await check(`${name}: resources`, async () => {
    assert.match(await mcporter("resource", name, "demo://resource/dynamic/text/7"), /7/);
  });
}
await front.stop();
finish();
