package registry

import (
	"context"
	"fmt"

	"mcpx/internal/rawjson"
)

// What an upstream may list, whatever it sends.
const (
	maxPages = 100
	maxItems = 10_000
)

// list asks the upstream for every page of a list (tools/list and the like) and
// returns its items as they came.
func (s *Session) list(ctx context.Context, method, member string) ([][]byte, error) {
	var items [][]byte
	var params []byte
	seen := map[string]bool{}
	for range maxPages {
		result, err := s.Call(ctx, Request{Method: method, Params: params})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		for item := range rawjson.Elements(rawjson.Get(result, member)) {
			if len(items) == maxItems {
				s.log.Warn().Str("method", method).Int("limit", maxItems).Msg("the list is too long; the rest is left out")
				return items, nil
			}
			items = append(items, item)
		}
		cursor := rawjson.Get(result, "nextCursor")
		if text, ok := rawjson.String(cursor); !ok || text == "" {
			return items, nil
		}
		if seen[string(cursor)] {
			s.log.Warn().Str("method", method).Msg("the upstream repeats a page cursor; the list ends there")
			return items, nil
		}
		seen[string(cursor)] = true
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	s.log.Warn().Str("method", method).Int("limit", maxPages).Msg("the list has too many pages; the rest is left out")
	return items, nil
}

// tools lists the upstream's tools. A tool that cannot be used costs only itself.
func (s *Session) tools(ctx context.Context, allowed func(name string) bool) ([]*Tool, error) {
	items, err := s.list(ctx, "tools/list", "tools")
	if err != nil {
		return nil, err
	}
	tools := make([]*Tool, 0, len(items))
	names := make(map[string]bool, len(items))
	for _, raw := range items {
		t, ok := NewTool(raw)
		switch {
		case !ok:
			s.log.Warn().Msg("skipped a tool without a name")
		case names[t.Name]:
			s.log.Warn().Str("tool", t.Name).Msg("skipped a second tool of the same name")
		case allowed(t.Name):
			names[t.Name] = true
			tools = append(tools, t)
		}
	}
	return tools, nil
}
