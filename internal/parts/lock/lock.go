// Package lock adds the lock file: mcpx.lock beside the config, with everything that a person
// has approved about each server (package lockfile). What is not as it was approved is hidden or
// mentioned, as the key "pin" of the server says, and a server whose command or URL has changed
// is not started. Without a lock file, changes since the last start are mentioned.
// Hooks: lists.View, live.ListObserver, httpfront.Route; Review is for the console, and the
// commands pin and check --locked use Offers. Config: pin of a server.
package lock

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/plain"
	"mcpx/internal/redact"
	"mcpx/registry/lists"
)

// Section has the key pin of a server.
var Section = config.NewSection(config.InUpstream, Settings{}, func(s *Settings) []config.Field {
	return []config.Field{
		{Name: "pin", Kind: config.Choice(&s.Pin, PinOff, PinWarn, PinBlock), Doc: "What happens to tools that are not as approved in mcpx.lock. block: they are hidden. warn: they are mentioned. off: nothing. The default is block with a lock file, and warn without."},
	}
})

// Settings are the values of the Section.
type Settings struct {
	Pin Pin // empty: the default, which depends on the lock file
}

// Pin is what happens to tools that a person has not approved.
type Pin string

// The pins.
const (
	PinOff   Pin = "off"   // nothing is compared
	PinWarn  Pin = "warn"  // they are logged and mentioned
	PinBlock Pin = "block" // they are hidden and cannot be called
)

// IsOff reports whether the config says that a server is never compared.
func IsOff(u *config.Upstream) bool { return Section.Of(u.Parts).Pin == PinOff }

// Approvals is what the lock file says about the servers of a config. A nil *Approvals compares
// nothing.
type Approvals struct {
	views map[string]*view // by lockfile.Key; without those that are never compared
}

// Read reads the lock file beside the config. It is called when mcpx serves, and for each
// reload. A server that may not start gets an Err: one that the lock does not have, one whose
// command or URL has changed, and every one if the lock cannot be read. Pin "off" exempts a
// server.
func Read(c *config.Config) *Approvals {
	lock, err := lockfile.Read(lockfile.Path(c.File))
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = nil, nil
	}
	pin := PinWarn
	if lock != nil || err != nil {
		pin = PinBlock
	}
	a := &Approvals{views: map[string]*view{}}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		for j := range p.Upstreams {
			u := &p.Upstreams[j]
			v := &view{pin: cmp.Or(Section.Of(u.Parts).Pin, pin), command: reviewCommand(c, p.Name, u.Name)}
			if v.pin == PinOff {
				continue
			}
			key := lockfile.Key(p.Name, u.Name)
			a.views[key] = v
			refused := v.approve(u, lock, key)
			if err != nil {
				refused = fmt.Errorf("%w; restore the lock file, or delete it and run mcpx pin", err)
			}
			u.Err = cmp.Or(u.Err, refused)
		}
	}
	return a
}

// Views returns what clients see of a server of a profile.
func (a *Approvals) Views(profile string, u *config.Upstream) lists.Views {
	if a == nil || a.views[lockfile.Key(profile, u.Name)] == nil {
		return lists.Views{}
	}
	v := a.views[lockfile.Key(profile, u.Name)]
	return lists.Views{All: []lists.View{v}, IsStrict: v.pin == PinBlock}
}

// approve sets what the lock approves, and returns why the server may not start. lock is
// nil if there is none.
func (v *view) approve(u *config.Upstream, lock lockfile.Lock, key string) error {
	if lock == nil {
		if v.pin == PinBlock {
			return fmt.Errorf(`its "pin" is "block", and there is no %s; run mcpx pin`, lockfile.Name)
		}
		return nil
	}
	v.approved = lock[key]
	switch {
	case v.approved == nil && v.pin == PinWarn:
		v.approved = &lockfile.Server{Origin: Origin(u)} // everything is new
	case v.approved == nil:
		return fmt.Errorf("it is not in %s; review it: %s", lockfile.Name, v.command)
	case v.pin == PinBlock && !v.approved.Origin.Equal(Origin(u)):
		return fmt.Errorf("its command or url is not the one in %s; review it: %s", lockfile.Name, v.command)
	}
	return nil
}

// Origin returns the command or URL of a server as the config file has it, for the lock file.
// Values that look secret are hashed.
func Origin(u *config.Upstream) lockfile.Origin {
	u = u.AsWritten()
	public := u.Public()
	if u.URL != "" {
		return lockfile.Origin{URL: hashSecret(u.URL, public.URL)}
	}
	command := []string{hashSecret(u.Command, public.Command)}
	for i, arg := range u.Args {
		command = append(command, hashSecret(arg, public.Args[i]))
	}
	return lockfile.Origin{Command: command}
}

// hashSecret returns a word in which the mask of a secret is replaced by the hash of the
// word. The hash has 64 bits: enough to notice a change. It does not hide a weak secret, and
// a salt would not either, since it would be in the same file.
func hashSecret(word, masked string) string {
	if word == masked {
		return word
	}
	sum := sha256.Sum256([]byte("mcpx-argument-v1\x00" + word))
	return strings.ReplaceAll(masked, redact.Hidden, fmt.Sprintf("sha256:%x", sum[:8]))
}

// PinCommand returns a command that runs "mcpx pin" for a config with these arguments. It names
// the config if it is not the one that mcpx finds by itself.
func PinCommand(c *config.Config, arguments ...string) string {
	words := []string{"mcpx", "pin"}
	found, err := config.Find(os.LookupEnv)
	if path, _ := filepath.Abs(found); err != nil || path != c.File {
		words = append(words, c.File)
	}
	return plain.Shell(append(words, arguments...)...)
}

// reviewCommand returns the command that shows what waits for a review.
func reviewCommand(c *config.Config, profile, server string) string {
	if profile != "default" {
		return PinCommand(c, server, "--schema", profile, "--diff")
	}
	return PinCommand(c, server, "--diff")
}
