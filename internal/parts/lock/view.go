package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/plain"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// view is what the lock says about one server. It is the server's lists.View.
type view struct {
	pin      Pin
	approved *lockfile.Server // from the lock file; nil: compare with the last start
	command  string           // shows what waits for a review
}

// kinds are the kinds of definitions in the lock file, by the methods of their lists.
var kinds = map[string]lockfile.Kind{
	lists.OfTools.Method: lockfile.Tools, lists.OfPrompts.Method: lockfile.Prompts, lists.OfTemplates.Method: lockfile.Templates,
}

// Item implements lists.View. An approved item is shown without the members that are not in the
// lock. Any other item waits for a review.
func (v *view) Item(k lists.Kind, item lists.Item) (lists.Item, lists.Mark) {
	kind := kinds[k.Method]
	switch {
	case kind == "" || v.approved == nil:
		return item, lists.Mark{}
	case v.approved.Items[kind][item.Key] != pinned(kind, item):
		return item, v.waits()
	case v.pin == PinBlock:
		item.Raw = lockfile.Shown(kind, item.Raw)
	}
	return item, lists.Mark{}
}

// Instructions implements lists.View.
func (v *view) Instructions(text string) (string, lists.Mark) {
	if v.approved == nil || v.approved.Instructions == text {
		return text, lists.Mark{}
	}
	return text, v.waits()
}

// waits is the mark of what waits for a review.
func (v *view) waits() lists.Mark {
	return lists.Mark{IsNoted: true, IsHidden: v.pin == PinBlock}
}

// Note implements lists.View. It says what waits for a review and how to see it: "2 tools wait
// for review: mcpx pin github --diff".
func (v *view) Note(m lists.Marked) string {
	var parts []string
	total := 0
	for _, k := range lists.Kinds {
		if n := len(m.Items[k.Method]); n > 0 {
			parts = append(parts, plain.Count(n, strings.TrimSuffix(string(kinds[k.Method]), "s")))
			total += n
		}
	}
	if m.Instructions.IsNoted {
		parts, total = append(parts, "the instructions"), total+2
	}
	if parts == nil {
		return ""
	}
	verb := "wait"
	if total == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s for review: %s", joinWords(parts), verb, v.command)
}

// joinWords returns "a, b and c".
func joinWords(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// pinned returns the canonical form of what a person approves about an item.
func pinned(kind lockfile.Kind, item lists.Item) string {
	return item.Derived(kind, func(listed []byte) any { return lockfile.Pin(kind, listed) }).(string)
}

// viewOf returns what the lock says about a server; nil if it is never compared.
func viewOf(u *live.Upstream) *view {
	for _, v := range u.Views().All {
		if v, ok := v.(*view); ok {
			return v
		}
	}
	return nil
}

// gone returns the approved tools that the server does not have any more.
func (v *view) gone(u *live.Upstream) []string {
	if v.approved == nil {
		return nil
	}
	left := maps.Clone(v.approved.Items[lockfile.Tools])
	for _, item := range u.Sent(lists.OfTools) {
		delete(left, item.Key)
	}
	return slices.Sorted(maps.Keys(left))
}
