package live

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
)

// errUnused is the end of a session that was stopped because nobody used it.
var errUnused = errors.New("nobody used it")

// fillTime is how long an upstream that was started to fill the cache keeps running if a
// request waited for it. Without such a request it is stopped at once.
const fillTime = time.Second

// checksPerIdle is how often the use of a session is checked during its idle time.
const checksPerIdle = 4

// rest waits until a request needs the upstream, and then publishes that it starts. If
// the upstream's lists are not known, it is started in the background. At most
// limits.connects_at_once such upstreams run at the same time.
func (s *Supervisor) rest(ctx context.Context) {
	var fills chan<- struct{} // nil: it is not started in the background
	if u := s.Upstream(); u.ListedAt.IsZero() && u.FailedAt.IsZero() && s.owner == "" && u.Config.Isolation != config.PerUser {
		fills = s.group.fills
	}
	select {
	case <-s.wake:
	case fills <- struct{}{}:
		s.endFill, s.isAwaited = sync.OnceFunc(func() { <-s.group.fills }), false
	case <-ctx.Done():
		return
	}
	s.publish(func(u *Upstream) { u.State, u.Reason, u.RetryAt = Starting, "", time.Time{} })
}

// releaseFill lets the next upstream fill the cache.
func (s *Supervisor) releaseFill() {
	if s.endFill != nil {
		s.endFill()
		s.endFill = nil
	}
}

// publishIdle publishes that the upstream does not run.
func (s *Supervisor) publishIdle() {
	s.wake.Clear()
	s.publish(func(u *Upstream) { u.State, u.Reason, u.Session, u.isStale = Idle, "", nil, true })
}

// stopUnused ends a session that nobody has used for its idle time. That is for processes, for
// sessions with an owner, and for those that were opened to fill the cache.
func (s *Supervisor) stopUnused(session *Session) {
	isFill := s.endFill != nil
	calls, isBusy := session.own, false
	switch {
	case !isFill:
	case s.hasRequest():
		s.endFill()
	case !s.group.host.HasUsers(session) && session.EndIfUnused(calls, errUnused):
		return
	}
	for lastUse := time.Now(); ; {
		u := s.Upstream()
		idle, check := u.Config.IdleStop, (<-chan time.Time)(nil)
		switch {
		case isFill:
			idle = fillTime
		case u.Config.URL != "" && s.owner == "" && u.Config.Isolation != config.PerUser:
			idle = 0
		}
		if idle > 0 {
			check = time.After(max(idle/checksPerIdle, 1))
		}
		select {
		case <-check:
		case <-u.changed: // perhaps by a reload
		case <-session.Done():
			return
		}
		before, wasBusy := calls, isBusy
		calls, isBusy = session.Activity()
		switch {
		case calls != before || isBusy || wasBusy || s.group.host.HasUsers(session):
			lastUse = time.Now()
			if isFill {
				isFill = false
				s.endFill() // a session that is used may stay for long
			}
		case idle > 0 && time.Since(lastUse) >= idle && session.EndIfUnused(calls, errUnused):
			return
		}
	}
}

// hasRequest reports whether a request has waited for a start that was only to fill the cache.
func (s *Supervisor) hasRequest() bool {
	select {
	case <-s.hurry:
		return true
	default:
		return s.isAwaited
	}
}

// loadCache publishes a lazy upstream as idle, with its lists from the cache, and recalls
// which revision any upstream speaks. It reports whether the upstream is lazy.
func (s *Supervisor) loadCache() (isLazy bool) {
	isLazy = s.Config().Start == config.StartLazy
	var found listcache.Entry
	ok := false
	if s.cache() != nil && (isLazy || s.Config().URL == "") {
		if found, ok = s.cache().Load(s.cacheKey()); ok {
			s.recall(found)
		}
	}
	if !isLazy {
		return false
	}
	var changed []string
	s.wake.Clear()
	s.publish(func(u *Upstream) {
		u.State, u.isStale = Idle, true
		if !ok {
			return
		}
		u.ListedAt, u.Capabilities = found.Listed, found.Capabilities
		u.SetInstructions(s.Config().Redact(found.Instructions))
		u.Revision, u.Software = found.Revision, s.software(found.Server)
		cached := map[string][]lists.Item{}
		for _, k := range lists.Kinds {
			cached[k.Method] = s.cachedItems(k, found.Lists[k.Method])
		}
		changed = u.SetLists(cached)
	})
	s.group.host.ListsChanged(changed...)
	return true
}

// cache returns the cache of the upstream's lists; nil if there is none. What one caller
// sees is not for others, so it is never on disk.
func (s *Supervisor) cache() *listcache.Cache {
	if s.owner != "" || s.Config().Isolation == config.PerUser {
		return nil
	}
	return s.group.options.Cache
}

func (s *Supervisor) cacheKey() string { return s.Config().CacheKey(listcache.Version) }

// cachedItems returns the items of a cached list, redacted.
func (s *Supervisor) cachedItems(k lists.Kind, list []json.RawMessage) (items []lists.Item) {
	for _, raw := range list {
		if key, _ := rawjson.String(rawjson.Get(raw, k.Key)); key != "" {
			u := s.Upstream()
			items = append(items, u.NewItem(k, key, raw, lists.Redact(u.Config.Redact, raw)))
		}
	}
	return items
}

// knownTools returns the tools that the upstream had when it was listed before, nil if that
// is not known.
func (s *Supervisor) knownTools() []lists.Item {
	u := s.Upstream()
	if !u.ListedAt.IsZero() || s.group.options.Cache == nil {
		return u.Sent(lists.OfTools)
	}
	found, _ := s.group.options.Cache.Load(s.cacheKey())
	return s.cachedItems(lists.OfTools, found.Lists[lists.OfTools.Method])
}

// saveCache saves the lists of a session in the background, redacted: stored secrets are
// not known when the cache is read.
func (s *Supervisor) saveCache(session *Session) {
	if s.cache() == nil {
		return
	}
	s.unsaved.Store(true)
	session.Background(s.saveNewest)
}

// saveNewest saves the newest lists, unless that is done already.
func (s *Supervisor) saveNewest() {
	s.saving.Lock()
	defer s.saving.Unlock()
	if !s.unsaved.Swap(false) {
		return
	}
	u, known := s.Upstream(), s.known.Load()
	content := &listcache.Entry{
		Listed:       u.ListedAt,
		Revision:     known.revision,
		IsEarlier:    known.isEarlier,
		Server:       known.server,
		Capabilities: u.Capabilities,
		Instructions: u.SentInstructions(),
		Lists:        map[string][]json.RawMessage{},
	}
	for _, k := range lists.Kinds {
		for _, item := range u.Sent(k) {
			content.Lists[k.Method] = append(content.Lists[k.Method], item.Raw)
		}
	}
	err := s.cache().Save(s.cacheKey(), content)
	if err == nil {
		return
	}
	entry := s.log.Debug()
	if s.Config().Start == config.StartLazy && s.group.cacheWarned.CompareAndSwap(false, true) {
		entry = s.log.Warn()
	}
	entry.Err(err).Msg("could not save the lists; lazy servers are started to list their tools whenever mcpx starts")
}
