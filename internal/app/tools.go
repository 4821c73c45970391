package app

import (
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/parts/search"
)

// builtinTools are the built-in tools of the parts, in the order of the listing.
func builtinTools(s *search.Search) []executor.BuiltinTool {
	return []executor.BuiltinTool{s.Tool()}
}

// NeedsUpstreams reports whether a built-in tool needs the other servers.
func NeedsUpstreams(tool string) bool { return executor.NeedsUpstreams(tool, builtinTools(nil)) }

// newSearch returns the tool search, which keeps vectors in the user's cache.
func newSearch(c *config.Config, log zerolog.Logger) *search.Search {
	folder, err := os.UserCacheDir()
	if err == nil { // otherwise there is no home
		folder = filepath.Join(folder, "mcpx", "vectors")
	}
	s := search.New(folder, log)
	s.Apply(search.Section.Of(c.Parts))
	return s
}
