package config

import (
	"context"
	"errors"

	"mcpx/internal/jsonc"
	"mcpx/internal/redact"
	"mcpx/internal/reference"
	"mcpx/internal/seal"
)

// HiddenText is a text with references that is never empty and never shown. It belongs to
// no upstream, so a missing variable or secret is a problem of the file. The checks are for
// the expanded text.
func HiddenText(p *string, checks ...check) Kind {
	checks = append([]check{notMasked}, checks...)
	return Kind{
		schema: object{{"type", "string"}, notEmpty},
		read: func(r *reader, n jsonc.Node) {
			s, ok := r.text(n, NonEmpty, reference.Check)
			if !ok {
				return
			}
			r.warnFile(n)
			x := expansion{environment: r.environment, ctx: context.Background()}
			value := x.text(n.Path, s)
			switch err := x.err(); {
			case err != nil:
				r.Fail(n, "%v", err)
			case value == "" && !r.environment.isDry:
				r.Fail(n, "%v", errExpandedEmpty)
			case value != "" && r.check(n, value, checks...):
				*p = value
			}
		},
		show: func() any {
			if *p == "" {
				return nil
			}
			return redact.Hidden
		},
	}
}

// notMasked rejects what Show writes in place of a secret.
func notMasked(s string) error {
	if s == redact.Hidden {
		return errors.New(`"***" is what mcpx shows in place of a secret; write the secret itself, or a reference to it such as ${VAR}`)
	}
	return nil
}

// sessionKey is a key that seals client sessions. It is never shown.
func sessionKey(p *seal.Key) Kind {
	k := HiddenText(new(string), func(text string) (err error) {
		*p, err = seal.ParseKey(text)
		return err
	})
	k.show = func() any { return redact.Hidden }
	return k
}
