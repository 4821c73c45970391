// Real servers behind mcpx, seen by the TypeScript SDK's client over stdio and HTTP.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check, finish, text } from "./report.mjs";
import { config, freePort, serve, start, work } from "./mcpx.mjs";

const folder = `${work}/files`;
const repository = `${work}/repository`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/note.txt`, "first\nsecond\nthird\n");
const git = (...args) => execFileSync("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
mkdirSync(repository, { recursive: true });
git("init", "-q");
writeFileSync(`${repository}/a.txt`, "one\n");
git("add", ".");
git("commit", "-q", "--allow-empty", "-m", "the first commit");

const page = createServer((request, response) => {
  response.setHeader("Content-Type", "text/html");
  response.end("<html><body><h1>A page</h1><p>with a paragraph of words</p></body></html>");
});
await new Promise((resolve) => page.listen(0, "127.0.0.1", resolve));
const pageURL = `http://127.0.0.1:${page.address().port}/`;

const [ssePort, httpPort] = [await freePort(), await freePort()];
const sse = await start("mcp-server-everything", ["sse"], /running on port/, { PORT: ssePort });
const http = await start("mcp-server-everything", ["streamableHttp"], /listening on port/, { PORT: httpPort });

const slow = { startup_timeout: "240s" }; // the first uvx installs
const path = config({
  mcpServers: {
    everything: { command: "mcp-server-everything", args: ["stdio"] },
    "everything-sse": { url: `http://127.0.0.1:${ssePort}/sse`, type: "sse" },
    "everything-sse-guessed": { url: `http://127.0.0.1:${ssePort}/sse` },
    "everything-http": { url: `http://127.0.0.1:${httpPort}/mcp` },
    filesystem: { command: "mcp-server-filesystem", args: [folder] },
    memory: { command: "mcp-server-memory", env: { MEMORY_FILE_PATH: `${work}/memory-${process.pid}.jsonl` } },
    thinking: { command: "mcp-server-sequential-thinking" },
    time: { command: "uvx", args: ["mcp-server-time"], ...slow },
    fetch: { command: "uvx", args: ["mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"], ...slow },
    git: { command: "uvx", args: ["mcp-server-git", "--repository", repository], ...slow },
  },
});

// calls are a call of each server and what its answer must hold.
const calls = (front) => [
  ...["everything", "everything-sse", "everything-sse-guessed", "everything-http"].map((server) => [server, "get-sum", { a: 2, b: 40 }, /42/]),
  ["filesystem", "read_text_file", { path: `${folder}/note.txt`, head: 2 }, /^first\nsecond$/],
  ["filesystem", "list_directory", { path: folder }, /note\.txt/],
  ["memory", "create_entities", { entities: [{ name: `Ada of ${front}`, entityType: "person", observations: ["counts"] }] }, /Ada/],
  ["memory", "search_nodes", { query: "ada" }, /counts/],
  ["thinking", "sequentialthinking", { thought: "so", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }, /thoughtHistoryLength/],
  ["time", "convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" }, /21:00/],
  ["fetch", "fetch", { url: pageURL, raw: true }, /paragraph of words/],
  ["git", "git_log", { repo_path: repository, max_count: 1 }, /the first commit/],
];

const front = await serve(path);
const fronts = {
  stdio: () => new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore", env: process.env }),
  http: () => new StreamableHTTPClientTransport(new URL(front.url + "/mcp")),
};
for (const [name, transport] of Object.entries(fronts)) {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(transport());
  const exec = (server, tool, args) =>
    client.callTool({ name: "exec", arguments: { server_name: server, tool_name: tool, arguments: args } }, undefined, { timeout: 250_000 });
  for (const [server, tool, args, want] of calls(name)) {
    await check(`${name}: ${server} ${tool}`, async () => {
      const listing = text(await client.callTool({ name: "inspect", arguments: { server_name: server } }, undefined, { timeout: 250_000 }));
      assert.match(listing, new RegExp(`^${tool}\\(`, "m"));
      const result = await exec(server, tool, args);
      assert.ok(!result.isError, text(result));
      assert.match(text(result), want);
    }, 300_000);
  }
  await check(`${name}: filesystem refuses what is outside its folder, in its own words`, async () => {
    const result = await exec("filesystem", "read_text_file", { path: "/etc/hostname" });
    assert.ok(result.isError);
    assert.match(text(result), /outside allowed directories/);
  });
  await check(`${name}: structured content comes as it is`, async () => {
    const result = await exec("everything", "get-structured-content", { location: "Chicago" });
    assert.equal(typeof result.structuredContent.temperature, "number");
  });
  await check(`${name}: an image comes as it is`, async () => {
    const result = await exec("everything", "get-tiny-image", {});
    const image = result.content.find((c) => c.type === "image");
    assert.equal(image.mimeType, "image/png");
    assert.ok(Buffer.from(image.data, "base64").subarray(1, 4).equals(Buffer.from("PNG")));
  });
  await client.close();
}

await check("everything-http: a server that starts again is found again", async () => {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(fronts.http());
  const exec = () => client.callTool({ name: "exec", arguments: { server_name: "everything-http", tool_name: "echo", arguments: { message: "again" } } });
  assert.match(text(await exec()), /again/);
  await http.stop();
  const gone = await exec();
  assert.ok(gone.isError, "a call succeeded without a server");
  const second = await start("mcp-server-everything", ["streamableHttp"], /listening on port/, { PORT: httpPort });
  let last;
  for (let tries = 0; tries < 20; tries++) {
    last = await exec();
    if (!last.isError) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.ok(!last.isError, text(last));
  await client.close();
  await second.stop();
});

await front.stop();
await sse.stop();
page.close();
finish();
