package app

import (
	"context"
	"net/url"
	"os"
	"strings"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
	"mcpx/internal/upstream"
	"mcpx/registry"
)

// signIn is how people sign in to the upstreams of one profile.
type signIn struct {
	app     *App
	file    string // the config
	profile string
}

// how returns what a person can do to sign in to a server.
func (s signIn) how(server string, scopes []string) string {
	page := s.page(server, scopes)
	if page != "" && s.isPerUser(server) {
		return "open " + page
	}
	words := []string{"mcpx", "auth", "login"}
	if s.file != config.UserFile(os.LookupEnv) && s.file != "" {
		words = append(words, s.file)
	}
	words = append(words, server)
	if s.profile != "default" {
		words = append(words, "--schema", s.profile)
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

// isPerUser reports whether each caller signs in to the server.
func (s signIn) isPerUser(server string) bool {
	for _, p := range s.app.Profiles() {
		for i := range p.Upstreams {
			if p.Name == s.profile && p.Upstreams[i].Name == server {
				return p.Upstreams[i].Isolation == config.PerUser
			}
		}
	}
	return false
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
func (s signIn) begin(r *registry.Registry) executor.SignIn {
	return func(ctx context.Context, client upstream.Client, server string, scopes []string) (string, error) {
		if page := s.page(server, scopes); page != "" {
			return page, nil
		}
		return r.For(client).BeginLocalSignIn(ctx, server, scopes)
	}
}
