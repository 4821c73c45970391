// Package reference reads the references in a text of the config: ${VAR}, ${VAR:-default},
// ${env:VAR}, ${file:PATH} and ${keyring:NAME}. It does not resolve them.
package reference

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Part is a literal or a reference in a text.
type Part struct {
	Text        string // as written
	Name        string // of the variable or the stored secret; empty for a literal
	Place       Place  // where the secret is; empty for a variable
	Fallback    string // the text after :-
	HasFallback bool
	IsForeign   bool // ${input:token} and the like, which only an editor can resolve
	IsSelf      bool // ${MCPX}
}

// Place is where a reference finds a secret that is not in the environment.
type Place string

// The places.
const (
	File    Place = "file"    // ${file:PATH}
	Keyring Place = "keyring" // ${keyring:NAME}
)

var places = []Place{File, Keyring}

// check returns an error for a reference that no secret can have.
func (s Place) check(name string) error {
	if s == Keyring {
		return CheckName(name)
	}
	if name == "" {
		return errors.New("${file:} needs the path of a file: ${file:PATH}")
	}
	return nil
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,127}$`)

// CheckName returns an error for a text that cannot be the name of a secret in the keyring.
func CheckName(name string) error {
	if !secretName.MatchString(name) {
		return fmt.Errorf("%q is no name of a secret; use up to 128 letters, digits, and _ . @ / -", name)
	}
	return nil
}

// Self names the reference to mcpx's own executable: ${MCPX}. ${env:MCPX} is the variable of
// that name.
const Self = "MCPX"

var (
	referenceBody = regexp.MustCompile(`(?s)^(?:env:)?([A-Za-z_][\w()]*)(:-(.*))?$`)
	foreignBody   = regexp.MustCompile(`^[A-Za-z]+:[^-]`)
)

// Split divides a text into literals and references. $VAR and $$ are literals.
func Split(text string) ([]Part, error) {
	var parts []Part
	for {
		literal, rest, hasReference := strings.Cut(text, "${")
		if literal != "" {
			parts = append(parts, Part{Text: literal})
		}
		if !hasReference {
			return parts, nil
		}
		body, after, isClosed := strings.Cut(rest, "}")
		if !isClosed {
			return nil, errors.New(`"${" without "}"; write ${VAR}`)
		}
		p, err := parse(body)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		text = after
	}
}

// parse parses the text between ${ and }.
func parse(body string) (Part, error) {
	text := "${" + body + "}"
	m := referenceBody.FindStringSubmatch(body)
	if s, name, ok := strings.Cut(body, ":"); ok && slices.Contains(places, Place(s)) {
		return Part{Text: text, Name: name, Place: Place(s)}, Place(s).check(name)
	}
	switch {
	case m != nil && strings.Contains(m[3], "${"):
		return Part{}, fmt.Errorf("the default of ${%s} cannot hold another reference", m[1])
	case m != nil:
		isSelf := m[1] == Self && !strings.HasPrefix(body, "env:")
		return Part{Text: text, Name: m[1], Fallback: m[3], HasFallback: m[2] != "", IsSelf: isSelf}, nil
	case foreignBody.MatchString(body) && !strings.HasPrefix(body, "env:"):
		return Part{Text: text, IsForeign: true}, nil
	}
	name, _, _ := strings.Cut(body, ":-") // a default may be a secret
	return Part{}, fmt.Errorf("%q is no reference; write ${VAR}, ${VAR:-default}, ${env:VAR}, ${file:PATH} or ${keyring:NAME}", "${"+name+"}")
}

// Map replaces each literal and each reference in a text.
func Map(text string, change func(p Part) string) (string, error) {
	parts, err := Split(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(change(p))
	}
	return b.String(), nil
}

// Check checks the syntax of the references in a text.
func Check(text string) error {
	_, err := Split(text)
	return err
}

// HasStored reports whether a text refers to a stored secret.
func HasStored(text string) bool {
	parts, _ := Split(text)
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Place != "" })
}
