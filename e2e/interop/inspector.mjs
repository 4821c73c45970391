// The MCP Inspector's command line against mcpx, over stdio, HTTP and SSE.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { check, finish } from "./report.mjs";
import { config, everything, serve, work } from "./mcpx.mjs";

const run = promisify(execFile);
const path = config(everything);
const front = await serve(path);
const fronts = {
  stdio: ["mcpx", path],
  http: [front.url + "/mcp", "--transport", "http"],
  sse: [front.url + "/sse", "--transport", "sse"],
};
// inspector runs one method; what it prints is JSON.
async function inspector(target, ...args) {
  const { stdout } = await run("mcp-inspector", ["--cli", ...target, ...args], { env: { ...process.env, HOME: work }, maxBuffer: 1 << 24 });
  return JSON.parse(stdout);
}
const exec = (tool, args) => ["--method", "tools/call", "--tool-name", "exec", "--tool-arg", "server_name=everything", `tool_name=${tool}`, `arguments=${JSON.stringify(args)}`];

for (const [name, target] of Object.entries(fronts)) {
  await check(`${name}: tools/list`, async () => {
    const { tools } = await inspector(target, "--method", "tools/list");
    assert.deepEqual(tools.map((t) => t.name), ["inspect", "exec"]);
  });
  await check(`${name}: tools/list --strict finds nothing against the schemas`, () => inspector(target, "--method", "tools/list", "--strict"));
  await check(`${name}: tools/call inspect and exec`, async () => {
    const listing = await inspector(target, "--method", "tools/call", "--tool-name", "inspect", "--tool-arg", "server_name=everything");
    assert.match(listing.content[0].text, /get-sum\(a: number, b: number\)/);
    const sum = await inspector(target, ...exec("get-sum", { a: 19, b: 23 }));
    assert.match(sum.content[0].text, /42/);
  });
  await check(`${name}: prompts and resources`, async () => {
    const prompt = await inspector(target, "--method", "prompts/get", "--prompt-name", "everything__args-prompt", "--prompt-args", "city=Rome");
    assert.match(prompt.messages[0].content.text, /Rome/);
    const resource = await inspector(target, "--method", "resources/read", "--uri", "demo://resource/dynamic/text/7");
    assert.match(resource.contents[0].text, /7/);
  });
}
await front.stop();
finish();
