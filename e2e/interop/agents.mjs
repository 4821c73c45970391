// The real agents Claude Code and Codex in front of mcpx. Their model is a stand-in
// on loopback (modelapi.mjs), so the checks can read what the model is shown, and
// can make the model call tools.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { check, finish, say, until } from "./report.mjs";
import { serve, work } from "./mcpx.mjs";
import { modelAPI, offeredTools, toolResults } from "./modelapi.mjs";

const runLimit = 90_000; // of one agent, from its start to its end

// The servers behind mcpx. Their names occur in no prompt by accident. The folder
// is an argument of each, which some ignore: it marks the process as one of this run.
const servers = (folder) => ({
  "harbor-files": { command: "mcp-server-filesystem", args: [folder], description: "files of the harbor" },
  "harbor-notes": { command: "mcp-server-memory", args: [folder], env: { MEMORY_FILE_PATH: `${folder}/notes.jsonl` } },
  testbed: { command: "mcp-server-everything", args: ["stdio", folder] },
  "step-thinker": { command: "mcp-server-sequential-thinking", args: [folder] },
});
const serverNames = Object.keys(servers(""));
const noteText = "the harbor opens at nine";

// inspectCall and execCall are what the model asks for.
const inspectCall = { server_name: "harbor-files" };
const execCall = (folder) => ({ server_name: "harbor-files", tool_name: "read_text_file", arguments: { path: `${folder}/cwd/note.txt` } });

const folders = [];
process.on("exit", () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

// newRun makes the folder of one run: a home, a working folder and mcpx's config.
function newRun(mcpxConfig = {}) {
  const folder = realpathSync(mkdtempSync(join(work, "agent-")));
  folders.push(folder);
  for (const name of ["home", "cwd"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "cwd", "note.txt"), noteText + "\n"); // Claude Code tells servers that its working folder is the only root
  const config = join(folder, "mcpx.json");
  writeFileSync(config, JSON.stringify({ mcpServers: servers(folder), ...mcpxConfig }));
  return { folder, config };
}

// environment is all that an agent gets. Its proxy is the stand-in, which refuses
// every connection, so an agent that uses proxies reaches loopback only.
const environment = (folder, api) => ({
  PATH: process.env.PATH,
  HOME: join(folder, "home"),
  TMPDIR: folder,
  TERM: "dumb",
  LANG: "C.UTF-8",
  HTTP_PROXY: api.url,
  HTTPS_PROXY: api.url,
  ALL_PROXY: api.url,
  NO_PROXY: "127.0.0.1,localhost",
});

// running holds the process groups of the agents.
const running = new Set();
const killGroup = (pid) => {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // the group has ended
  }
};
const killAll = () => {
  running.forEach(killGroup);
  running.clear();
};
process.on("exit", killAll);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => process.exit(1));

// runProcess runs a program in a process group of its own and returns its output.
// The group may still hold processes then; killAll ends them.
async function runProcess(command, args, options) {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child.pid);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output = (output + data).slice(-200_000)));
  const timer = setTimeout(() => killGroup(child.pid), runLimit);
  try {
    const code = await new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (status, signal) => resolve(signal ?? status));
    });
    return { code, output };
  } finally {
    clearTimeout(timer);
  }
}

// processesOf are the processes with the folder on their command line.
const processesOf = (folder) =>
  execFileSync("ps", ["-eww", "-o", "pid=,args="], { encoding: "utf8", maxBuffer: 1 << 24 })
    .split("\n")
    .filter((line) => line.includes(folder))
    .map((line) => line.trim());

// leftOf waits until the processes of a run have ended by themselves. It kills those
// that do not and returns them.
async function leftOf(folder) {
  await until("processes end", () => processesOf(folder).length === 0, 10_000).catch(() => {});
  const left = processesOf(folder);
  killAll();
  for (const line of left) {
    try {
      process.kill(parseInt(line, 10), "SIGKILL");
    } catch {
      // it has ended meanwhile
    }
  }
  return left;
}

// The agents. write writes an agent's config for one run and returns its arguments
// and environment. call, search and script are a model's calls. loaded returns the
// definition of a tool that the model can call at once.
const claude = {
  name: "Claude Code",
  program: join(process.env.INTEROP_DIR, "agents/claude/node_modules/.bin/claude"),
  write({ folder, config }, api, { url, noServer }) {
    const mcpx = url ? { type: "http", url } : { command: "mcpx", args: [config] };
    writeFileSync(join(folder, "mcp.json"), JSON.stringify({ mcpServers: noServer ? {} : { mcpx } }));
    const args = ["-p", "hello", "--mcp-config", join(folder, "mcp.json"), "--strict-mcp-config", "--debug-file", join(folder, "debug.log"), "--allowedTools", "mcp__mcpx__inspect,mcp__mcpx__exec"];
    return { args, env: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: "dummy", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" } };
  },
  call: (tool, input) => ({ type: "tool_use", name: `mcp__mcpx__${tool}`, input }),
  search: (...tools) => ({ type: "tool_use", name: "ToolSearch", input: { query: "select:" + tools.map((tool) => `mcp__mcpx__${tool}`).join(","), max_results: 5 } }),
  loaded(body, tool) {
    const found = offeredTools(body).find((t) => t.name === `mcp__mcpx__${tool}` && !t.defer_loading);
    return found && { description: found.description, schema: found.input_schema };
  },
};
const codex = {
  name: "Codex",
  program: join(process.env.INTEROP_DIR, "agents/codex/node_modules/.bin/codex"),
  write({ folder, config }, api, { url, noServer, model, direct, ask }) {
    const home = join(folder, "home/.codex");
    mkdirSync(home);
    const q = JSON.stringify; // a JSON string is a TOML string
    const mcpx = ["[mcp_servers.mcpx]", ...(url ? [`url = ${q(url)}`] : [`command = "mcpx"`, `args = [${q(config)}]`]), ...(ask ? [] : [`default_tools_approval_mode = "approve"`])];
    const toml = [
      ...(model ? [`model = ${q(model)}`] : []),
      `model_provider = "standin"`,
      `approval_policy = "never"`,
      `[model_providers.standin]`,
      `name = "stand-in"`,
      `base_url = ${q(api.url + "/v1")}`,
      `wire_api = "responses"`,
      `env_key = "STANDIN_KEY"`,
      ...(noServer ? [] : mcpx),
      ...(direct ? ["[features.code_mode]", `direct_only_tool_namespaces = ["mcp__mcpx"]`] : []),
    ];
    writeFileSync(join(home, "config.toml"), toml.join("\n") + "\n");
    return { args: ["exec", "--skip-git-repo-check", "hello"], env: { STANDIN_KEY: "dummy", CODEX_HOME: home, RUST_LOG: "warn" } };
  },
  call: (tool, input) => ({ type: "function_call", namespace: "mcp__mcpx", name: tool, arguments: JSON.stringify(input) }),
  // Models in code mode call tools from a script.
  script: (tool, input) => ({ type: "custom_tool_call", name: "exec", input: `text(JSON.stringify(await tools.mcp__mcpx__${tool}(${JSON.stringify(input)})));` }),
  search: (query) => ({ type: "tool_search_call", execution: "client", arguments: { query } }),
  loaded(body, tool) {
    const namespace = offeredTools(body).find((t) => t.type === "namespace" && t.name === "mcp__mcpx");
    const found = namespace?.tools.find((t) => t.name === tool && !t.defer_loading);
    return found && { description: found.description, schema: found.parameters };
  },
};

// run runs an agent once, from its prompt to its end.
async function run(agent, { calls = () => [], env = {}, http, mcpx, ...options } = {}) {
  const place = newRun(mcpx);
  const api = await modelAPI(calls(place.folder));
  const front = http ? await serve(place.config) : undefined;
  let done;
  try {
    const written = agent.write(place, api, { ...options, url: front && front.url + "/mcp" });
    const began = performance.now();
    const ended = await runProcess(agent.program, written.args, {
      cwd: join(place.folder, "cwd"),
      env: { ...environment(place.folder, api), ...written.env, ...env },
    });
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const [first] = api.agentRequests;
    const log = join(place.folder, "debug.log");
    done = {
      ...ended,
      first,
      bytes: first && Buffer.byteLength(JSON.stringify(first)),
      results: toolResults(api.agentRequests.at(-1) ?? {}),
      log: existsSync(log) ? readFileSync(log, "utf8") : ended.output,
      outside: [...new Set(api.outside)],
      seconds,
    };
  } finally {
    await front?.stop();
    await api.close();
    const left = await leftOf(place.folder);
    if (done) done.left = left;
  }
  return done;
}

// truth is what mcpx tells any client: its two tools and its instructions.
async function truth(config) {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(new StdioClientTransport({ command: "mcpx", args: [config], stderr: "ignore", env: process.env }));
  const { tools } = await client.listTools();
  const instructions = client.getInstructions();
  await client.close();
  return { tools, instructions };
}

// checkLoaded: the model can call both tools at once, as mcpx describes them.
function checkLoaded(agent, { first }) {
  for (const { name, description, inputSchema } of expected.tools) {
    const got = agent.loaded(first, name);
    assert.ok(got, `${name} is not loaded`);
    assert.deepEqual(got, { description, schema: inputSchema });
  }
}

// checkNamed: the first request names every server, and has mcpx's instructions.
function checkNamed({ first }) {
  const text = JSON.stringify(first);
  for (const name of serverNames) assert.ok(text.includes(name), `${name} is not named`);
  assert.ok(text.includes(JSON.stringify(expected.instructions).slice(1, -1)), "the instructions are not there");
}

// checkResults: the last tool results are the answers of the server itself.
function checkResults({ results, output }) {
  const [listing, file] = results.slice(-2);
  assert.ok(file, `the model got ${results.length} results: ${output.slice(-300)}`);
  assert.match(listing, /read_text_file\(path: string/);
  assert.ok(file.includes(noteText), file.slice(0, 300));
}

// checkEnd: the agent succeeded, and everything it started ended.
function checkEnd({ code, output, left }) {
  assert.equal(code, 0, output.slice(-300));
  assert.deepEqual(left, []);
}

// checkLog: the agent's log has no error or warning about mcpx. What mcpx writes to
// stderr does not count: Claude Code logs all of it as errors.
function checkLog({ log }) {
  const complaints = log.split("\n").filter((l) => /mcpx|mcp_|rmcp/.test(l) && /\b(ERROR|WARN)\b/.test(l) && !/Server stderr/.test(l));
  assert.deepEqual(complaints, []);
}

// checkAll is every check of a run in which mcpx must be loaded.
async function checkAll(agent, title, options) {
  const calls = (folder) => [agent.call("inspect", inspectCall), agent.call("exec", execCall(folder))];
  const done = await tryRun(agent, title, { calls, ...options });
  if (!done) return undefined;
  await check(`${title}: both tools are loaded, as mcpx describes them`, async () => checkLoaded(agent, done));
  await check(`${title}: every server is named`, async () => checkNamed(done));
  await check(`${title}: _meta costs the model nothing`, async () => assert.ok(!JSON.stringify(done.first).includes("alwaysLoad")));
  await check(`${title}: inspect and exec bring the server's answers`, async () => checkResults(done));
  await check(`${title}: no complaint about mcpx in its log`, async () => checkLog(done));
  await check(`${title}: ends well and leaves no process`, async () => checkEnd(done));
  return done;
}

// tryRun runs an agent; without a first request there is nothing to check.
async function tryRun(agent, title, options) {
  let done;
  try {
    done = await run(agent, options);
  } catch (error) {
    say(`${title}: runs`, "FAIL", error.message);
    return undefined;
  }
  console.error(`${title}: ${done.seconds} s, ${done.first?.model}, first request ${done.bytes} bytes, refused: ${done.outside.join(" ") || "nothing"}`);
  if (done.first) return done;
  say(`${title}: asks its model`, "FAIL", `ended with ${done.code}: ${done.output.slice(-250)}`);
  return undefined;
}

// note reports what the model is shown, without a verdict.
function note(agent, title, done) {
  const text = JSON.stringify(done.first);
  const loaded = ["inspect", "exec"].filter((tool) => agent.loaded(done.first, tool));
  const named = serverNames.filter((name) => text.includes(name));
  say(title, "note", `${done.first.model}: ${loaded.length} of 2 tools loaded, ${named.length} of ${serverNames.length} servers named; first request ${done.bytes} bytes`);
}

// version is an agent's name and version, or undefined if it is not there or cannot run.
async function version(agent) {
  if (!existsSync(agent.program)) {
    say(`${agent.name}: all of it`, "not run", "cannot be installed from npm");
    return undefined;
  }
  const { folder } = newRun();
  const { code, output } = await runProcess(agent.program, ["--version"], { env: { PATH: process.env.PATH, HOME: folder } });
  killAll();
  const found = /\d+\.\d+\.\d+/.exec(output);
  if (code === 0 && found) return `${agent.name} ${found[0]}`;
  say(`${agent.name}: all of it`, "not run", `does not run here: ${output.slice(-200)}`);
  return undefined;
}

async function claudeChecks(title) {
  await checkAll(claude, `${title}, stdio`);
  await checkAll(claude, `${title}, http`, { http: true });
  for (const value of ["true", "auto", "false"]) {
    const name = `${title}, ENABLE_TOOL_SEARCH=${value}`;
    const done = await tryRun(claude, name, { env: { ENABLE_TOOL_SEARCH: value } });
    if (done) await check(`${name}: both tools are loaded`, async () => checkLoaded(claude, done));
  }
  const deferred = `${title}, "always_load": false`;
  const calls = (folder) => [claude.search("inspect", "exec"), claude.call("inspect", inspectCall), claude.call("exec", execCall(folder))];
  const off = await tryRun(claude, deferred, { calls, mcpx: { always_load: false } });
  if (off) {
    note(claude, deferred, off);
    await check(`${deferred}: after a search, inspect and exec bring the server's answers`, async () => checkResults(off));
  }
  const without = await tryRun(claude, `${title}, without mcpx`, { noServer: true });
  if (without) note(claude, `${title}, without mcpx`, without);
}

// Codex defers MCP tools for every model it knows; a setting keeps mcpx's loaded.
// Models in code mode call tools from a script, the others search for them first.
async function codexChecks(title) {
  await checkAll(codex, `${title}, stdio, direct`, { direct: true });
  await checkAll(codex, `${title}, http, direct`, { direct: true, http: true });

  const asks = await tryRun(codex, `${title}, approval not set`, { direct: true, ask: true, calls: (folder) => [codex.call("exec", execCall(folder))] });
  if (asks) say(`${title}, approval not set: exec`, "note", asks.results[0]?.includes(noteText) ? "is called" : `is refused: ${asks.results[0]}`);

  const code = `${title}, code mode`;
  const scripts = (folder) => [codex.script("inspect", inspectCall), codex.script("exec", execCall(folder))];
  const coded = await tryRun(codex, code, { calls: scripts });
  if (coded) {
    note(codex, code, coded);
    await check(`${code}: inspect and exec bring the server's answers`, async () => checkResults(coded));
  }

  const search = `${title}, tool search`;
  const searches = (folder) => [codex.search("inspect harbor-files"), codex.call("inspect", inspectCall), codex.call("exec", execCall(folder))];
  const found = await tryRun(codex, search, { model: "gpt-5.5", calls: searches });
  if (found) {
    note(codex, search, found);
    await check(`${search}: every server is named`, async () => checkNamed(found));
    await check(`${search}: a search finds both tools`, async () => {
      for (const { description } of expected.tools) assert.ok(found.results[0].includes(JSON.stringify(description).slice(1, -1)), found.results[0].slice(0, 300));
    });
    await check(`${search}: inspect and exec bring the server's answers`, async () => checkResults(found));
  }
  const off = await tryRun(codex, `${search}, "always_load": false`, { model: "gpt-5.5", mcpx: { always_load: false } });
  if (off) note(codex, `${search}, "always_load": false`, off);
  const without = await tryRun(codex, `${title}, without mcpx`, { noServer: true });
  if (without) note(codex, `${title}, without mcpx`, without);
}

const expected = await truth(newRun().config);
for (const [agent, checks] of [[claude, claudeChecks], [codex, codexChecks]]) {
  const title = await version(agent);
  if (title) await checks(title);
}
finish();
