package server

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"mcpx/executor"
	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// relay forwards a request to the upstream of the prompt or resource that it names.
func (s *Server) relay(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	return s.executor.Relay(ctx, executor.Relay{
		Request:  string(m.ID),
		Client:   c,
		Method:   m.Method,
		Params:   m.Params,
		Progress: c.progress(rawjson.Get(m.Params, "_meta")),
	})
}

// lists is the table of lists that mcpx serves from the catalog.
var lists = map[string]struct {
	member string        // of the result
	wait   time.Duration // for servers in their first start; 0: "flat_wait"
	items  func(x *listing.Exposure) []listing.Exposed
}{
	"tools/list":               {"tools", 0, func(x *listing.Exposure) []listing.Exposed { return x.Tools }},
	"prompts/list":             {"prompts", 3 * time.Second, func(x *listing.Exposure) []listing.Exposed { return x.Prompts }},
	"resources/list":           {"resources", 3 * time.Second, func(x *listing.Exposure) []listing.Exposed { return x.Resources }},
	"resources/templates/list": {"resourceTemplates", 3 * time.Second, func(x *listing.Exposure) []listing.Exposed { return x.Templates }},
}

// waitKey is a member of a list request's _meta. If it is false, the list has what is
// known now, and servers in their first start are left out. The console reads lists so.
const waitKey = "mcpx/wait"

// pageSize is how many items a page of a list has.
const pageSize = 1000

// list handles the methods in lists: it returns one page. The cursor has the index of the
// page's first item. If the list changes meanwhile, the client is notified and reads it
// again.
func (s *Server) list(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	l := lists[m.Method]
	from := 0
	if cursor := rawjson.Get(m.Params, "cursor"); !rawjson.IsNull(cursor) {
		var ok bool
		if from, ok = parseCursor(cursor); !ok {
			return nil, invalidParams(invalidCursor)
		}
	}
	if string(rawjson.Get(rawjson.Get(m.Params, "_meta"), waitKey)) != "false" {
		s.executor.Settle(ctx, c, cmp.Or(l.wait, s.profile.FlatWait))
	}
	var items []listing.Exposed
	if from == 0 {
		items = s.read(c, m.Method)
	} else { // a change since the first page is still announced
		items = l.items(s.executor.Exposure(c))
	}
	from = min(from, len(items))
	to := min(from+pageSize, len(items))
	b := append([]byte(`{"`+l.member), `":[`...)
	for _, item := range items[from:to] {
		b = rawjson.AppendElement(b, s.definition(item))
	}
	b = append(b, ']')
	if to < len(items) {
		b = rawjson.AppendString(append(b, `,"nextCursor":`...), cursorPrefix+strconv.Itoa(to))
	}
	return append(b, '}'), nil
}

// definition returns an item of a list as this server's clients see it.
func (s *Server) definition(x listing.Exposed) []byte {
	if !s.namesOrigin {
		return x.Raw
	}
	meta := rawjson.With(rawjson.Get(x.Raw, "_meta"), "mcpx/server", rawjson.AppendString(nil, x.Upstream.Name))
	return rawjson.With(x.Raw, "_meta", rawjson.With(meta, "mcpx/name", rawjson.AppendString(nil, x.Key)))
}

const (
	invalidCursor = `"cursor" must be the "nextCursor" of a page`
	cursorPrefix  = "mcpx:"
)

func parseCursor(raw []byte) (index int, ok bool) {
	text, _ := rawjson.String(raw)
	digits, isCursor := strings.CutPrefix(text, cursorPrefix)
	index, err := strconv.Atoi(digits)
	return index, isCursor && err == nil && index >= 0
}

// listRoots handles roots/list. It requests the roots from the client itself, since
// upstreams get these.
func (s *Server) listRoots(ctx context.Context, c *Client, _ rpc.Message) ([]byte, error) {
	if rawjson.IsNull(rawjson.Get(c.Capabilities(), "roots")) {
		return []byte(`{"roots":[]}`), nil
	}
	return c.Request(ctx, "roots/list", nil)
}
