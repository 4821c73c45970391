package clients

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// tomlFile is Codex's config. Edits change whole lines. An edit that would change anything
// except the named server is refused.
type tomlFile struct{ src []byte }

// errTOML reports a form of mcp_servers that mcpx cannot edit.
var errTOML = errors.New("mcp_servers is written in a way that mcpx cannot edit safely; edit the file yourself")

const tomlServers = "mcp_servers"

func newTOMLFile(text []byte) (*tomlFile, error) {
	_, servers, err := tomlValues(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not valid TOML: %s", reason(err))
	case servers == nil:
		return nil, fmt.Errorf("expected a table %q", tomlServers)
	}
	return &tomlFile{text}, nil
}

func (f *tomlFile) text() []byte { return f.src }

// servers returns all servers as a JSON object, sorted by name.
func (f *tomlFile) servers() []byte {
	raw, _ := fromTOML(f.src) // fails only for inf and nan, which JSON lacks: then there are no servers
	return rawjson.Get(raw, tomlServers)
}

// add appends a table to the file.
func (f *tomlFile) add(name string, server []byte) error {
	b := f.wholeLines(len(f.src))
	if len(b) > 0 {
		b = append(b, f.newline()...)
	}
	table := bytes.ReplaceAll([]byte(f.show(name, server)), []byte("\n"), []byte(f.newline()))
	return f.edit(append(b, table...), func(servers map[string]any) {
		servers[name] = decode(commandOf(server))
	})
}

// set replaces the line of a key. A new key gets a line after the command.
func (f *tomlFile) set(name, key string, value []byte) error {
	line := " = " + string(jsonc.Line(value)) + f.newline()
	text := f.src
	xs := f.expressions()
	find := func(key string) int {
		return slices.IndexFunc(xs, func(x expression) bool { return x.keyBelow(name) == key })
	}
	if i := find(key); i >= 0 {
		text = slices.Concat(text[:xs[i].keyEnd], []byte(line), text[xs[i].end:])
	} else if i := find("command"); i >= 0 {
		text = slices.Concat(f.wholeLines(xs[i].end), []byte(key+line), text[xs[i].end:])
	}
	return f.edit(text, func(servers map[string]any) {
		if server, ok := servers[name].(map[string]any); ok {
			server[key] = decode(value)
		}
	})
}

// wholeLines returns a copy of the text up to the end of a line, which may lack its line break.
func (f *tomlFile) wholeLines(end int) []byte {
	b := slices.Clone(f.src[:end])
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, f.newline()...)
	}
	return b
}

// remove deletes the lines of a server: its tables and the keys in them.
func (f *tomlFile) remove(name string) error {
	b := slices.Clone(f.src)
	xs := f.expressions()
	for i := len(xs) - 1; i >= 0; i-- {
		x := xs[i]
		if len(x.path) < 2 || x.path[0] != tomlServers || x.path[1] != name {
			continue
		}
		start := x.start
		// A blank line before a table goes with it, if another follows or the file ends.
		if x.isTable && start > 0 && (len(bytes.TrimSpace(b[x.end:])) == 0 || isBlankLine(b[x.end:])) {
			start = len(bytes.TrimSuffix(bytes.TrimSuffix(b[:start], []byte("\n")), []byte("\r")))
			if start > 0 && b[start-1] != '\n' { // the line before it is not blank
				start = x.start
			}
		}
		b = slices.Delete(b, start, x.end)
	}
	return f.edit(b, func(servers map[string]any) { delete(servers, name) })
}

func isBlankLine(b []byte) bool {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (f *tomlFile) show(name string, server []byte) string {
	if !bareKey.MatchString(name) {
		name = string(rawjson.AppendString(nil, name))
	}
	b := []byte("[" + tomlServers + "." + name + "]\n")
	for key, value := range rawjson.Members(server) { // strings and arrays are written as in JSON
		b = append(append(append(b, key+" = "...), jsonc.Line(value)...), '\n')
	}
	return string(b)
}

// edit replaces the text, if its only difference is that of change.
func (f *tomlFile) edit(text []byte, change func(servers map[string]any)) error {
	want, servers, _ := tomlValues(f.src)
	change(servers)
	got, _, err := tomlValues(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		return errTOML
	}
	f.src = text
	return nil
}

// tomlValues returns the values of a file and its table of servers, which is empty if the
// file has none, and nil if it is not a table.
func tomlValues(text []byte) (values, servers map[string]any, err error) {
	values = map[string]any{tomlServers: map[string]any{}}
	err = toml.Unmarshal(text, &values)
	servers, _ = values[tomlServers].(map[string]any)
	return values, servers, err
}

func (f *tomlFile) newline() string {
	if bytes.Contains(f.src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// expression is the header of a table, or a key with its value.
type expression struct {
	isTable    bool
	path       []string // from the root
	start, end int      // of its lines
	keyEnd     int
}

// keyBelow returns the key of a direct member of a server; empty for other expressions.
func (x expression) keyBelow(server string) string {
	if x.isTable || len(x.path) != 3 || x.path[0] != tomlServers || x.path[1] != server {
		return ""
	}
	return x.path[2]
}

// expressions returns the expressions of the file, in their order.
func (f *tomlFile) expressions() (all []expression) {
	var p unstable.Parser
	p.Reset(f.src)
	var table []string
	for p.NextExpression() {
		node := p.Expression()
		if node.Kind != unstable.KeyValue && node.Kind != unstable.Table && node.Kind != unstable.ArrayTable {
			continue
		}
		x := expression{isTable: node.Kind != unstable.KeyValue, start: -1}
		for it := node.Key(); it.Next(); {
			key := it.Node()
			if x.start < 0 {
				x.start = bytes.LastIndexByte(f.src[:key.Raw.Offset], '\n') + 1
			}
			x.path = append(x.path, string(key.Data))
			x.keyEnd = int(key.Raw.Offset + key.Raw.Length)
		}
		if x.isTable {
			table = x.path
		} else {
			x.path = slices.Concat(table, x.path)
		}
		x.end = f.lineEnd(max(x.keyEnd, int(node.Raw.Offset+node.Raw.Length))) // the header of a table has no range
		all = append(all, x)
	}
	return all
}

// lineEnd returns the end of the line that has an offset.
func (f *tomlFile) lineEnd(offset int) int {
	if newline := bytes.IndexByte(f.src[offset:], '\n'); newline >= 0 {
		return offset + newline + 1
	}
	return len(f.src)
}
