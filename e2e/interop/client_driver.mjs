// The conformance suite's test client: the suite's server is mcpx's only
// upstream, and what calls its tools is the TypeScript SDK's client through mcpx.
//
//   client_driver.mjs URL
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { config } from "./mcpx.mjs";

const url = process.argv.at(-1);
const path = config({ expose: "flat", prefix: false, mcpServers: { suite: { url } } });
const client = new Client({ name: "conformance", version: "1" }, { capabilities: { elicitation: { form: { applyDefaults: true } } } });
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
await client.connect(new StdioClientTransport({ command: "mcpx", args: [path], stderr: "inherit" }));

// sample is a value that fits a schema, near enough. A parameter for a schema
// gets that of another tool, as it came through mcpx.
function sample(key, schema, others) {
  if (/schema/i.test(key) && others.length > 0) return others[0].inputSchema;
  const kinds = { number: 5, integer: 5, boolean: true, array: [], object: {}, string: "text" };
  return schema.enum?.[0] ?? kinds[schema.type] ?? null;
}

// given leaves out arguments that are null: the schemas of the suite do not allow null, and mcpx checks that.
const given = (call) => ({ ...call, arguments: Object.fromEntries(Object.entries(call.arguments ?? {}).filter(([, value]) => value !== null)) });

const planned = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}").toolCalls?.map(given);
const { tools } = await client.listTools();
const calls = planned ?? tools.map((t) => ({
  name: t.name,
  arguments: Object.fromEntries(Object.entries(t.inputSchema.properties ?? {}).map(([key, schema]) => [key, sample(key, schema, tools.filter((other) => other !== t))])),
}));
for (const call of calls) {
  try {
    await client.callTool(call);
  } catch (error) {
    console.error(`${call.name}: ${error.message}`);
  }
}
await client.close();
