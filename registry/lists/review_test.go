package lists

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/lockfile"
)

// named returns items with these names and nothing else.
func named(names ...string) (items []Item) {
	for _, name := range names {
		items = append(items, Item{Key: name, Raw: []byte(`{"name":"` + name + `"}`)})
	}
	return items
}

// list returns one list, for SetLists.
func list(k Kind, items []Item) map[string][]Item { return map[string][]Item{k.Method: items} }

// TestReview: the words for what waits.
func TestReview(t *testing.T) {
	c := &config.Upstream{Trust: config.Trust{Pin: config.PinBlock, Approved: &lockfile.Server{}, Review: "CMD"}}
	for want, set := range map[string]func(l *Lists){
		"":                                      func(*Lists) {},
		"1 tool waits for review: CMD":          func(l *Lists) { l.SetLists(list(OfTools, named("a"))) },
		"2 tools wait for review: CMD":          func(l *Lists) { l.SetLists(list(OfTools, named("a", "b"))) },
		"the instructions wait for review: CMD": func(l *Lists) { l.SetInstructions("x") },
		"1 tool and 1 prompt wait for review: CMD": func(l *Lists) {
			l.SetLists(list(OfTools, named("a")))
			l.SetLists(list(Kinds[1], named("p")))
		},
		"2 prompts, 1 template and the instructions wait for review: CMD": func(l *Lists) {
			l.SetLists(list(Kinds[1], named("p", "q")))
			l.SetLists(list(Kinds[3], named("t")))
			l.SetInstructions("x")
		},
	} {
		l := New(c)
		set(&l)
		if got := l.Review(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(l.Tools)+len(l.Prompts)+len(l.Templates) > 0 || l.Instructions != "" {
			t.Errorf("%q: something is shown", want)
		}
	}
	// Resources are not compared, and tools that the config hides do not wait.
	l := New(&config.Upstream{Trust: c.Trust, Tools: config.Filter{Deny: []string{"a"}}})
	l.SetLists(list(Kinds[2], named("r")))
	l.SetLists(list(OfTools, named("a")))
	if len(l.Resources) != 1 || len(l.Tools) != 0 || l.Review() != "" {
		t.Errorf("%+v, %q", l, l.Review())
	}
	// With "warn" everything is shown.
	l = New(&config.Upstream{Trust: config.Trust{Pin: config.PinWarn, Approved: &lockfile.Server{}}})
	l.SetLists(list(OfTools, named("a")))
	if len(l.Tools) != 1 || !strings.HasPrefix(l.Review(), "1 tool waits") || l.IsWithheld("a") {
		t.Errorf("%+v, %q", l, l.Review())
	}
}

// What a person approved is shown as it was approved. What has changed since then waits.
func TestApproved(t *testing.T) {
	approved := &lockfile.Server{Instructions: "be kind"}
	approved.Add(lockfile.Tools, "a", []byte(`{"name":"a"}`))
	approved.Add(lockfile.Tools, "gone", []byte(`{"name":"gone"}`))
	approved.Add(lockfile.Templates, "t", []byte(`{"name":"t"}`))
	c := &config.Upstream{Trust: config.Trust{Pin: config.PinBlock, Approved: approved}}
	l := New(c)
	l.SetLists(list(OfTools, []Item{NewItem(c, OfTools, "a", []byte(`{"name":"a"}`)), NewItem(c, OfTools, "b", []byte(`{"name":"b"}`))}))
	l.SetLists(list(Kinds[3], []Item{NewItem(c, Kinds[3], "t", []byte(`{"name":"t","description":"new"}`))}))
	l.SetInstructions("be kind")
	if l.Tool("a") == nil || l.Tool("b") != nil || l.IsWithheld("a") || !l.IsWithheld("b") {
		t.Errorf("tools: %v are shown, %v wait", l.Tools, l.WaitingTools())
	}
	if len(l.Templates) != 0 || !slices.Equal(l.WithheldTemplates(), []string{"t"}) || l.Instructions != "be kind" {
		t.Errorf("templates %v, instructions %q", l.WithheldTemplates(), l.Instructions)
	}
	if got := l.Gone(); !slices.Equal(got, []string{"gone"}) {
		t.Errorf("%v are gone", got)
	}
	l.SetInstructions("be rude")
	if l.Instructions != "" || l.SentInstructions() != "be rude" {
		t.Error("instructions that are not approved are shown")
	}
	// A person approves what there is now, and a reload has the new approval.
	next := &config.Upstream{Trust: config.Trust{Pin: config.PinBlock, Approved: l.Offer()}}
	l.Reconfigure(next)
	if l.Tool("b") == nil || l.Review() != "" || l.Gone() != nil || l.Instructions != "be rude" {
		t.Errorf("after the approval: %q, %v", l.Review(), l.Tools)
	}
}

// TestUnknownMembers: with a lock, members that are not in it are not shown, also if the
// upstream was listed before there was a lock. Without a lock, every member is shown.
func TestUnknownMembers(t *testing.T) {
	const definition = `{"name":"a","usage":"first send me …","inputSchema":{"type":"object"}}`
	approved := &lockfile.Server{}
	for _, k := range Kinds {
		if k.Pinned != "" {
			approved.Add(k.Pinned, "a", []byte(definition))
		}
	}
	l := New(&config.Upstream{})
	for _, k := range Kinds {
		l.SetLists(list(k, []Item{{Key: "a", Raw: []byte(definition)}}))
	}
	shown := func() string { return fmt.Sprintf("%s %s %s", l.Tools[0].Raw, l.Prompts[0].Raw, l.Templates[0].Raw) }
	if got := strings.Count(shown(), "usage"); got != 3 {
		t.Errorf("without a lock, %s", shown())
	}
	l.Reconfigure(&config.Upstream{Trust: config.Trust{Pin: config.PinBlock, Approved: approved}})
	if l.Review() != "" || strings.Contains(shown(), "usage") {
		t.Errorf("with a lock, %s; %q", shown(), l.Review())
	}
	if string(l.Tools[0].SentSchema()) != `{"type":"object"}` {
		t.Errorf("arguments are checked against %s", l.Tools[0].SentSchema())
	}
	l.Reconfigure(&config.Upstream{Trust: config.Trust{Pin: config.PinWarn, Approved: approved}})
	if got := strings.Count(shown(), "usage"); got != 3 {
		t.Errorf("with a warning, %s", shown())
	}
}

// News names the tools that differ from the last start, the first time it is read.
func TestNews(t *testing.T) {
	l := New(&config.Upstream{Trust: config.Trust{Pin: config.PinWarn}, Tools: config.Filter{Deny: []string{"hidden"}}})
	before := named("same", "changed")
	now := append(named("same", "new", "hidden"), Item{Key: "changed", Raw: []byte(`{"name":"changed","description":"x"}`)})
	l.SetLists(list(OfTools, now))
	changed, added := l.SetNews(before)
	if !slices.Equal(changed, []string{"changed"}) || !slices.Equal(added, []string{"new"}) {
		t.Errorf("changed %v, new %v", changed, added)
	}
	if got := l.News(); got != "since the last start: changed changed; new new" {
		t.Error(got)
	}
	if again := l.News(); again != "" {
		t.Errorf("returned twice: %q", again)
	}
	if changed, added := l.SetNews(nil); changed != nil || added != nil {
		t.Error("a first list has news")
	}
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprint("t", i))
	}
	l.SetLists(list(OfTools, named(many...)))
	if _, added := l.SetNews(before); len(added) != 11 || added[10] != "… and 5 more" {
		t.Errorf("new %v", added)
	}
}
