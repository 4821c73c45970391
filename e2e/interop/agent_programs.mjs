// The agents that agents.mjs runs. clientInfo is the name that an agent tells mcpx, which
// decides on the instructions. write writes an agent's config for one run and returns its
// arguments and environment. call, search and script are a model's calls. loaded returns
// the definition of a tool that the model can call at once. shown returns what the agent
// makes of mcpx's definition of a tool.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { offeredTools } from "./modelapi.mjs";

export const claude = {
  name: "Claude Code",
  clientInfo: "claude-code",
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
  shown: ({ description, inputSchema }) => ({ description: description.replaceAll("…", "..."), schema: inputSchema }),
};

export const codex = {
  name: "Codex",
  clientInfo: "codex-mcp-client",
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
    return found && { description: found.description, schema: found.parameters, strict: found.strict };
  },
  shown: ({ description, inputSchema }) => ({ description, schema: completed(inputSchema), strict: false }),
};

// completed returns a schema as Codex shows it: each schema of an object has properties,
// and each one of an array has items, which are strings if the schema does not say. The
// model is not bound to it: strict is false.
function completed(schema) {
  const types = [schema.type].flat();
  const done = { ...(types.includes("object") && { properties: {} }), ...(types.includes("array") && { items: { type: "string" } }), ...schema };
  if (done.properties) done.properties = Object.fromEntries(Object.entries(done.properties).map(([name, inner]) => [name, completed(inner)]));
  if (done.additionalProperties) done.additionalProperties = completed(done.additionalProperties);
  return done;
}
