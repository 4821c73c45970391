package executor

import (
	"runtime"
	"sync"
	"weak"

	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// arguments returns the arguments to send: as they came where that is right,
// repaired where it is clear what was meant. They fit the tool's schema.
func (e *Executor) arguments(c Call, u *registry.Upstream, t *registry.Tool) ([]byte, error) {
	raw, err := unwrap(c, t)
	if err != nil {
		return nil, &Invalid{Problems: []validate.Problem{{Text: err.Error()}}, tool: t}
	}
	value, err := validate.Decode(raw)
	if err != nil {
		return nil, &Invalid{Problems: []validate.Problem{{Text: err.Error()}}, tool: t}
	}
	schema := e.validators.of(t, func(reason string) {
		e.log.Warn().Str("server", u.Name).Str("tool", t.Name).Str("reason", reason).
			Msg("the tool's schema cannot be judged; its arguments are sent unchecked")
	})
	problems := schema.Check(value)
	if len(problems) == 0 {
		return raw, nil
	}
	if repaired, ok := parseStrings(raw, problems); ok {
		if value, err := validate.Decode(repaired); err == nil && len(schema.Check(value)) == 0 {
			return repaired, nil
		}
	}
	return nil, &Invalid{Problems: problems, tool: t}
}

// validators are the compiled schemas of tools. A schema goes when its tool does.
type validators struct {
	schemas sync.Map // weak.Pointer[registry.Tool] to *validate.Schema
}

// unjudged says why a tool's arguments are sent unchecked, as far as that is known.
func (v *validators) unjudged(t *registry.Tool) string {
	if s, ok := v.schemas.Load(weak.Make(t)); ok {
		return s.(*validate.Schema).Unjudged()
	}
	return ""
}

// of returns the compiled schema of a tool. unjudged is told, once, why it
// cannot be enforced.
func (v *validators) of(t *registry.Tool, unjudged func(reason string)) *validate.Schema {
	key := weak.Make(t)
	if s, ok := v.schemas.Load(key); ok {
		return s.(*validate.Schema)
	}
	s, known := v.schemas.LoadOrStore(key, validate.Compile(t.InputSchema))
	schema := s.(*validate.Schema)
	if !known {
		runtime.AddCleanup(t, func(key weak.Pointer[registry.Tool]) { v.schemas.Delete(key) }, key)
		if reason := schema.Unjudged(); reason != "" {
			unjudged(reason)
		}
	}
	return schema
}

// properties are the parameters that a tool's schema declares, nil if it
// declares none.
func properties(t *registry.Tool) map[string]bool {
	var names map[string]bool
	for name := range rawjson.Members(rawjson.Get(t.InputSchema, "properties")) {
		if names == nil {
			names = map[string]bool{}
		}
		names[name] = true
	}
	return names
}
