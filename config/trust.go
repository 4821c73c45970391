package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpx/internal/lockfile"
	"mcpx/internal/plain"
	"mcpx/internal/redact"
)

// Pin is what happens to tools that a person has not approved.
type Pin string

// The pins.
const (
	PinOff   Pin = "off"   // nothing is compared
	PinWarn  Pin = "warn"  // they are logged and mentioned
	PinBlock Pin = "block" // they are hidden and cannot be called
)

// Trust is what is known about the approval of an upstream. The zero value compares
// nothing.
type Trust struct {
	Pin      Pin
	Approved *lockfile.Server // from the lock file; nil: compare with the last start
	Review   string           // the command that shows what waits for a review
}

// ListsPerOwner reports whether each upstream session with an owner has its own lists. With
// isolation "client", all clients see the lists of the shared session, unless there is a lock:
// it must hold for every upstream session.
func (u *Upstream) ListsPerOwner() bool {
	return u.Isolation == PerUser || u.Isolation == PerClient && u.Trust.Pin == PinBlock
}

// ReadLock reads the lock file beside the config and sets what it says about each
// upstream. It is called when mcpx serves, and for each reload. An upstream that may not
// start gets an Err: one that the lock does not have, one whose command or URL has
// changed, and every one if the lock cannot be read. Pin "off" exempts an upstream.
func (c *Config) ReadLock() {
	lock, err := lockfile.Read(lockfile.Path(c.File))
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = nil, nil
	}
	pin := PinWarn
	if lock != nil || err != nil {
		pin = PinBlock
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		for j := range p.Upstreams {
			u := &p.Upstreams[j]
			u.Trust = Trust{Pin: cmp.Or(u.Pin, pin), Review: c.reviewCommand(p.Name, u.Name)}
			if u.Trust.Pin == PinOff {
				continue
			}
			refused := u.approve(lock, lockfile.Key(p.Name, u.Name))
			if err != nil {
				refused = fmt.Errorf("%w; restore the lock file, or delete it and run mcpx pin", err)
			}
			u.Err = cmp.Or(u.Err, refused)
		}
	}
}

// approve sets what the lock approves, and returns why the upstream may not start. lock is
// nil if there is none.
func (u *Upstream) approve(lock lockfile.Lock, key string) error {
	if lock == nil {
		if u.Trust.Pin == PinBlock {
			return fmt.Errorf(`its "pin" is "block", and there is no %s; run mcpx pin`, lockfile.Name)
		}
		return nil
	}
	u.Trust.Approved = lock[key]
	switch {
	case u.Trust.Approved == nil && u.Trust.Pin == PinWarn:
		u.Trust.Approved = &lockfile.Server{Origin: u.Origin()} // everything is new
	case u.Trust.Approved == nil:
		return fmt.Errorf("it is not in %s; review it: %s", lockfile.Name, u.Trust.Review)
	case u.Trust.Pin == PinBlock && !u.Trust.Approved.Origin.Equal(u.Origin()):
		return fmt.Errorf("its command or url is not the one in %s; review it: %s", lockfile.Name, u.Trust.Review)
	}
	return nil
}

// Origin returns the command or URL as the file has it, for the lock file. Values that
// look secret are hashed.
func (u *Upstream) Origin() lockfile.Origin {
	if u.written != nil {
		u = u.written
	}
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

// PinCommand returns a command that runs "mcpx pin" with these arguments. It names the
// config if it is not the one that mcpx finds by itself.
func (c *Config) PinCommand(arguments ...string) string {
	words := []string{"mcpx", "pin"}
	found, err := Find(os.LookupEnv)
	if path, _ := filepath.Abs(found); err != nil || path != c.File {
		words = append(words, c.File)
	}
	return plain.Shell(append(words, arguments...)...)
}

// reviewCommand returns the command that shows what waits for a review.
func (c *Config) reviewCommand(profile, server string) string {
	if profile != "default" {
		return c.PinCommand(server, "--schema", profile, "--diff")
	}
	return c.PinCommand(server, "--diff")
}
