package app

import "runtime/debug"

// Version is mcpx's version: what the build says, or what the module is.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// version is set by the linker in a release.
var version string
