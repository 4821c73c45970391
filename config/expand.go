package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// environment is what lies outside the file: variables and folders.
type environment struct {
	lookup Lookup
	folder string // of the config file, absolute
}

// resolve returns an upstream with references and folders filled in.
func (e environment) resolve(written Upstream) Upstream {
	x := expansion{lookup: e.lookup}
	u := written
	u.written = &written
	u.Command = x.path("command", u.Command)
	u.Args = nil
	for i, arg := range written.Args {
		u.Args = append(u.Args, x.text(fmt.Sprintf("args[%d]", i), arg))
	}
	u.Env = x.dict("env", u.Env)
	if u.Dir != "" {
		u.Dir = e.absolute(x.path("cwd", u.Dir))
	}
	u.URL = x.text("url", u.URL)
	u.Headers = x.dict("headers", u.Headers)
	u.Err = x.err()
	if u.Err == nil {
		u.Err = unusable(&u)
	}
	u.redactor = newRedactor(secrets(&u, x.values))
	return u
}

// unusable says what of an upstream cannot be used once it is expanded,
// without its value, which may be a secret.
func unusable(u *Upstream) error {
	if u.URL != "" && webURL(u.URL) != nil {
		return errors.New("url: once its variables are expanded, this is no absolute http or https url")
	}
	for _, name := range slices.Sorted(maps.Keys(u.Headers)) {
		if strings.ContainsAny(u.Headers[name], "\r\n\x00") {
			return fmt.Errorf("headers.%s: the value holds a line break, which no header can", name)
		}
	}
	return nil
}

func (e environment) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.folder, path)
}

// expansion fills in the references of the texts that belong together.
type expansion struct {
	lookup  Lookup
	values  []variable // what references stood for
	missing []use      // variables that are not set
	foreign []use      // references that only an editor can resolve
	selfErr error      // why mcpx's own path is unknown
}

type variable struct{ name, value string }

// use is a reference that could not be resolved, and where it is written.
type use struct {
	name   string
	places []string
}

// text expands a text; place is where it is written, for messages. A value
// that is filled in is not looked at again.
func (x *expansion) text(place, text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	parts, err := split(text)
	if err != nil {
		return text
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(x.part(place, p))
	}
	return b.String()
}

// path is text for a path, which may start with ~/.
func (x *expansion) path(place, text string) string {
	home := homeFolder(x.lookup)
	if rest, ok := strings.CutPrefix(text, "~/"); ok && home != "" {
		return filepath.Join(home, x.text(place, rest))
	}
	return x.text(place, text)
}

func (x *expansion) dict(place string, texts map[string]string) map[string]string {
	expanded := maps.Clone(texts)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		expanded[key] = x.text(place+"."+key, texts[key])
	}
	return expanded
}

func (x *expansion) part(place string, p part) string {
	if p.foreign {
		x.foreign = addUse(x.foreign, p.text, place)
		return ""
	}
	if p.name == "" {
		return p.text
	}
	if p.self {
		path, err := executable()
		if err != nil {
			x.selfErr = err
		}
		return path
	}
	value, ok := x.lookup(p.name)
	switch {
	case value == "" && p.hasFallback: // as in a shell, empty counts as unset
		value = p.fallback
	case !ok:
		x.missing = addUse(x.missing, p.name, place)
	}
	x.values = append(x.values, variable{p.name, value})
	return value
}

// executable returns the absolute path of the running program.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func addUse(uses []use, name, place string) []use {
	for i, u := range uses {
		if u.name == name {
			uses[i].places = append(uses[i].places, place)
			return uses
		}
	}
	return append(uses, use{name, []string{place}})
}

// err names everything that could not be resolved, in one line.
func (x *expansion) err() error {
	var texts []string
	if m := x.missing; len(m) == 1 {
		texts = append(texts, fmt.Sprintf("environment variable %s is not set (used in %s); set it, or write ${%[1]s:-default}",
			m[0].name, strings.Join(m[0].places, ", ")))
	} else if len(m) > 1 {
		texts = append(texts, fmt.Sprintf("environment variables %s are not set; set them, or write ${%s:-default}",
			listUses(m), m[0].name))
	}
	if len(x.foreign) > 0 {
		texts = append(texts, fmt.Sprintf("%s cannot be resolved outside the editor it was written for; write ${VAR} and set VAR",
			listUses(x.foreign)))
	}
	if x.selfErr != nil {
		texts = append(texts, fmt.Sprintf("${%s}: the path of mcpx is unknown (%v); write the path instead", selfName, x.selfErr))
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

func listUses(uses []use) string {
	var list []string
	for _, u := range uses {
		list = append(list, fmt.Sprintf("%s (used in %s)", u.name, strings.Join(u.places, ", ")))
	}
	return strings.Join(list, ", ")
}

// part is a piece of a text: a literal, or a reference.
type part struct {
	text        string // as written
	name        string // the variable's; empty for a literal
	fallback    string // what follows :-
	hasFallback bool
	foreign     bool // ${input:token} and the like
	self        bool // ${MCPX}
}

// selfName is the reference to mcpx's own executable. A variable of that name is
// only reached as ${env:MCPX}.
const selfName = "MCPX"

var (
	referenceBody = regexp.MustCompile(`(?s)^(?:env:)?([A-Za-z_][\w()]*)(:-(.*))?$`)
	foreignBody   = regexp.MustCompile(`^[A-Za-z]+:[^-]`)
)

// split parts a text into literals and references. $VAR and $$ are literals.
func split(text string) ([]part, error) {
	var parts []part
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			return appendLiteral(parts, text), nil
		}
		parts = appendLiteral(parts, text[:start])
		length := strings.IndexByte(text[start:], '}') + 1
		if length == 0 {
			return nil, errors.New(`"${" without "}"; write ${VAR}`)
		}
		p, err := reference(text[start : start+length])
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		text = text[start+length:]
	}
}

func appendLiteral(parts []part, text string) []part {
	if text == "" {
		return parts
	}
	return append(parts, part{text: text})
}

// reference parses ${…}.
func reference(text string) (part, error) {
	body := text[2 : len(text)-1]
	m := referenceBody.FindStringSubmatch(body)
	switch {
	case m != nil && strings.Contains(m[3], "${"):
		return part{}, fmt.Errorf("the default of ${%s} cannot hold another reference", m[1])
	case m != nil:
		self := m[1] == selfName && !strings.HasPrefix(body, "env:")
		return part{text: text, name: m[1], fallback: m[3], hasFallback: m[2] != "", self: self}, nil
	case foreignBody.MatchString(body) && !strings.HasPrefix(body, "env:"):
		return part{text: text, foreign: true}, nil
	}
	name, _, _ := strings.Cut(body, ":-") // a default may be a secret
	return part{}, fmt.Errorf("%q is no reference; write ${VAR}, ${VAR:-default} or ${env:VAR}", "${"+name+"}")
}

// wellFormed checks the references of a text as it is read.
func wellFormed(text string) error {
	if !strings.Contains(text, "${") {
		return nil
	}
	_, err := split(text)
	return err
}
