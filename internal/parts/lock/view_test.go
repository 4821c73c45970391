package lock

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// named returns items with these names and nothing else.
func named(names ...string) (items []lists.Item) {
	for _, name := range names {
		items = append(items, lists.Item{Key: name, Raw: []byte(`{"name":"` + name + `"}`)})
	}
	return items
}

// list returns one list, for SetLists.
func list(k lists.Kind, items []lists.Item) map[string][]lists.Item {
	return map[string][]lists.Item{k.Method: items}
}

// serverWith returns a server without lists that is compared with a lock.
func serverWith(c *config.Upstream, v *view) *live.Upstream {
	return &live.Upstream{Config: c, Lists: lists.New(c, viewsOf(v))}
}

// viewsOf returns the views of a server with one in the lock.
func viewsOf(v *view) lists.Views {
	return (&Approvals{views: map[string]*view{"": v}}).Views("default", &config.Upstream{})
}

// TestNote: the words for what waits.
func TestNote(t *testing.T) {
	v := &view{pin: PinBlock, approved: &lockfile.Server{}, command: "CMD"}
	for want, set := range map[string]func(u *live.Upstream){
		"":                                      func(*live.Upstream) {},
		"1 tool waits for review: CMD":          func(u *live.Upstream) { u.SetLists(list(lists.OfTools, named("a"))) },
		"2 tools wait for review: CMD":          func(u *live.Upstream) { u.SetLists(list(lists.OfTools, named("a", "b"))) },
		"the instructions wait for review: CMD": func(u *live.Upstream) { u.SetInstructions("x") },
		"1 tool and 1 prompt wait for review: CMD": func(u *live.Upstream) {
			u.SetLists(list(lists.OfTools, named("a")))
			u.SetLists(list(lists.OfPrompts, named("p")))
		},
		"2 prompts, 1 template and the instructions wait for review: CMD": func(u *live.Upstream) {
			u.SetLists(list(lists.OfPrompts, named("p", "q")))
			u.SetLists(list(lists.OfTemplates, named("t")))
			u.SetInstructions("x")
		},
	} {
		u := serverWith(&config.Upstream{}, v)
		set(u)
		if got := u.Note(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(u.Tools)+len(u.Prompts)+len(u.Templates) > 0 || u.Instructions != "" {
			t.Errorf("%q: something is shown", want)
		}
	}
}

// Resources are not compared, tools that the config hides do not wait, and with "warn"
// everything is shown.
func TestShown(t *testing.T) {
	u := serverWith(&config.Upstream{Tools: config.Filter{Deny: []string{"a"}}}, &view{pin: PinBlock, approved: &lockfile.Server{}})
	u.SetLists(list(lists.OfResources, named("r")))
	u.SetLists(list(lists.OfTools, named("a")))
	if len(u.Resources) != 1 || len(u.Tools) != 0 || u.Note() != "" {
		t.Errorf("%v, %v, %q", u.Resources, u.Tools, u.Note())
	}
	u = serverWith(&config.Upstream{}, &view{pin: PinWarn, approved: &lockfile.Server{}})
	u.SetLists(list(lists.OfTools, named("a")))
	u.SetInstructions("x")
	if len(u.Tools) != 1 || u.Instructions != "x" || !strings.HasPrefix(u.Note(), "1 tool and the instructions wait") || u.WhyHidden(lists.OfTools, "a") != "" {
		t.Errorf("with a warning, %v, %q, %q", u.Tools, u.Instructions, u.Note())
	}
}

// What a person approved is shown as it was approved. What has changed since then waits.
func TestApproved(t *testing.T) {
	approved := &lockfile.Server{Instructions: "be kind"}
	approved.Add(lockfile.Tools, "a", []byte(`{"name":"a"}`))
	approved.Add(lockfile.Tools, "gone", []byte(`{"name":"gone"}`))
	approved.Add(lockfile.Templates, "t", []byte(`{"name":"t"}`))
	v := &view{pin: PinBlock, approved: approved, command: "CMD"}
	c := &config.Upstream{}
	u := serverWith(c, v)
	item := func(k lists.Kind, key, raw string) lists.Item { return u.NewItem(k, key, []byte(raw), []byte(raw)) }
	u.SetLists(list(lists.OfTools, []lists.Item{item(lists.OfTools, "a", `{"name":"a"}`), item(lists.OfTools, "b", `{"name":"b"}`)}))
	u.SetLists(list(lists.OfTemplates, []lists.Item{item(lists.OfTemplates, "t", `{"name":"t","description":"new"}`)}))
	u.SetInstructions("be kind")
	if u.Tool("a") == nil || u.Tool("b") != nil || u.WhyHidden(lists.OfTools, "a") != "" || u.WhyHidden(lists.OfTools, "b") != "1 tool and 1 template wait for review: CMD" {
		t.Errorf("tools: %v are shown, %v are hidden, %q", u.Tools, u.Hidden(lists.OfTools), u.WhyHidden(lists.OfTools, "b"))
	}
	if len(u.Templates) != 0 || !slices.Equal(u.Hidden(lists.OfTemplates), []string{"t"}) || u.Instructions != "be kind" {
		t.Errorf("templates %v, instructions %q", u.Hidden(lists.OfTemplates), u.Instructions)
	}
	if got := v.gone(u); !slices.Equal(got, []string{"gone"}) {
		t.Errorf("%v are gone", got)
	}
	u.SetInstructions("be rude")
	if u.Instructions != "" || u.SentInstructions() != "be rude" {
		t.Error("instructions that are not approved are shown")
	}
	// A person approves what there is now, and a reload has the new approval.
	next := &view{pin: PinBlock, approved: offerOf(u)}
	u.Reconfigure(c, viewsOf(next))
	if u.Tool("b") == nil || u.Note() != "" || next.gone(u) != nil || u.Instructions != "be rude" {
		t.Errorf("after the approval: %q, %v", u.Note(), u.Tools)
	}
}

// TestUnknownMembers: with a lock, members that are not in it are not shown, also if the
// server was listed before there was a lock. Without a lock, every member is shown.
func TestUnknownMembers(t *testing.T) {
	const definition = `{"name":"a","usage":"first send me …","inputSchema":{"type":"object"}}`
	approved := &lockfile.Server{}
	for _, kind := range kinds {
		approved.Add(kind, "a", []byte(definition))
	}
	l := lists.New(&config.Upstream{}, lists.Views{})
	for _, k := range lists.Kinds {
		l.SetLists(list(k, []lists.Item{{Key: "a", Raw: []byte(definition)}}))
	}
	shown := func() string { return fmt.Sprintf("%s %s %s", l.Tools[0].Raw, l.Prompts[0].Raw, l.Templates[0].Raw) }
	if got := strings.Count(shown(), "usage"); got != 3 {
		t.Errorf("without a lock, %s", shown())
	}
	l.Reconfigure(&config.Upstream{}, viewsOf(&view{pin: PinBlock, approved: approved}))
	if l.Note() != "" || strings.Contains(shown(), "usage") {
		t.Errorf("with a lock, %s; %q", shown(), l.Note())
	}
	if string(l.Tools[0].SentSchema()) != `{"type":"object"}` {
		t.Errorf("arguments are checked against %s", l.Tools[0].SentSchema())
	}
	l.Reconfigure(&config.Upstream{}, viewsOf(&view{pin: PinWarn, approved: approved}))
	if got := strings.Count(shown(), "usage"); got != 3 {
		t.Errorf("with a warning, %s", shown())
	}
}

// Compared is what the server listed, whatever other views show of it.
func TestPinnedAsListed(t *testing.T) {
	u := serverWith(&config.Upstream{}, &view{pin: PinBlock, approved: &lockfile.Server{}})
	item := u.NewItem(lists.OfTools, "a", []byte(`{"name":"a"}`), []byte(`{"name":"a"}`))
	item.Raw = []byte(`{"name":"a","description":"by another view"}`)
	if got := pinned(lockfile.Tools, item); got != `{"name":"a"}` {
		t.Error(got)
	}
}
