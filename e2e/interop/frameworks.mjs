// Agent frameworks in JavaScript against mcpx, without a model; see frameworks.py.
//
//   node frameworks.mjs NAME VERSION     from the folder that NAME is installed in
import assert from "node:assert/strict";
import { check, finish } from "./report.mjs";
import { config, everything, serve } from "./mcpx.mjs";

const sum = { a: 19, b: 23 };
const calls = {
  lazy: ["exec", { server_name: "everything", tool_name: "get-sum", arguments: sum }],
  flat: ["everything__get-sum", sum],
};

// frameworks connect to a server, which is { command, args } or { url }, list its
// tools, call one, disconnect, and return the result of the call.
const frameworks = {
  async "ai-sdk"(server, tool, args) {
    const { createMCPClient } = await import("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport: StdioTransport } = await import("@ai-sdk/mcp/mcp-stdio");
    const transport = server.url ? { type: "http", url: server.url } : new StdioTransport({ ...server, env: process.env });
    const client = await createMCPClient({ transport });
    try {
      const tools = await client.tools();
      return await tools[tool].execute(args, { toolCallId: "1", messages: [] });
    } finally {
      await client.close();
    }
  },
  async "langchain-js"(server, tool, args) {
    const { MultiServerMCPClient } = await import("@langchain/mcp-adapters");
    const mcpx = server.url ? { transport: "http", url: server.url } : { transport: "stdio", ...server, env: process.env };
    const client = new MultiServerMCPClient({ mcpServers: { mcpx } });
    try {
      const tools = await client.getTools();
      return await tools.find((t) => t.name === tool).invoke(args);
    } finally {
      await client.close();
    }
  },
};

const [name, version] = process.argv.slice(2);
const path = config(everything);
const front = await serve(path);
for (const [mode, [tool, args]] of Object.entries(calls)) {
  const servers = {
    stdio: { command: "mcpx", args: [path, "--expose", mode, "--log-level", "error"] },
    http: { url: `${front.url}/mcp?expose=${mode}` },
  };
  for (const [transport, server] of Object.entries(servers)) {
    await check(`${name} ${version}, ${transport}, ${mode}: lists and calls`, async () => {
      assert.match(JSON.stringify(await frameworks[name](server, tool, args)), /The sum of 19 and 23 is 42/);
    });
  }
}
await front.stop();
finish();
