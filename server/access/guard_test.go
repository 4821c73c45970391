package access

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/rpc"
)

const guardToken = "s3cret-token-of-the-test"

// guarded is a Guard before a handler that counts its calls.
type guarded struct {
	http.Handler
	reached int
}

func guard(g Guard) *guarded {
	g.Shared, g.Public = []string{"/status", "/metrics", "/health"}, []string{"/health"}
	b := &guarded{}
	b.Handler = g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.reached++
		w.WriteHeader(http.StatusTeapot)
	}))
	return b
}

// strictGuard has a row of everything.
func strictGuard() *guarded {
	return guard(Guard{Bind: "192.168.1.5:8000", Server: config.Server{
		Token:          guardToken,
		AllowedHosts:   []string{"MCP.example.com", "ported.example.com:8443", "tls.example.com:443", "2001:db8::7", "[2001:db8::8]:99", "10.0.0.7", "not a host"},
		AllowedOrigins: []string{"https://app.example.com", "HTTP://Old.Example.com:8080/", "vscode-webview://a1b2", "https://plain.example.com:443", "*", "null", "bare.example.com"},
	}})
}

// verdict is the response to a request.
type verdict struct {
	status  int
	header  http.Header
	body    string
	reached bool // the handler was
}

func (b *guarded) ask(method, path, host string, header http.Header) verdict {
	r := httptest.NewRequest(method, "http://x"+path, nil)
	r.Host = host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	before := b.reached
	b.ServeHTTP(w, r)
	sent := w.Result()
	defer func() { _ = sent.Body.Close() }()
	return verdict{sent.StatusCode, sent.Header, w.Body.String(), b.reached > before}
}

func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// mixes are every mix of Host, Origin and token, and what becomes of it where a
// token is needed. The first fault in that order is answered.
func mixes() (all []verdict) {
	hosts := map[string]int{"localhost:8000": 0, "mcp.example.com": 0, "192.168.1.5:1": 0, "evil.com": 403, "": 403}
	origins := map[string]int{"": 0, "http://localhost:3000": 0, "https://app.example.com": 0, "https://evil.com": 403, "null": 403}
	tokens := map[string]int{"Bearer " + guardToken: 0, "": 401, "Bearer wrong": 401}
	for host, badHost := range hosts {
		for origin, badOrigin := range origins {
			for token, badToken := range tokens {
				h := http.Header{"Host": {host}, "Origin": {origin}, "Authorization": {token}}
				maps.DeleteFunc(h, func(name string, values []string) bool { return name != "Host" && values[0] == "" })
				all = append(all, verdict{header: h, status: cmp.Or(badHost, badOrigin, badToken, http.StatusTeapot)})
			}
		}
	}
	return all
}

// Every route and method with every mix: only the one that may reaches the
// handler.
func TestGuardMatrix(t *testing.T) {
	b := strictGuard()
	all := mixes()
	seen := map[int]int{}
	shared := []string{"/mcp", "/mcp/work", "/sse", "/sse/work", "/message", "/status", "/metrics", "/health", "/health/", "/health/../mcp"}
	check := func(method, route string) {
		for _, mix := range all {
			want := mix.status
			isFree := mix.header.Get("Origin") == "" || slices.Contains(shared, route)
			switch {
			case !isFree:
				want = http.StatusForbidden
			case route == "/health" && want == http.StatusUnauthorized:
				want = http.StatusTeapot
			}
			got := b.ask(method, route, mix.header.Get("Host"), mix.header)
			if got.status != want || got.reached != (want == http.StatusTeapot) {
				t.Errorf("%s %s, %v: %d, reached %t; want %d", method, route, mix.header, got.status, got.reached, want)
			}
			seen[want]++
		}
	}
	routes := append([]string{"/", "/nope", "//health", "/console/default/add", "/reload", "/mcpx", "/.well-known/other"}, shared...)
	methods := []string{"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "TRACE", "ODD"}
	for _, route := range routes {
		for _, method := range methods {
			check(method, route)
		}
	}
	// 9 methods. On the 10 shared routes, of 75 mixes 48 are forbidden, 18 lack the token (not
	// on /health), 9 pass. On the 7 others, each Origin is foreign: 66 are forbidden, 6 lack
	// the token, 3 pass.
	if want := map[int]int{403: 9 * (10*48 + 7*66), 401: 9 * (9*18 + 7*6), 418: 9 * (9*9 + 27 + 7*3)}; !maps.Equal(seen, want) {
		t.Errorf("the matrix has %v, want %v", seen, want)
	}
}

// hostRows are values of Host, and whether strictGuard lets them through.
var hostRows = []struct {
	host string
	want bool
}{
	{"localhost", true}, {"localhost:8000", true}, {"LOCALHOST:80", true}, {"LocalHost", true},
	{"localhost.", true}, {"localhost.:8000", true}, {"127.0.0.1", true}, {"127.0.0.1:8000", true},
	{"127.8.9.10:1", true}, {"127.255.255.255", true}, {"[::1]", true}, {"[::1]:8000", true},
	{"[0:0:0:0:0:0:0:1]:65535", true}, {"[::ffff:127.0.0.1]:80", true}, {"localhost:00080", true},
	// The bound address and the list.
	{"192.168.1.5", true}, {"192.168.1.5:8000", true}, {"192.168.1.5:9", true}, {"[::ffff:192.168.1.5]", true},
	{"mcp.example.com", true}, {"mcp.EXAMPLE.com.:8443", true}, {"ported.example.com:8443", true},
	{"tls.example.com:443", true}, {"tls.example.com", true}, {"[2001:db8::7]:1", true}, {"[2001:DB8:0::7]", true},
	{"[2001:db8::8]:99", true}, {"10.0.0.7:5", true},

	{"", false}, {".", false}, {":", false}, {":80", false}, {"[]", false}, {"[]:80", false},
	{"evil.com", false}, {"127.0.0.1.evil.com", false}, {"localhost.evil.com", false}, {"evil.com:127.0.0.1", false},
	{"evil.localhost", false}, {"localhost.localdomain", false}, {"xlocalhost", false}, {"localhost..", false}, {".localhost", false},
	{"evil.com:80", false}, {"evilmcp.example.com", false}, {"x.mcp.example.com", false}, {"mcp.example.com.evil.com", false},
	{"ported.example.com", false}, {"ported.example.com:80", false}, {"tls.example.com:80", false}, {"[2001:db8::8]", false},
	{"0.0.0.0", false}, {"0.0.0.0:8000", false}, {"[::]", false}, {"[::]:8000", false}, {"0", false},
	{"192.168.1.50", false}, {"192.168.1.6", false}, {"128.0.0.1", false}, {"[::2]", false}, {"[::ffff:10.0.0.1]", false}, {"[fe80::1]", false},
	{"127.1", false}, {"0x7f.0.0.1", false}, {"2130706433", false}, {"0177.0.0.1", false}, {"127.0.0.001", false}, {"127.0.0.256", false}, {"127.0.0.1.1", false},
	{"::1", false}, {"::1:8000", false}, {"[::1", false}, {"[::1:80", false}, {"::1]", false}, {"[::1]]", false}, {"[[::1]]", false}, {"[::1]evil.com", false}, {"[::1].", false},
	{"[::1]:", false}, {"[::1%25lo]", false}, {"[::1%lo]", false}, {"[127.0.0.1]", false}, {"[localhost]", false}, {"evil.com[::1]", false},
	{"localhost:", false}, {"localhost:0", false}, {"localhost:65536", false}, {"localhost:-1", false}, {"localhost:+80", false}, {"localhost:8_0", false},
	{"localhost:80:80", false}, {"localhost:http", false}, {"localhost:80@evil.com", false}, {"localhost: 80", false}, {"localhost:80 ", false},
	{"user@localhost", false}, {"localhost@evil.com", false}, {"evil.com@localhost", false}, {"evil.com#localhost", false}, {"evil.com#@localhost", false},
	{"evil.com/localhost", false}, {"localhost/", false}, {"localhost?", false}, {"evil.com\\localhost", false}, {"localhost,evil.com", false}, {"evil.com,localhost", false},
	{"http://localhost", false}, {"//localhost", false}, {" localhost", false}, {"localhost ", false}, {"localhost\t", false},
	{"local\x00host", false}, {"localhost\x00", false}, {"localhost\r\nX: y", false}, {"localhost\n", false}, {"\x7flocalhost", false}, {"localhost\x00.evil.com", false},
	{"loc\u00e4lhost", false}, {"localho\u017ft", false}, {"127\u30020\u30020\u30021", false}, {"\uff11\uff12\uff17.0.0.1", false}, {"localhost\u200b", false}, {"\xff\xfe", false},
	{"%6cocalhost", false}, {"*", false}, {"not a host", false}, {"mcp*example.com", false},
	{strings.Repeat("a", 1<<20), false}, {"localhost:" + strings.Repeat("0", 300) + "80", false}, {strings.Repeat("127.", 100) + "1", false}, {"[" + strings.Repeat("0:", 500) + "1]", false},
}

func TestGuardHosts(t *testing.T) {
	b := strictGuard()
	for _, row := range hostRows {
		got := b.ask("POST", "/mcp", row.host, headersOf("Authorization", "Bearer "+guardToken))
		if got.reached != row.want {
			t.Errorf("Host %.80q: %d, reached %t", row.host, got.status, got.reached)
		}
		if text := got.body; !row.want && (got.status != http.StatusForbidden || !strings.Contains(text, "server.allowed_hosts") || len(text) > 600) {
			t.Errorf("Host %.80q: %d %.700s", row.host, got.status, text)
		}
	}
}

// The address that is listened on is allowed if it is one.
func TestGuardBind(t *testing.T) {
	for _, row := range []struct {
		bind, host string
		want       bool
	}{
		{"box.lan:8000", "BOX.lan:8000", true},
		{"box.lan:0", "box.lan:4711", true},
		{"[fe80::1%eth0]:8000", "[fe80::1]:8000", true},
		{"[2001:db8::1]:8000", "[2001:db8::1]", true},
		{"[::ffff:10.1.2.3]:8000", "10.1.2.3:8000", true},
		{"10.1.2.3:8000", "10.1.2.4:8000", false},
		{"0.0.0.0:8000", "0.0.0.0:8000", false},
		{"[::]:8000", "[::]:8000", false},
		{"[::ffff:0.0.0.0]:8000", "0.0.0.0:8000", false},
		{":8000", "evil.com", false},
		{":8000", "", false},
		{"", "", false},
		{"", "localhost", true},
		{"evil.com", "evil.com", false}, // no host:port
	} {
		if got := guard(Guard{Bind: row.bind}).ask("GET", "/", row.host, nil); got.reached != row.want {
			t.Errorf("bound to %q, Host %q: reached %t", row.bind, row.host, got.reached)
		}
	}
}

// originRows are values of Origin, and whether strictGuard lets them through.
var originRows = []struct {
	origin string
	want   bool
}{
	{"http://localhost", true}, {"https://localhost", true}, {"http://localhost:3000", true}, {"HTTP://LOCALHOST:3000", true}, {"http://localhost.:1", true},
	{"http://127.0.0.1:8000", true}, {"https://127.9.9.9", true}, {"http://[::1]", true}, {"https://[::1]:8443", true}, {"http://[::ffff:7f00:1]", true},
	{"https://app.example.com", true}, {"https://app.example.com:443", true}, {"HTTPS://App.Example.COM", true},
	{"http://old.example.com:8080", true}, {"https://plain.example.com", true}, {"vscode-webview://a1b2", true},

	{"", false}, {"null", false}, {"NULL", false}, {"*", false}, {"file://", false}, {"about:blank", false}, {"data:,", false},
	{"http://app.example.com", false}, {"https://app.example.com:80", false}, {"https://app.example.com:8443", false}, {"http://app.example.com:443", false},
	{"http://old.example.com", false}, {"https://old.example.com:8080", false}, {"vscode-webview://a1b3", false}, {"vscode-webview://a1b2:443", false},
	{"https://evil.com", false}, {"https://app.example.com.evil.com", false}, {"https://xapp.example.com", false}, {"https://x.app.example.com", false},
	{"http://127.0.0.1.evil.com", false}, {"http://localhost.evil.com", false}, {"http://evil.com:127.0.0.1", false}, {"http://0.0.0.0:8000", false}, {"http://[::]", false},
	{"http://localhost@evil.com", false}, {"http://evil.com@localhost", false}, {"http://a:b@localhost", false}, {"http://localhost#evil.com", false},
	{"http://localhost/", false}, {"http://localhost/evil.com", false}, {"https://app.example.com/", false}, {"http://localhost?x", false}, {"http://localhost\\evil.com", false},
	{"localhost", false}, {"localhost:3000", false}, {"//localhost", false}, {"://localhost", false}, {"http:localhost", false}, {"http:/localhost", false}, {"http:///localhost", false},
	{"ftp://localhost", false}, {"file://localhost", false}, {"tauri://localhost", false}, {"ws://localhost", false}, {"javascript://localhost", false}, {"h ttp://localhost", false},
	{"http://http://localhost", false}, {"http://localhost http://evil.com", false}, {"http://evil.com http://localhost", false}, {"http://localhost,http://evil.com", false},
	{"http://local\x00host", false}, {"http://localhost\r\nX: y", false}, {" http://localhost", false}, {"http://localhost ", false}, {"bare.example.com", false}, {"http://bare.example.com", false},
	{"https://192.168.1.5", false}, {"https://mcp.example.com", false}, // being a host of ours does not make it an origin that may
	{"http://" + strings.Repeat("a", 1<<20), false}, {strings.Repeat("a", 1<<20) + "://evil.com", false},
}

func TestGuardOrigins(t *testing.T) {
	b := strictGuard()
	for _, row := range originRows {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "OPTIONS"} {
			got := b.ask(method, "/mcp", "localhost", headersOf("Origin", row.origin, "Authorization", "Bearer "+guardToken))
			if got.reached != row.want {
				t.Errorf("%s, Origin %.80q: %d, reached %t", method, row.origin, got.status, got.reached)
			}
			if cors := got.header.Values("Access-Control-Allow-Origin"); row.want != slices.Equal(cors, []string{row.origin}) {
				t.Errorf("%s, Origin %.80q: Access-Control-Allow-Origin %q", method, row.origin, cors)
			}
			if text := got.body; !row.want && (got.status != http.StatusForbidden || !strings.Contains(text, "server.allowed_origins") || len(text) > 900) {
				t.Errorf("%s, Origin %.80q: %d %.300s", method, row.origin, got.status, text)
			}
		}
	}
	if got := b.ask("GET", "/health", "localhost", headersOf("Origin", "http://localhost", "Origin", "http://localhost")); got.reached {
		t.Error("two Origin headers passed")
	}
}

func TestGuardTokens(t *testing.T) {
	b := strictGuard()
	for _, row := range []struct {
		values []string
		want   bool
	}{
		{[]string{"Bearer " + guardToken}, true},
		{[]string{"bearer " + guardToken}, true},
		{[]string{"BEARER   " + guardToken}, true},
		{[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+guardToken))}, true},
		{[]string{"basic " + base64.StdEncoding.EncodeToString([]byte(":"+guardToken))}, true},
		{[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte(guardToken))}, false},
		{[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte(guardToken+":"))}, false},
		{[]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("me:x"+guardToken))}, false},
		{nil, false},
		{[]string{""}, false},
		{[]string{"Bearer"}, false},
		{[]string{"Bearer "}, false},
		{[]string{"Bearer null"}, false},
		{[]string{guardToken}, false},
		{[]string{"Basic " + guardToken}, false},
		{[]string{"Bearer" + guardToken}, false},
		{[]string{"Bearer\t" + guardToken}, false},
		{[]string{" Bearer " + guardToken}, false},
		{[]string{"Bearer " + guardToken + " "}, false},
		{[]string{"Bearer " + guardToken + guardToken}, false},
		{[]string{"Bearer " + guardToken[1:]}, false},
		{[]string{"Bearer " + strings.ToUpper(guardToken)}, false},
		{[]string{"Bearer x, Bearer " + guardToken}, false},
		{[]string{"Bearer " + guardToken, "Bearer " + guardToken}, false},
		{[]string{"Bearer wrong", "Bearer " + guardToken}, false},
		{[]string{"Bearer " + strings.Repeat("x", 1<<20)}, false},
	} {
		h := http.Header{"Authorization": row.values, "Origin": {"http://localhost"}}
		got := b.ask("POST", "/mcp?token="+guardToken, "localhost", h)
		if got.reached != row.want {
			t.Errorf("Authorization %.80q: %d, reached %t", row.values, got.status, got.reached)
		}
		if row.want {
			continue
		}
		challenge := `Bearer error="invalid_token", error_description="mcpx does not know this token"`
		if len(row.values) == 0 || row.values[0] == "" { // RFC 6750: no error for a request without a token
			challenge = "Bearer"
		}
		if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != challenge || got.header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("Authorization %.80q: %d %v", row.values, got.status, got.header)
		}
		if all := got.body + fmt.Sprint(got.header); strings.Contains(all, guardToken) || len(all) > 1000 {
			t.Errorf("Authorization %.80q: the answer holds the token: %.2000s", row.values, all)
		}
	}
	if got := guard(Guard{}).ask("POST", "/mcp", "localhost", headersOf("Authorization", "Bearer any")); !got.reached {
		t.Error("a token that nobody asked for was refused")
	}
}

// TestForwardedHeadersOfPages: a page may send the headers that upstreams get.
func TestForwardedHeadersOfPages(t *testing.T) {
	b := guard(Guard{Headers: func() []string { return []string{"X-Jira-Token"} }})
	got := b.ask("OPTIONS", "/mcp", "localhost", headersOf("Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST"))
	if allowed := got.header.Get("Access-Control-Allow-Headers"); allowed != corsHeaders+", X-Jira-Token" {
		t.Errorf("allowed headers %q", allowed)
	}
}

func TestGuardPreflight(t *testing.T) {
	b := strictGuard()
	asks := func(origin string) http.Header {
		return headersOf("Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	}
	got := b.ask("OPTIONS", "/mcp", "localhost:8000", asks("https://app.example.com"))
	want := headersOf(
		"Access-Control-Allow-Origin", "https://app.example.com",
		"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS",
		"Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID",
		"Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate",
		"Access-Control-Max-Age", "600",
		"Vary", "Origin",
		"X-Content-Type-Options", "nosniff", "Cache-Control", "no-store", "Referrer-Policy", "no-referrer",
	)
	if got.status != http.StatusNoContent || got.reached || !maps.EqualFunc(got.header, want, slices.Equal) {
		t.Errorf("%d, reached %t\n got %v\nwant %v", got.status, got.reached, got.header, want)
	}
	for _, row := range []struct {
		name, method, host string
		header             http.Header
		want               int
	}{
		{"origin", "OPTIONS", "localhost", asks("https://evil.com"), 403},
		{"host", "OPTIONS", "evil.com", asks("https://app.example.com"), 403},
		{"no method asked for", "OPTIONS", "localhost", headersOf("Origin", "https://app.example.com"), 401},
		{"no origin", "OPTIONS", "localhost", headersOf("Access-Control-Request-Method", "POST"), 401},
		{"another method", "POST", "localhost", asks("https://app.example.com"), 401},
	} {
		got := b.ask(row.method, "/mcp", row.host, row.header)
		if got.status != row.want || got.reached || got.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%s: %d, reached %t, %v", row.name, got.status, got.reached, got.header)
		}
	}
}

// TestGuardStrayRequests: requests of other pages without an Origin are refused, unless a person
// follows a link.
func TestGuardStrayRequests(t *testing.T) {
	b := guard(Guard{})
	for _, row := range []struct {
		method, site, mode, dest string
		want                     bool
	}{
		{"GET", "", "", "", true}, {"POST", "", "", "", true}, {"DELETE", "", "", "", true},
		{"POST", "same-origin", "cors", "empty", true}, {"GET", "none", "navigate", "document", true}, {"GET", "same-site", "navigate", "document", true},
		{"GET", "same-site", "no-cors", "image", false}, {"GET", "same-site", "navigate", "iframe", false}, {"POST", "same-site", "no-cors", "empty", false},
		{"POST", "none", "navigate", "document", false},
		{"GET", "cross-site", "navigate", "document", true}, {"HEAD", "cross-site", "navigate", "document", true},
		{"POST", "cross-site", "navigate", "document", false}, {"DELETE", "cross-site", "navigate", "document", false}, {"OPTIONS", "cross-site", "navigate", "document", false},
		{"GET", "cross-site", "navigate", "iframe", false}, {"GET", "cross-site", "no-cors", "image", false}, {"GET", "cross-site", "no-cors", "document", false},
		{"GET", "cross-site", "", "", false}, {"POST", "cross-site", "no-cors", "empty", false},
	} {
		h := headersOf("Sec-Fetch-Site", row.site, "Sec-Fetch-Mode", row.mode, "Sec-Fetch-Dest", row.dest)
		got := b.ask(row.method, "/sse", "localhost", h)
		if got.reached != row.want || !row.want && got.status != http.StatusForbidden {
			t.Errorf("%+v: %d, reached %t", row, got.status, got.reached)
		}
		h.Set("Origin", "http://localhost:3000")
		if got := b.ask(row.method, "/sse", "localhost", h); !got.reached {
			t.Errorf("%+v: refused in spite of its origin", row)
		}
	}
	prefetch := headersOf("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Purpose", "prefetch;prerender")
	if got := b.ask("GET", "/signin/default/a", "localhost", prefetch); got.reached {
		t.Error("a page of another origin can prefetch a sign-in")
	}
}

func TestGuardAnswers(t *testing.T) {
	b := strictGuard()
	for _, row := range []struct {
		name, host string
		header     http.Header
		want       string
	}{
		{"host", "evil.com:80", nil, `the host \"evil.com\" is not allowed; add it to server.allowed_hosts in the config of mcpx, or connect to localhost`},
		{"no host", "", nil, `the Host header is missing or is not a host name; connect to localhost, or to a host in server.allowed_hosts`},
		{"origin", "localhost", headersOf("Origin", "https://evil.com"), `the origin \"https://evil.com\" is not allowed; add it to server.allowed_origins in the config of mcpx`},
		{"null", "localhost", headersOf("Origin", "null"), `the Origin header is null or not an origin; use a page whose origin is on localhost or in server.allowed_origins`},
	} {
		got := b.ask("POST", "/mcp", row.host, row.header)
		if want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Forbidden: ` + row.want + `"}}`; got.body != want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got.body, want)
		}
		want := headersOf("Content-Type", "application/json", "X-Content-Type-Options", "nosniff")
		if !maps.EqualFunc(got.header, want, slices.Equal) {
			t.Errorf("%s: headers %v", row.name, got.header)
		}
	}
}

// A handler has the last word on how long its answer may be kept.
func TestGuardHeadersOfAnswers(t *testing.T) {
	h := (&Guard{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/kept" {
			w.Header().Set("Cache-Control", "max-age=60")
		}
	}))
	for path, want := range map[string]string{"/": "no-store", "/kept": "max-age=60"} {
		got := (&guarded{Handler: h}).ask("GET", path, "localhost", nil)
		all := headersOf("Vary", "Origin", "X-Content-Type-Options", "nosniff", "Cache-Control", want, "Referrer-Policy", "no-referrer")
		if !maps.EqualFunc(got.header, all, slices.Equal) {
			t.Errorf("%s: %v", path, got.header)
		}
	}
}

// What only a client that writes its own bytes can send.
func TestGuardOnTheWire(t *testing.T) {
	b := strictGuard()
	s := httptest.NewServer(b)
	defer s.Close()
	auth := "Authorization: Bearer " + guardToken + "\r\n"
	for _, row := range []struct {
		name, text string
		want       int
	}{
		{"plain", "GET /mcp HTTP/1.1\r\nHost: localhost\r\n" + auth, 418},
		{"no Host", "GET /mcp HTTP/1.0\r\n" + auth, 403},
		{"empty Host", "GET /mcp HTTP/1.1\r\nHost:\r\n" + auth, 403},
		{"two Hosts", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\n" + auth, 400},
		{"a target of another host", "GET http://evil.com/mcp HTTP/1.1\r\nHost: localhost\r\n" + auth, 403},
		{"a target with a user", "GET http://localhost@evil.com/mcp HTTP/1.1\r\nHost: localhost\r\n" + auth, 403},
		{"a target of ours", "GET http://localhost/mcp HTTP/1.1\r\nHost: evil.com\r\n" + auth, 418},
		{"forwarded", "GET /mcp HTTP/1.1\r\nHost: evil.com\r\nX-Forwarded-Host: localhost\r\n" + auth, 403},
		{"two tokens", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n" + auth, 401},
		{"two origins", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.com\r\n" + auth, 403},
		{"an empty origin", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin:\r\n" + auth, 403},
		{"a tunnel", "CONNECT evil.com:80 HTTP/1.1\r\nHost: localhost\r\n" + auth, 403},
		{"a tunnel to us", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n", 401},
		{"an odd spelling", "GET /mcp HTTP/1.1\r\nhOST: evil.com\r\n" + auth, 403},
		{"the path of health", "GET /%68ealth HTTP/1.1\r\nHost: localhost\r\n", 418},
		{"a path beyond health", "GET /health/../mcp HTTP/1.1\r\nHost: localhost\r\n", 401},
		{"a query like health", "GET /mcp?/health HTTP/1.1\r\nHost: localhost\r\n", 401},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%sConnection: close\r\n\r\n", row.text)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if answer.StatusCode != row.want {
			t.Errorf("%s: %d, want %d", row.name, answer.StatusCode, row.want)
		}
		_ = answer.Body.Close()
		_ = conn.Close()
	}
	if b.reached != 3 {
		t.Errorf("the handler was reached %d times", b.reached)
	}
}

func TestCheckBind(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.3.2.1", "::1", "[::1]", "::1%lo", "::ffff:127.0.0.1"} {
		if err := (&Guard{Server: config.Server{Host: host}}).CheckBind(); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
	for _, host := range []string{"", "0.0.0.0", "::", "[::]", "0", "*", "192.168.1.5", "fe80::1%eth0", "box.lan", "127.0.0.1.evil.com", "localhost.evil.com", "127.1", "::ffff:0.0.0.0", "loc\u00e4lhost"} {
		err := (&Guard{Server: config.Server{Host: host}}).CheckBind()
		if err == nil {
			t.Errorf("%q may be bound without a token", host)
			continue
		}
		want := fmt.Sprintf("%q can be reached from other machines, so a token is needed: set server.token, server.auth, MCPX_TOKEN or --token-file, or bind 127.0.0.1", host)
		if err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", host, err, want)
		}
		if err := (&Guard{Server: config.Server{Host: host, Token: guardToken}}).CheckBind(); err != nil {
			t.Errorf("%q with a token: %v", host, err)
		}
	}
}

// mayPass is the law: what passes is a host in lower case that is loopback or is
// on the list, for a reader that has nothing in common with the guard's own.
func mayPass(host string, list ...string) bool {
	u, err := url.Parse("http://" + host + "/")
	if err != nil || u.User != nil || u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip := net.ParseIP(name); ip != nil {
		name = netip.MustParseAddr(ip.String()).String()
		return ip.IsLoopback() || slices.Contains(list, name)
	}
	return name == "localhost" || slices.Contains(list, name)
}

func FuzzGuardHost(f *testing.F) {
	for _, row := range hostRows {
		if len(row.host) < 1000 {
			f.Add(row.host)
		}
	}
	b := strictGuard()
	list := []string{"mcp.example.com", "ported.example.com", "tls.example.com", "2001:db8::7", "2001:db8::8", "10.0.0.7", "192.168.1.5"}
	f.Fuzz(func(t *testing.T, host string) {
		got := b.ask("GET", "/health", host, nil)
		if got.reached && !mayPass(host, list...) {
			t.Errorf("Host %q passed", host)
		}
		if got.reached {
			return
		}
		if m, err := rpc.Parse([]byte(got.body)); got.status != http.StatusForbidden || err != nil || m.Error == nil {
			t.Errorf("Host %q: %d %v", host, got.status, err)
		}
	})
}

func FuzzGuardOrigin(f *testing.F) {
	for _, row := range originRows {
		if len(row.origin) < 1000 {
			f.Add(row.origin)
		}
	}
	b := strictGuard()
	list := map[string][]string{"https:443": {"app.example.com", "plain.example.com"}, "http:8080": {"old.example.com"}}
	defaults := map[string]string{"http": "80", "https": "443"}
	f.Fuzz(func(t *testing.T, origin string) {
		got := b.ask("GET", "/health", "localhost", headersOf("Origin", origin))
		if cors := got.header.Get("Access-Control-Allow-Origin"); got.reached && cors != origin || !got.reached && cors != "" {
			t.Errorf("Origin %q: reached %t, Access-Control-Allow-Origin %q", origin, got.reached, cors)
		}
		if !got.reached || strings.EqualFold(strings.TrimSuffix(origin, "."), "vscode-webview://a1b2") {
			return
		}
		u, err := url.Parse(origin)
		if err != nil || defaults[u.Scheme] == "" {
			t.Fatalf("Origin %q passed: %v", origin, err)
		}
		port := strings.TrimLeft(u.Port(), "0")
		if port == "" {
			port = defaults[u.Scheme]
		}
		if !mayPass(u.Host, list[u.Scheme+":"+port]...) {
			t.Errorf("Origin %q passed", origin)
		}
	})
}

// TestGuardAsksAPerson: a browser gets the challenge that makes it show a password dialog.
// Programs do not get it, since some would then send nothing but a password.
func TestGuardAsksAPerson(t *testing.T) {
	b := strictGuard()
	const (
		firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
		chrome  = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
	)
	for _, row := range []struct {
		method, mode string
		accept       []string
		want         bool
	}{
		{"GET", "navigate", nil, true},
		{"GET", "navigate", []string{chrome}, true},
		{"GET", "", []string{firefox}, true},
		{"GET", "", []string{chrome}, true},
		{"GET", "", []string{"Text/HTML"}, true},

		{"GET", "", nil, false},
		{"GET", "", []string{""}, false},
		{"GET", "", []string{"*/*"}, false},
		{"GET", "", []string{"text/*"}, false},
		{"GET", "", []string{"text/event-stream"}, false},
		{"GET", "", []string{"application/json, text/event-stream"}, false},
		{"GET", "", []string{"application/json, text/event-stream, text/html"}, false},
		{"GET", "", []string{"application/json, text/event-stream", "text/html"}, false},
		{"GET", "", []string{"text/html;q=0.9, application/json"}, false},
		{"GET", "", []string{"text/html;q=0"}, false},
		{"GET", "", []string{"text/htmlx, x/text/html"}, false},
		{"GET", "cors", []string{firefox}, false},
		{"POST", "", []string{firefox}, false},
		{"POST", "", []string{"application/json, text/event-stream"}, false},
	} {
		h := http.Header{"Accept": row.accept}
		if row.mode != "" {
			h.Set("Sec-Fetch-Mode", row.mode)
		}
		want := []string{"Bearer"}
		if row.want {
			want = append(want, `Basic realm="mcpx: any name, the token as password", charset="UTF-8"`)
		}
		got := b.ask(row.method, "/", "192.168.1.5:8000", h)
		if all := got.header.Values("WWW-Authenticate"); got.status != http.StatusUnauthorized || !slices.Equal(all, want) {
			t.Errorf("%s, %q, Accept %q: %d %q, want %q", row.method, row.mode, row.accept, got.status, all, want)
		}
	}
}
