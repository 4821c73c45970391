package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
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
				item := lists.NewItem(s.supervisor.Config(), k, key, raw)
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

// refreshPause keeps a flood of list_changed from becoming a flood of lists.
const refreshPause = 500 * time.Millisecond

// relistTime is the time until a list that could not be read is read again.
const relistTime = 30 * time.Second

// relist reads the lists that have changed again. Calls that wait for them go on.
func (s *Supervisor) relist(ctx context.Context, session *Session, changed map[string]bool) {
	returned := s.refresh.Returned()
	declared := s.Upstream().Capabilities
	for _, k := range lists.Kinds {
		if changed[k.Capability] && !rawjson.IsNull(rawjson.Get(declared, k.Capability)) && !s.list(ctx, session, k) {
			return
		}
	}
	s.listed.Store(returned)
	if s.Upstream().IsBlocking() {
		s.publish(func(*Upstream) {}) // wakes the calls that wait
	}
}

// list reads one kind of list again and reports whether it could. If not, the last good
// list stays and the list is read again later: the upstream reports a change only once.
func (s *Supervisor) list(ctx context.Context, session *Session, k lists.Kind) bool {
	ctx, cancel := context.WithTimeout(ctx, s.Config().StartupTimeout)
	defer cancel()
	items, err := session.list(ctx, k)
	if session.IsOver() || errors.Is(err, context.Canceled) {
		return false // the end of the session is reported elsewhere
	}
	if err != nil {
		s.log.Warn().Str("error", s.Config().Redact(err.Error())).Msg("could not read a changed list; mcpx keeps the last one and tries again later")
		time.AfterFunc(relistTime, func() { s.refresh.Note(k.Capability) })
		return false
	}
	changed, before := false, s.Upstream().Sent(k)
	s.publish(func(u *Upstream) { changed, u.ListedAt = u.Set(k, items), time.Now() })
	s.compile(session)
	s.saveCache(session, nil)
	if changed { // after publish: notified clients list at once
		s.group.host.ListsChanged(k.Capability)
	}
	s.log.Info().Str("method", k.Method).Int("items", len(items)).Msg("list changed")
	s.logReview()
	if k.Pinned == lockfile.Tools {
		s.noteChanges(before)
	}
	return true
}

// compile prepares the tools that are published, in the background.
func (s *Supervisor) compile(session *Session) {
	tools := s.Upstream().Tools
	if s.group.options.Compile == nil || len(tools) == 0 {
		return
	}
	session.Go(func() {
		for _, t := range tools {
			if session.IsOver() {
				return
			}
			s.group.options.Compile(t)
		}
	})
}

// logReview logs what waits for a review, unless that was logged before.
func (s *Supervisor) logReview() {
	u := s.Upstream()
	gone, review := u.Gone(), u.Review()
	waiting := fmt.Sprint(u.WaitingTools(), review, gone)
	if waiting == s.reviewed {
		return
	}
	s.reviewed = waiting
	if gone != nil {
		s.log.Info().Strs("tools", lists.Shortened(gone)).Msg("approved tools are gone")
	}
	if review != "" {
		s.log.Warn().Str("pin", string(u.Config.Trust.Pin)).Strs("tools", lists.Shortened(u.WaitingTools())).Str("review", review).
			Msg("the server is not as it was approved")
	}
}

// noteChanges logs which tools differ from those that were listed before, and sets News.
func (s *Supervisor) noteChanges(before []lists.Item) {
	changed, added := s.Upstream().Compare(before)
	if changed == nil && added == nil {
		return
	}
	s.log.Warn().Strs("changed", changed).Strs("new", added).Msg("tools have changed since the server was listed before")
	s.publish(func(u *Upstream) { u.SetNews(changed, added) })
}

// Announced returns how many changes of its lists the upstream has announced.
func (s *Supervisor) Announced() int64 { return s.refresh.Noted() }

// HasRead reports whether that number of announced changes is in the lists.
func (s *Supervisor) HasRead(announced int64) bool { return s.listed.Load() >= announced }

// AwaitsList reports whether the upstream has announced that a list has changed, and only
// approved items of the new list may be used.
func (u *Upstream) AwaitsList() bool {
	return u.IsBlocking() && u.State == Ready && !u.Supervisor.HasRead(u.Supervisor.Announced())
}
