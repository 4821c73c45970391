package config

import (
	"errors"
	"strings"

	"mcpx/internal/jsonc"
)

// Address is an absolute http or https URL that mcpx itself uses.
type Address struct {
	URL     string // with its references expanded
	written string
}

// AddressOf is an Address. It is shown as the file has it, with secrets hidden. It belongs to
// no upstream, so a missing variable or secret is a problem of the file.
func AddressOf(p *Address) Kind {
	expanded := HiddenText(&p.URL, webURL).also(webAddress)
	return Kind{
		schema: expanded.schema,
		read: func(r *reader, n jsonc.Node) {
			expanded.read(r, n)
			if p.written = ""; p.URL != "" {
				p.written = n.Text()
			}
		},
		show: func() any { return maskFallbacks(new(hider).url(p.written)) },
	}
}

// Headers are the HTTP headers of a request that mcpx itself makes. Their values have
// references and are never shown.
func Headers(p *[]Named[string]) Kind {
	value := func(p *string) Kind { return HiddenText(p, headerValue) }
	return ByName(p, "object of strings", value, headerName)
}

// headerValue rejects what a header cannot have. It does not repeat the value.
func headerValue(s string) error {
	if strings.ContainsAny(s, "\r\n\x00") {
		return errors.New("a header cannot have a line break")
	}
	return nil
}

// Required is an object that must have the keys.
func Required(k Kind, keys ...string) Kind {
	return k.also(pair{"required", keys}).then(func(r *reader, n jsonc.Node) {
		for _, key := range keys {
			if _, ok := n.Member(key); !ok && n.Kind() == '{' {
				r.Fail(n, "needs %q", key)
			}
		}
	})
}
