package config

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"mcpx/internal/jsonc"
	"mcpx/internal/redact"
)

// forwarding checks "forward_headers" of a server.
func (r *reader) forwarding(n jsonc.Node, u *Upstream) {
	m, ok := n.Member("forward_headers")
	switch {
	case !ok || len(u.ForwardHeaders) == 0:
	case u.Transport == TransportStdio:
		r.Fail(m.Name, "needs url: a command gets no headers")
	case u.Isolation != PerUser:
		r.Fail(m.Name, `needs "isolation": "user", so that no caller gets the session of another`)
	}
	targets := map[string]string{}
	for _, each := range m.Value.Members() {
		target, _, err := ParseForward(each.Value.Text())
		if err != nil {
			continue // reported elsewhere
		}
		key := strings.ToLower(target)
		if other, ok := targets[key]; ok {
			r.Fail(each.Value, "sends %s, and so does %s; keep one of them", target, other)
		}
		targets[key] = each.Key
		for name := range u.Headers {
			if strings.EqualFold(name, target) {
				r.Fail(each.Value, "sends %s, and so does headers; keep one of them", target)
			}
		}
	}
}

// forwards is an object of headers to forward: by the client's header, the header that the
// server gets, with {} for the client's value.
func forwards(p *[]Named[string]) Kind {
	header := func(p *string) Kind { return Text(p, forwardedHeader) }
	return ByName(p, "object of strings", header, forwardedName)
}

func forwardedHeader(text string) error {
	_, _, err := ParseForward(text)
	return err
}

// forwardedName refuses headers that clients send to mcpx itself.
func forwardedName(name string) error {
	for _, own := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		if strings.EqualFold(name, own) {
			return fmt.Errorf("%s is for mcpx itself and is never forwarded; let clients send another header, such as X-Server-Token", own)
		}
	}
	return headerName(name)
}

// ParseForward splits a value of ForwardHeaders into the header that the server gets and
// its value, in which {} is the client's value.
func ParseForward(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !ok || strings.Count(value, "{}") != 1:
		return "", "", errors.New(`expected a header with one {} in its value, such as "Authorization: Bearer {}"`)
	case strings.ContainsAny(value, "\r\n\x00"):
		return "", "", errors.New("the value has a line break; headers cannot have one")
	case reservedHeader(name):
		return "", "", fmt.Errorf("%s is set by mcpx; choose another header", name)
	}
	return name, value, headerName(name)
}

// ForwardedHeaders returns the headers of clients' requests that the upstreams of a profile
// get, in canonical form and sorted.
func (p *Profile) ForwardedHeaders() []string {
	var names []string
	for _, u := range p.Upstreams {
		for _, f := range u.ForwardHeaders {
			names = append(names, textproto.CanonicalMIMEHeaderKey(f.Name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ForCaller returns the upstream of one caller, with the headers of its request. It fails
// if a header is missing. headers has them by their canonical names.
func (u *Upstream) ForCaller(id string, headers map[string]string) (*Upstream, error) {
	own := *u
	own.Caller, own.forwarded = id, map[string]string{}
	for _, f := range u.ForwardHeaders {
		value := headers[textproto.CanonicalMIMEHeaderKey(f.Name)]
		if value == "" {
			return nil, fmt.Errorf("needs the header %s in the client's request; add it to the client's config", f.Name)
		}
		target, template, err := ParseForward(f.Value)
		if err != nil {
			return nil, err
		}
		own.forwarded[target] = strings.Replace(template, "{}", value, 1)
	}
	own.addForwarded()
	own.secrets = redact.NewSet(secrets(&own, nil))
	own.KeepHiding(u)
	return &own, nil
}

// addForwarded adds the headers of a client's request to those of the config.
func (u *Upstream) addForwarded() {
	if len(u.forwarded) == 0 {
		return
	}
	all := maps.Clone(u.forwarded)
	maps.Copy(all, u.Headers)
	u.Headers = all
}

// reservedHeader reports whether mcpx sets a header of requests to servers itself.
func reservedHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-length", "content-type", "accept", "connection", "transfer-encoding", "te", "trailer", "upgrade", "last-event-id":
		return true
	}
	return strings.HasPrefix(name, "mcp-")
}
