package lock

import (
	"fmt"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// offerOf returns everything that a person approves about a server, as it is now.
func offerOf(u *live.Upstream) *lockfile.Server {
	s := &lockfile.Server{Origin: Origin(u.Config), Instructions: u.SentInstructions()}
	for _, k := range lists.Kinds {
		kind := kinds[k.Method]
		if kind == "" {
			continue
		}
		for _, item := range u.Sent(k) {
			if kind != lockfile.Tools || u.Config.Tools.Allows(item.Key) {
				s.Add(kind, item.Key, item.Raw)
			}
		}
	}
	return s
}

// Offers are what servers send now.
type Offers []offer

// offer is what a server sends now.
type offer struct {
	key    string           // in the lock file
	now    *lockfile.Server // nil: it did not start
	reason string           // why it did not start
}

// Add adds the servers of a profile, without those that are never compared.
func (o *Offers) Add(profile string, servers []*live.Upstream) {
	for _, u := range servers {
		if IsOff(u.Config) {
			continue
		}
		next := offer{key: lockfile.Key(profile, u.Name), reason: u.Reason}
		if u.State == live.Ready {
			next.now = offerOf(u)
		}
		*o = append(*o, next)
	}
}

// Compare compares the servers that started with a lock, which may be nil.
func (o Offers) Compare(old lockfile.Lock) (changes []lockfile.Change) {
	for _, next := range o {
		if next.now != nil {
			changes = append(changes, lockfile.Compare(next.key, old[next.key], next.now)...)
		}
	}
	return changes
}

// Merge returns the new lock of a config: with the servers that started, and the others of the
// old lock, unless they are not in the config any more.
func (o Offers) Merge(c *config.Config, old lockfile.Lock) lockfile.Lock {
	next := lockfile.Lock{}
	for i := range c.Profiles {
		for _, u := range c.Profiles[i].All() { // also the disabled ones
			key := lockfile.Key(c.Profiles[i].Name, u.Name)
			if s := old[key]; s != nil {
				next[key] = s
			}
		}
	}
	for _, offered := range o {
		if offered.now != nil {
			next[offered.key] = offered.now
		}
	}
	return next
}

// Failed returns a line for each server that did not start.
func (o Offers) Failed() (lines []string) {
	for _, offered := range o {
		if offered.now == nil {
			lines = append(lines, fmt.Sprintf("%s did not start, and its lines stay as they are: %s", offered.key, offered.reason))
		}
	}
	return lines
}
