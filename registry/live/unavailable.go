package live

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/registry/link"
)

// Unavailable is returned for an upstream that has no session: it cannot be started,
// or waits for its next start.
type Unavailable struct {
	Server  string
	Reason  string
	Stderr  []string
	RetryAt time.Time

	failure *link.Failure // for which a person must act; nil if there is none
}

// NeedsSignIn reports whether a person must act first, and which access is missing; no
// scopes: the person must sign in. The call was not made.
func (e *Unavailable) NeedsSignIn() (scopes []string, ok bool) {
	if e.failure == nil {
		return nil, false
	}
	return e.failure.Scopes, true
}

// Why returns why a person must act, without what to do.
func (e *Unavailable) Why() string { return e.failure.Reason }

func (e *Unavailable) Error() string {
	if e.failure != nil {
		return e.Server + " " + e.Reason
	}
	return fmt.Sprintf("server %q is unavailable: %s", e.Server, e.Reason) + nextTry(e.RetryAt) + link.Tail(e.Stderr)
}

// Trouble returns why the upstream does not run, and when it is started again; empty if
// there is no trouble.
func (u *Upstream) Trouble() string { return u.Reason + nextTry(u.RetryAt) }

// nextTry says when an upstream is started again, to follow a reason.
func nextTry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("; next try in %s", max(time.Until(at), 0).Round(time.Second))
}

// launchers are the usual programs that start servers, and where to get them.
var launchers = map[string]string{
	"uvx": "uv: https://docs.astral.sh/uv", "uv": "uv: https://docs.astral.sh/uv",
	"npx": "Node.js: https://nodejs.org", "node": "Node.js: https://nodejs.org", "npm": "Node.js: https://nodejs.org",
	"bunx": "Bun: https://bun.sh", "bun": "Bun: https://bun.sh", "deno": "Deno: https://deno.com",
	"docker": "Docker: https://docs.docker.com/get-docker", "pipx": "pipx: https://pipx.pypa.io",
	"python": "Python: https://www.python.org", "python3": "Python: https://www.python.org",
}

// Advice returns what to do about an upstream that is not ready, "" if its reason says
// enough. It has no secrets.
func (u *Upstream) Advice() string {
	c := u.Config
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
		return `raise its "startup_timeout" if it is only slow (a first run of npx or uvx downloads it), or run it yourself: ` + CommandLine(c)
	case u.Cause == link.CauseTimeout:
		return `raise its "startup_timeout" if it is only slow, or check its url: ` + Address(c)
	case u.Cause == link.CauseUnreachable:
		return "check that it runs, and its url: " + Address(c)
	case u.NeedsPerson():
		return "" // the reason says it
	case u.Cause == link.CauseAuth && len(c.Headers) == 0:
		return `the server requires authentication; set "headers", for example {"Authorization": "Bearer ${TOKEN}"}`
	case u.Cause == link.CauseAuth:
		return `check its "headers": is the key right, and still valid?`
	case local:
		return "run it yourself to see more: " + CommandLine(c)
	}
	return "check that its url is that of an MCP server: " + Address(c)
}

// CommandLine returns the command of an upstream for a shell, without secrets; "" for a
// remote one.
func CommandLine(c *config.Upstream) string {
	if c.Transport != config.TransportStdio {
		return ""
	}
	public := c.Public()
	line := plain.Shell(append([]string{public.Command}, public.Args...)...)
	if c.Dir != "" {
		line = "cd " + plain.Shell(c.Dir) + " && " + line
	}
	return plain.Cut(plain.Line(line), commandBytes)
}

// commandBytes bounds a command line or address that is shown.
const commandBytes = 500

// Address returns the URL of an upstream without secrets; "" for one with a command.
func Address(c *config.Upstream) string { return plain.Cut(plain.Line(c.Public().URL), commandBytes) }

// fail publishes why the upstream is down.
func (s *Supervisor) fail(state State, err error, wait time.Duration) {
	s.publish(func(u *Upstream) {
		u.State, u.Session, u.RetryAt = state, nil, time.Time{}
		u.isStale = u.isStale || state == Idle || wait == 0 && state == Waiting
		s.explain(u, err)
		if wait > 0 {
			u.RetryAt = u.FailedAt.Add(wait)
		}
	})
	u := s.Upstream()
	s.log.Warn().Str("state", string(state)).Str("reason", u.Reason).Strs("stderr", u.Stderr).
		Dur("retry_ms", wait.Round(time.Millisecond)).Msg("upstream down")
}

// explain records in u why the upstream failed, redacted.
func (s *Supervisor) explain(u *Upstream, err error) {
	c := s.Config()
	u.Reason, u.Cause, u.Stderr, u.FailedAt = err.Error(), "", nil, time.Now()
	var f *link.Failure
	if errors.As(err, &f) {
		u.Reason, u.Cause, u.Stderr = f.Reason, f.Cause, f.Stderr
	}
	if c.Err != nil {
		u.Cause = link.CauseConfig
	}
	if u.failure = asSignIn(err); u.failure != nil {
		u.Reason = s.group.explainSignIn(c, u.failure)
	}
	u.Reason = plain.Line(c.Redact(u.Reason))
}
