package lockfile

import (
	"maps"
	"slices"
	"strings"
)

// Change is a difference between what is approved and what a server sends now.
type Change struct {
	Server string // its Key
	Kind   Kind   // "origin" for the command or URL, "instructions", or a kind of definition
	Name   string // of the definition; empty for the others
	Old    string // the approved value; empty if there is none
	New    string // the value now; empty if it is gone
}

// origin is the kind of a changed command or URL.
const origin Kind = "origin"

// IsNotice reports whether the change needs no review: something is gone.
func (c Change) IsNotice() bool { return c.New == "" && c.Kind != origin }

// verb says what happened.
func (c Change) verb() string {
	switch {
	case c.Old == "":
		return "new"
	case c.New == "":
		return "gone"
	}
	return "changed"
}

// Title names the change in a few words: changed tool "create_issue".
func (c Change) Title() string {
	if c.Name == "" {
		return c.verb() + " " + nouns[c.Kind]
	}
	return c.verb() + " " + nouns[c.Kind] + " \"" + visible(c.Name) + "\""
}

// nouns are the names of the kinds in messages.
var nouns = map[Kind]string{origin: "command or url", instructions: "instructions", Tools: "tool", Prompts: "prompt", Templates: "template"}

// String returns the origin as one text.
func (o Origin) String() string {
	if o.URL != "" {
		return o.URL
	}
	return strings.Join(o.Command, " ")
}

// Equal reports whether two origins are the same.
func (o Origin) Equal(other Origin) bool {
	return o.URL == other.URL && slices.Equal(o.Command, other.Command)
}

// Compare returns the differences of one server: its origin, its instructions, then its
// definitions by kind and name. old is nil for a server that is not in the lock.
func Compare(name string, old, now *Server) []Change {
	if old == nil {
		old = &Server{}
	}
	var changes []Change
	add := func(kind Kind, item, before, after string) {
		if before != after {
			changes = append(changes, Change{Server: name, Kind: kind, Name: item, Old: before, New: after})
		}
	}
	if !old.Origin.Equal(now.Origin) {
		changes = append(changes, Change{Server: name, Kind: origin, Old: old.Origin.text(), New: now.Origin.text()})
	}
	add(instructions, "", pinText(old.Instructions), pinText(now.Instructions))
	for _, kind := range kinds {
		before, after := old.Items[kind], now.Items[kind]
		for _, item := range allKeys(before, after) {
			add(kind, item, before[item], after[item])
		}
	}
	return changes
}

// allKeys returns the keys of two maps, sorted.
func allKeys[T any](a, b map[string]T) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// text returns the origin as JSON, "" if there is none.
func (o Origin) text() string {
	switch {
	case o.URL != "":
		return quote(o.URL)
	case len(o.Command) == 0:
		return ""
	}
	return quoteAll(o.Command)
}

// pinText returns a text as canonical JSON, "" for no text.
func pinText(text string) string {
	if text == "" {
		return ""
	}
	return string(Canonical([]byte(quote(text))))
}
