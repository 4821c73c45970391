package lists

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
)

// fakeView notes everything and hides what is called "secret".
type fakeView struct {
	name  string // is appended to what is shown
	asked []string
	why   string
}

func (v *fakeView) Item(_ Kind, item Item) (Item, Mark) {
	v.asked = append(v.asked, item.Key)
	if item.Key == "secret" {
		return item, Mark{IsHidden: true, Why: v.why}
	}
	if v.name != "" {
		item.Raw = []byte(strings.Replace(string(item.Raw), `}`, `,"`+v.name+`":1}`, 1))
	}
	return item, Mark{IsNoted: true}
}

func (v *fakeView) Instructions(text string) (string, Mark) {
	return text + v.name, Mark{IsNoted: true, IsHidden: strings.Contains(text, "secret")}
}

func (*fakeView) Note(m Marked) string {
	var notes []string
	for _, k := range Kinds {
		if keys := m.Keys(k); keys != nil {
			notes = append(notes, fmt.Sprint(k.Member, " ", keys))
		}
	}
	if m.Instructions.IsNoted {
		notes = append(notes, "instructions")
	}
	return strings.Join(notes, ", ")
}

// list returns one list, for SetLists.
func list(k Kind, items []Item) map[string][]Item { return map[string][]Item{k.Method: items} }

// named returns items with these names and nothing else.
func named(names ...string) (items []Item) {
	for _, name := range names {
		items = append(items, Item{Key: name, Raw: []byte(`{"name":"` + name + `"}`)})
	}
	return items
}

// Views are asked in order. Each sees what those before it show, and nothing that the config
// hides.
func TestViews(t *testing.T) {
	one, two := &fakeView{name: "one", why: "because"}, &fakeView{name: "two"}
	l := New(&config.Upstream{Tools: config.Filter{Deny: []string{"denied"}}}, Views{All: []View{one, two}})
	changed := l.SetLists(list(OfTools, named("a", "denied", "secret")))
	if len(l.Tools) != 1 || string(l.Tool("a").Raw) != `{"name":"a","one":1,"two":1}` || !slices.Equal(changed, []string{"tools"}) {
		t.Errorf("shown is %s; changed %v", l.ToolList(), changed)
	}
	if !slices.Equal(one.asked, []string{"a", "secret"}) || !slices.Equal(two.asked, []string{"a"}) {
		t.Errorf("asked about %q and %q", one.asked, two.asked)
	}
	if got := l.Note(); got != "tools [a secret]; tools [a]" {
		t.Errorf("the note is %q", got)
	}
	if got := l.MarkedBy(two).Keys(OfTools); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the second view has marked %q", got)
	}
	if got := l.Sent(OfTools); len(got) != 3 {
		t.Errorf("%d items were sent", len(got))
	}
	if l.SetLists(list(OfTools, named("a", "secret"))) != nil {
		t.Error("a hidden item is a change for clients")
	}
}

// A hidden item has a reason: that of its view, or else the note of its view.
func TestWhyHidden(t *testing.T) {
	for why, want := range map[string]string{"because": "because", "": "tools [a secret]"} {
		l := New(&config.Upstream{}, Views{All: []View{&fakeView{why: why}}})
		l.SetLists(list(OfTools, named("a", "secret")))
		if got := l.WhyHidden(OfTools, "secret"); got != want {
			t.Errorf("it is hidden because %q, want %q", got, want)
		}
		for _, name := range []string{"a", "unknown"} {
			if got := l.WhyHidden(OfTools, name); got != "" {
				t.Errorf("%s is hidden because %q", name, got)
			}
		}
		if got := l.WhyHidden(OfPrompts, "secret"); got != "" {
			t.Errorf("a prompt is hidden because %q", got)
		}
		if got := l.Hidden(OfTools); !slices.Equal(got, []string{"secret"}) {
			t.Errorf("%q are hidden", got)
		}
	}
}

// What a view hides of the instructions, later views do not see.
func TestInstructions(t *testing.T) {
	views := Views{All: []View{&fakeView{name: " one"}, &fakeView{name: " two"}}}
	for text, want := range map[string]string{"": "  ", "x": "x one two instructions; instructions", "secret": " instructions"} {
		l := New(&config.Upstream{}, views)
		l.SetInstructions("before")
		l.SetInstructions(text)
		got := l.Instructions + " " + l.Note()
		if strings.TrimSpace(got) != strings.TrimSpace(want) || l.SentInstructions() != text {
			t.Errorf("%q: shown and noted are %q; sent %q", text, got, l.SentInstructions())
		}
	}
}

// Other views apply to the same lists.
func TestReconfigure(t *testing.T) {
	l := New(&config.Upstream{}, Views{})
	l.SetLists(list(OfTools, named("a", "secret")))
	l.SetInstructions("secret")
	before := l
	if len(l.Tools) != 2 || l.Instructions == "" || l.Note() != "" || l.IsStrict() {
		t.Errorf("without a view, %s, %q, %q", l.ToolList(), l.Instructions, l.Note())
	}
	l.Reconfigure(&config.Upstream{}, Views{All: []View{&fakeView{}}, IsStrict: true})
	if len(l.Tools) != 1 || l.Instructions != "" || l.Note() != "tools [a secret], instructions" || !l.IsStrict() {
		t.Errorf("with a view, %s, %q, %q", l.ToolList(), l.Instructions, l.Note())
	}
	if before.Note() != "" || len(before.Tools) != 2 {
		t.Error("the original has changed")
	}
	l.Reconfigure(&config.Upstream{}, Views{})
	if len(l.Tools) != 2 || l.Instructions != "secret" || l.Note() != "" {
		t.Errorf("without it again, %s, %q, %q", l.ToolList(), l.Instructions, l.Note())
	}
}

// deriving derives a value from each item and counts how often.
type deriving struct {
	fakeView
	times int
}

func (d *deriving) Item(_ Kind, item Item) (Item, Mark) {
	item.Derived("length", func(listed []byte) any {
		d.times++
		return len(listed)
	})
	return item, Mark{}
}

// What a view derives from an item is made when the item is, once.
func TestDerived(t *testing.T) {
	d := &deriving{}
	l := New(&config.Upstream{}, Views{All: []View{d}})
	item := l.NewItem(OfTools, "a", []byte(`{"name":"a","x":"secret"}`), []byte(`{"name":"a","x":""}`))
	if d.times != 1 {
		t.Errorf("made %d times with the item", d.times)
	}
	l.SetLists(list(OfTools, []Item{item}))
	l.Reconfigure(&config.Upstream{}, l.Views())
	if d.times != 1 {
		t.Errorf("made %d times", d.times)
	}
	item.Raw = []byte(`{}`)
	if got := item.Derived("length", nil); got != len(`{"name":"a","x":""}`) {
		t.Errorf("derived from %v bytes", got)
	}
}

// News are read once.
func TestNews(t *testing.T) {
	l := New(&config.Upstream{}, Views{})
	l.SetNews("new: a")
	l.SetNews("")
	if got := l.News(); got != "new: a" {
		t.Errorf("the news are %q", got)
	}
	if again := l.News(); again != "" {
		t.Errorf("read twice: %q", again)
	}
}
