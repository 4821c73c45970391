package listing

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
)

// directoryLimit is the longest description of inspect, in bytes, however many servers there
// are.
const directoryLimit = 2048

// Directory returns the description of inspect, with the names and descriptions of all servers.
// If it is too long, it omits the descriptions, and then the last names. named is the number of
// servers that it names.
func Directory(upstreams []*config.Upstream) (text string, named int) {
	const (
		use    = `List a server's tools (tool_name "issue*" narrows), or get one's schema. Servers: `
		search = Builtin + " (searches all tools"
	)
	names := namesOf(upstreams)
	full := slices.Clone(names)
	for i, u := range upstreams {
		if u.Description != "" {
			full[i] += " (" + plain.Line(u.Description) + ")"
		}
	}
	for _, list := range [][]string{full, names} {
		if whole := use + strings.Join(append(list, search+")"), ", "); len(whole) <= directoryLimit {
			return whole, len(names)
		}
	}
	last := func(missing int) string {
		return fmt.Sprintf(`%s; inspect("%s") lists %d more servers)`, search, Builtin, missing)
	}
	named = fitting(names, directoryLimit-len(use+last(len(names))))
	return use + strings.Join(append(names[:named:named], last(len(names)-named)), ", "), named
}

// namesOf returns the names of upstreams.
func namesOf(upstreams []*config.Upstream) []string {
	names := make([]string, len(upstreams))
	for i, u := range upstreams {
		names[i] = u.Name
	}
	return names
}

// fitting returns how many names fit into that many bytes, each with a comma and a space.
func fitting(names []string, room int) int {
	for i, name := range names {
		if room -= len(name) + len(", "); room < 0 {
			return i
		}
	}
	return len(names)
}

// InstructionsLimit bounds the characters of the instructions, for any number of servers.
const InstructionsLimit = 1024

// Instructions returns instructions that name the servers and explain inspect and exec, for
// clients that show the model nothing else at first. The servers that the Directory does not
// name come first. If the text is too long, it omits the last names.
func Instructions(upstreams []*config.Upstream) string {
	const use = "inspect(server_name) lists a server's tools, exec calls one. " +
		`exec("` + Builtin + `", "search", {"query": …}) searches the tools of all servers.`
	_, named := Directory(upstreams)
	names := namesOf(upstreams)
	names = slices.Concat(names[named:], names[:named])
	text := func(names []string, more string) string {
		return "MCP servers behind two tools: " + strings.Join(names, ", ") + more + ". " + use
	}
	if len(names) == 0 {
		return use
	}
	whole := text(names, "")
	if utf8.RuneCountInString(whole) <= InstructionsLimit {
		return whole
	}
	more := func(n int) string { return fmt.Sprintf(` and %d more in inspect's description`, n) }
	room := InstructionsLimit - utf8.RuneCountInString(text(nil, more(len(names))))
	fit := 0
	for ; room >= 0; fit++ {
		room -= utf8.RuneCountInString(names[fit]) + len(", ")
	}
	fit-- // the last one did not
	return text(names[:fit], more(len(names)-fit))
}

// WholeBuiltin returns the listing of the built-in server: its tools, then the servers that the
// Directory does not name, and those that are not ready, by their state. If there is not enough
// room, it omits the last of them.
func WholeBuiltin(builtin *live.Upstream, servers []*live.Upstream, budget int) string {
	own := listing(builtin, builtin.Tools, budget/2)
	if len(servers) == 0 {
		return own
	}
	head := fmt.Sprintf("%s\n%s, ready unless noted", own, plain.Count(len(servers), "server"))
	noted := notedServers(servers)
	if text := head + strings.Join(noted, ""); tokens.Count(text) <= budget {
		return text
	}
	more := func(left int) string { return fmt.Sprintf("; … %d more: exec(%q, \"servers\")", left, Builtin) }
	room := budget - tokens.Count(head+more(len(noted))) - joinCost
	shown := strings.Join(noted, "")
	cut := tokens.Cut(shown, room)
	fit := 0
	for length := 0; fit < len(noted) && length+len(noted[fit]) <= cut; fit++ {
		length += len(noted[fit])
	}
	return head + strings.Join(noted[:fit], "") + more(len(noted)-fit)
}

// notedServers returns the names for WholeBuiltin, grouped by what a model should know about
// these servers. Each has what separates it from the one before.
func notedServers(servers []*live.Upstream) (noted []string) {
	configs := make([]*config.Upstream, len(servers))
	for i, u := range servers {
		configs[i] = u.Config
	}
	_, named := Directory(configs)
	groups, order := map[string][]string{}, []string{""}
	for i, u := range servers {
		note := serverNote(u.Shown())
		if i < named && note == "" {
			continue
		}
		if groups[note] == nil && note != "" {
			order = append(order, note)
		}
		groups[note] = append(groups[note], u.Name)
	}
	for _, note := range order {
		for i, name := range groups[note] {
			separator := ", "
			switch {
			case i == 0 && note == "":
				separator = ": "
			case i == 0:
				separator = "; " + note + ": "
			}
			noted = append(noted, separator+name)
		}
	}
	return noted
}

// serverNote returns what a model should know about a server before it uses it; "" if it is
// ready, or starts when it is used.
func serverNote(u *live.Upstream) string {
	switch {
	case u.NeedsPerson():
		return "needs a person"
	case u.State != live.Ready && u.State != live.Idle:
		return string(u.State)
	}
	return u.Note()
}
