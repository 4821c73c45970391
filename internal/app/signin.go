package app

import (
	"context"
	"net/url"
	"os"
	"strings"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/registry"
)

// signIn is how people sign in to the upstreams of one profile.
type signIn struct {
	app     *App
	profile string
}

// how returns what a person can do to sign in to a server.
func (s signIn) how(server string, scopes []string) string {
	words := []string{"mcpx", "auth", "login"}
	c := s.app.config
	if c.File != config.UserFile(os.LookupEnv) && c.File != "" {
		words = append(words, c.File)
	}
	words = append(words, server)
	if s.profile != "default" {
		words = append(words, "--schema", s.profile)
	}
	for _, scope := range scopes {
		words = append(words, "--scope", scope)
	}
	how := "run " + plain.Shell(words...)
	if page := s.page(server, scopes); page != "" {
		how += ", or open " + page
	}
	return how
}

// page returns the address of the page where a person signs in, "" if there is no HTTP
// front.
func (s signIn) page(server string, scopes []string) string {
	if s.app.address == "" {
		return ""
	}
	page := s.app.address + "/signin/" + url.PathEscape(s.profile) + "/" + url.PathEscape(server)
	if len(scopes) > 0 {
		page += "?" + url.Values{"scope": {strings.Join(scopes, " ")}}.Encode()
	}
	return page
}

// begin returns the address where a person signs in: the page of the HTTP front, or that
// of the authorization server.
func (s signIn) begin(r *registry.Registry) func(ctx context.Context, server string, scopes []string) (string, error) {
	return func(ctx context.Context, server string, scopes []string) (string, error) {
		if page := s.page(server, scopes); page != "" {
			return page, nil
		}
		return r.BeginLocalSignIn(ctx, server, scopes)
	}
}
