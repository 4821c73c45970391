// Cold npx and uvx starts install for many seconds; the front answers meanwhile.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check, finish, text } from "./report.mjs";
import { config, serve } from "./mcpx.mjs";

for (const name of ["stdio", "http"]) {
  // Elsewhere than the other packages: npx would find the server among them.
  const caches = mkdtempSync(join(tmpdir(), "interop-cold-"));
  const path = config({
    mcpServers: {
      npx: { command: "npx", args: ["-y", "@modelcontextprotocol/server-everything@2026.8.31"], env: { npm_config_cache: `${caches}/npm` }, startup_timeout: "240s", cwd: caches },
      uvx: { command: "uvx", args: ["mcp-server-time"], env: { UV_CACHE_DIR: `${caches}/uv` }, startup_timeout: "240s" },
    },
  });
  const began = performance.now();
  const front = name === "http" ? await serve(path) : undefined;
  const client = new Client({ name: "interop", version: "1" });
  const took = () => (performance.now() - began) / 1000;
  await check(`${name}: initialize and tools/list while npx and uvx install`, async () => {
    await client.connect(front ? new StreamableHTTPClientTransport(new URL(front.url + "/mcp")) : new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore", env: process.env }));
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((t) => t.name), ["inspect", "exec"]);
    assert.ok(took() < 3, `took ${took().toFixed(1)} s`);
    const states = text(await client.callTool({ name: "exec", arguments: { server_name: "mcpx", tool_name: "servers" } }));
    assert.match(states, /starting/, "nothing was installing any more");
    console.error(`${name}: listed after ${took().toFixed(2)} s`);
  });
  const sum = { server_name: "npx", tool_name: "get-sum", arguments: { a: 1, b: 2 } };
  const zone = { server_name: "uvx", tool_name: "get_current_time", arguments: { timezone: "UTC" } };
  for (const args of [sum, zone]) {
    await check(`${name}: a call to ${args.server_name} waits for its install`, async () => {
      const result = await client.callTool({ name: "exec", arguments: args }, undefined, { timeout: 250_000 });
      assert.ok(!result.isError, text(result));
      console.error(`${name}: ${args.server_name} answered after ${took().toFixed(1)} s`);
    }, 260_000);
  }
  await client.close();
  await front?.stop();
  rmSync(caches, { recursive: true, force: true });
}
finish();
