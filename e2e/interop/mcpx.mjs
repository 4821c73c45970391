// Runs of mcpx for the parts: its config files, and its HTTP front.
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

export const work = process.env.INTEROP_DIR + "/work";

// config writes a config file and returns its path.
export function config(content) {
  const path = join(mkdtempSync(join(work, "config-")), "mcpx.json");
  writeFileSync(path, JSON.stringify(content));
  return path;
}

// everything is the upstream that most clients are tried on. Several clients use one mcpx, and each cancels a call and is asked things: with a session each, mcpx knows whom to ask.
export const everything = { mcpServers: { everything: { command: "mcp-server-everything", args: ["stdio"], isolation: "client" } } };

const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill()));

// start runs a program until what it says on stderr matches, and returns the match.
export async function start(command, args, pattern, env = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "ignore", "pipe"], env: { ...process.env, ...env } });
  running.add(child);
  let said = "";
  const match = await new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      said += data;
      const found = pattern.exec(said);
      if (found) resolve(found);
    });
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${command} ended with ${code}: ${said.slice(-500)}`)));
  });
  return { match, stop: () => stop(child), said: () => said };
}

async function stop(child) {
  running.delete(child);
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill();
  await ended;
}

// serve runs mcpx-sse on a free port; url is without a path.
export async function serve(path, args = [], env = {}) {
  const run = await start("mcpx-sse", [path, "--port", "0", ...args], /url=(http:\/\/[^/\s]+)\/mcp/, env);
  return { ...run, url: run.match[1] };
}

// freePort is a port nothing listens on.
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
