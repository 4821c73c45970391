package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"mcpx/config"
	"mcpx/internal/lockfile"
)

// pinned returns the canonical form of what a person approves about an item.
func (i Item) pinned(kind lockfile.Kind) string {
	if i.pin != "" {
		return i.pin
	}
	return lockfile.Pin(kind, i.Raw)
}

// newItem returns an item as an upstream sent it.
func newItem(c *config.Upstream, k kind, key string, raw []byte) Item {
	item := Item{Key: key, Raw: redactDefinition(c.Redact, raw), sent: raw}
	if k.pinned != "" && c.Trust.Approved != nil {
		item.pin = lockfile.Pin(k.pinned, item.Raw) // here, because setList runs under a mutex
	}
	return item
}

// approved returns the items of a list that are shown, and records those that wait for a
// review. Every list goes through it before it is published, so there is no moment in
// which an item that is not approved can be seen or called.
func (u *Upstream) approved(k kind, items []Item) []Item {
	if u.config == nil || k.pinned == "" {
		return items
	}
	trust, waiting, shown := u.config.Trust, []string(nil), items
	if trust.Approved != nil {
		shown = slices.DeleteFunc(slices.Clone(items), func(item Item) bool {
			isHidden := k.pinned == lockfile.Tools && !u.config.Tools.Allows(item.Key)
			if isHidden || trust.Approved.Items[k.pinned][item.Key] == item.pinned(k.pinned) {
				return false
			}
			waiting = append(waiting, item.Key)
			return true
		})
	}
	u.waiting = maps.Clone(u.waiting)
	if u.waiting == nil {
		u.waiting = map[lockfile.Kind][]string{}
	}
	u.waiting[k.pinned] = waiting
	if trust.Pin != config.PinBlock {
		return items
	}
	return shown
}

// setInstructions sets the instructions. They are shown only if they are approved.
func (u *Upstream) setInstructions(text string) {
	u.instructions, u.Instructions = text, text
	trust := u.config.Trust
	u.instructionsWait = trust.Approved != nil && text != "" && trust.Approved.Instructions != text
	if u.instructionsWait && trust.Pin == config.PinBlock {
		u.Instructions = ""
	}
}

// Waits reports whether a tool is hidden until a person has approved it.
func (u *Upstream) Waits(tool string) bool {
	return u.isBlocking() && slices.Contains(u.waiting[lockfile.Tools], tool)
}

// WithheldTemplates returns the resource templates that are hidden until a person has
// approved them.
func (u *Upstream) WithheldTemplates() []string {
	if !u.isBlocking() {
		return nil
	}
	return u.waiting[lockfile.Templates]
}

func (u *Upstream) isBlocking() bool { return u.config != nil && u.config.Trust.Pin == config.PinBlock }

// Review says what waits for a review and how to see it: "2 tools wait for review: mcpx pin
// github --diff". It is empty if nothing waits.
func (u *Upstream) Review() string {
	var parts []string
	total := 0
	for _, k := range kinds {
		if n := len(u.waiting[k.pinned]); n > 0 {
			parts = append(parts, plural(n, strings.TrimSuffix(string(k.pinned), "s")))
			total += n
		}
	}
	if u.instructionsWait {
		parts, total = append(parts, "the instructions"), total+2
	}
	if parts == nil {
		return ""
	}
	verb := "wait"
	if total == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s for review: %s", joinWords(parts), verb, u.config.Trust.Review)
}

// logReview logs what waits for a review, unless that was logged before.
func (s *supervisor) logReview() {
	u := s.upstream.Load()
	gone := u.gone()
	waiting := fmt.Sprint(u.waiting, u.instructionsWait, gone)
	if waiting == s.reviewed {
		return
	}
	s.reviewed = waiting
	if gone != nil {
		s.log.Info().Strs("tools", shortened(gone)).Msg("approved tools are gone")
	}
	if text := u.Review(); text != "" {
		s.log.Warn().Str("pin", string(u.config.Trust.Pin)).Strs("tools", shortened(u.waiting[lockfile.Tools])).Str("review", text).
			Msg("the server is not as it was approved")
	}
}

// gone returns the approved tools that the upstream does not have any more.
func (u *Upstream) gone() []string {
	if u.config.Trust.Approved == nil {
		return nil
	}
	left := maps.Clone(u.config.Trust.Approved.Items[lockfile.Tools])
	for _, item := range u.listed[kinds[0].method] {
		delete(left, item.Key)
	}
	return slices.Sorted(maps.Keys(left))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// joinWords returns "a, b and c".
func joinWords(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Origin returns the upstream's command or URL, for the lock file.
func (u *Upstream) Origin() lockfile.Origin { return u.config.Origin() }

// Offer returns everything that a person approves about the upstream, as it is now.
func (u *Upstream) Offer() *lockfile.Server {
	s := &lockfile.Server{Origin: u.Origin(), Instructions: u.instructions}
	for _, k := range kinds {
		if k.pinned == "" {
			continue
		}
		for _, item := range u.listed[k.method] {
			if k.pinned != lockfile.Tools || u.config.Tools.Allows(item.Key) {
				s.Add(k.pinned, item.Key, item.Raw)
			}
		}
	}
	return s
}

// news is a text that is shown once.
type news struct {
	text   string
	isTold atomic.Bool
}

// News returns which tools have changed since the upstream was listed before, the first
// time that it is called; then "".
func (u *Upstream) News() string {
	if u.news == nil || u.news.isTold.Swap(true) {
		return ""
	}
	return u.news.text
}

// noteChanges logs which tools differ from those that were listed before, and makes News
// tell it. It does so only for upstreams that are compared with their past, not with a
// lock.
func (s *supervisor) noteChanges(before, now []Item) {
	trust := s.config().Trust
	if trust.Pin != config.PinWarn || trust.Approved != nil || before == nil {
		return
	}
	old := make(map[string]Item, len(before))
	for _, item := range before {
		old[item.Key] = item
	}
	var changed, added []string
	for _, item := range now {
		was, ok := old[item.Key]
		switch {
		case !s.config().Tools.Allows(item.Key):
		case !ok:
			added = append(added, item.Key)
		case string(was.Raw) != string(item.Raw) && was.pinned(lockfile.Tools) != item.pinned(lockfile.Tools):
			changed = append(changed, item.Key)
		}
	}
	if changed == nil && added == nil {
		return
	}
	s.log.Warn().Strs("changed", shortened(changed)).Strs("new", shortened(added)).Msg("tools have changed since the server was listed before")
	text := newsText(changed, added)
	s.publish(func(u *Upstream) { u.news = &news{text: text} })
}

// maxNews is how many names a text has.
const maxNews = 10

func shortened(names []string) []string {
	if len(names) <= maxNews {
		return names
	}
	return append(slices.Clone(names[:maxNews]), fmt.Sprintf("… and %d more", len(names)-maxNews))
}

func newsText(changed, added []string) string {
	var parts []string
	if changed != nil {
		parts = append(parts, "changed "+strings.Join(shortened(changed), ", "))
	}
	if added != nil {
		parts = append(parts, "new "+strings.Join(shortened(added), ", "))
	}
	return "since the last start: " + strings.Join(parts, "; ")
}

// AwaitsList reports whether the upstream has announced that a list has changed, and only
// approved items of the new list may be used.
func (u *Upstream) AwaitsList() bool {
	return u.isBlocking() && u.State == Ready && u.supervisor.listed.Load() < u.supervisor.refresh.noted()
}

// Relisted waits until the lists that the upstream has announced so far are read, and
// returns the upstream with them.
func (v View) Relisted(ctx context.Context, name string) (*Upstream, error) {
	u := v.current(v.known(name))
	if u == nil || !u.AwaitsList() {
		return v.Ready(ctx, name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.config.StartupTimeout, &Unavailable{Server: name, Reason: "it has changed its lists, and they could not be read; try again later"})
	defer cancel()
	announced := u.supervisor.refresh.noted()
	for u.AwaitsList() && u.supervisor.listed.Load() < announced {
		if err := u.superseded(ctx); err != nil {
			return nil, err
		}
		next := v.current(name)
		if next == nil || next.supervisor != u.supervisor {
			break
		}
		u = next
	}
	return v.Ready(ctx, name)
}

// Pin returns how the config compares the upstream; empty for the default.
func (u *Upstream) Pin() config.Pin { return u.config.Pin }
