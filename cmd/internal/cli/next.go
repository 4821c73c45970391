package cli

import (
	"path/filepath"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/plain"
	"mcpx/registry"
)

// launchers are the usual programs that start servers, and where to get them.
var launchers = map[string]string{
	"uvx": "uv: https://docs.astral.sh/uv", "uv": "uv: https://docs.astral.sh/uv",
	"npx": "Node.js: https://nodejs.org", "node": "Node.js: https://nodejs.org", "npm": "Node.js: https://nodejs.org",
	"bunx": "Bun: https://bun.sh", "bun": "Bun: https://bun.sh", "deno": "Deno: https://deno.com",
	"docker": "Docker: https://docs.docker.com/get-docker", "pipx": "pipx: https://pipx.pypa.io",
	"python": "Python: https://www.python.org", "python3": "Python: https://www.python.org",
}

// next returns advice about a server that is not ready, "" if its reason says enough.
func next(u *registry.Upstream, c *config.Upstream) string {
	local := c.Transport == config.TransportStdio
	switch {
	case u.Cause == link.CauseConfig:
		return ""
	case u.Cause == link.CauseCommand:
		if from, ok := launchers[filepath.Base(c.Command)]; ok {
			return filepath.Base(c.Command) + " comes with " + from
		}
		return ""
	case u.Cause == link.CauseTimeout && local:
		return `raise its "startup_timeout" if it is only slow (a first run of npx or uvx downloads it), or run it yourself: ` + commandLine(c)
	case u.Cause == link.CauseTimeout:
		return `raise its "startup_timeout" if it is only slow, or check its url: ` + address(c)
	case u.Cause == link.CauseUnreachable:
		return "check that it runs, and its url: " + address(c)
	case u.NeedsPerson():
		return "" // the reason says it
	case u.Cause == link.CauseAuth && len(c.Headers) == 0:
		return `the server requires authentication; set "headers", for example {"Authorization": "Bearer ${TOKEN}"}`
	case u.Cause == link.CauseAuth:
		return `check its "headers": is the key right, and still valid?`
	case local:
		return "run it yourself to see more: " + commandLine(c)
	}
	return "check that its url is that of an MCP server: " + address(c)
}

// commandLine returns the server's command for a shell, without secrets.
func commandLine(c *config.Upstream) string {
	public := c.Public()
	line := plain.Shell(append([]string{public.Command}, public.Args...)...)
	if c.Dir != "" {
		line = "cd " + plain.Shell(c.Dir) + " && " + line
	}
	return plain.Cut(plain.Line(line), 500)
}

func address(c *config.Upstream) string { return plain.Line(c.Public().URL) }
