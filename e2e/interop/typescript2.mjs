// The TypeScript SDK's second generation (@modelcontextprotocol/client), which
// speaks 2026-07-28 as well as the older revisions.
import assert from "node:assert/strict";
import * as sdk from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { check, finish, text, trace, wire } from "./report.mjs";
import { config, everything, serve } from "./mcpx.mjs";

const path = config(everything);
const front = await serve(path);
const transports = {
  stdio: () => new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore" }),
  http: () => new sdk.StreamableHTTPClientTransport(new URL(front.url + "/mcp")),
};
for (const [name, transport] of Object.entries(transports)) {
  for (const mode of ["legacy", "auto", { pin: "2026-07-28" }]) {
    const client = new sdk.Client({ name: "interop", version: "1" }, {
      capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
      versionNegotiation: { mode },
    });
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Ada" } }));
    client.setRequestHandler("sampling/createMessage", () => ({ role: "assistant", model: "a-model", content: { type: "text", text: "sampled by the client" } }));
    client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///interop", name: "interop" }] }));
    const on = (what, body) => check(`${name}, ${mode.pin ?? mode}: ${what}`, body);
    const tool = (tool, args, options) => client.callTool({ name: "exec", arguments: { server_name: "everything", tool_name: tool, arguments: args } }, options);
    let came;
    await on("connects in the era it asked for", async () => {
      const connection = transport();
      await client.connect(connection);
      came = wire(connection);
      assert.equal(client.getNegotiatedProtocolVersion(), mode === "legacy" ? "2025-11-25" : "2026-07-28");
    });
    await on("tools", async () => {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((t) => t.name), ["inspect", "exec"]);
      assert.match(text(await tool("get-sum", { a: 19, b: 23 })), /42/);
    });
    await on("prompts, resources, completion", async () => {
      const { messages } = await client.getPrompt({ name: "everything__args-prompt", arguments: { city: "Rome" } });
      assert.match(messages[0].content.text, /Rome/);
      assert.match((await client.readResource({ uri: "demo://resource/dynamic/text/7" })).contents[0].text, /7/);
      const ref = { type: "ref/prompt", name: "everything__completable-prompt" };
      assert.deepEqual((await client.complete({ ref, argument: { name: "department", value: "S" } })).completion.values, ["Sales", "Support"]);
    });
    await on("sampling, elicitation, roots", async () => {
      assert.match(text(await tool("trigger-sampling-request", { prompt: "say so", maxTokens: 5 })), /sampled by the client/);
      assert.match(text(await tool("trigger-elicitation-request", {})), /Ada/);
      assert.match(text(await tool("get-roots-list", {})), /file:\/\/\/interop/);
    });
    await on("progress and cancel", async () => {
      came.length = 0;
      await tool("trigger-long-running-operation", { duration: 0.3, steps: 3 }, { onprogress: () => {} });
      assert.deepEqual(trace(came), [1, 2, 3, "result"]);
      const abort = new AbortController();
      await assert.rejects(tool("trigger-long-running-operation", { duration: 30, steps: 100 }, { signal: abort.signal, onprogress: () => abort.abort("enough") }));
      assert.match(text(await tool("echo", { message: "still here" })), /still here/);
    });
    await on("errors", async () => {
      await assert.rejects(client.callTool({ name: "nope", arguments: {} }), (e) => e.code === -32601);
      const bad = await tool("get-sum", { a: "one" });
      assert.ok(bad.isError);
      assert.match(text(bad), /arguments\.b: required/);
    });
    await client.close();
  }
}
await front.stop();
finish();
