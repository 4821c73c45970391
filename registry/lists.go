package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/tasks"
	"mcpx/registry/lists"
)

// Limits of a list.
const (
	maxPages = 100
	maxItems = 10_000
)

// list reads every page of a list and returns its items, redacted. It skips invalid
// items.
func (s *Session) list(ctx context.Context, k lists.Kind) ([]lists.Item, error) {
	var items []lists.Item
	var params []byte
	keys, cursors := map[string]bool{}, map[string]bool{}
	warn := func(text string) { s.Log.Warn().Str("method", k.Method).Msg(text) }
	for range maxPages {
		result, err := s.Request(ctx, k.Method, params)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Method, err)
		}
		for raw := range rawjson.Elements(rawjson.Get(result, k.Member)) {
			key, _ := rawjson.String(rawjson.Get(raw, k.Key))
			switch {
			case key == "":
				warn("skipped an item without a " + k.Key)
			case keys[key]:
				warn("skipped a second item with the same " + k.Key)
			case !s.hasValidHeaders(raw):
				warn("skipped a tool with an invalid x-mcp-header")
			case len(items) == maxItems:
				warn(fmt.Sprintf("the list has more than %d items; the rest is left out", maxItems))
				return items, nil
			default:
				keys[key] = true
				item := lists.NewItem(s.supervisor.config(), k, key, raw)
				item.Raw = lists.Redact(s.Redact, item.Raw)
				items = append(items, item)
			}
		}
		cursor := rawjson.Get(result, "nextCursor")
		if text, ok := rawjson.String(cursor); !ok || text == "" {
			return items, nil
		}
		if cursors[string(cursor)] {
			warn("the upstream repeats a page cursor; the list ends there")
			return items, nil
		}
		cursors[string(cursor)] = true
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	warn(fmt.Sprintf("the list has more than %d pages; the rest is left out", maxPages))
	return items, nil
}

// hasValidHeaders reports whether mcpx can repeat the arguments of a tool in headers, as the
// tool wants (x-mcp-header). Only 2026-07-28 over HTTP has such headers.
func (s *Session) hasValidHeaders(definition []byte) bool {
	if !s.IsModern() || s.Config.URL == "" || !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return true
	}
	return mcp.ValidateParamHeaderAnnotations(&mcp.Tool{RawInputSchema: rawjson.Get(definition, "inputSchema")}) == nil
}

// changes collects the names of changed lists until wait returns them. The methods may be
// called concurrently.
type changes struct {
	signal tasks.Signal

	mu    sync.Mutex
	names map[string]bool
	count int64 // of calls of note
	taken int64 // those that wait has returned
}

func newChanges() changes { return changes{signal: tasks.NewSignal(), names: map[string]bool{}} }

// note adds names. It never waits.
func (c *changes) note(names ...string) {
	if len(names) == 0 {
		return
	}
	c.mu.Lock()
	for _, name := range names {
		c.names[name] = true
	}
	c.count++
	c.mu.Unlock()
	c.signal.Notify()
}

// noted returns how often note was called.
func (c *changes) noted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// returned is noted for the names that wait has returned.
func (c *changes) returned() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// errDone is returned by wait when done was closed.
var errDone = errors.New("done")

// wait returns the changed names, once there are any.
func (c *changes) wait(ctx context.Context, done <-chan struct{}) (map[string]bool, error) {
	select {
	case <-c.signal:
	case <-done:
		return nil, errDone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names, c.taken = map[string]bool{}, c.count
	return names, nil
}

// logReview logs what waits for a review, unless that was logged before.
func (s *supervisor) logReview() {
	u := s.upstream.Load()
	gone, review := u.Gone(), u.Review()
	waiting := fmt.Sprint(u.Waiting(), review, gone)
	if waiting == s.reviewed {
		return
	}
	s.reviewed = waiting
	if gone != nil {
		s.log.Info().Strs("tools", lists.Shortened(gone)).Msg("approved tools are gone")
	}
	if review != "" {
		s.log.Warn().Str("pin", string(u.config.Trust.Pin)).Strs("tools", lists.Shortened(u.Waiting())).Str("review", review).
			Msg("the server is not as it was approved")
	}
}

// noteChanges logs which tools differ from those that were listed before, and makes News
// tell it.
func (s *supervisor) noteChanges(before []lists.Item) {
	changed, added := s.upstream.Load().Compare(before)
	if changed == nil && added == nil {
		return
	}
	s.log.Warn().Strs("changed", changed).Strs("new", added).Msg("tools have changed since the server was listed before")
	s.publish(func(u *Upstream) { u.SetNews(changed, added) })
}

// AwaitsList reports whether the upstream has announced that a list has changed, and only
// approved items of the new list may be used.
func (u *Upstream) AwaitsList() bool {
	return u.IsBlocking() && u.State == Ready && u.supervisor.listed.Load() < u.supervisor.refresh.noted()
}

// Relisted waits until the lists that the upstream has announced so far are read, and
// returns the upstream with them.
func (v View) Relisted(ctx context.Context, name string) (*Upstream, error) {
	u := v.current(v.known(name))
	if u == nil || !u.AwaitsList() {
		return v.Ready(ctx, name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.config.StartupTimeout, &Unavailable{Server: name, Reason: "it has changed its lists, and they could not be read; try again later"})
	defer cancel()
	announced := u.supervisor.refresh.noted()
	for u.AwaitsList() && u.supervisor.listed.Load() < announced {
		if err := u.superseded(ctx); err != nil {
			return nil, err
		}
		next := v.current(name)
		if next == nil || next.supervisor != u.supervisor {
			break
		}
		u = next
	}
	return v.Ready(ctx, name)
}
