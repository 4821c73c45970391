// Package listcache keeps the lists of upstreams on disk, so that mcpx can show the tools of
// an upstream that does not run.
//
// Agents read these lists, so each file is signed with a key that only the user can read. A
// file without a valid signature counts as absent, and the upstream is listed again. The key
// is not beside the files: caches are shared, copied and cleared.
package listcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/atomicfile"
)

// Cache is a folder with a file for each upstream. Several processes, users and machines may
// use one folder: files are replaced whole, and their names depend on the key that signs them.
// Its methods may be called concurrently.
type Cache struct {
	folder string
	signer signer
	log    zerolog.Logger
	prune  sync.Once
}

// New returns a cache in a folder, signed with the key in a file. Both are created when
// something is saved.
func New(folder, keyFile string, log zerolog.Logger) *Cache {
	return &Cache{folder: folder, log: log, signer: signer{file: keyFile}}
}

// OnRepair sets what is called if other users could read the key or its folder. It must be
// called before the cache is used.
func (c *Cache) OnRepair(repaired atomicfile.Repaired) { c.signer.repaired = repaired }

// Limits of the cache.
const (
	maxFile = 16 << 20
	maxAge  = 90 * 24 * time.Hour
)

// Version changes with the form of the files. The keys of upstreams depend on it.
const Version = 2

// Entry is what is known about one upstream: everything as the upstream sent it.
type Entry struct {
	Listed       time.Time                    `json:"listed"`
	Revision     string                       `json:"protocol_version"`
	IsEarlier    bool                         `json:"earlier_only,omitempty"` // the server does not support 2026-07-28
	Server       json.RawMessage              `json:"server_info,omitempty"`
	Capabilities json.RawMessage              `json:"capabilities,omitempty"`
	Instructions string                       `json:"instructions,omitempty"`
	Lists        map[string][]json.RawMessage `json:"lists"` // by method
}

// path returns the file of an upstream.
func (c *Cache) path(key string, by signingKey) string {
	return filepath.Join(c.folder, key+"-"+by.name()+".json")
}

// Load returns the entry of an upstream, by its key. A file that cannot be read, or that this
// user has not signed, counts as absent.
func (c *Cache) Load(key string) (found Entry, ok bool) {
	by, err := c.signer.existing()
	if err != nil {
		return Entry{}, false
	}
	data, err := atomicfile.ReadAtMost(c.path(key, by), maxFile)
	if err != nil {
		return Entry{}, false
	}
	if data, ok = by.verify(key, data); !ok {
		c.log.Warn().Msg("a file of the catalog cache has no valid signature; the server is listed again")
		return Entry{}, false
	}
	if err := json.Unmarshal(data, &found); err != nil || time.Since(found.Listed) > maxAge {
		return Entry{}, false
	}
	return found, true
}

// Save replaces the entry of an upstream.
func (c *Cache) Save(key string, content *Entry) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // the lists keep their bytes
	switch err := encoder.Encode(content); {
	case err != nil:
		return err
	case data.Len() > maxFile-signatureBytes:
		return errors.New("the lists are too long for the cache")
	}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	by, err := c.signer.create()
	if err != nil {
		return fmt.Errorf("the key that signs them: %w", err)
	}
	c.prune.Do(c.removeOld)
	return atomicfile.Replace(c.path(key, by), by.sign(key, data.Bytes()), 0o600)
}

// removeOld removes files that nobody has written for a long time.
func (c *Cache) removeOld() {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > maxAge {
			if err := os.Remove(filepath.Join(c.folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.log.Debug().Err(err).Msg("could not remove an old file of the cache")
			}
		}
	}
}
