// A real authorization server, oidc-provider, in front of an MCP server that checks its
// tokens: mcpx registers, signs in, refreshes a rotating token, and signs out.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createRemoteJWKSet, exportJWK, jwtVerify } from "jose";
import Provider from "oidc-provider";
import { check, finish, text } from "./report.mjs";
import { config, freePort, work } from "./mcpx.mjs";

const life = 3; // seconds of an access token
const issuer = `http://127.0.0.1:${await freePort()}`;
const mcpURL = `http://127.0.0.1:${await freePort()}/mcp`;
const events = []; // of the authorization server

const key = generateKeyPairSync("ec", { namedCurve: "P-256" });
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...(await exportJWK(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey)), alg: "RS256", use: "sig" }] },
  clients: [
    { client_id: "robot", client_secret: "robot-secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
    {
      client_id: "signer", grant_types: ["client_credentials"], redirect_uris: [], response_types: [], token_endpoint_auth_method: "private_key_jwt",
      jwks: { keys: [{ ...(await exportJWK(key.publicKey)), alg: "ES256", use: "sig" }] },
    },
  ],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  rotateRefreshToken: true,
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => {
        assert.equal(resource, mcpURL, "the resource");
        return { scope: "tools", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: life, jwt: { sign: { alg: "RS256" } } };
      },
    },
  },
});
for (const name of ["grant.success", "grant.error", "registration_create.success", "revocation.error"])
  provider.on(name, (ctx, error) => events.push({ name, grant: ctx.oidc.params?.grant_type, error: error?.error }));
const authServer = provider.listen(Number(new URL(issuer).port), "127.0.0.1");
const count = (name, grant) => events.filter((e) => e.name === name && (!grant || e.grant === grant)).length;

// The MCP server: one tool, for tokens with its own address as audience.
const keys = createRemoteJWKSet(new URL(issuer + "/jwks"));
const resourceServer = createServer(async (request, response) => {
  const reply = (status, value, headers = {}) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
  const metadata = new URL("/.well-known/oauth-protected-resource/mcp", mcpURL);
  if (request.url === metadata.pathname) return reply(200, { resource: mcpURL, authorization_servers: [issuer], scopes_supported: ["tools"] });
  try {
    await jwtVerify((request.headers.authorization ?? "").replace("Bearer ", ""), keys, { issuer, audience: mcpURL });
  } catch (error) {
    return reply(401, {}, { "www-authenticate": `Bearer error="invalid_token", resource_metadata="${metadata}"` });
  }
  if (request.method !== "POST") return reply(405, {});
  let body = "";
  for await (const part of request) body += part;
  const { id, method } = JSON.parse(body);
  if (id === undefined) return reply(202, {});
  const results = {
    initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "guarded", version: "1" } },
    "tools/list": { tools: [{ name: "hello", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "hello" }] },
  };
  reply(200, { jsonrpc: "2.0", id, result: results[method] ?? {} });
}).listen(Number(new URL(mcpURL).port), "127.0.0.1");

const state = mkdtempSync(join(work, "state-"));
const env = { ...process.env, XDG_STATE_HOME: state, BROWSER: `node ${import.meta.dirname}/oidc_browser.mjs` };
const entry = (auth) => ({ auth: { store: "file" }, mcpServers: { guarded: { url: mcpURL, ...(auth && { auth }) } } });
const path = config(entry());

// mcpx runs a command; each line of stderr goes to a function.
async function mcpx(args, onLine = () => {}, environment = env) {
  const child = spawn("mcpx", args, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (data) => (said += data));
  child.stderr.on("data", (data) => {
    said += data;
    String(data).split("\n").forEach(onLine);
  });
  const code = await new Promise((resolve) => child.on("exit", resolve));
  return { code, said };
}
const login = (file = path, ...flags) => mcpx(["auth", "login", file, "guarded", ...flags]);
const call = (file = path, environment = env) => mcpx(["exec", file, "guarded", "hello"], undefined, environment);
const expectHello = async (...args) => {
  const { code, said } = await call(...args);
  assert.equal(code, 0, said);
  assert.match(said, /hello/);
};
const expired = () => new Promise((resolve) => setTimeout(resolve, (life + 1) * 1000));

// stored returns the credentials that mcpx keeps.
function stored() {
  const folder = join(state, "mcpx", "tokens");
  const [file] = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return JSON.parse(readFileSync(join(folder, file)));
}

await check("registration, browser, PKCE, resource, iss", async () => {
  const before = await call();
  assert.equal(before.code, 1);
  assert.match(before.said, /needs sign-in/);
  const { code, said } = await login();
  assert.equal(code, 0, said);
  assert.match(said, /signed in to guarded/);
  assert.equal(count("registration_create.success"), 1);
  await expectHello();
});

await check("refresh with rotation", async () => {
  const first = stored().refresh_token;
  await expired();
  await expectHello();
  assert.notEqual(stored().refresh_token, first);
  assert.equal(count("grant.success", "refresh_token"), 1);
});

await check("three processes, an expired token: one refresh, nothing revoked", async () => {
  for (let round = 0; round < 3; round++) {
    const before = count("grant.success", "refresh_token");
    await expired();
    const calls = await Promise.all([call(), call(), call()]);
    for (const { code, said } of calls) assert.equal(code, 0, said);
    assert.equal(count("grant.success", "refresh_token"), before + 1);
  }
  assert.equal(count("grant.error"), 0);
});

await check("a stolen refresh token revokes the family: needs sign-in, then works again", async () => {
  const old = stored();
  await expired();
  await expectHello(); // rotates
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: old.refresh_token, client_id: old.client.id, resource: mcpURL });
  const reuse = await fetch(issuer + "/token", { method: "POST", body });
  assert.equal(reuse.status, 400);
  await expired();
  const { code, said } = await call();
  assert.equal(code, 1);
  assert.match(said, /needs sign-in/);
  assert.equal((await login()).code, 0);
  await expectHello();
});

await check("sign-out revokes the tokens", async () => {
  const old = stored();
  const { code, said } = await mcpx(["auth", "logout", path, "guarded"]);
  assert.equal(code, 0, said);
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: old.refresh_token, client_id: old.client.id, resource: mcpURL });
  assert.equal((await fetch(issuer + "/token", { method: "POST", body })).status, 400);
});

await check("device flow", async () => {
  let opened;
  const { code, said } = await mcpx(["auth", "login", path, "guarded", "--device"], (line) => {
    const found = /^or open (\S+)/.exec(line);
    if (found) opened = spawn("node", [`${import.meta.dirname}/oidc_browser.mjs`, found[1]], { stdio: ["ignore", "ignore", "inherit"] });
  });
  assert.equal(code, 0, said);
  assert.ok(opened, said);
  await expectHello();
  await mcpx(["auth", "logout", path, "guarded"]);
});

await check("client_credentials with a secret", async () => {
  const file = config(entry({ flow: "client_credentials", client_id: "robot", client_secret: "robot-secret", scopes: ["tools"] }));
  await expectHello(file);
  await expired();
  await expectHello(file);
  await mcpx(["auth", "logout", file, "guarded"]);
});

await check("client_credentials with a signed assertion", async () => {
  const pem = key.privateKey.export({ type: "pkcs8", format: "pem" });
  const file = config(entry({ flow: "client_credentials", client_id: "signer", private_key: "${KEY}", scopes: ["tools"] }));
  await expectHello(file, { ...env, KEY: pem });
});

await check("a running mcpx refreshes when it is used", async () => {
  assert.equal((await login()).code, 0);
  const [refreshes, errors] = [count("grant.success", "refresh_token"), count("grant.error")];
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(new StdioClientTransport({ command: "mcpx", args: [path], stderr: "ignore", env }));
  for (let round = 0; round < 4; round++) {
    const result = await client.callTool({ name: "exec", arguments: { server_name: "guarded", tool_name: "hello" } });
    assert.equal(text(result), "hello");
    if (round < 3) await expired();
  }
  await client.close();
  assert.equal(count("grant.success", "refresh_token"), refreshes + 3);
  assert.equal(count("grant.error"), errors);
});

authServer.close();
resourceServer.close();
finish();
