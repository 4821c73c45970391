package listing

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mcpx/config"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
)

// described returns upstreams of these names, each with the description.
func described(description string, names ...string) (upstreams []*config.Upstream) {
	for _, name := range names {
		upstreams = append(upstreams, &config.Upstream{Name: name, Description: description})
	}
	return upstreams
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("server-%d", i)
	}
	return names
}

func TestDirectory(t *testing.T) {
	const use, search = `List a server's tools (tool_name "issue*" narrows), or get one's schema. Servers: `, "mcpx (searches all tools)"
	for _, row := range []struct {
		name      string
		upstreams []*config.Upstream
		want      string
	}{
		{"none", described(""), use + search},
		{"one", described("", "time"), use + "time, " + search},
		{"in config order", described("", "z", "a"), use + "z, a, " + search},
		{"described", described("Tells the time", "time"), use + "time (Tells the time), " + search},
		{"hostile", described("a\nb\x1b[31m\u202e", "x"), use + `x (a\nb\u001b[31m\u202e), ` + search},
		{"descriptions go before names", described(strings.Repeat("d", 500), "a", "b", "c", "d"), use + "a, b, c, d, " + search},
		{"one huge description", described(strings.Repeat("d", 5000), "a"), use + "a, " + search},
	} {
		if got, _ := Directory(row.upstreams); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestDirectoryOfMany: with many servers the directory stays short, has whole names in
// order, and says how to see the others.
func TestDirectoryOfMany(t *testing.T) {
	for _, row := range []struct {
		names       []string
		description string
	}{
		{numbered(1000), ""},
		{numbered(1000), "Something that it does"},
		{numbered(1000), "hostile\n\x1b[2J\u2028"},
		{numbered(170), "x"},
		{[]string{strings.Repeat("名", 64), strings.Repeat("é", 64), "b"}, strings.Repeat("描", 2000)},
	} {
		text, named := Directory(described(row.description, row.names...))
		if len(text) > 2048 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%d servers: %d bytes: %q", len(row.names), len(text), text)
		}
		_, list, _ := strings.Cut(text, "Servers: ")
		shown := strings.Split(list, ", ")
		last := shown[len(shown)-1]
		for i, name := range shown[:len(shown)-1] {
			if name, _, _ := strings.Cut(name, " ("); name != row.names[i] {
				t.Fatalf("%d servers: number %d is %q, want %q", len(row.names), i, name, row.names[i])
			}
		}
		want := "mcpx (searches all tools)"
		if missing := len(row.names) - (len(shown) - 1); missing > 0 {
			want = fmt.Sprintf(`mcpx (searches all tools; inspect("mcpx") lists %d more servers)`, missing)
		}
		if last != want || named != len(shown)-1 {
			t.Errorf("%d servers, %d shown of %d: the last is %q", len(row.names), len(shown)-1, named, last)
		}
		if len(row.names) == 1000 && len(text) < 2000 {
			t.Errorf("%d bytes of 2048 are used", len(text))
		}
	}
}

// TestDirectoryIsAsFullAsItMayBe: nothing is dropped before the limit is reached to
// the byte.
func TestDirectoryIsAsFullAsItMayBe(t *testing.T) {
	length := func(upstreams []*config.Upstream) int {
		text, _ := Directory(upstreams)
		return len(text)
	}
	base := length(described("", "a"))
	fits := described(strings.Repeat("d", directoryLimit-base-len(" ()")), "a")
	if got := length(fits); got != directoryLimit {
		t.Errorf("%d bytes, want %d", got, directoryLimit)
	}
	fits[0].Description += "d"
	if got := length(fits); got != base {
		t.Errorf("%d bytes, want %d", got, base)
	}
}

// TestInstructions: every server is named while there is room. Then the text says
// how many are left out, and where they are listed.
func TestInstructions(t *testing.T) {
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("server number %d", i))
	}
	long := strings.Repeat("日", 64)
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{nil, []string{"inspect(server_name)", "search"}},
		{[]string{"time", "日本"}, []string{"time, 日本. ", "inspect(server_name)", "exec", `"search"`}},
		{names, []string{"two tools: server number 1", ` more in inspect's description`, `"search"`}},
		{[]string{long, long, long, long, long, long, long, long, long, long, long, long, long, long, long}, []string{long, "more"}},
	} {
		got := Instructions(described("", c.names...))
		if n := utf8.RuneCountInString(got); n > InstructionsLimit {
			t.Errorf("%d servers: %d characters", len(c.names), n)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%d servers: %q is missing in %s", len(c.names), want, got)
			}
		}
	}
	left := strings.Count(Instructions(described("", names...)), "server number")
	if want := fmt.Sprintf(" and %d more", len(names)-left); !strings.Contains(Instructions(described("", names...)), want) {
		t.Errorf("%d servers are named, but it does not say%s", left, want)
	}
}

// TestWholeBuiltin: of many servers, the listing of the built-in server has those that the
// directory does not name, and those that need attention, in few tokens.
func TestWholeBuiltin(t *testing.T) {
	builtin := live.NewUpstream(Builtin, nil)
	var servers []*live.Upstream
	var configs []*config.Upstream
	for i := range 107 {
		servers = append(servers, &live.Upstream{Name: fmt.Sprintf("a-server-with-a-name-%d", i), State: live.Ready})
		configs = append(configs, &config.Upstream{Name: servers[i].Name})
		servers[i].Config = configs[i]
	}
	servers[3].State, servers[106].State, servers[5].State = live.Starting, live.Failed, live.Idle
	text := WholeBuiltin(builtin, servers, 4000)
	directory, named := Directory(configs)
	for i, u := range servers {
		isNamed := strings.Contains(directory, u.Name+",")
		if want := i >= named || i == 3; isNamed != (i < named) || strings.Contains(text+",", " "+u.Name+",") != want && strings.Contains(text, " "+u.Name+";") != want {
			t.Errorf("%s: %v in the directory, in the listing:\n%s", u.Name, isNamed, text)
		}
	}
	if want := fmt.Sprintf("; starting: %s; failed: %s", servers[3].Name, servers[106].Name); !strings.HasSuffix(text, want) || tokens.Count(text) > 500 {
		t.Errorf("%d tokens, want %s at the end of\n%s", tokens.Count(text), want, text)
	}
	if text := WholeBuiltin(builtin, servers[10:12], 4000); !strings.HasSuffix(text, "\n2 servers, ready unless noted") {
		t.Errorf("got %s", text)
	}
}
