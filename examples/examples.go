// Package examples holds the config that the README and "mcpx demo" use.
package examples

import _ "embed" // for the config

// Config is the text of mcpx.json. Its servers are part of mcpx.
//
//go:embed mcpx.json
var Config []byte
