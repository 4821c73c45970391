package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/editfile"
	"mcpx/internal/rawjson"
)

// Cache keeps the lists of upstreams on disk, so that mcpx can show the tools of an
// upstream that does not run. Several processes may use one folder: files are replaced
// whole. Its methods may be called concurrently.
type Cache struct {
	folder string
	log    zerolog.Logger
	prune  sync.Once
}

// NewCache returns a cache in a folder, which is created when something is saved.
func NewCache(folder string, log zerolog.Logger) *Cache { return &Cache{folder: folder, log: log} }

// Limits of the cache.
const (
	maxCacheFile = 16 << 20
	maxCacheAge  = 90 * 24 * time.Hour
	tempAge      = time.Hour // a temporary file that is older was left behind
)

// cacheVersion changes with the form of the files.
const cacheVersion = 1

// cached is what a file has about one upstream: everything as the upstream sent it.
type cached struct {
	Version      int                          `json:"version"`
	Listed       time.Time                    `json:"listed"`
	Revision     string                       `json:"protocol_version"`
	Server       json.RawMessage              `json:"server_info,omitempty"`
	Capabilities json.RawMessage              `json:"capabilities,omitempty"`
	Instructions string                       `json:"instructions,omitempty"`
	Lists        map[string][]json.RawMessage `json:"lists"` // by method
}

// path returns the file of an upstream.
func (c *Cache) path(u *config.Upstream) string {
	return filepath.Join(c.folder, u.CacheKey(cacheVersion)+".json")
}

// load returns what is cached of an upstream. A file that cannot be read counts as absent.
func (c *Cache) load(u *config.Upstream) (found cached, ok bool) {
	data, err := editfile.ReadAtMost(c.path(u), maxCacheFile)
	if err != nil {
		return cached{}, false
	}
	if err := json.Unmarshal(data, &found); err != nil || found.Version != cacheVersion || time.Since(found.Listed) > maxCacheAge {
		return cached{}, false
	}
	return found, true
}

// save replaces the file of an upstream.
func (c *Cache) save(u *config.Upstream, content *cached) error {
	content.Version = cacheVersion
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // the lists keep their bytes
	switch err := encoder.Encode(content); {
	case err != nil:
		return err
	case data.Len() > maxCacheFile:
		return errors.New("the lists are too long for the cache")
	}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	c.prune.Do(c.removeOld)
	file, err := os.CreateTemp(c.folder, "*.tmp") // with permissions for the user alone
	if err != nil {
		return err
	}
	_, err = file.Write(data.Bytes())
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), c.path(u))
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// removeOld removes files that nobody has written for a long time.
func (c *Cache) removeOld() {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		limit := maxCacheAge
		if strings.HasSuffix(e.Name(), ".tmp") {
			limit = tempAge
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > limit {
			if err := os.Remove(filepath.Join(c.folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.log.Debug().Err(err).Msg("could not remove an old file of the cache")
			}
		}
	}
}

// loadCache publishes a lazy upstream as idle, with its lists from the cache. It reports
// whether the upstream is lazy.
func (s *supervisor) loadCache() (isLazy bool) {
	if s.config.Start != config.StartLazy {
		return false
	}
	var found cached
	ok := false
	if s.options.Cache != nil {
		found, ok = s.options.Cache.load(s.config)
	}
	var changed []string
	s.wake.Clear()
	s.publish(func(u *Upstream) {
		u.State, u.isStale = Idle, true
		if !ok {
			return
		}
		u.ListedAt, u.Capabilities, u.Instructions = found.Listed, found.Capabilities, s.config.Redact(found.Instructions)
		for _, k := range kinds {
			if k.set(u, s.cachedItems(k, found.Lists[k.method])) {
				changed = append(changed, k.capability)
			}
		}
	})
	s.registry.changed.note(changed...)
	return true
}

// cachedItems returns the items of a cached list, redacted.
func (s *supervisor) cachedItems(k kind, list []json.RawMessage) (items []Item) {
	for _, raw := range list {
		if key, _ := rawjson.String(rawjson.Get(raw, k.key)); key != "" {
			items = append(items, Item{Key: key, Raw: redactDefinition(s.config.Redact, raw), sent: raw})
		}
	}
	return items
}

// saveCache saves the lists of a session in the background. handshake is the result of
// initialize or server/discover.
func (s *supervisor) saveCache(session *Session, handshake []byte) {
	if s.options.Cache == nil {
		return
	}
	if handshake != nil {
		s.handshake = handshake
	}
	u := s.registry.Catalog().Upstream(s.config.Name)
	content := &cached{
		Listed:       u.ListedAt,
		Server:       rawjson.Get(s.handshake, "serverInfo"),
		Capabilities: u.Capabilities,
		Lists:        map[string][]json.RawMessage{},
	}
	content.Instructions, _ = rawjson.String(rawjson.Get(s.handshake, "instructions"))
	content.Revision, _ = rawjson.String(rawjson.Get(s.handshake, "protocolVersion"))
	for method, items := range s.listed {
		for _, item := range items {
			content.Lists[method] = append(content.Lists[method], item.asSent())
		}
	}
	s.unsaved.Store(content)
	session.tasks.Go(s.saveNewest)
}

// saveNewest saves the newest lists, unless that is done already.
func (s *supervisor) saveNewest() {
	s.saving.Lock()
	defer s.saving.Unlock()
	content := s.unsaved.Swap(nil)
	if content == nil {
		return
	}
	if err := s.options.Cache.save(s.config, content); err != nil {
		s.log.Debug().Err(err).Msg("could not save the lists")
	}
}
