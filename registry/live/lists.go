package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
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
				items = append(items, s.newItem(k, key, raw))
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

// newItem returns an item without the secrets of the upstream, also those of a newer config.
func (s *Session) newItem(k lists.Kind, key string, raw []byte) lists.Item {
	u := s.supervisor.Upstream()
	return u.NewItem(k, key, raw, lists.Redact(s.Redact, lists.Redact(u.Config.Redact, raw)))
}

// hasValidHeaders reports whether mcpx can repeat the arguments of a tool in headers, as the
// tool wants (x-mcp-header). Only 2026-07-28 over HTTP has such headers.
func (s *Session) hasValidHeaders(definition []byte) bool {
	if !s.Is2026() || s.Config.URL == "" || !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return true
	}
	return mcp.ValidateParamHeaderAnnotations(&mcp.Tool{RawInputSchema: rawjson.Get(definition, "inputSchema")}) == nil
}

// refreshPause keeps a flood of list_changed from becoming a flood of lists.
const refreshPause = 500 * time.Millisecond

// relistTime is the time until a list that could not be read is read again.
const relistTime = 30 * time.Second

// readLists reads lists of a session and returns them by their methods. A list is empty if
// the upstream does not know its method. Only an error of the tools, or the end of the
// session or of ctx, is returned, with the lists that were read before it. Other lists that
// fail are left out, so that the last one stays.
func (s *Supervisor) readLists(ctx context.Context, session *Session, capabilities []byte, kinds []lists.Kind) (map[string][]lists.Item, error) {
	read := map[string][]lists.Item{}
	for _, k := range kinds {
		if rawjson.IsNull(rawjson.Get(capabilities, k.Capability)) {
			read[k.Method] = nil
			continue
		}
		items, err := session.list(ctx, k)
		isTools := k.Capability == "tools"
		switch {
		case err == nil, isUnknownMethod(err) && !isTools:
			read[k.Method] = items
		case isTools, session.IsOver(), errors.Is(err, rpc.ErrClosed), ctx.Err() != nil: // ErrClosed: it is about to end
			return read, err
		default:
			s.log.Warn().Str("error", s.Config().Redact(err.Error())).Msg("could not read a list; mcpx keeps the last one")
		}
	}
	return read, nil
}

func isUnknownMethod(err error) bool {
	var refused *rpc.Error
	return errors.As(err, &refused) && refused.Code == rpc.CodeMethodNotFound
}

// ListObserver is called about the lists that a supervisor reads. Each supervisor has its own,
// and calls it in one goroutine.
type ListObserver interface {
	// Read is called when the tools were read, before clients see them. before returns the
	// tools that were listed last, here or before mcpx was started; nil if they are not known.
	// The next listing shows the news once, if there are any.
	Read(u *Upstream, tools []lists.Item, before func() []lists.Item) (news string)
	// Published is called when clients see new lists.
	Published(u *Upstream, log zerolog.Logger)
}

// publishLists publishes lists that were read, together with another change of the
// upstream, and notifies clients.
func (s *Supervisor) publishLists(session *Session, read map[string][]lists.Item, change func(u *Upstream)) {
	news := ""
	if tools, isRead := read[lists.OfTools.Method]; isRead && s.observer != nil {
		news = s.observer.Read(s.Upstream(), tools, s.knownTools)
	}
	var changed []string
	s.publish(func(u *Upstream) {
		change(u)
		changed = u.SetLists(read)
		u.SetNews(news)
	})
	s.compile(session)
	s.saveCache(session)
	s.group.host.ListsChanged(changed...) // after publish: notified clients list at once
	if s.observer != nil {
		s.observer.Published(s.Upstream(), s.log)
	}
}

// relist reads the lists that have changed again and returns those that it could not read.
// Calls that wait for the lists go on once the tools are read.
func (s *Supervisor) relist(ctx context.Context, session *Session, changed map[string]bool) (unread map[string]bool) {
	announced := s.refresh.Returned()
	kinds := slices.DeleteFunc(slices.Clone(lists.Kinds), func(k lists.Kind) bool { return !changed[k.Capability] })
	limited, cancel := startupLimit(ctx, s.Config())
	defer cancel()
	read, err := s.readLists(limited, session, s.Upstream().Capabilities, kinds)
	if session.IsOver() || ctx.Err() != nil {
		return nil // the end of the session is reported elsewhere
	}
	if err != nil {
		s.log.Warn().Str("error", s.Config().Redact(err.Error())).Msg("could not read the changed lists; mcpx tries again later")
	}
	s.publishLists(session, read, func(u *Upstream) {
		if err == nil {
			u.announced, u.ListedAt = announced, time.Now()
		}
	})
	unread = map[string]bool{}
	for _, k := range kinds {
		if items, isRead := read[k.Method]; isRead {
			s.log.Info().Str("method", k.Method).Int("items", len(items)).Msg("list changed")
		} else {
			unread[k.Capability] = true
		}
	}
	return unread
}

// compile prepares the tools that are published, in the background.
func (s *Supervisor) compile(session *Session) {
	tools := s.Upstream().Tools
	if s.group.options.Compile == nil || len(tools) == 0 {
		return
	}
	session.Background(func() {
		for _, t := range tools {
			if session.IsOver() {
				return
			}
			s.group.options.Compile(t)
		}
	})
}

// Announced returns how many changes of its lists the upstream has announced.
func (s *Supervisor) Announced() int64 { return s.refresh.Noted() }

// HasRead reports whether that number of announced changes is in the lists.
func (u *Upstream) HasRead(announced int64) bool { return u.announced >= announced }

// AwaitsList reports whether the upstream has announced that a list has changed, and nothing
// may be used before the views have seen the new list.
func (u *Upstream) AwaitsList() bool {
	return u.IsStrict() && u.State == Ready && !u.HasRead(u.Supervisor.Announced())
}

// Changes collects the names of changed lists until Wait returns them. The methods may be
// called concurrently.
type Changes struct {
	signal tasks.Signal

	mu    sync.Mutex
	names map[string]bool
	count int64 // of calls of Note
	taken int64 // those that Wait has returned
}

// NewChanges returns Changes without any.
func NewChanges() Changes { return Changes{signal: tasks.NewSignal(), names: map[string]bool{}} }

// Note adds names. It never waits.
func (c *Changes) Note(names ...string) {
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

// Noted returns how often Note was called.
func (c *Changes) Noted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Returned is Noted for the names that Wait has returned.
func (c *Changes) Returned() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// errDone is returned by Wait when done was closed.
var errDone = errors.New("done")

// Wait returns the changed names, once there are any or retry delivers.
func (c *Changes) Wait(ctx context.Context, done <-chan struct{}, retry <-chan time.Time) (map[string]bool, error) {
	select {
	case <-c.signal:
	case <-retry:
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
