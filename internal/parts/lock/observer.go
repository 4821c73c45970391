package lock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// observer compares the lists of one server with its last ones, and logs what waits for a
// review. It is a live.ListObserver.
type observer struct {
	logged         string // what waits for a review, as logged last
	changed, added []string
}

// NewObserver returns what logs the changes of one server.
func NewObserver() live.ListObserver { return &observer{} }

// Read implements live.ListObserver. It compares the tools with those that the server had
// before, unless there is a lock to compare with.
func (o *observer) Read(u *live.Upstream, tools []lists.Item, before func() []lists.Item) (news string) {
	o.changed, o.added = nil, nil
	v := viewOf(u)
	if v == nil || v.pin != PinWarn || v.approved != nil {
		return ""
	}
	known := before()
	if known == nil {
		return ""
	}
	o.changed, o.added = difference(u.Config, known, tools)
	var parts []string
	if o.changed != nil {
		parts = append(parts, "changed "+strings.Join(o.changed, ", "))
	}
	if o.added != nil {
		parts = append(parts, "new "+strings.Join(o.added, ", "))
	}
	if parts == nil {
		return ""
	}
	return "since the last start: " + strings.Join(parts, "; ")
}

// difference returns the names of shown tools that have changed and of new ones: at most
// maxNames each, and then how many more there are.
func difference(c *config.Upstream, before, now []lists.Item) (changed, added []string) {
	old := make(map[string]lists.Item, len(before))
	for _, item := range before {
		old[item.Key] = item
	}
	for _, item := range now {
		was, ok := old[item.Key]
		switch {
		case !c.Tools.Allows(item.Key):
		case !ok:
			added = append(added, item.Key)
		case string(was.Raw) != string(item.Raw) && pinned(lockfile.Tools, was) != pinned(lockfile.Tools, item):
			changed = append(changed, item.Key)
		}
	}
	return shortened(changed), shortened(added)
}

// Published implements live.ListObserver. It logs what waits for a review, unless that was
// logged before, and what Read has found.
func (o *observer) Published(u *live.Upstream, log zerolog.Logger) {
	if v := viewOf(u); v != nil {
		o.logReview(u, v, log)
	}
	if o.changed != nil || o.added != nil {
		log.Warn().Strs("changed", o.changed).Strs("new", o.added).Msg("tools have changed since the server was listed before")
	}
	o.changed, o.added = nil, nil
}

func (o *observer) logReview(u *live.Upstream, v *view, log zerolog.Logger) {
	marked := u.MarkedBy(v)
	tools, gone, review := marked.Keys(lists.OfTools), v.gone(u), v.Note(marked)
	waiting := fmt.Sprint(tools, review, gone)
	if waiting == o.logged {
		return
	}
	o.logged = waiting
	if gone != nil {
		log.Info().Strs("tools", shortened(gone)).Msg("approved tools are gone")
	}
	if review != "" {
		log.Warn().Str("pin", string(v.pin)).Strs("tools", shortened(tools)).Str("review", review).
			Msg("the server is not as it was approved")
	}
}

// maxNames is how many names a text has.
const maxNames = 10

// shortened returns the first names, and how many more there are.
func shortened(names []string) []string {
	if len(names) <= maxNames {
		return names
	}
	return append(slices.Clone(names[:maxNames]), fmt.Sprintf("… and %d more", len(names)-maxNames))
}
