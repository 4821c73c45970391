// The TypeScript SDK's client (1.x) against mcpx, over stdio, HTTP and SSE.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import * as types from "@modelcontextprotocol/sdk/types.js";
import { check, finish, text, trace, until, wire } from "./report.mjs";
import { config, everything, serve } from "./mcpx.mjs";

const path = config(everything);
const front = await serve(path);
const fronts = {
  stdio: () => new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore" }),
  http: () => new StreamableHTTPClientTransport(new URL(front.url + "/mcp")),
  sse: () => new SSEClientTransport(new URL(front.url + "/sse")),
  "http, flat": () => new StreamableHTTPClientTransport(new URL(front.url + "/mcp?expose=flat")),
};
const document = "demo://resource/static/document/features.md";

for (const [name, transport] of Object.entries(fronts)) {
  const flat = name.endsWith("flat");
  const client = new Client({ name: "interop", version: "1" }, { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } });
  const heard = { updated: [], log: [], sampled: [], elicited: [] };
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => void heard.updated.push(n.params.uri));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => void heard.log.push(n.params));
  client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///interop", name: "interop" }] }));
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
    heard.sampled.push(params);
    return { role: "assistant", model: "a-model", content: { type: "text", text: "sampled by the client" } };
  });
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    heard.elicited.push(params);
    return { action: "accept", content: { name: "Ada" } };
  });
  const tool = (tool, args, options) =>
    client.callTool(flat ? { name: `everything__${tool}`, arguments: args } : { name: "exec", arguments: { server_name: "everything", tool_name: tool, arguments: args } }, undefined, options);
  const on = (what, body) => check(`${name}: ${what}`, body);

  const connection = transport();
  await client.connect(connection);
  const came = wire(connection);
  await on("tools: list and call", async () => {
    const { tools } = await client.listTools();
    if (flat) assert.ok(tools.some((t) => t.name === "everything__get-sum"));
    else assert.deepEqual(tools.map((t) => t.name), ["inspect", "exec"]);
    assert.match(text(await tool("get-sum", { a: 19, b: 23 })), /42/);
  });
  await on("prompts: list and get", async () => {
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.some((p) => p.name === "everything__args-prompt"));
    const { messages } = await client.getPrompt({ name: "everything__args-prompt", arguments: { city: "Rome" } });
    assert.match(messages[0].content.text, /Rome/);
    await assert.rejects(client.getPrompt({ name: "everything__args-prompt" }), (e) => e.code === -32602 && /city/.test(e.message));
  });
  await on("resources: list, templates, read", async () => {
    const { resources } = await client.listResources();
    assert.ok(resources.some((r) => r.uri === document));
    assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 2);
    const { contents } = await client.readResource({ uri: "demo://resource/dynamic/text/7" });
    assert.match(contents[0].text, /7/);
    await assert.rejects(client.readResource({ uri: "demo://no/such" }), (e) => e.code === -32002 || e.code === -32602);
  });
  await on("subscribe: updates come, and end", async () => {
    await client.subscribeResource({ uri: document });
    await tool("toggle-subscriber-updates", {});
    await until("an update", () => heard.updated.includes(document));
    await client.unsubscribeResource({ uri: document });
    await tool("toggle-subscriber-updates", {});
  });
  await on("completion, with context", async () => {
    const ref = { type: "ref/prompt", name: "everything__completable-prompt" };
    const first = await client.complete({ ref, argument: { name: "department", value: "S" } });
    assert.deepEqual(first.completion.values, ["Sales", "Support"]);
    const second = await client.complete({ ref, argument: { name: "name", value: "" }, context: { arguments: { department: "Sales" } } });
    assert.deepEqual(second.completion.values, ["David", "Eve", "Frank"]);
    const template = await client.complete({ ref: { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" }, argument: { name: "resourceId", value: "3" } });
    assert.deepEqual(template.completion.values, ["3"]);
  });
  await on("sampling", async () => {
    assert.match(text(await tool("trigger-sampling-request", { prompt: "say so", maxTokens: 5 })), /sampled by the client/);
    assert.equal(heard.sampled[0].maxTokens, 5);
  });
  await on("elicitation", async () => {
    assert.match(text(await tool("trigger-elicitation-request", {})), /Ada/);
    assert.equal(heard.elicited[0].requestedSchema.type, "object");
  });
  await on("roots", async () => {
    assert.match(text(await tool("get-roots-list", {})), /file:\/\/\/interop/);
  });
  await on("progress, in order, before the result", async () => {
    came.length = 0;
    await tool("trigger-long-running-operation", { duration: 0.5, steps: 5 }, { onprogress: () => {} });
    assert.deepEqual(trace(came), [1, 2, 3, 4, 5, "result"]);
  });
  await on("cancel releases the client, and the session goes on", async () => {
    const abort = new AbortController();
    const began = Date.now();
    const call = tool("trigger-long-running-operation", { duration: 30, steps: 100 }, { signal: abort.signal, onprogress: () => abort.abort("enough") });
    await assert.rejects(call, /enough/);
    assert.ok(Date.now() - began < 5000);
    assert.match(text(await tool("echo", { message: "still here" })), /still here/);
  });
  await on("setLoggingLevel, and log messages", async () => {
    await client.setLoggingLevel("debug");
    await tool("toggle-simulated-logging", {});
    await until("a log message", () => heard.log.length > 0);
    await tool("toggle-simulated-logging", {});
    assert.match(heard.log[0].logger, /^everything/);
    await assert.rejects(client.request({ method: "logging/setLevel", params: { level: "loud" } }, types.EmptyResultSchema), /Invalid log level: loud/);
  });
  await on("errors: unknown tool, unknown server, bad arguments", async () => {
    await assert.rejects(client.callTool({ name: "nope", arguments: {} }), (e) => e.code === -32601 && /'nope' not found/.test(e.message));
    if (flat) return;
    const server = await client.callTool({ name: "exec", arguments: { server_name: "everthing", tool_name: "echo" } });
    assert.ok(server.isError && /"everything"/.test(text(server)), text(server));
    const bad = await tool("get-sum", { a: "one" });
    assert.ok(bad.isError);
    assert.match(text(bad), /arguments\.a: expected number, got string "one"/);
    assert.match(text(bad), /arguments\.b: required/);
  });
  await on("ping", () => client.ping());
  await client.close();
}
await front.stop();
finish();
