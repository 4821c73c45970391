package lock

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/registry/lists"
)

// The news name the tools that differ from the last start.
func TestNews(t *testing.T) {
	c := &config.Upstream{Tools: config.Filter{Deny: []string{"hidden"}}}
	past := func() []lists.Item { return named("same", "changed") }
	now := append(named("same", "new", "hidden"), lists.Item{Key: "changed", Raw: []byte(`{"name":"changed","description":"x"}`)})
	for name, test := range map[string]struct {
		view   *view
		before func() []lists.Item
		want   string
	}{
		"no lock":      {&view{pin: PinWarn}, past, "since the last start: changed changed; new new"},
		"a first list": {&view{pin: PinWarn}, func() []lists.Item { return nil }, ""},
		"a lock":       {&view{pin: PinWarn, approved: &lockfile.Server{}}, past, ""},
		"blocked":      {&view{pin: PinBlock}, past, ""},
		"never":        {nil, past, ""},
	} {
		o := &observer{}
		if got := o.Read(serverWith(c, test.view), now, test.before); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprint("t", i))
	}
	if _, added := difference(c, past(), named(many...)); len(added) != 11 || added[10] != "… and 5 more" {
		t.Errorf("new %v", added)
	}
}

// What waits for a review is logged once, and news after each list that has some.
func TestLogged(t *testing.T) {
	approved := &lockfile.Server{}
	approved.Add(lockfile.Tools, "old", []byte(`{"name":"old"}`))
	u := serverWith(&config.Upstream{}, &view{pin: PinBlock, approved: approved, command: "CMD"})
	u.SetLists(list(lists.OfTools, named("a")))
	var b bytes.Buffer
	log, o := zerolog.New(&b), NewObserver()
	o.Published(u, log)
	want := []string{
		`{"level":"info","tools":["old"],"message":"approved tools are gone"}`,
		`{"level":"warn","pin":"block","tools":["a"],"review":"1 tool waits for review: CMD","message":"the server is not as it was approved"}`,
	}
	if got := strings.Split(strings.TrimSpace(b.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("logged %q", got)
	}
	b.Reset()
	if o.Published(u, log); b.Len() > 0 {
		t.Errorf("logged again: %s", &b)
	}

	warned := serverWith(&config.Upstream{}, &view{pin: PinWarn})
	o.Read(warned, named("new"), func() []lists.Item { return named("old") })
	o.Published(warned, log)
	if got := b.String(); got != `{"level":"warn","changed":[],"new":["new"],"message":"tools have changed since the server was listed before"}`+"\n" {
		t.Errorf("logged %s", got)
	}
	b.Reset()
	if o.Published(warned, log); b.Len() > 0 {
		t.Errorf("the news are logged again: %s", &b)
	}
}
