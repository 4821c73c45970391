package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
)

// conversion turns a client's server into one of mcpx.
type conversion struct {
	system  System
	project string            // the folder that the server is for
	inputs  map[string]string // descriptions of VS Code's inputs, by ID
	notes   []string          // what the user must know
}

func (c *conversion) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// rule converts the value of a client's key, name, to one of mcpx's key.
type rule struct {
	name, key string
	convert   func(c *conversion, value any) any
}

// rules has the keys that clients use: mcpx's key for each, and how its value is
// converted. A nil value is left out. Two objects for one key are merged. A converted server
// has its keys in this order.
var rules = []rule{
	{"command", "command", (*conversion).text},
	{"args", "args", (*conversion).list},
	{"env", "env", (*conversion).dict},
	{"cwd", "cwd", (*conversion).folder},
	{"type", "type", (*conversion).transport},
	{"transport", "type", (*conversion).transport},
	{"url", "url", (*conversion).text},
	{"headers", "headers", (*conversion).dict},
	{"description", "description", keep},
	{"disabled", "disabled", trueIf(true)},
	{"enabled", "disabled", trueIf(false)},

	{"tools", "tools", filter("allow")}, // an array; mcpx's own filter is an object
	{"enabled_tools", "tools", filter("allow")},
	{"includeTools", "tools", filter("allow")},
	{"disabled_tools", "tools", filter("deny")},
	{"disabledTools", "tools", filter("deny")},
	{"excludeTools", "tools", filter("deny")},

	{"startup_timeout", "startup_timeout", (*conversion).duration},
	{"timeout", "timeout", (*conversion).duration},
	{"max_timeout", "max_timeout", (*conversion).duration},
	{"isolation", "isolation", keep},

	{"serverUrl", "url", (*conversion).text}, // Windsurf
	{"httpUrl", "url", (*conversion).text},   // Gemini

	// Codex
	{"http_headers", "headers", (*conversion).dict},
	{"env_http_headers", "headers", headersFromVariables},
	{"bearer_token_env_var", "headers", bearer},
	{"env_vars", "env", inherited},
	{"startup_timeout_sec", "startup_timeout", keep},
	{"startup_timeout_ms", "startup_timeout", milliseconds},
	{"tool_timeout_sec", "timeout", keep},
}

// server converts one server. Defaults are left out, so that a server that two clients
// have is the same for both.
func (c *conversion) server(raw []byte) []byte {
	converted := map[string]any{}
	var words []any // of a command that is an array; they come before its args
	for key, text := range rawjson.Members(raw) {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == key })
		value := decode(text)
		switch {
		case value == nil:
			continue
		case i < 0:
			c.note("%q means nothing to mcpx and is left out", key)
			continue
		}
		if array, ok := value.([]any); ok && key == "command" && len(array) > 0 {
			value, words = array[0], array[1:]
		}
		set(converted, rules[i].key, rules[i].convert(c, value))
	}
	if len(words) > 0 {
		args, _ := converted["args"].([]any)
		converted["args"] = slices.Concat(c.list(words).([]any), args)
	}
	if c.project != "" && converted["command"] != nil && converted["cwd"] == nil && c.system.NamesFiles(c.project, rawjson.Encode(converted)) {
		c.note("it is started in %s, since its command line names files there", c.project)
		converted["cwd"] = c.project // clients start it there
	}
	made := []byte("{")
	for _, r := range rules {
		if value, ok := converted[r.key]; ok && r.name == r.key { // each key once
			made = rawjson.AppendMember(made, r.key, rawjson.Encode(value))
		}
	}
	return append(made, '}')
}

// set adds a value to a converted server.
func set(server map[string]any, key string, value any) {
	old, isObject := server[key].(map[string]any)
	added, isAddedObject := value.(map[string]any)
	switch {
	case value == nil:
	case isObject && isAddedObject:
		maps.Copy(old, added)
	default:
		server[key] = value
	}
}

// decode reads JSON and keeps numbers as they are written.
func decode(raw []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&value)
	return value
}

func keep(_ *conversion, value any) any { return value }

// text converts a string and its references. Clients also accept numbers and booleans.
// Other values stay, for the check to report.
func (c *conversion) text(value any) any {
	switch value.(type) {
	case string, json.Number, bool:
		return reference.ReplaceAllStringFunc(fmt.Sprint(value), c.reference)
	}
	return value
}

func (c *conversion) list(value any) any {
	elements, ok := value.([]any)
	if !ok {
		return []any{c.text(value)}
	}
	if len(elements) == 0 {
		return nil
	}
	converted := make([]any, len(elements))
	for i, e := range elements {
		converted[i] = c.text(e)
	}
	return converted
}

func (c *conversion) dict(value any) any {
	members, ok := value.(map[string]any)
	if !ok {
		return value
	}
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	if len(members) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) { // so that the notes have an order
		members[name] = c.text(members[name])
	}
	return members
}

// folder converts a working directory. It is relative to the project in a client, and
// to the config file in mcpx.
func (c *conversion) folder(value any) any {
	if folder, ok := value.(string); ok && c.project != "" && !rooted.MatchString(folder) {
		value = c.system.join(c.project, folder)
	}
	return c.text(value)
}

// transports maps the transports of clients to those of mcpx. Empty means the default.
var transports = map[string]string{
	"stdio": "", "local": "", "remote": "",
	"http": "http", "streamable-http": "http", "streamablehttp": "http", "streamable_http": "http", "sse": "sse",
}

func (c *conversion) transport(value any) any {
	text, _ := value.(string)
	known, ok := transports[strings.ToLower(text)]
	switch {
	case !ok:
		c.note("mcpx does not support type %s; it is left out", rawjson.Encode(value))
		return nil
	case known == "":
		return nil
	}
	return known
}

// trueIf returns a converter that keeps true for that value alone.
func trueIf(want bool) func(*conversion, any) any {
	return func(_ *conversion, value any) any {
		if value == want {
			return true
		}
		return nil
	}
}

// filter returns a converter for an array of tool names.
func filter(key string) func(*conversion, any) any {
	return func(_ *conversion, value any) any {
		names, ok := value.([]any)
		switch {
		case !ok:
			return value
		case len(names) == 0, key == "allow" && slices.Equal(names, []any{"*"}):
			return nil
		}
		return map[string]any{key: value}
	}
}

// leastMilliseconds is the least number for a timeout that must be milliseconds: no
// server has a timeout of that many seconds.
const leastMilliseconds = 1000

func (c *conversion) duration(value any) any {
	number, ok := value.(json.Number)
	if n, err := number.Float64(); !ok || err != nil || n < leastMilliseconds {
		return value
	}
	c.note("timeout %s is read as milliseconds", number)
	return milliseconds(c, value)
}

func milliseconds(_ *conversion, value any) any {
	number, _ := value.(json.Number)
	if n, err := number.Float64(); err == nil {
		return n / 1000
	}
	return value
}

// headersFromVariables converts headers whose values are names of variables.
func headersFromVariables(_ *conversion, value any) any {
	headers := map[string]any{}
	members, _ := value.(map[string]any)
	for name, variable := range members {
		headers[name] = fmt.Sprintf("${%v}", variable)
	}
	return headers
}

func bearer(_ *conversion, variable any) any {
	return map[string]any{"Authorization": fmt.Sprintf("Bearer ${%v}", variable)}
}

// inherited converts the names of variables that a server gets from its client.
func inherited(_ *conversion, value any) any {
	env := map[string]any{}
	names, _ := value.([]any)
	for _, name := range names {
		env[fmt.Sprint(name)] = fmt.Sprintf("${%v:-}", name)
	}
	return env
}

var (
	reference = regexp.MustCompile(`\$\{[^}]*\}`)
	notInName = regexp.MustCompile(`[^A-Z0-9_]|^$`)
)

// reference converts a reference that an editor resolves. mcpx knows the others.
func (c *conversion) reference(text string) string {
	body := text[2 : len(text)-1]
	kind, id, _ := strings.Cut(body, ":")
	switch isFolder := strings.HasPrefix(kind, "workspaceFolder"); {
	case kind == "input":
		return c.input(id)
	case isFolder && c.project == "":
		c.note("only the editor knows ${%s}; write the folder, or set a variable of that name", body)
	case kind == "workspaceFolder":
		return c.project
	case kind == "workspaceFolderBasename":
		return path.Base(slashed(c.project))
	case body == "userHome":
		return c.system.Home
	case body == "pathSeparator" || body == "/":
		return c.system.separator()
	}
	return text
}

// input returns a reference to a variable in place of one to an input of VS Code.
func (c *conversion) input(id string) string {
	name := notInName.ReplaceAllString(strings.ToUpper(id), "_")
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	hint := ""
	if about := c.inputs[id]; about != "" {
		hint = fmt.Sprintf(" (%s)", about)
	}
	c.note("${input:%s} is now ${%s}: set that variable%s", id, name, hint)
	return "${" + name + "}"
}

var (
	// folderFlags are the flags of uv, npm and others whose value is a folder.
	folderFlags = []string{"--directory", "--dir", "--project", "--cwd", "--prefix", "-C"}
	// dotted matches a word that can only be a relative path.
	dotted = regexp.MustCompile(`^\.\.?([/\\]|$)`)
	// rooted matches a path that does not depend on the working directory.
	rooted = regexp.MustCompile(`^([/\\~]|\$\{|.:)`)
)

// NamesFiles reports whether the command line of a server, a JSON object, names files
// in the folder.
func (s System) NamesFiles(folder string, server []byte) bool {
	exists := func(word string) bool {
		return word != "" && !rooted.MatchString(word) && s.Exists != nil && s.Exists(s.join(folder, word))
	}
	command := programOf(server)
	if dotted.MatchString(command) || strings.ContainsAny(command, `/\`) && exists(command) {
		return true // a plain name is looked up in the PATH
	}
	flag := ""
	for _, word := range stringsIn(rawjson.Get(server, "args")) {
		if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "-") {
			flag, word = name, value
		}
		// A plain word may be a package with the name of a folder.
		isPath := strings.ContainsAny(word, `/\`) || path.Ext(word) != "" || slices.Contains(folderFlags, flag)
		if dotted.MatchString(word) || isPath && exists(word) {
			return true
		}
		flag = word
	}
	return false
}
