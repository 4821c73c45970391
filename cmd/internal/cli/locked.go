package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mcpx/config"
	"mcpx/internal/app"
	"mcpx/internal/lockfile"
	"mcpx/registry/live"
)

// lockText is a lock file and its text.
type lockText struct {
	lockfile.Lock
	path   string
	text   []byte
	review string // the command that shows what has changed
	pin    string // the command that approves it
}

// lock reads the lock file. Only check --locked needs one.
func (c *checkCmd) lock(t *terminal, file *config.Config) (l lockText, err error) {
	switch {
	case !c.Locked && c.SARIF != "":
		return l, usageError{errors.New("--sarif needs --locked")}
	case c.Locked && t.adhoc != nil:
		return l, usageError{errors.New("--locked needs a config file, not a url or a command")}
	case t.adhoc != nil:
		return l, nil
	}
	l.path, l.review, l.pin = lockfile.Path(file.File), file.PinCommand("--diff"), file.PinCommand()
	if l.Lock, err = lockfile.Read(l.path); err == nil {
		l.text, err = os.ReadFile(l.path)
	}
	isAbsent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil || c.Locked && !isAbsent:
		return l, err
	case c.Locked:
		return l, usageError{withHint(fmt.Errorf("there is no %s", l.path), "%s creates it", l.pin)}
	case !isAbsent:
		fmt.Fprintf(t.stderr, "warning: mcpx starts no server when it serves: %v\n", err)
	}
	return lockText{}, nil
}

// compare prints the differences from the lock file. With --locked, it returns an error if
// one needs a review.
func (c *checkCmd) compare(t *terminal, lock lockText, lists []app.ToolLists) error {
	if lock.Lock == nil {
		return nil
	}
	for i := range lists { // servers that are never compared
		p := &lists[i]
		p.Upstreams = slices.DeleteFunc(slices.Clone(p.Upstreams), func(u *live.Upstream) bool { return u.Config.Pin == config.PinOff })
	}
	changes := newOffers(lists).changes(lock.Lock)
	if c.SARIF != "" {
		if err := os.WriteFile(c.SARIF, c.report(lock, changes), 0o644); err != nil {
			return err
		}
	}
	count := 0
	for _, change := range changes {
		if !change.IsNotice() {
			count++
		}
	}
	if !c.Locked {
		if count > 0 {
			fmt.Fprintf(t.stderr, "warning: %s not approved in %s; review them with %s\n", plural(count, "change"), lock.path, lock.review)
		}
		return nil
	}
	if !c.JSON && len(changes) > 0 {
		if err := t.printf("\n%s", reviewText(t, changes)); err != nil {
			return err
		}
	}
	if count == 0 {
		return nil
	}
	return withHint(fmt.Errorf("%s not approved in %s", plural(count, "change"), lock.path), "review them with %s, approve them with %s, and commit the lock file", lock.review, lock.pin)
}

// report returns the SARIF file. It names the lock file relative to the working directory,
// which is that of the repository in CI.
func (c *checkCmd) report(lock lockText, changes []lockfile.Change) []byte {
	file := lock.path
	if folder, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(folder, lock.path); err == nil {
			file = relative
		}
	}
	return lockfile.Report{Version: app.Version(), File: filepath.ToSlash(file), Text: lock.text, Changes: changes}.SARIF()
}
