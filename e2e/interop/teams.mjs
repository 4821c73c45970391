// Real clients sign in to mcpx-sse with a real issuer: from the first 401 over the metadata and the registration to the token, and on to its refresh.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check, finish, text } from "./report.mjs";
import { config, freePort, serve, work } from "./mcpx.mjs";

const tokenSeconds = 4; // of an access token, so that clients refresh it during the test
const scopes = ["mcp", "mcp:read"];

// issuer runs oidc-provider, which signs alice in without asking her.
async function issuer() {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = new Provider(url, {
    scopes: ["openid", "offline_access", ...scopes],
    ttl: { AccessToken: tokenSeconds, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 60, IdToken: 60 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({ scope: scopes.join(" "), audience: resource, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
      },
    },
    issueRefreshToken: () => true,
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  });
  // An interaction signs alice in, or has her agree to everything.
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith("/interaction/")) return next();
    const { prompt, params } = await provider.interactionDetails(ctx.req, ctx.res);
    let result = { login: { accountId: "alice" } };
    if (prompt.name === "consent") {
      const grant = new provider.Grant({ accountId: "alice", clientId: params.client_id });
      grant.addOIDCScope(params.scope ?? "openid");
      for (const resource of [params.resource].flat().filter(Boolean)) grant.addResourceScope(resource, scopes.join(" "));
      result = { consent: { grantId: await grant.save() } };
    }
    await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
    ctx.respond = false;
  });
  const server = createServer(provider.callback()).listen(port, "127.0.0.1");
  return { url, stop: () => server.close() };
}

// visit is the browser: it follows an authorization URL to the client's callback, and returns the last URL. Only the issuer's cookies are kept.
async function visit(url) {
  const cookies = new Map();
  for (let i = 0; i < 20; i++) {
    const response = await fetch(url, { redirect: "manual", headers: { cookie: [...cookies].map(([k, v]) => `${k}=${v}`).join("; ") } });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
      cookies.set(name, value);
    }
    const next = response.headers.get("location");
    if (!next) {
      if (response.status >= 400) throw new Error(`${url}: ${response.status} ${(await response.text()).slice(0, 300)}`);
      return url;
    }
    url = new URL(next, url).href;
    if (url.startsWith("http://127.0.0.1:1/")) return url; // the callback of the SDK's client, where nobody listens
  }
  throw new Error("too many redirects");
}

// visitPrinted visits the authorization URL that a program prints.
function visitPrinted(stream, done) {
  let said = "";
  stream.on("data", (data) => {
    said += data;
    const found = /(http:\/\/127\.0\.0\.1:\d+\/auth\?\S+)/.exec(said.replace(/\x1b\[[0-9;]*m/g, ""));
    if (found && !done.url) {
      done.url = found[1];
      visit(found[1]).catch((error) => (done.error = error));
    }
  });
  return () => said;
}

// Store is the OAuth state of the SDK's client.
class Store {
  redirectUrl = "http://127.0.0.1:1/callback";
  clientMetadata = { client_name: "interop", redirect_uris: [this.redirectUrl], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" };
  saved = 0;
  clientInformation = () => this.client;
  saveClientInformation = (client) => (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => ((this.kept = tokens), this.saved++);
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  redirectToAuthorization = async (url) => (this.code = new URL(await visit(url.href)).searchParams.get("code"));
}

const exec = (server_name, tool_name, args = {}) => ({ name: "exec", arguments: { server_name, tool_name, arguments: args } });

const id = await issuer();
const port = await freePort();
const front = await serve(
  config({
    mcpServers: { time: { command: "${MCPX}", args: ["demo", "time"] } },
    server: { port, public_url: `http://127.0.0.1:${port}`, auth: { oidc: { issuer: id.url, scopes: { mcp: ["*"], "mcp:read": { allow: ["*"], read_only: true } } } } },
  }),
  ["--port", String(port)],
);
const url = front.url + "/mcp";

await check("TypeScript SDK: 401, metadata, registration, sign-in, call", async () => {
  const store = new Store();
  const first = new StreamableHTTPClientTransport(new URL(url), { authProvider: store });
  const client = new Client({ name: "interop", version: "1" });
  await assert.rejects(client.connect(first), UnauthorizedError);
  await first.finishAuth(store.code);
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: store });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((t) => t.name), ["inspect", "exec"]);
  assert.match(text(await client.callTool(exec("mcpx", "servers"))), /time: /);
  await check("TypeScript SDK: a refreshed token keeps the session", async () => {
    const session = transport.sessionId;
    const before = store.saved;
    await new Promise((resolve) => setTimeout(resolve, (tokenSeconds + 1) * 1000));
    assert.match(text(await client.callTool(exec("mcpx", "servers"))), /time: /);
    assert.ok(store.saved > before, "the token was not refreshed");
    assert.equal(transport.sessionId, session);
  });
  await client.close();
});

await check("mcp-remote: 401, metadata, registration, sign-in, call", async () => {
  const transport = new StdioClientTransport({ command: "mcp-remote", args: [url, String(await freePort()), "--allow-http"], stderr: "pipe", env: { ...process.env, HOME: work, MCP_REMOTE_CONFIG_DIR: `${work}/mcp-auth-${port}`, BROWSER: "true" } });
  const done = {};
  const said = visitPrinted(transport.stderr, done);
  const client = new Client({ name: "interop", version: "1" });
  try {
    await client.connect(transport);
    assert.match(text(await client.callTool(exec("mcpx", "servers"))), /time: /);
  } catch (error) {
    throw new Error(`${error.message}; ${done.error?.message ?? ""}; ${said().slice(-600)}`);
  } finally {
    await client.close();
  }
  assert.ok(done.url, "nobody signed in");
});

await check("Inspector CLI: 401, metadata, registration, sign-in, call", async () => {
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const child = spawn("mcp-inspector", ["--cli", url, "--transport", "http", "--callback-url", callback, "--method", "tools/list"], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HOME: work, BROWSER: "true", MCP_AUTO_OPEN_ENABLED: "true" } });
  const done = {};
  let printed = "";
  const said = visitPrinted(child.stderr, done);
  child.stdout.on("data", (data) => (printed += data));
  const code = await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(code, 0, `exit ${code}; ${done.error?.message ?? ""}; ${said().slice(-600)}`);
  assert.match(printed, /"inspect"/);
  assert.ok(done.url, "nobody signed in");
});

await front.stop();
id.stop();
finish();
