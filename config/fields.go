package config

import (
	"reflect"
	"time"

	"mcpx/internal/reference"
)

func defaults() *Config {
	return &Config{
		Start:      StartEager,
		IdleStop:   unset,
		AlwaysLoad: true,

		Server:  Server{Host: "127.0.0.1", Port: 8000, Console: ConsoleView},
		Stdio:   Stdio{Encoding: "utf8", Delimiter: "\n"},
		Logging: Logging{Level: "info", Format: "console"},
		Auth:    Vault{Place: TokensAuto},
		Limits: Limits{
			InspectTokens:  4000,
			ResultTokens:   10000,
			ResultHead:     2000,
			Sessions:       1000,
			SessionIdle:    30 * time.Minute,
			BodyBytes:      8 << 20,
			MessageBytes:   64 << 20,
			CallsPerClient: 256,
			UnreadBytes:    64 << 20,
			KeptBytes:      256 << 20,
			WorkBytes:      512 << 20,
		},
	}
}

func defaultProfile(name string) Profile {
	return Profile{Name: name, Enabled: true, Expose: Lazy, Prefix: true, FlatWait: 10 * time.Second}
}

func defaultUpstream() Upstream {
	return Upstream{
		StartupTimeout: 30 * time.Second,
		Timeout:        time.Minute,
		MaxTimeout:     15 * time.Minute,
		Isolation:      Shared,
		Auth:           Auth{Flow: FlowAuto},
		IdleStop:       unset,
		commands:       map[string][]string{},
	}
}

func defaultSandbox() Sandbox { return Sandbox{Write: []string{"."}, Network: true} }

// fields returns the keys at the top level. Servers that are there instead of in profiles
// are stored in top.
func (c *Config) fields(top *Profile) []Field {
	editor := Field{"$schema", unshown(Text(new(string))), "Where an editor finds this schema."}
	fields := append(top.group(), c.profiles()...)
	fields = append(fields, editor)
	return append(fields, c.sections()...)
}

// ProfileKeys are the spellings of the key that holds the profiles.
var ProfileKeys = []string{"schemas", "profiles"}

// profiles returns the keys that hold the profiles. The first is the one that is shown.
func (c *Config) profiles() []Field {
	return []Field{
		{ProfileKeys[0], profiles(&c.Profiles), "Named groups of servers, each with its own upstream sessions."},
		{ProfileKeys[1], unshown(profiles(&c.Profiles)), "The same as schemas."},
	}
}

func (c *Config) sections() []Field {
	stdio := []Field{{"stdio", Object(c.Stdio.fields()), "The stdio front. An invalid value here falls back to its default."}}
	return append([]Field{
		{"server", Object(c.Server.fields()), "The HTTP front."},
		{"cli", lenient(Object(stdio)), "The command line."},
		{"logging", Object(c.Logging.fields()), "The log of mcpx itself."},
		{"limits", Object(c.Limits.fields()), "Limits on memory and output."},
		{"auth", Object(c.Auth.fields()), "Signing in to servers that use OAuth."},
		{"start", Choice(&c.Start, StartEager, StartLazy), "eager: start the servers with mcpx. lazy: start a server when a request needs it."},
		{"idle_stop", idleTime(&c.IdleStop), "Stop the process of a server that nobody uses for this time. The default is 15m for lazy servers, and never for others."},
		{"watch", Boolean(&c.Watch), "true applies changes of this file when they are saved. Whoever can write the file can then start programs."},
		{"always_load", Boolean(&c.AlwaysLoad), "false lets clients that defer tools hide inspect and exec until the model searches for them."},
	}, c.Parts.fields(AtTop)...)
}

func (s *Server) fields() []Field {
	return append([]Field{
		{"host", Text(&s.Host, NonEmpty), "Address to listen on. Any address except loopback needs a token."},
		{"port", Number(&s.Port, 0, 65535), "Port to listen on; 0 means any free port."},
		{"stop_delay", Duration(&s.StopDelay), "Time for which mcpx still serves after SIGTERM or SIGINT, while /health responds with 503, so that load balancers notice. Without it, mcpx stops at once."},
		{"token", HiddenText(&s.Token), "Bearer token that clients must send. Write ${VAR}, ${file:PATH} or ${keyring:NAME} instead of the token itself."},
		{"console", Choice(&s.Console, ConsoleView, ConsoleEdit), "view: the console shows and tests. edit: it may also change what mcpx runs, for callers with the token."},
		{"allowed_origins", List(&s.AllowedOrigins, NonEmpty, allowedOrigin), "Origins that may connect, in addition to loopback: https://app.example.com."},
		{"allowed_hosts", List(&s.AllowedHosts, NonEmpty, allowedHost), "Host names that clients may use, in addition to loopback."},
		{"public_url", URL(&s.PublicURL, publicURL), "Address that clients use, without /mcp: https://mcpx.example.com."},
		{"session_key", OneOrMore(&s.SessionKeys, sessionKey), "Key that puts client sessions into their IDs, so that every replica with the key continues them: 32 bytes in base64. In an array, the first key encrypts and all keys open."},
		{"store", HiddenText(&s.Store, storeAddress).then(s.checkStore), "Redis or Valkey that replicas share: redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS. It needs session_key. Write a ${VAR} instead of the password itself."},
	}, s.Parts.fields(InServer)...)
}

func (s *Stdio) fields() []Field {
	return []Field{
		{"encoding", Choice(&s.Encoding, "utf8", "utf-8"), "Encoding of the messages."},
		{"delimiter", Choice(&s.Delimiter, "\n"), "End of a message."},
		{"timeout", milliseconds(&s.Timeout), "Time for a request in milliseconds; 0 leaves it to the server's own timeouts."},
	}
}

func (l *Logging) fields() []Field {
	return append([]Field{
		{"level", Choice(&l.Level, "debug", "info", "warn", "error"), "Lowest level that is logged."},
		{"format", Choice(&l.Format, "console", "json"), "console for people, json for programs."},
		{"file", Text(&l.File, NonEmpty), "File to log to, relative to the config file; without it, stderr."},
	}, l.Parts.fields(InLogging)...)
}

func (v *Vault) fields() []Field {
	return []Field{
		{"store", Choice(&v.Place, TokensAuto, TokensKeyring, TokensFile), "Where tokens are: files that only you can read. keyring encrypts them with a key in the system's keyring, file does not, auto does if there is a keyring."},
	}
}

func (l *Limits) fields() []Field {
	return append([]Field{
		{"inspect_tokens", Number(&l.InspectTokens, 100, 1e6), "Most tokens of a listing of inspect."},
		{"result_tokens", Number(&l.ResultTokens, 0, 1e8), "Tokens above which a result is cut; 0 means never, and results are not kept."},
		{"result_head", Number(&l.ResultHead, 0, 1e8), "Tokens of a cut result that are shown."},
		{"sessions", Number(&l.Sessions, 1, 1e6), "Most client sessions of the HTTP front."},
		{"session_idle", Duration(&l.SessionIdle), "Time after which an idle client session ends."},
		{"body_bytes", Size(&l.BodyBytes), "Most bytes of an HTTP request."},
		{"message_bytes", Size(&l.MessageBytes), "Most bytes of a message from a server."},
		{"connects_at_once", Optional(Number(&l.ConnectsAtOnce, 1, 1000)), "Most servers that start at the same time. The default is twice the number of processors, and at least 4."},
		{"calls_per_client", Number(&l.CallsPerClient, 1, 1e6), "Most calls of one client session at the same time."},
		{"unread_bytes", Size(&l.UnreadBytes), "Unread bytes of one client session above which none of its further calls start. Further responses are kept in temporary files."},
		{"kept_bytes", Size(&l.KeptBytes), "Most bytes of results that are kept for select and references."},
		{"work_bytes", Size(&l.WorkBytes), "Most memory that select, path, grep, references and the cutting of results may use, for all clients together. Further work waits."},
	}, l.Parts.fields(InLimits)...)
}

// fields returns the keys of one profile.
func (p *Profile) fields() []Field {
	enabled := Field{"enabled", Boolean(&p.Enabled), "Whether the profile is served."}
	return append([]Field{enabled}, p.group()...)
}

// ServerKeys are the spellings of the key that holds the servers.
var ServerKeys = []string{"mcpServers", "mcp_servers", "servers"}

// group returns the keys that a profile and the top level have in common.
func (p *Profile) group() []Field {
	return append([]Field{
		{"expose", Choice(&p.Expose, Lazy, Flat), "lazy: the tools inspect and exec. flat: every tool as Server__tool."},
		{"prefix", Boolean(&p.Prefix), "false makes a flat profile with one server a transparent proxy: names stay unchanged."},
		{"flat_wait", Duration(&p.FlatWait), "How long the list of tools of a flat profile waits for servers that start for the first time."},
		{"mcpServers", serverMap(&p.all), "The servers by name, as Claude, Cursor and Windsurf write them."},
		{"mcp_servers", serverList(&p.all), "The servers as an array."},
		{"servers", unshown(serverMap(&p.all)), "The servers by name, as VS Code writes them."},
	}, p.Parts.fields(InProfile)...)
}

// synonyms are other names for Streamable HTTP that clients use.
var synonyms = []Transport{"streamable-http", "streamableHttp", "streamable_http"}

// nameField returns the key "name" of a server in an array.
func (u *Upstream) nameField() Field {
	return Field{"name", Text(&u.Name).also(serverName), "Unique name of the server."}
}

// fields returns the keys of one server.
func (u *Upstream) fields() []Field {
	types := append([]Transport{TransportStdio, TransportHTTP, TransportSSE}, synonyms...)
	return append([]Field{
		{"type", Choice(&u.Transport, types...), "Transport. The default for a url is to try http, then sse."},
		{"command", Text(&u.Command, NonEmpty, reference.Check).also(notEmpty), "Program to start. ${VAR}, ${VAR:-default}, ${env:VAR}, ${file:PATH} and ${keyring:NAME} are expanded."},
		{"args", List(&u.Args, reference.Check), "Its arguments. References are expanded, each into one argument."},
		{"env", u.dict("env", &u.Env, environmentName), "Its environment, in addition to PATH, HOME and the like. References are expanded. A value may be a command that prints it."},
		{"cwd", Text(&u.Dir, NonEmpty, reference.Check).also(notEmpty), "Its working directory, relative to the config file. References are expanded."},
		{"url", Text(&u.URL, reference.Check, writtenURL).also(webAddress), "Address of a remote server. References are expanded."},
		{"headers", u.dict("headers", &u.Headers, headerName), "HTTP headers for a remote server. References are expanded. A value may be a command that prints it."},
		{"auth", u.Auth.kind(), "How to sign in to a remote server that uses OAuth. Most servers need none of it."},
		{"description", Text(&u.Description), "One line for the directory the agent sees."},
		{"disabled", Optional(Boolean(&u.disabled)), "true switches the server off."},
		{"enabled", inverse(&u.disabled), "false switches the server off."},
		{"tools", Object(append(u.Tools.fields(), u.Parts.fields(InTools)...)), "Which tools to show. Hidden tools cannot be called."},
		{"startup_timeout", Duration(&u.StartupTimeout), "Time to connect, initialize and list."},
		{"timeout", Duration(&u.Timeout), "Time for a call without any progress."},
		{"max_timeout", Duration(&u.MaxTimeout), "Time for a call in total."},
		{"isolation", Choice(&u.Isolation, Shared, PerClient, PerUser), "shared: one session for all clients. client: one for each. user: one for each caller."},
		{"forward_headers", forwards(&u.ForwardHeaders), "With isolation user: headers of the client's request that the server gets, such as {\"X-Jira-Token\": \"Authorization: Bearer {}\"}."},
		{"start", Choice(&u.Start, StartEager, StartLazy), "eager: start it with mcpx. lazy: start it when a request needs it. The default is start at the top level."},
		{"sandbox", sandboxKind(&u.Sandbox), "true, or an object: restrict its process, which may read all files, and write only some. Linux only."},
		{"idle_stop", idleTime(&u.IdleStop), "Stop its process if nobody uses it for this time. The default is idle_stop at the top level."},
	}, u.Parts.fields(InUpstream)...)
}

// signingAlgs are the algorithms of auth.signing_alg.
var signingAlgs = []string{"ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}

func (a *Auth) fields() []Field {
	flow := Choice(&a.Flow, FlowAuto, FlowBrowser, FlowDevice, FlowClientCredentials, FlowNone)
	return []Field{
		{"flow", flow, "auto: the browser, or the device flow where there is no display. client_credentials: without a person. none: no OAuth."},
		{"client_id", Text(&a.ClientID, NonEmpty, reference.Check).also(notEmpty), "ID of an app that you registered. Without it, mcpx registers itself. References are expanded."},
		{"client_secret", Text(&a.ClientSecret, NonEmpty, reference.Check).also(notEmpty), "Secret of that app. Write a ${VAR} instead of the secret itself."},
		{"scopes", List(&a.Scopes, NonEmpty), "Access to ask for, instead of what the server names."},
		{"issuer", Text(&a.Issuer, webURL).also(plainAddress), "The only authorization server that may be used."},
		{"client_metadata_url", Text(&a.ClientMetadataURL, webURL).also(plainAddress), "Address of a client ID metadata document for mcpx, for servers that support it."},
		{"redirect_port", Optional(Number(&a.RedirectPort, 0, 65535)), "Port that the browser is redirected to after a sign-in, if the app was registered with one. The default is any free port."},
		{"private_key", Text(&a.PrivateKey, NonEmpty, reference.Check).also(notEmpty), "Private key in PEM form that authenticates the app instead of a secret. References are expanded."},
		{"signing_alg", Choice(&a.SigningAlg, signingAlgs...), "Algorithm of that key's signatures. The default depends on the key."},
	}
}

// kind returns the section auth of an upstream. It is shown if the file sets any of it.
func (a *Auth) kind() Kind {
	k := Object(a.fields())
	shown := k.show
	k.show = func() any {
		if reflect.DeepEqual(*a, defaultUpstream().Auth) {
			return nil
		}
		return shown()
	}
	return k
}

func (s *Sandbox) fields() []Field {
	return []Field{
		{"write", List(&s.Write, NonEmpty), "Folders and files that it may write; relative ones are in its working directory. It also has its own temporary folder."},
		{"network", Boolean(&s.Network), "false: it cannot create sockets."},
		{"best_effort", Boolean(&s.BestEffort), "true: start it even if the system cannot restrict it."},
	}
}

func (f *Filter) fields() []Field {
	return []Field{
		{"allow", List(&f.Allow, Glob), "Globs of the tools to show; without any, all."},
		{"deny", List(&f.Deny, Glob), "Globs of the tools to hide. deny wins over allow."},
	}
}
