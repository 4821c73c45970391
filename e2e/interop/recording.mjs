// A stdio transport for the TypeScript SDK's client that keeps every line as it came.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const running = new Set();
process.on("exit", () => running.forEach((transport) => transport.kill()));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => process.exit(1));

// RecordingTransport runs a server in a process group of its own, which ends with it.
export class RecordingTransport {
  lines = []; // the responses of the server

  constructor({ command, args = [], env = {} }) {
    this.command = command;
    this.args = args;
    this.env = { ...process.env, ...env };
  }

  async start() {
    this.child = spawn(this.command, this.args, { env: this.env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    running.add(this);
    this.stderr = "";
    this.child.stderr.on("data", (data) => (this.stderr = (this.stderr + data).slice(-10_000)));
    this.child.stdin.on("error", () => {}); // the server has ended
    this.ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.ended.then(() => this.onclose?.());
    await new Promise((resolve, reject) => this.child.on("spawn", resolve).on("error", reject));
    createInterface({ input: this.child.stdout, crlfDelay: Infinity }).on("line", (line) => this.receive(line));
  }

  receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // some servers log to stdout
    }
    if (message.id !== undefined && message.method === undefined) this.lines.push(line);
    this.onmessage?.(message);
  }

  async send(message) {
    this.child.stdin.write(JSON.stringify(message) + "\n");
  }

  async close() {
    this.child.stdin.end();
    const timer = setTimeout(() => this.kill(), 3000);
    await this.ended;
    clearTimeout(timer);
    this.kill(); // a server may leave processes in its group
    running.delete(this);
  }

  kill() {
    try {
      process.kill(-this.child.pid, "SIGKILL");
    } catch {
      // the group has ended
    }
  }
}

// member returns the text of a member of a JSON object, byte for byte, or undefined.
export function member(text, name) {
  let depth = 0;
  let start; // of the value of the member
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      const begin = i;
      for (i++; text[i] !== '"'; i++) if (text[i] === "\\") i++;
      const isKey = /^\s*:/.test(text.slice(i + 1, i + 20));
      if (depth === 1 && isKey && start === undefined && JSON.parse(text.slice(begin, i + 1)) === name) start = text.indexOf(":", i) + 1;
    } else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") depth--;
    if (start !== undefined && i >= start && ((c === "," && depth === 1) || depth === 0)) return text.slice(start, i).trim();
  }
}
