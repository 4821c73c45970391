// Real servers of npm and PyPI, each called directly and through mcpx. The results must
// be the same bytes.
//
//   node samebytes.mjs install     installs the servers, each in a folder of its own
//   node samebytes.mjs             makes the calls
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { finish, say } from "./report.mjs";
import { config, work } from "./mcpx.mjs";
import { RecordingTransport, member } from "./recording.mjs";
import { table } from "./samebytes_table.mjs";

const programs = join(process.env.INTEROP_DIR, "servers");
const folderOf = (spec) => join(programs, spec.replace(/[^\w.-]+/g, "_"));
const isPython = (spec) => !/.@/.test(spec);
const programOf = (spec, name) => join(folderOf(spec), isPython(spec) ? "bin" : "node_modules/.bin", name);

// install installs one server. If that fails, it removes the folder, and the part reports "not run".
async function install(spec) {
  const folder = folderOf(spec);
  if (existsSync(join(folder, "done"))) return;
  const run = (command, ...args) => promisify(execFile)(command, args, { timeout: 300_000, killSignal: "SIGKILL" });
  mkdirSync(folder, { recursive: true });
  try {
    if (isPython(spec)) {
      await run("uv", "venv", "-q", "--clear", "--python", join(process.env.INTEROP_DIR, "py/bin/python"), folder);
      await run("uv", "pip", "install", "-q", "--python", join(folder, "bin/python"), ...spec.split(" "));
    } else {
      await run("npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, spec);
    }
    writeFileSync(join(folder, "done"), "");
  } catch (error) {
    console.error(spec, error.message);
    rmSync(folder, { recursive: true, force: true });
  }
}

// installAll installs two servers at a time.
async function installAll(specs) {
  const worker = async () => {
    for (let spec; (spec = specs.pop()); ) await install(spec);
  };
  await Promise.all([worker(), worker()]);
}

// prepare creates the files, the repository and the page that the calls read.
async function prepare() {
  const folder = mkdtempSync(join(work, "samebytes-"));
  const repository = join(folder, "repository");
  const files = {
    "note.md": "# A note\n\nwith „words“ and 9007199254740993\n",
    "code.js": "var unused = 1\n",
    "page.html": "<html><body><h1>A page</h1><p>with a paragraph of words</p></body></html>",
    "memory.jsonl": '{"type":"entity","name":"Ada","entityType":"person","observations":["counts"]}\n',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  mkdirSync(repository);
  const date = "2026-01-02T03:04:05Z";
  const git = (...args) =>
    execFileSync("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { env: { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date } });
  git("init", "-q");
  git("commit", "-q", "--allow-empty", "-m", "the first commit");
  const server = createServer((request, response) => {
    response.sendDate = false;
    response.setHeader("Content-Type", "text/html");
    response.end(files["page.html"]);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { folder, repository, page: `http://127.0.0.1:${server.address().port}/` };
}

// within fails if a promise takes longer than that many seconds.
async function within(seconds, promise) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`not done within ${seconds} s`)), seconds * 1000)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// connect runs a server with the SDK's client. call returns the result's bytes.
async function connect(server) {
  const transport = new RecordingTransport(server);
  const client = new Client({ name: "interop", version: "1" });
  const call = async (name, args) => {
    await client.callTool({ name, arguments: args }, undefined, { timeout: 250_000 }).catch((error) => {
      if (member(transport.lines.at(-1), "error") === undefined) throw error; // such as a result against its schema
      throw new Error(`JSON-RPC error: ${member(transport.lines.at(-1), "error")}`);
    });
    return member(transport.lines.at(-1), "result");
  };
  const close = () => transport.close();
  try {
    await within(60, client.connect(transport));
  } catch (error) {
    await close();
    throw new Error(`${error.message} ${transport.stderr.trim().slice(-200)}`);
  }
  return { call, close };
}

// callDirectly returns the result's bytes without mcpx.
async function callDirectly(server, tool, args) {
  const { call, close } = await connect(server);
  try {
    return await call(tool, args);
  } finally {
    await close();
  }
}

// difference shows where two texts part.
function difference(direct, through) {
  let at = 0;
  while (direct[at] === through[at]) at++;
  const part = (text) => JSON.stringify(text.slice(Math.max(0, at - 40), at + 60));
  return `byte ${at}: directly ${part(direct)}, through mcpx ${part(through)}`;
}

// compare calls the servers directly, then all of them through one mcpx.
async function compare(rows) {
  for (const row of rows) {
    try {
      if (!existsSync(row.server.command)) throw new Error("cannot be installed");
      row.direct = await callDirectly(row.server, row.tool, row.toolArgs);
    } catch (error) {
      say(`${row.name} ${row.tool}`, "not run", `directly: ${error.message}`);
    }
  }
  const ready = rows.filter((row) => row.direct !== undefined);
  const mcpServers = Object.fromEntries(ready.map((row) => [row.id, { ...row.server, startup_timeout: "240s" }]));
  const mcpx = await connect({ command: "mcpx", args: [config({ mcpServers, limits: { result_tokens: 0 } })] });
  for (const { name, id, tool, toolArgs, direct } of ready) {
    const what = `${name} ${tool}: the same ${Buffer.byteLength(direct)} bytes`;
    try {
      const through = await mcpx.call("exec", { server_name: id, tool_name: tool, arguments: toolArgs });
      if (direct === through) say(what, "pass");
      else say(what, "FAIL", difference(direct, through));
    } catch (error) {
      say(what, "FAIL", `through mcpx: ${error.message}`);
    }
  }
  await mcpx.close();
}

async function main() {
  const rows = table(await prepare()).map(([spec, program, args, tool, toolArgs, env = {}]) => {
    const name = spec.split(" ")[0];
    return { name, server: { command: programOf(spec, program), args, env }, tool, toolArgs, id: name.replace(/\W+/g, "-").replace(/^-/, "") };
  });
  const together = 8; // so that two cores are enough
  for (let i = 0; i < rows.length; i += together) await compare(rows.slice(i, i + together));
  finish();
}

if (process.argv[2] === "install") await installAll(table({}).map(([spec]) => spec));
else await main();
