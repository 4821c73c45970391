package lists

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"mcpx/config"
	"mcpx/internal/lockfile"
	"mcpx/internal/plain"
)

// approved returns the items of a list that are shown, and records those that wait for a
// review. Every list goes through it before it is published, so there is no moment in
// which an item that is not approved can be seen or called.
func (l *Lists) approved(k Kind, items []Item) []Item {
	if l.config == nil || k.Pinned == "" {
		return items
	}
	shown, waiting := l.review(k, items)
	l.waiting = maps.Clone(l.waiting)
	if l.waiting == nil {
		l.waiting = map[lockfile.Kind][]string{}
	}
	l.waiting[k.Pinned] = waiting
	if !l.IsBlocking() {
		return items
	}
	return shown
}

// review returns the approved items, without the members that are not in the lock, and the
// names of the other items. Tools that the config hides need no approval.
func (l *Lists) review(k Kind, items []Item) (shown []Item, waiting []string) {
	if l.config.Trust.Approved == nil {
		return items, nil
	}
	lines := l.config.Trust.Approved.Items[k.Pinned]
	for _, item := range items {
		isHidden := k.Pinned == lockfile.Tools && !l.config.Tools.Allows(item.Key)
		if !isHidden && lines[item.Key] != item.pinned(k.Pinned) {
			waiting = append(waiting, item.Key)
			continue
		}
		item.Raw = lockfile.Shown(k.Pinned, item.Raw)
		shown = append(shown, item)
	}
	return shown, waiting
}

// SetInstructions sets the instructions. They are shown only if they are approved.
func (l *Lists) SetInstructions(text string) {
	l.instructions, l.Instructions = text, text
	trust := l.config.Trust
	l.instructionsWait = trust.Approved != nil && text != "" && trust.Approved.Instructions != text
	if l.instructionsWait && trust.Pin == config.PinBlock {
		l.Instructions = ""
	}
}

// IsWithheld reports whether a tool is hidden until a person has approved it.
func (l *Lists) IsWithheld(tool string) bool { return l.Withholds(lockfile.Tools, tool) }

// Withholds reports whether an item is hidden until a person has approved it.
func (l *Lists) Withholds(k lockfile.Kind, name string) bool {
	return l.IsBlocking() && slices.Contains(l.waiting[k], name)
}

// WaitingTools returns the tools that are not as approved, shown or not.
func (l *Lists) WaitingTools() []string { return l.waiting[lockfile.Tools] }

// WithheldTemplates returns the resource templates that are hidden until a person has
// approved them.
func (l *Lists) WithheldTemplates() []string {
	if !l.IsBlocking() {
		return nil
	}
	return l.waiting[lockfile.Templates]
}

// IsBlocking reports whether items that wait for a review are hidden.
func (l *Lists) IsBlocking() bool { return l.config != nil && l.config.Trust.Pin == config.PinBlock }

// Review says what waits for a review and how to see it: "2 tools wait for review: mcpx pin
// github --diff". It is empty if nothing waits.
func (l *Lists) Review() string {
	var parts []string
	total := 0
	for _, k := range Kinds {
		if n := len(l.waiting[k.Pinned]); n > 0 {
			parts = append(parts, plain.Count(n, strings.TrimSuffix(string(k.Pinned), "s")))
			total += n
		}
	}
	if l.instructionsWait {
		parts, total = append(parts, "the instructions"), total+2
	}
	if parts == nil {
		return ""
	}
	verb := "wait"
	if total == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s for review: %s", joinWords(parts), verb, l.config.Trust.Review)
}

// Gone returns the approved tools that the upstream does not have any more.
func (l *Lists) Gone() []string {
	if l.config.Trust.Approved == nil {
		return nil
	}
	left := maps.Clone(l.config.Trust.Approved.Items[lockfile.Tools])
	for _, item := range l.Sent(OfTools) {
		delete(left, item.Key)
	}
	return slices.Sorted(maps.Keys(left))
}

// joinWords returns "a, b and c".
func joinWords(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Offer returns everything that a person approves about the upstream, as it is now.
func (l *Lists) Offer() *lockfile.Server {
	s := &lockfile.Server{Origin: l.config.Origin(), Instructions: l.instructions}
	for _, k := range Kinds {
		if k.Pinned == "" {
			continue
		}
		for _, item := range l.Sent(k) {
			if k.Pinned != lockfile.Tools || l.config.Tools.Allows(item.Key) {
				s.Add(k.Pinned, item.Key, item.Raw)
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
func (l *Lists) News() string {
	if l.news == nil || l.news.isTold.Swap(true) {
		return ""
	}
	return l.news.text
}

// SetNews compares the shown tools with those that the upstream had before. It sets what News
// returns, if there is anything, and returns the names of tools that have changed and of new
// ones: at most maxNews each, and then how many more there are. It does so only for
// upstreams that are compared with their past, not with a lock.
func (l *Lists) SetNews(before []Item) (changed, added []string) {
	if l.config.Trust.Pin != config.PinWarn || l.config.Trust.Approved != nil || before == nil {
		return nil, nil
	}
	old := make(map[string]Item, len(before))
	for _, item := range before {
		old[item.Key] = item
	}
	for _, item := range l.Sent(OfTools) {
		was, ok := old[item.Key]
		switch {
		case !l.config.Tools.Allows(item.Key):
		case !ok:
			added = append(added, item.Key)
		case string(was.Raw) != string(item.Raw) && was.pinned(lockfile.Tools) != item.pinned(lockfile.Tools):
			changed = append(changed, item.Key)
		}
	}
	changed, added = Shortened(changed), Shortened(added)
	var parts []string
	if changed != nil {
		parts = append(parts, "changed "+strings.Join(changed, ", "))
	}
	if added != nil {
		parts = append(parts, "new "+strings.Join(added, ", "))
	}
	if parts != nil {
		l.news = &news{text: "since the last start: " + strings.Join(parts, "; ")}
	}
	return changed, added
}

// maxNews is how many names a text has.
const maxNews = 10

// Shortened returns the first names, and how many more there are.
func Shortened(names []string) []string {
	if len(names) <= maxNews {
		return names
	}
	return append(slices.Clone(names[:maxNews]), fmt.Sprintf("… and %d more", len(names)-maxNews))
}
