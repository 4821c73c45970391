package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpx/executor/listing"
	"mcpx/executor/results"
	"mcpx/executor/validate"
	"mcpx/internal/nearest"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/registry/lists"
)

// ParseExec reads the arguments of the tool exec. Unknown members are left to unwrap,
// which runs once the tool is known.
func ParseExec(raw []byte) Call {
	var c Call
	var server, tool []byte
	for key, value := range rawjson.Members(raw) {
		var field *[]byte
		switch key {
		case "server_name":
			field = &server
		case "tool_name":
			field = &tool
		case "arguments":
			field = &c.Arguments
		case "select":
			field = &c.Select
		default:
			c.Siblings = raw
			continue
		}
		if *field != nil {
			c.DuplicateKey = key
		}
		*field = value
	}
	if c.Select != nil && c.Arguments == nil {
		c.Siblings = raw // select may be an argument
	}
	c.Server, _ = rawjson.View(server)
	c.Tool, _ = rawjson.View(tool)
	if c.Tool == "" && c.Server == "" {
		return c.inner()
	}
	return c
}

// inner reads a call whose names are inside its arguments.
func (c Call) inner() Call {
	object := c.Arguments
	if text, ok := rawjson.String(object); ok {
		object = []byte(text)
	}
	if rawjson.Check(object) != nil || rawjson.Get(object, "tool_name") == nil {
		return c
	}
	return ParseExec(object)
}

// aliases are other names under which models send arguments.
var aliases = []string{"args", "parameters", "params", "input"}

// unwrap finds the arguments object in the client's call. It repairs only mistakes
// that models are known to make, and only if they have one meaning.
func unwrap(c Call, known map[string]bool) ([]byte, error) {
	raw, err := object(c.Arguments)
	if err != nil {
		return nil, err
	}
	if isEmpty(raw) {
		return siblings(c, known)
	}
	for key := range rawjson.Members(c.Siblings) {
		if !envelopeKeys[key] && isArgument(key, known) {
			return nil, fmt.Errorf("%s is next to \"arguments\"; put it inside \"arguments\"", listing.Quoted(key))
		}
	}
	return envelope(c, raw, known), nil
}

// isArgument reports whether a member next to "arguments" may be an argument. To ignore
// such a member could change what the call does. Models also add members such as a
// reason, which are ignored if the tool declares its parameters.
func isArgument(key string, known map[string]bool) bool {
	name := strings.TrimPrefix(key, "arguments.")
	return len(known) == 0 || name != key || slices.Contains(aliases, key) || known[key] || near(key, known) != ""
}

// near returns the parameter that a name probably means.
func near(name string, known map[string]bool) string {
	return nearest.Word(name, slices.Sorted(maps.Keys(known)))
}

// envelopeKeys are the parameters of exec.
var envelopeKeys = map[string]bool{"server_name": true, "tool_name": true, "arguments": true, "select": true}

// selectIsArgument reports whether select is an argument of the tool: the tool declares it,
// and all arguments are next to tool_name.
func (c *Call) selectIsArgument(known map[string]bool) bool {
	return known["select"] && rawjson.IsNull(c.Arguments)
}

// readSelect reads Select. An array of fields is accepted too.
func (c *Call) readSelect(t *lists.Tool) error {
	if rawjson.IsNull(c.Select) || c.selectIsArgument(validatorOf(t).properties) {
		return nil
	}
	if !c.mayWait {
		return ErrMustWait
	}
	text, ok := rawjson.String(c.Select)
	if rawjson.Kind(c.Select) == '[' {
		var fields []string
		for field := range rawjson.Elements(c.Select) {
			name, isString := rawjson.String(field)
			fields, ok = append(fields, name), isString && (ok || len(fields) == 0)
		}
		text = strings.Join(fields, ", ")
	}
	if !ok {
		return &badCall{"select: expected string, got " + validate.Describe(c.Select)}
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	q, err := selection.Parse(text)
	if err != nil {
		return &badCall{err.Error()}
	}
	c.selection = q
	return nil
}

// bind returns a select with the values of its references. It waits until there is room for the
// work. q may be nil.
func (e *Executor) bind(ctx context.Context, c *Call, q *selection.Query) (*selection.Query, error) {
	if q == nil {
		return nil, nil
	}
	bound, err := e.results.Bind(ctx, ownerOf(c.Client), q, maxReferenceBytes)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, results.ErrLong):
		return nil, &badCall{fmt.Sprintf("select: the references of a call may have %d MiB at most", maxReferenceBytes>>20)}
	case err != nil:
		return nil, &badCall{err.Error()}
	}
	return bound, nil
}

// object returns the object in an arguments value, which may be written as a JSON string.
// An absent value, null and "" are the empty object.
func object(raw []byte) ([]byte, error) {
	switch rawjson.Kind(raw) {
	case '{':
		return raw, nil
	case 0, 'n':
		return []byte("{}"), nil
	case '"':
		text, _ := rawjson.String(raw)
		text = strings.TrimSpace(text)
		if text == "" || text == "null" {
			return []byte("{}"), nil
		}
		if inner := []byte(text); rawjson.Kind(inner) == '{' && rawjson.Check(inner) == nil {
			return inner, nil
		}
	}
	return nil, errors.New("expected object, got " + validate.Describe(raw))
}

func isEmpty(object []byte) bool { return rawjson.Kind(object[1:]) == '}' }

// siblings finds arguments that were sent next to tool_name: under another name, with
// dotted names, or flattened.
func siblings(c Call, known map[string]bool) ([]byte, error) {
	var alias []byte
	var places []string // where arguments were found
	flat, given := []byte("{"), map[string]bool{}
	hit := len(known) == 0
	for rawKey, value := range rawjson.RawMembers(c.Siblings) {
		key, _ := rawjson.View(rawKey)
		if envelopeKeys[key] && (key != "select" || !c.selectIsArgument(known)) {
			continue
		}
		if slices.Contains(aliases, key) && !known[key] {
			alias = value
			places = append(places, key)
			continue
		}
		name, dotted := strings.CutPrefix(key, "arguments.")
		if !dotted || name == "" || known[key] {
			name = key
		} else {
			rawKey = rawjson.AppendString(nil, name)
		}
		if given[string(rawKey)] { // refuseDuplicates finds keys that are escaped differently
			return nil, fmt.Errorf("%s is given twice; put it into \"arguments\" once", listing.Quoted(name))
		}
		if word := near(name, known); word != "" && !known[name] {
			return nil, fmt.Errorf("%s is not a parameter of the tool; did you mean %s?", listing.Quoted(name), listing.Quoted(word))
		}
		given[string(rawKey)] = true
		hit = hit || known[name] || dotted
		flat = rawjson.AppendRawMember(flat, rawKey, value)
	}
	if hit && len(given) > 0 {
		places = append(places, "next to tool_name")
	}
	switch {
	case len(places) > 1:
		return nil, fmt.Errorf("arguments are given in several places (%s); put them all into \"arguments\"", strings.Join(places, ", "))
	case alias != nil:
		return object(alias)
	case hit:
		return append(flat, '}'), nil
	}
	return []byte("{}"), nil // the unknown members are not arguments
}

// envelope opens arguments that hold the envelope of the same call again, or only an
// object named arguments. If the tool declares such a parameter, or accepts anything,
// they stay as they are.
func envelope(c Call, raw []byte, known map[string]bool) []byte {
	var inner []byte
	named := false
	for key, value := range rawjson.Members(raw) {
		switch {
		case known[key]:
			return raw
		case key == "arguments":
			inner = value
		case key == "server_name" && spells(value, c.Server), key == "tool_name" && spells(value, c.Tool):
			named = true
		default:
			return raw
		}
	}
	if inner == nil && !named || !named && len(known) == 0 {
		return raw
	}
	if opened, err := object(inner); err == nil {
		return opened
	}
	return raw
}

// spells reports whether a value is that string, which is not empty.
func spells(value []byte, text string) bool {
	got, _ := rawjson.String(value)
	return got != "" && got == text
}
