// The shapes of arguments that models are known to send, by the TypeScript SDK.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { check, finish, text } from "./report.mjs";
import { config, everything, work } from "./mcpx.mjs";

const shapes = JSON.parse(readFileSync(new URL("shapes.json", import.meta.url)));
const memory = { command: "mcp-server-memory", env: { MEMORY_FILE_PATH: `${work}/shapes-${process.pid}.jsonl` } };
const path = config({ mcpServers: { ...everything.mcpServers, memory } });
const client = new Client({ name: "interop", version: "1" });
await client.connect(new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore" }));
const call = (args) => client.callTool({ name: "exec", arguments: args });

for (const [what, args] of shapes.right) {
  await check(`TypeScript: ${what}`, async () => assert.match(text(await call(args)), /The sum of 19 and 23 is 42/));
}
for (const [what, args] of shapes.none) {
  await check(`TypeScript: ${what}`, async () => assert.ok((await call(args)).content.some((c) => c.type === "image")));
}
for (const [what, args] of shapes.nested) {
  await check(`TypeScript: ${what}`, async () => {
    const result = await call(args);
    assert.ok(!result.isError, text(result));
  });
}
for (const [what, args, want] of shapes.wrong) {
  await check(`TypeScript: ${what}`, async () => {
    const result = await call(args);
    assert.ok(result.isError);
    assert.ok(text(result).includes(want), text(result));
  });
}
await client.close();
finish();
