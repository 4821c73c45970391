package server

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// relay passes a request on to the upstream that has what it names.
func (s *Server) relay(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	return s.executor.Relay(ctx, executor.Relay{
		Request:  string(m.ID),
		Client:   c,
		Method:   m.Method,
		Params:   m.Params,
		Progress: c.progress(rawjson.Get(m.Params, "_meta")),
	})
}

// lists is the table of lists that mcpx answers from what it has cached.
var lists = map[string]struct {
	member string
	wait   time.Duration // for servers in their first start
	of     func(x *executor.Exposure) []executor.Exposed
}{
	"tools/list":               {"tools", 10 * time.Second, func(x *executor.Exposure) []executor.Exposed { return x.Tools }},
	"prompts/list":             {"prompts", 3 * time.Second, func(x *executor.Exposure) []executor.Exposed { return x.Prompts }},
	"resources/list":           {"resources", 3 * time.Second, func(x *executor.Exposure) []executor.Exposed { return x.Resources }},
	"resources/templates/list": {"resourceTemplates", 3 * time.Second, func(x *executor.Exposure) []executor.Exposed { return x.Templates }},
}

// pageSize is how many items a page of a list has.
const pageSize = 1000

// list answers one page of a list. The cursor is the place of its first item: a
// list that changes meanwhile is announced, and read again from its start.
func (s *Server) list(ctx context.Context, _ *Client, m jsonrpc.Message) ([]byte, error) {
	l := lists[m.Method]
	from := 0
	if cursor := rawjson.Get(m.Params, "cursor"); !rawjson.IsNull(cursor) {
		place, err := parseCursor(cursor)
		if err != nil {
			return nil, invalidParams(`"cursor" is not one that mcpx gave`)
		}
		from = place
	}
	s.executor.Settle(ctx, l.wait)
	items := l.of(s.executor.Exposure())
	from = min(from, len(items))
	to := min(from+pageSize, len(items))
	b := append([]byte(`{"`+l.member), `":[`...)
	for i, item := range items[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s.listed(item)...)
	}
	b = append(b, ']')
	if to < len(items) {
		b = rawjson.AppendString(append(b, `,"nextCursor":`...), cursor(to))
	}
	return append(b, '}'), nil
}

// listed is an item of a list as this server's clients see it.
func (s *Server) listed(x executor.Exposed) []byte {
	if !s.origins {
		return x.Raw
	}
	meta := rawjson.With(rawjson.Get(x.Raw, "_meta"), "mcpx/server", rawjson.AppendString(nil, x.Upstream.Name))
	return rawjson.With(x.Raw, "_meta", rawjson.With(meta, "mcpx/name", rawjson.AppendString(nil, x.Key)))
}

const cursorMark = "mcpx:"

func cursor(place int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + strconv.Itoa(place)))
}

func parseCursor(raw []byte) (int, error) {
	text, _ := rawjson.String(raw)
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, err
	}
	place, ok := strings.CutPrefix(string(plain), cursorMark)
	if !ok {
		return 0, errors.New("no cursor of mcpx")
	}
	n, err := strconv.Atoi(place)
	if err == nil && n < 0 {
		err = errors.New("a place before the start")
	}
	return n, err
}

// listRoots answers a client that asks for the roots mcpx hands upstreams: they
// are its own.
func (s *Server) listRoots(ctx context.Context, c *Client, _ jsonrpc.Message) ([]byte, error) {
	if rawjson.IsNull(c.capability("roots")) {
		return []byte(`{"roots":[]}`), nil
	}
	return c.Request(ctx, "roots/list", nil)
}
