// What a part says of its checks: a line each on file descriptor 3.
import { writeSync } from "node:fs";

let failed = 0;

// say writes one line of the table.
export function say(what, outcome, reason = "") {
  const clean = (text) => String(text).replace(/[\t\n\r]+/g, " ").slice(0, 300);
  writeSync(3, `${clean(what)}\t${outcome}\t${clean(reason)}\n`);
  if (outcome === "FAIL") failed++;
}

// check runs one check; what it throws is why it failed. It has a minute.
export async function check(what, body, limit = 60_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limit / 1000} s`)), limit);
  });
  try {
    await Promise.race([body(), late]);
    say(what, "pass");
  } catch (error) {
    say(what, "FAIL", error?.message ?? error);
    console.error(what, error);
  } finally {
    clearTimeout(timer);
  }
}

// finish ends the program with what came of it.
export function finish() {
  process.exit(failed ? 1 : 0);
}

// until waits for something that comes by itself.
export async function until(what, condition, limit = 20_000) {
  const end = Date.now() + limit;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`${what}: not within ${limit / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// text is the text of a tool's result.
export const text = (result) => result.content.filter((c) => c.type === "text").map((c) => c.text).join("\n");

// wire records what comes in on a transport, in order. The SDK's own handlers
// cannot tell: of a notification that arrives in one read with the answer, the
// client forgets whose it was before it looks at it.
export function wire(transport) {
  const messages = [];
  const inner = transport.onmessage;
  transport.onmessage = (message, extra) => {
    messages.push(message);
    inner(message, extra);
  };
  return messages;
}

// trace is what came of one call: its progress, and "result" where the answer came.
export const trace = (messages) =>
  messages.flatMap((m) => (m.method === "notifications/progress" ? [m.params.progress] : m.method === undefined ? ["result"] : []));
