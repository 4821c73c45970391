package signin

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Guide helps people to sign in to the upstreams of one profile.
type Guide struct {
	File    string // the config
	Profile string
	Address func() string // of the HTTP front, as people reach it; empty without one
}

// How returns what a person can do to sign in to an upstream. It is the hook
// live.Options.SignIn.
func (g Guide) How(u *config.Upstream, scopes []string) string {
	page := g.page(u.Name, scopes)
	if page != "" && u.Isolation == config.PerUser {
		return "open " + page
	}
	words := []string{"mcpx", "auth", "login"}
	if g.File != config.UserFile(os.LookupEnv) && g.File != "" {
		words = append(words, g.File)
	}
	words = append(words, u.Name)
	if g.Profile != "default" {
		words = append(words, "--schema", g.Profile)
	}
	for _, scope := range scopes {
		words = append(words, "--scope", scope)
	}
	how := "run " + plain.Shell(words...)
	if page != "" {
		how += ", or open " + page
	}
	return how
}

// page returns the address of the page where a person signs in, "" if there is no HTTP
// front.
func (g Guide) page(server string, scopes []string) string {
	address := g.Address()
	if address == "" {
		return ""
	}
	page := address + "/signin/" + url.PathEscape(g.Profile) + "/" + url.PathEscape(server)
	if len(scopes) > 0 {
		page += "?" + url.Values{"scope": {strings.Join(scopes, " ")}}.Encode()
	}
	return page
}

// Asker returns the hook executor.SignIn. It asks the client to open the page where a person
// signs in, if the client can do that, and waits until the person has signed in, within the
// limit of the call.
func (g Guide) Asker(r *registry.Registry, log zerolog.Logger) executor.SignIn {
	return func(ctx context.Context, c upstream.Client, needed *live.Unavailable) bool {
		v := viewOf(r, c)
		client, isCapable := c.(capable)
		if !isCapable || client.Supports("elicitation/create", request(needed, "", "")) != nil {
			return false
		}
		if !v.maySignIn(needed.Server) {
			return false // others sign in to it
		}
		ctx, cancel := context.WithTimeout(ctx, r.MaxTimeout(needed.Server))
		defer cancel()
		scopes, _ := needed.NeedsSignIn()
		address, err := g.begin(ctx, v, log, needed.Server, scopes)
		if err != nil {
			log.Warn().Err(err).Str("server", needed.Server).Msg("signing in cannot begin")
			return false
		}
		id := rand.Text()
		answer, err := c.Request(ctx, "elicitation/create", request(needed, address, id))
		if action, _ := rawjson.String(rawjson.Get(answer, "action")); err != nil || action != "accept" {
			return false
		}
		if v.signedIn(ctx, needed.Server, scopes) != nil {
			return false
		}
		c.Notify("notifications/elicitation/complete", append(rawjson.AppendString([]byte(`{"elicitationId":`), id), '}'))
		return true
	}
}

// capable is implemented by clients that know what they can do.
type capable interface {
	// Supports returns why the client cannot handle a request, nil if it can.
	Supports(method string, params []byte) error
}

// begin returns the address where a person signs in: the page of the HTTP front, or that of
// the authorization server.
func (g Guide) begin(ctx context.Context, v view, log zerolog.Logger, server string, scopes []string) (string, error) {
	if page := g.page(server, scopes); page != "" {
		return page, nil
	}
	return v.beginLocal(ctx, log, server, scopes)
}

// request returns the params of the request to open an address.
func request(needed *live.Unavailable, address, id string) []byte {
	b := rawjson.AppendString([]byte(`{"mode":"url","message":`), needed.Server+" "+needed.Why()+". Sign in on this page.")
	b = rawjson.AppendString(append(b, `,"url":`...), address)
	return append(rawjson.AppendString(append(b, `,"elicitationId":`...), id), '}')
}
