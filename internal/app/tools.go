package app

import (
	"mcpx/executor"
	"mcpx/internal/parts/search"
)

// builtinTools are the built-in tools of the parts, in the order of the listing.
func builtinTools() []executor.BuiltinTool { return []executor.BuiltinTool{search.Tool()} }

// NeedsUpstreams reports whether a built-in tool needs the other servers.
func NeedsUpstreams(tool string) bool { return executor.NeedsUpstreams(tool, builtinTools()) }
