package lists

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// View decides what clients see of the lists of one upstream, with one config. Every list goes
// through the views before it is published, so there is no moment in which a hidden item can be
// seen or called. The methods are called while others wait for the catalog, so they must not
// wait. They may be called concurrently.
type View interface {
	// Item returns an item of a list as clients see it, and what is to be said about it.
	Item(k Kind, item Item) (shown Item, mark Mark)
	// Instructions is Item for the instructions of the upstream, which are not empty.
	Instructions(text string) (shown string, mark Mark)
	// Note returns what listings say about everything that the view has marked; "" for nothing.
	Note(m Marked) string
}

// Views are the views of one upstream.
type Views struct {
	All []View // in the order in which they are asked: each sees what those before it show
	// IsStrict means that agents read nothing, and use nothing, that the views have not seen. Each
	// upstream session has lists of its own, calls wait for the lists that an upstream has
	// announced, and agents do not see the members of a tool that are for programs.
	IsStrict bool
}

// Mark is what a view says about an item, or about the instructions. The zero Mark says nothing.
type Mark struct {
	IsNoted  bool   // Note mentions it
	IsHidden bool   // clients do not see it and cannot use it
	Why      string // it is hidden; empty: what Note says
}

// Marked is what a view has marked.
type Marked struct {
	Items        map[string][]MarkedItem // by Kind.Method, in the order of the list
	Instructions Mark
}

// MarkedItem is an item that a view has marked.
type MarkedItem struct {
	Key string
	Mark
}

// Keys returns the keys of the marked items of a list.
func (m Marked) Keys(k Kind) (keys []string) {
	for _, item := range m.Items[k.Method] {
		keys = append(keys, item.Key)
	}
	return keys
}

// with returns the marks with those of another list.
func (m Marked) with(k Kind, items []MarkedItem) Marked {
	m.Items = maps.Clone(m.Items)
	if m.Items == nil {
		m.Items = map[string][]MarkedItem{}
	}
	m.Items[k.Method] = items
	return m
}

// without returns the marks without those of the lists for which match returns true.
func (m Marked) without(match func(method string) bool) Marked {
	m.Items = maps.Clone(m.Items)
	maps.DeleteFunc(m.Items, func(method string, _ []MarkedItem) bool { return match(method) })
	return m
}

// see returns the items of a list that clients see, and keeps what the views say about the
// others. The views are not asked about tools that the config hides.
func (l *Lists) see(k Kind, items []Item) []Item {
	if k.Method == OfTools.Method && l.config != nil {
		items = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return !l.config.Tools.Allows(i.Key) })
	}
	l.marked = slices.Clone(l.marked)
	for n, view := range l.views.All {
		var shown []Item
		var marked []MarkedItem
		for _, item := range items {
			seen, mark := view.Item(k, item)
			if mark != (Mark{}) {
				marked = append(marked, MarkedItem{item.Key, mark})
			}
			if !mark.IsHidden {
				shown = append(shown, seen)
			}
		}
		items, l.marked[n] = shown, l.marked[n].with(k, marked)
	}
	return items
}

// SetInstructions sets the instructions. Clients see what the views show.
func (l *Lists) SetInstructions(text string) {
	l.instructions, l.Instructions = text, text
	l.marked = slices.Clone(l.marked)
	for n, view := range l.views.All {
		l.marked[n].Instructions = Mark{}
		if l.Instructions == "" {
			continue
		}
		seen, mark := view.Instructions(l.Instructions)
		if mark.IsHidden {
			seen = ""
		}
		l.Instructions, l.marked[n].Instructions = seen, mark
	}
}

// Views returns the views of the upstream.
func (l *Lists) Views() Views { return l.views }

// setViews sets the views. The lists must be set again.
func (l *Lists) setViews(v Views) { l.views, l.marked = v, make([]Marked, len(v.All)) }

// IsStrict reports whether agents read and use only what the views have seen.
func (l *Lists) IsStrict() bool { return l.views.IsStrict }

// MarkedBy returns what one of the views has marked.
func (l *Lists) MarkedBy(v View) Marked {
	if n := slices.Index(l.views.All, v); n >= 0 {
		return l.marked[n]
	}
	return Marked{}
}

// Note returns what listings say about items that views have marked; "" for nothing.
func (l *Lists) Note() string {
	var notes []string
	for n, view := range l.views.All {
		if note := view.Note(l.marked[n]); note != "" {
			notes = append(notes, note)
		}
	}
	return strings.Join(notes, "; ")
}

// Hidden returns the keys of the items of a list that a view hides.
func (l *Lists) Hidden(k Kind) (keys []string) {
	for _, marked := range l.marked {
		for _, item := range marked.Items[k.Method] {
			if item.IsHidden {
				keys = append(keys, item.Key)
			}
		}
	}
	return keys
}

// WhyHidden returns why a view hides an item of a list; "" if none does.
func (l *Lists) WhyHidden(k Kind, key string) string {
	for n, marked := range l.marked {
		for _, item := range marked.Items[k.Method] {
			if item.IsHidden && item.Key == key {
				return cmp.Or(item.Why, l.views.All[n].Note(marked), "it is hidden")
			}
		}
	}
	return ""
}
