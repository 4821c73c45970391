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
	"mcpx/registry"
)

// lockText is a lock file and its text.
type lockText struct {
	*lockfile.Lock
	path string
	text []byte
}

// lock reads the lock file for check --locked.
func (c *checkCmd) lock(t *terminal, file *config.Config) (l lockText, err error) {
	switch {
	case !c.Locked && c.SARIF != "":
		return l, usageError{errors.New("--sarif needs --locked")}
	case !c.Locked:
		return l, nil
	case t.adhoc != nil:
		return l, usageError{errors.New("--locked needs a config file, not a url or a command")}
	}
	l.path = lockfile.Path(file.File)
	if l.Lock, err = lockfile.Read(l.path); errors.Is(err, fs.ErrNotExist) {
		return l, usageError{withHint(fmt.Errorf("there is no %s", l.path), "mcpx pin creates it")}
	}
	if err == nil {
		l.text, err = os.ReadFile(l.path)
	}
	return l, err
}

// compare prints what is not as it is in the lock file, and returns an error if something
// needs a review.
func (c *checkCmd) compare(t *terminal, lock lockText, lists []app.ToolLists) error {
	for i := range lists { // servers that are never compared
		p := &lists[i]
		p.Upstreams = slices.DeleteFunc(slices.Clone(p.Upstreams), func(u *registry.Upstream) bool { return u.Pin() == config.PinOff })
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
	if !c.JSON && len(changes) > 0 {
		if err := t.printf("\n%s", reviewText(t, changes)); err != nil {
			return err
		}
	}
	if count == 0 {
		return nil
	}
	return withHint(fmt.Errorf("%s not approved in %s", plural(count, "change"), lock.path), "review them with mcpx pin --diff, approve them with mcpx pin, and commit the lock file")
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
