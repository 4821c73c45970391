package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/registry/link"
)

// TestHostileServer: whatever metadata says, nothing forbidden is contacted, and the
// error is short and says why.
func TestHostileServer(t *testing.T) {
	var hits atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer trap.Close()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"x":"`))
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	set := func(key string, value any) func(s *signintest.Server) {
		return func(s *signintest.Server) { s.Metadata = func(m map[string]any) { m[key] = value } }
	}
	resource := func(key string, value any) func(s *signintest.Server) {
		return func(s *signintest.Server) { s.Resource = func(m map[string]any) { m[key] = value } }
	}
	handle := func(path string, h http.HandlerFunc) func(s *signintest.Server) {
		return func(s *signintest.Server) { s.Handlers = map[string]http.HandlerFunc{path: h} }
	}
	const prm, asm = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	rows := map[string]struct {
		attack func(s *signintest.Server)
		want   string
	}{
		"metadata in the link-local range":     {resource("authorization_servers", []string{"https://169.254.169.254"}), "link-local"},
		"metadata in a private network":        {resource("authorization_servers", []string{"https://10.1.2.3"}), "private"},
		"http to another machine":              {resource("authorization_servers", []string{"http://issuer.example"}), "only https"},
		"an issuer that is a file":             {resource("authorization_servers", []string{"file:///etc/passwd"}), "not a URL"},
		"a long issuer":                        {resource("authorization_servers", []string{"http://" + strings.Repeat("a.", 1<<18) + "example"}), "only https"},
		"a long other issuer":                  {set("issuer", strings.Repeat("x\n", 1<<18)), "another one"},
		"no issuer":                            {resource("authorization_servers", []string{}), "no authorization server"},
		"a resource elsewhere":                 {resource("resource", "https://evil.example/mcp"), "not for"},
		"a resource beside":                    {func(s *signintest.Server) { resource("resource", s.Issuer+"/mc")(s) }, "not for"},
		"another issuer":                       {set("issuer", "https://evil.example"), "another one"},
		"an issuer with a slash":               {func(s *signintest.Server) { set("issuer", s.Issuer+"/")(s) }, "another one"},
		"a file as authorization endpoint":     {set("authorization_endpoint", "file:///etc/passwd"), "not a URL"},
		"a script as authorization endpoint":   {set("authorization_endpoint", "javascript:alert(1)"), "not a URL"},
		"a token endpoint by http":             {set("token_endpoint", "http://token.example/"), "only https"},
		"a token endpoint in a private net":    {set("token_endpoint", "https://192.168.0.1/"), "private"},
		"no token endpoint":                    {set("token_endpoint", ""), "no token endpoint"},
		"no PKCE":                              {set("code_challenge_methods_supported", nil), "PKCE"},
		"plain PKCE":                           {set("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		"registration in the metadata service": {set("registration_endpoint", "https://169.254.169.254/"), "link-local"},
		"a redirected token request": {handle("/token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, trap.URL, http.StatusTemporaryRedirect)
		}), "redirects a token request"},
		"a redirected registration": {handle("/register", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, trap.URL, http.StatusPermanentRedirect)
		}), "redirects a token request"},
		"metadata redirected to a private net": {handle(asm, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://10.0.0.1/", http.StatusFound)
		}), "private"},
		"metadata redirected in a circle": {handle(asm, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, asm, http.StatusFound)
		}), "too many redirects"},
		"metadata without end":          {handle(asm, endless), "more than 1048576 bytes"},
		"resource metadata without end": {handle(prm, endless), "more than 1048576 bytes"},
		"a token without end":           {handle("/token", endless), "more than 1048576 bytes"},
		"metadata that is HTML":         {handle(prm, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }), "not the JSON"},
		"metadata that fails":           {handle(prm, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), "500"},
		"metadata that is not there":    {handle(prm, http.NotFound), "does not exist"},
		"a token with a line break": {handle("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"a\r\nb","token_type":"Bearer"}`))
		}), "header cannot have"},
		"a token of another type": {handle("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"a","token_type":"DPoP"}`))
		}), "type DPoP"},
		"an error that repeats the code": {handle("/token", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, r.Form.Get("code")+" "+r.Form.Get("code_verifier"))
		}), "invalid_grant: *** ***"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := signintest.New(t)
			row.attack(s)
			a := newAccount(t, Settings{URL: s.URL})
			address, err := a.Begin(t.Context(), redirect, nil)
			if err == nil {
				err = complete(t, a, address)
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 500 {
				t.Errorf("%v, want %q", err, row.want)
			}
			if status, err := a.Status(t.Context()); err != nil || status.SignedIn {
				t.Errorf("signed in: %+v, %v", status, err)
			}
		})
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached a server that must not be contacted", hits.Load())
	}
}

// TestRequestPath: on the path of a request, metadata that cannot be used is reported,
// and a server without OAuth gets its own answer through.
func TestRequestPath(t *testing.T) {
	s := signintest.New(t)
	s.Handlers = map[string]http.HandlerFunc{"/.well-known/oauth-protected-resource/mcp": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }}
	a := newAccount(t, Settings{URL: s.URL})
	var denied *link.Denied
	for range 3 {
		if _, err := call(t, a, "tools/list"); !errors.As(err, &denied) || denied.Cause != "" || !strings.Contains(denied.Reason, "its sign-in cannot be used") {
			t.Fatalf("%v, want the problem", err)
		}
	}
	if got := s.Count("/.well-known/oauth-protected-resource/mcp"); got != 1 {
		t.Errorf("%d requests for metadata, want one that is cached", got)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer keys.Close()
	if status, err := call(t, newAccount(t, Settings{URL: keys.URL + "/mcp"}), "tools/list"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("a server with API keys: %d, %v", status, err)
	}
}

// TestOldServer: a server of 2025-03-26 is its own authorization server.
func TestOldServer(t *testing.T) {
	s := signintest.New(t)
	s.Handlers = map[string]http.HandlerFunc{"/.well-known/oauth-protected-resource/mcp": http.NotFound, "/mcp": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }}
	a := newAccount(t, Settings{URL: s.URL})
	var denied *link.Denied
	if _, err := call(t, a, "tools/list"); !errors.As(err, &denied) || denied.Cause != link.CauseSignIn {
		t.Fatalf("%v", err)
	}
	signIn(t, a)
}

// FuzzChallenge: whatever a server asks for, the scopes are few, short, and such that a
// request can have them.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer error="insufficient_scope", scope="a b", resource_metadata="https://a.example/x"`)
	f.Add(`Basic realm="x", Bearer scope=a`)
	f.Add(`Bearer ` + strings.Repeat(",", 100))
	f.Fuzz(func(t *testing.T, value string) {
		c := readChallenge(http.Header{"Www-Authenticate": {value, value}})
		if len(c.scopes) > maxScopes {
			t.Errorf("%d scopes", len(c.scopes))
		}
		for _, scope := range c.scopes {
			if scope == "" || len(scope) > maxScope || strings.ContainsAny(scope, " \"\\\r\n\x00") {
				t.Errorf("scope %q", scope)
			}
		}
	})
}

// TestLongChallenge: a header of megabytes costs no time.
func TestLongChallenge(t *testing.T) {
	h := http.Header{}
	for range 20 {
		h.Add("WWW-Authenticate", "Bearer "+strings.Repeat(",", 8<<20))
	}
	h.Add("WWW-Authenticate", `Bearer scope="late"`)
	if c := readChallenge(h); c.scopes != nil {
		t.Errorf("%v", c)
	}
}

func TestCovers(t *testing.T) {
	for _, row := range []struct {
		resource, address string
		want              bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp/", "https://a.example/mcp", true},
		{"https://a.example/mcp", "https://a.example/mcp/", true},
		{"https://a.example", "https://a.example/v1/mcp", true},
		{"https://a.example/v1", "https://a.example/v1/mcp", true},
		{"https://a.example/v2", "https://a.example/v1/mcp", false},
		{"https://a.example/m", "https://a.example/mcp", false},
		{"https://a.example/mcp/deeper", "https://a.example/mcp", false},
		{"http://a.example/mcp", "https://a.example/mcp", false},
		{"https://b.example/mcp", "https://a.example/mcp", false},
		{"https://a.example:444/mcp", "https://a.example/mcp", false},
		{"https://x@a.example/mcp", "https://a.example/mcp", false},
		{"https://a.example/mcp?x", "https://a.example/mcp", false},
		{"", "https://a.example/mcp", false},
	} {
		if got := covers(row.resource, row.address); got != row.want {
			t.Errorf("covers(%q, %q) = %v", row.resource, row.address, got)
		}
	}
}

// TestAllowedAddresses: metadata may lead to public addresses, to loopback if the upstream is
// there, and to a private address only if the upstream is connected at the same address.
func TestAllowedAddresses(t *testing.T) {
	const private = "10.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 64:ff9b:1::a00:1 64:ff9b:1:a00:0:100:: ::10.0.0.1 2002:a00:1::1 ::ffff:0:10.0.0.1"
	const loopback = "127.0.0.1 ::1 0.0.0.0 :: ::127.0.0.1 2002:7f00:1:: 64:ff9b:1::7f00:1"
	const public = "8.8.8.8 2001:4860:4860::8888 64:ff9b::808:808 64:ff9b:1::808:808 64:ff9b:1:808:8:800:: 2002:808:808:: 198.18.0.1"
	const never = "169.254.169.254 fe80::1 fe80::1%eth0 fd00:ec2::254 fd20:ce::254 100.100.100.200 168.63.129.16 192.0.0.192 " +
		"::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: ::169.254.169.254 224.0.0.1 ff02::1 255.255.255.255 240.0.0.1 0.1.2.3"
	const others = "10.9.9.9 192.168.1.1 fd00::1 fec0::1 100.64.0.1"
	for _, row := range []struct {
		name, upstream, issuer, connected, target, allowed string
	}{
		{"loopback", "http://127.0.0.1:8000/mcp", "", "", "", public + " " + loopback},
		{"localhost", "http://localhost:8000/mcp", "", "", "", public + " " + loopback},
		{"a private address", "http://10.0.0.1/mcp", "", "", "", public + " " + private},
		{"a link-local address", "http://169.254.169.254/mcp", "", "", "", public},
		{"a public address", "https://8.8.4.4/mcp", "", "", "", public},
		{"a name with a public address", "https://evil.example/mcp", "", "6.6.6.6", "", public},
		{"a name with a private address", "https://own.example/mcp", "", "10.0.0.1", "", public + " " + private},
		{"a name with a loopback address", "https://own.example/mcp", "", "127.0.0.1", "", public + " " + loopback},
		{"a name with a link-local address", "https://evil.example/mcp", "", "169.254.169.254", "", public},
		{"a name that cannot be connected to", "https://evil.example/mcp", "", "", "", public},
		{"a name without a certificate", "http://evil.example/mcp", "", "10.0.0.1", "", public},
		{"the upstream itself", "https://own.example/mcp", "", "", "own.example:443", public + " " + loopback + " " + private + " " + others},
		{"a port beside the upstream", "https://own.example/mcp", "", "", "own.example:444", public},
		{"the issuer of the config", "https://own.example/mcp", "https://sso.example:8443/realm", "", "sso.example:8443", public + " " + loopback + " " + private + " " + others},
		{"beside the issuer of the config", "https://own.example/mcp", "https://sso.example:8443/realm", "", "other.example:8443", public},
	} {
		g := newGuard(Settings{URL: row.upstream, Auth: config.Auth{Issuer: row.issuer}})
		g.connected = func(context.Context) netip.Addr {
			ip, _ := netip.ParseAddr(row.connected)
			return ip
		}
		for _, address := range strings.Fields(strings.Join([]string{private, loopback, public, never, others}, " ")) {
			want := slices.Contains(strings.Fields(row.allowed), address)
			if err := g.check(t.Context(), row.target, netip.MustParseAddr(address)); (err == nil) != want {
				t.Errorf("%s to %s: %v, want allowed: %v", row.name, address, err, want)
			}
		}
	}
}

// TestOwnAddress: the address of an upstream with a name is the one that a connection with a
// valid certificate uses. What its name resolves to does not count.
func TestOwnAddress(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	g := newGuard(Settings{URL: server.URL})
	if ip := g.connect(t.Context()); ip.IsValid() {
		t.Errorf("without a certificate that is trusted: %s", ip)
	}
	g.roots = server.Client().Transport.(*http.Transport).TLSClientConfig
	if ip := g.connect(t.Context()); ip != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("connected at %s", ip)
	}
}

// TestSlowMetadata: an answer that never ends is reported with who did not answer, how long
// mcpx waited, and what to do.
func TestSlowMetadata(t *testing.T) {
	err := failure(&url.Error{Op: "Get", URL: "https://sso.example/.well-known/x?secret", Err: context.DeadlineExceeded})
	if want := "https://sso.example did not send its whole answer within 15s; check whether that server works, then try again"; err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	s := signintest.New(t)
	s.Handlers = map[string]http.HandlerFunc{"/.well-known/oauth-protected-resource/mcp": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}}
	a := newAccount(t, Settings{URL: s.URL})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now()) // as if discoveryTime had passed
	defer cancel()
	if _, err := a.getJSON(ctx, s.URL, &struct{}{}); err == nil || !strings.Contains(err.Error(), "whole answer within 10s") {
		t.Errorf("%v", err)
	}
}
