package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mcpx/config"
	"mcpx/internal/app"
	"mcpx/internal/lockfile"
)

// lock reads the lock file. Only check --locked needs one; otherwise there may be none to compare
// with.
func (c *checkCmd) lock(t *terminal, file *config.Config) (*lockfile.Lock, error) {
	switch {
	case !c.Locked && c.SARIF != "":
		return nil, usageError{errors.New("--sarif needs --locked")}
	case c.Locked && t.adhoc != nil:
		return nil, usageError{errors.New("--locked needs a config file, not a url or a command")}
	case t.adhoc != nil:
		return nil, nil
	}
	path := lockfile.Path(file.File)
	lock, err := lockfile.Read(path)
	isAbsent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil || c.Locked && !isAbsent:
		return lock, err
	case c.Locked:
		return nil, usageError{withHint(fmt.Errorf("there is no %s", path), "%s creates it", file.PinCommand())}
	case !isAbsent:
		fmt.Fprintf(t.stderr, "warning: mcpx starts no server when it serves: %v\n", err)
	}
	return nil, nil
}

// compare prints the differences from the lock. With --locked, it returns an error if one needs
// a review.
func (c *checkCmd) compare(t *terminal, file *config.Config, lock *lockfile.Lock, lists []app.ToolLists) error {
	if lock == nil {
		return nil
	}
	path, review := lockfile.Path(file.File), file.PinCommand("--diff")
	changes := changesOf(newOffers(lists), lock)
	if c.SARIF != "" {
		if err := c.writeSARIF(path, changes); err != nil {
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
			fmt.Fprintf(t.stderr, "warning: %s not approved in %s; review them with %s\n", plural(count, "change"), path, review)
		}
		return nil
	}
	if !c.JSON && len(changes) > 0 {
		fmt.Fprintf(t.stdout, "\n%s", reviewText(t, changes))
	}
	if count == 0 {
		return nil
	}
	return withHint(fmt.Errorf("%s not approved in %s", plural(count, "change"), path), "review them with %s, approve them with %s, and commit the lock file", review, file.PinCommand())
}

// writeSARIF writes the SARIF file. It names the lock file relative to the working directory,
// which is that of the repository in CI.
func (c *checkCmd) writeSARIF(lock string, changes []lockfile.Change) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	if folder, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(folder, lock); err == nil {
			lock = relative
		}
	}
	report := lockfile.Report{Version: app.Version(), File: filepath.ToSlash(lock), Text: text, Changes: changes}
	return os.WriteFile(c.SARIF, report.SARIF(), 0o644)
}
