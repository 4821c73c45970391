// A stand-in for the model behind an agent: Anthropic's Messages API and OpenAI's
// Responses API on loopback. It records every request and replies from a script.
import { createServer } from "node:http";

const bodyLimit = 16 << 20;
const requestLimit = 50;

// modelAPI starts the server. script[n] is the tool call that the model makes once
// the conversation holds n tool results: a tool_use block (Messages) or an output
// item (Responses), without ids. After the last one the model says "done".
//
// agentRequests are the bodies of the requests that offer tools, in order; agents
// also send small requests of their own, such as one for a title. outside lists
// the hosts that the agent tried to reach through its proxy, which is this server.
export async function modelAPI(script) {
  const agentRequests = [];
  const outside = [];
  const server = createServer(async (request, response) => {
    const body = await readJSON(request);
    const api = apis.find((a) => request.method === "POST" && a.path.test(request.url));
    if (!api || !body?.stream || agentRequests.length >= requestLimit) {
      response.writeHead(404, { "Content-Type": "application/json" });
      response.end('{"type":"error","error":{"type":"not_found_error","message":"the stand-in does not have this"}}');
      return;
    }
    const isAgent = offeredTools(body).length > 0;
    if (isAgent) agentRequests.push(body);
    const count = toolResults(body).length;
    const call = isAgent ? script[count] : undefined;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const event of api.events(body, call, count)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  server.on("connect", (request, socket) => {
    outside.push(request.url);
    socket.on("error", () => {});
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, agentRequests, outside, close };
}

async function readJSON(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > bodyLimit) return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// offeredTools are the tools of a request. Codex puts them into the input for
// models of its "responses lite" kind.
export const offeredTools = (body) => [...(body.tools ?? []), ...(Array.isArray(body.input) ? body.input : []).filter((item) => item.type === "additional_tools").flatMap((item) => item.tools)];

// toolResults are the tool results of a request as text, oldest first.
export function toolResults(body) {
  const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const blocks = (body.messages ?? []).flatMap((m) => (Array.isArray(m.content) ? m.content : []));
  const fromMessages = blocks.filter((b) => b.type === "tool_result").map((b) => plain(b.content));
  const items = Array.isArray(body.input) ? body.input : [];
  return [...fromMessages, ...items.filter((i) => /_call_output$|^tool_search_output$/.test(i.type)).map((i) => plain(i.output ?? i.tools))];
}

// apis are the two ways to stream one reply: a tool call, or "done".
const apis = [
  { path: /^\/v1\/messages(\?|$)/, events: messagesEvents },
  { path: /^\/v1\/responses(\?|$)/, events: responsesEvents },
];

function messagesEvents(body, call, n) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const block = call ? { ...call, id: `toolu_${n}`, input: {} } : { type: "text", text: "" };
  const delta = call ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) } : { type: "text_delta", text: "done" };
  return [
    { type: "message_start", message: { id: `msg_${n}`, type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null, usage } },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
}

function responsesEvents(_, call, n) {
  const said = { type: "message", id: `msg_${n}`, role: "assistant", status: "completed", content: [{ type: "output_text", text: "done", annotations: [] }] };
  const item = call ? { ...call, id: `item_${n}`, call_id: `call_${n}`, status: "completed" } : said;
  const response = { id: `resp_${n}`, output: [item], usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } };
  return [
    { type: "response.created", response: { id: response.id } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
}
