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
import { claude, codex } from "./agent_programs.mjs";
import { modelAPI, toolResults } from "./modelapi.mjs";

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
  writeFileSync(config, JSON.stringify({ mcpServers: servers(folder), logging: { audit: "audit.jsonl" }, ...mcpxConfig }));
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
      callers: callersIn(join(place.folder, "audit.jsonl")),
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

// callersIn returns the names in mcpx's audit, which clients gave themselves.
function callersIn(audit) {
  const lines = existsSync(audit) ? readFileSync(audit, "utf8").split("\n").filter(Boolean) : [];
  return [...new Set(lines.map((line) => JSON.parse(line).client_name))];
}

// truth is what mcpx tells a client of that name: its two tools and its instructions.
async function truth(name, mcpxConfig) {
  const { config } = newRun(mcpxConfig);
  const client = new Client({ name, version: "1" });
  await client.connect(new StdioClientTransport({ command: "mcpx", args: [config], stderr: "ignore", env: process.env }));
  const { tools } = await client.listTools();
  const instructions = client.getInstructions();
  await client.close();
  return { tools, instructions };
}

// checkLoaded: the model can call both tools at once, as mcpx describes them.
function checkLoaded(agent, { first }) {
  for (const tool of agent.expected.tools) {
    const got = agent.loaded(first, tool.name);
    assert.ok(got, `${tool.name} is not loaded`);
    assert.deepEqual(got, agent.shown(tool));
  }
}

// checkShown: the model is shown the instructions as mcpx sends them.
const checkShown = ({ first }, instructions) => assert.ok(JSON.stringify(first).includes(JSON.stringify(instructions).slice(1, -1)), `not shown: ${instructions}`);

// checkDescription: the instructions name no server. The description of inspect names
// every server, and nothing else does.
function checkDescription(agent, { first }) {
  checkShown({ first }, agent.expected.instructions);
  const { description } = agent.loaded(first, "inspect") ?? {};
  for (const name of serverNames) {
    assert.ok(description?.includes(name), `${name} is not in inspect's description`);
    assert.equal(JSON.stringify(first).split(name).length - 1, 1, `how often ${name} is named`);
  }
}

// checkInstructions: the instructions name every server.
function checkInstructions({ first }, instructions) {
  checkShown({ first }, instructions);
  for (const name of serverNames) assert.ok(instructions.includes(name), `${name} is not in the instructions`);
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

// checkNamed: Claude Code shows its model inspect, whose description names the servers.
// Codex often hides it, so there the instructions name them, too.
async function checkNamed(agent, title, done) {
  if (agent === claude) await check(`${title}: inspect's description names every server, the instructions none`, async () => checkDescription(agent, done));
  else await check(`${title}: the instructions name every server`, async () => checkInstructions(done, agent.expected.instructions));
}

// checkAll is every check of a run in which mcpx must be loaded.
async function checkAll(agent, title, options) {
  const calls = (folder) => [agent.call("inspect", inspectCall), agent.call("exec", execCall(folder))];
  const done = await tryRun(agent, title, { calls, ...options });
  if (!done) return undefined;
  await check(`${title}: both tools are loaded, as mcpx describes them`, async () => checkLoaded(agent, done));
  await checkNamed(agent, title, done);
  await check(`${title}: mcpx knows it as ${agent.clientInfo}`, async () => assert.deepEqual(done.callers, [agent.clientInfo]));
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
    const { instructions } = await truth(claude.clientInfo, { always_load: false });
    await check(`${deferred}: the instructions name every server`, async () => checkInstructions(off, instructions));
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
    await checkNamed(codex, search, found);
    await check(`${search}: a search finds both tools`, async () => {
      for (const { description } of codex.expected.tools) assert.ok(found.results[0].includes(JSON.stringify(description).slice(1, -1)), found.results[0].slice(0, 300));
    });
    await check(`${search}: inspect and exec bring the server's answers`, async () => checkResults(found));
  }
  const off = await tryRun(codex, `${search}, "always_load": false`, { model: "gpt-5.5", mcpx: { always_load: false } });
  if (off) note(codex, `${search}, "always_load": false`, off);
  const without = await tryRun(codex, `${title}, without mcpx`, { noServer: true });
  if (without) note(codex, `${title}, without mcpx`, without);
}

for (const [agent, checks] of [[claude, claudeChecks], [codex, codexChecks]]) {
  agent.expected = await truth(agent.clientInfo);
  const title = await version(agent);
  if (title) await checks(title);
}
finish();
