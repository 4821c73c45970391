package server

import (
	"context"

	"mcpx/internal/rpc"
)

// Method runs one request. It returns the result, or an error whose code and data the
// client gets.
type Method func(s *Server, ctx context.Context, c *Client, m rpc.Message) (result []byte, err error)

// MethodInfo is a row of the table of methods.
type MethodInfo struct {
	Run Method // nil for tools/call, which callTool handles

	IsOld        bool // 2026-07-28 no longer has it
	IsNew        bool // only 2026-07-28 has it
	IsCached     bool // its results in 2026-07-28 have ttlMs and cacheScope
	MayNeedInput bool // its result in 2026-07-28 may be input_required
}

// Methods is the table of methods.
var Methods = map[string]MethodInfo{
	"initialize":               {Run: (*Server).initialize, IsOld: true},
	"ping":                     {Run: (*Server).ping, IsOld: true},
	"server/discover":          {Run: (*Server).discover, IsNew: true, IsCached: true},
	"subscriptions/listen":     {Run: (*Server).listen, IsNew: true},
	"tools/list":               {Run: (*Server).listTools, IsCached: true},
	"tools/call":               {MayNeedInput: true},
	"prompts/list":             {Run: (*Server).list, IsCached: true},
	"prompts/get":              {Run: (*Server).relay, MayNeedInput: true},
	"resources/list":           {Run: (*Server).list, IsCached: true},
	"resources/templates/list": {Run: (*Server).list, IsCached: true},
	"resources/read":           {Run: (*Server).relay, IsCached: true, MayNeedInput: true},
	"resources/subscribe":      {Run: (*Server).relay, IsOld: true},
	"resources/unsubscribe":    {Run: (*Server).relay, IsOld: true},
	"completion/complete":      {Run: (*Server).relay},
	"logging/setLevel":         {Run: (*Server).setLogLevel, IsOld: true},
	"roots/list":               {Run: (*Server).listRoots, IsOld: true},
	"shutdown":                 {Run: (*Server).ping, IsOld: true}, // some clients know it from other protocols; notifications/exit stops mcpx
}

// methodNotFound returns the error for a method that is not in the table.
func methodNotFound(name string) *rpc.Error {
	return rpc.Errorf(rpc.CodeMethodNotFound, "Method '%s' not found", name)
}
