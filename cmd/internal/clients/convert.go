package clients

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// conversion makes of a client's server one of mcpx.
type conversion struct {
	system  System
	project string
	inputs  map[string]string
	note    func(format string, args ...any)

	out []byte // the object, without its end
}

// rules say what is made of each key. What has none is left out, with a note.
var rules = map[string]func(c *conversion, key string, value []byte){
	"command":     (*conversion).command,
	"args":        (*conversion).args,
	"env":         (*conversion).dict,
	"headers":     (*conversion).dict,
	"cwd":         (*conversion).cwd,
	"url":         (*conversion).text,
	"description": (*conversion).keep,
	"disabled":    (*conversion).disabled,
	"enabled":     (*conversion).disabled,
	"isolation":   (*conversion).keep,
	"type":        (*conversion).transport,
	"transport":   (*conversion).transport,
	"tools":       (*conversion).tools,

	"timeout":         (*conversion).duration,
	"startup_timeout": (*conversion).duration,
	"max_timeout":     (*conversion).duration,

	"serverUrl": func(c *conversion, _ string, value []byte) { c.text("url", value) }, // Windsurf
	"httpUrl":   func(c *conversion, _ string, value []byte) { c.text("url", value) }, // Gemini

	// Codex
	"http_headers":         func(c *conversion, _ string, value []byte) { c.dict("headers", value) },
	"env_http_headers":     (*conversion).headersFrom,
	"bearer_token_env_var": (*conversion).bearer,
	"env_vars":             (*conversion).variables,
	"startup_timeout_sec":  func(c *conversion, _ string, value []byte) { c.set("startup_timeout", value) },
	"startup_timeout_ms":   func(c *conversion, _ string, value []byte) { c.milliseconds("startup_timeout", value) },
	"tool_timeout_sec":     func(c *conversion, _ string, value []byte) { c.set("timeout", value) },

	"enabled_tools":  func(c *conversion, _ string, value []byte) { c.filter("allow", value) },
	"includeTools":   func(c *conversion, _ string, value []byte) { c.filter("allow", value) },
	"disabled_tools": func(c *conversion, _ string, value []byte) { c.filter("deny", value) },
	"disabledTools":  func(c *conversion, _ string, value []byte) { c.filter("deny", value) },
	"excludeTools":   func(c *conversion, _ string, value []byte) { c.filter("deny", value) },
}

// server converts one. What is said twice is left out, so that the same server of
// two clients is the same.
func (c *conversion) server(raw []byte) []byte {
	c.out = []byte("{")
	for key, value := range rawjson.Members(raw) {
		rule := rules[key]
		switch {
		case rawjson.IsNull(value):
		case rule == nil:
			c.note("%q means nothing to mcpx and is left out", key)
		default:
			rule(c, key, value)
		}
	}
	c.home()
	return ordered(append(c.out, '}'))
}

// order is that of the keys in what is written.
var order = []string{"command", "args", "env", "cwd", "type", "url", "headers"}

// ordered is a server with the keys that matter most in front.
func ordered(raw []byte) []byte {
	b := []byte("{")
	for _, key := range order {
		b = rawjson.AppendMember(b, key, rawjson.Get(raw, key))
	}
	for key, value := range rawjson.Members(raw) {
		if !slices.Contains(order, key) {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	return append(b, '}')
}

func (c *conversion) get(key string) []byte {
	return rawjson.Get(append(slices.Clone(c.out), '}'), key)
}

func (c *conversion) set(key string, value []byte) {
	object := rawjson.With(append(c.out, '}'), key, value)
	c.out = object[:len(object)-1]
}

func (c *conversion) keep(key string, value []byte) { c.set(key, value) }

// text keeps a string, its references in mcpx's form.
func (c *conversion) text(key string, value []byte) { c.set(key, c.string(value)) }

// string is a value as a string: clients forgive numbers and booleans.
func (c *conversion) string(value []byte) []byte {
	text, ok := rawjson.String(value)
	if !ok && (rawjson.Kind(value) == '{' || rawjson.Kind(value) == '[') {
		return value // the check says what is wrong with it
	}
	if !ok {
		text = string(value)
	}
	return rawjson.AppendString(nil, c.references(text))
}

// command is a program, or with its arguments an array.
func (c *conversion) command(key string, value []byte) {
	if rawjson.Kind(value) != '[' {
		c.text(key, value)
		return
	}
	args := []byte("[")
	first := true
	for element := range rawjson.Elements(value) {
		if first {
			c.text(key, element)
			first = false
			continue
		}
		args = appendElement(args, c.string(element))
	}
	if len(args) > 1 {
		c.set("args", append(args, ']'))
	}
}

func (c *conversion) args(key string, value []byte) {
	list := []byte("[")
	for element := range rawjson.Elements(value) {
		list = appendElement(list, c.string(element))
	}
	switch {
	case rawjson.Kind(value) != '[':
		c.set(key, append(append(list, c.string(value)...), ']'))
	case len(list) > 1:
		c.set(key, append(list, ']'))
	}
}

func (c *conversion) dict(key string, value []byte) {
	if rawjson.Kind(value) != '{' {
		c.set(key, value)
		return
	}
	for name, text := range rawjson.Members(value) {
		if !rawjson.IsNull(text) {
			c.entry(key, name, c.string(text))
		}
	}
}

// entry adds one member to an object.
func (c *conversion) entry(key, name string, value []byte) {
	object := c.get(key)
	if object == nil {
		object = []byte("{}")
	}
	c.set(key, rawjson.With(object, name, value))
}

// headersFrom are headers whose values are in variables.
func (c *conversion) headersFrom(_ string, value []byte) {
	for name, variable := range rawjson.Members(value) {
		if text, ok := rawjson.String(variable); ok {
			c.entry("headers", name, rawjson.AppendString(nil, "${"+text+"}"))
		}
	}
}

func (c *conversion) bearer(_ string, value []byte) {
	if text, ok := rawjson.String(value); ok {
		c.entry("headers", "Authorization", rawjson.AppendString(nil, "Bearer ${"+text+"}"))
	}
}

// variables are those that a server gets from the environment.
func (c *conversion) variables(_ string, value []byte) {
	for element := range rawjson.Elements(value) {
		if name, ok := rawjson.String(element); ok {
			c.entry("env", name, rawjson.AppendString(nil, "${"+name+":-}"))
		}
	}
}

// disabled keeps what is switched off; on is what everything is.
func (c *conversion) disabled(key string, value []byte) {
	if off := string(value) == "true"; off == (key == "disabled") {
		c.set("disabled", []byte("true"))
	}
}

// transports are mcpx's words for those of clients; empty: it goes without saying.
var transports = map[string]string{
	"stdio": "", "local": "", "remote": "",
	"http": "http", "streamable-http": "http", "streamablehttp": "http", "streamable_http": "http", "sse": "sse",
}

func (c *conversion) transport(key string, value []byte) {
	text, _ := rawjson.String(value)
	word, ok := transports[strings.ToLower(text)]
	switch {
	case !ok:
		c.note("%s %s is none that mcpx has, and is left out", key, value)
	case word != "":
		c.set("type", rawjson.AppendString(nil, word))
	}
}

// tools is mcpx's own filter, or an array of names.
func (c *conversion) tools(key string, value []byte) {
	if rawjson.Kind(value) == '[' {
		c.filter("allow", value)
		return
	}
	c.keep(key, value)
}

func (c *conversion) filter(key string, value []byte) {
	if compact := string(rawjson.Compact(value)); compact == `[]` || key == "allow" && compact == `["*"]` {
		return
	}
	c.entry("tools", key, value)
}

// tooLong is a number of seconds that must be milliseconds.
const tooLong = 1000

func (c *conversion) duration(key string, value []byte) {
	if n, err := strconv.ParseFloat(string(value), 64); err == nil && n >= tooLong {
		c.milliseconds(key, value)
		c.note("%s %s is taken for milliseconds", key, value)
		return
	}
	c.set(key, value)
}

func (c *conversion) milliseconds(key string, value []byte) {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		c.set(key, value)
		return
	}
	c.set(key, strconv.AppendFloat(nil, n/1000, 'f', -1, 64))
}

// cwd is relative to the project in a client, and to the config file in mcpx.
func (c *conversion) cwd(key string, value []byte) {
	folder, ok := rawjson.String(value)
	if ok && c.project != "" && relative(folder) {
		value = rawjson.AppendString(nil, c.system.join(c.project, folder))
	}
	c.text(key, value)
}

// relative reports whether a path depends on the folder it is used in.
func relative(folder string) bool {
	drive := len(folder) > 1 && folder[1] == ':'
	return !drive && !slices.ContainsFunc([]string{"/", `\`, "~", "${"}, func(start string) bool { return strings.HasPrefix(folder, start) })
}

// home gives a server of a project that folder, if its command line names files
// there: clients start it in the project, mcpx wherever it is started itself.
func (c *conversion) home() {
	if c.project == "" || c.get("command") == nil || c.get("cwd") != nil {
		return
	}
	if c.namesFiles() {
		c.set("cwd", rawjson.AppendString(nil, c.project))
		c.note("it is started in %s, since its command line names files there", c.project)
	}
}

// NamesFiles reports whether the command line of a server, a JSON object, names files
// in the folder.
func (s System) NamesFiles(folder string, server []byte) bool {
	return (&conversion{system: s, project: folder, out: server[:len(server)-1]}).namesFiles()
}

// namesFiles reports whether the command line names files of the project.
func (c *conversion) namesFiles() bool {
	command, _ := rawjson.String(c.get("command"))
	if dotted(command) || strings.ContainsAny(command, `/\`) && c.inProject(command) {
		return true // a bare name is looked for in the PATH
	}
	flag := ""
	for element := range rawjson.Elements(c.get("args")) {
		word, _ := rawjson.String(element)
		if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "-") {
			flag, word = name, value
		}
		// A plain word may well be a package that is called as a folder is.
		file := strings.ContainsAny(word, `/\`) || path.Ext(word) != "" || slices.Contains(folderFlags, flag)
		if dotted(word) || file && c.inProject(word) {
			return true
		}
		flag = word
	}
	return false
}

// folderFlags are the flags of uv, npm and others whose value is a folder.
var folderFlags = []string{"--directory", "--dir", "--project", "--cwd", "--prefix", "-C"}

// dotted reports whether a word can only be a path from where it is used.
func dotted(word string) bool {
	return word == "." || word == ".." || slices.ContainsFunc([]string{"./", "../", `.\`, `..\`}, func(start string) bool {
		return strings.HasPrefix(word, start)
	})
}

// inProject reports whether the word names something that is there.
func (c *conversion) inProject(word string) bool {
	return word != "" && relative(word) && c.system.Exists != nil && c.system.Exists(c.system.join(c.project, word))
}

// isMcpx reports whether a server is mcpx itself, which needs no mcpx in front.
func isMcpx(raw []byte) bool {
	command, _ := rawjson.String(rawjson.Get(raw, "command"))
	name := strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/"))), ".exe")
	return name == "mcpx" || name == "mcpx-sse"
}

func appendElement(list, value []byte) []byte {
	if list[len(list)-1] != '[' {
		list = append(list, ',')
	}
	return append(list, value...)
}

// variableName is an id as the name of a variable.
func variableName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, id)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// references puts what an editor fills in into words that mcpx knows.
func (c *conversion) references(text string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		body, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(c.reference(body))
		text = after
	}
}

func (c *conversion) reference(body string) string {
	kind, id, _ := strings.Cut(body, ":")
	switch {
	case kind == "input":
		name := variableName(id)
		hint := ""
		if about := c.inputs[id]; about != "" {
			hint = fmt.Sprintf(" (%s)", about)
		}
		c.note("${input:%s} is now ${%s}: set that variable%s", id, name, hint)
		return "${" + name + "}"
	case kind == "workspaceFolder" && c.project != "":
		return c.project
	case body == "workspaceFolderBasename" && c.project != "":
		return path.Base(strings.ReplaceAll(c.project, `\`, "/"))
	case kind == "workspaceFolder", body == "workspaceFolderBasename":
		c.note("${%s} is known to the editor alone; write the folder, or set a variable of that name", body)
	case body == "userHome":
		return c.system.Home
	case body == "pathSeparator", body == "/":
		if c.system.OS == "windows" {
			return `\`
		}
		return "/"
	}
	return "${" + body + "}"
}
