package registrytest

import (
	"slices"

	"mcpx/config"
	"mcpx/registry/lists"
)

// Only returns views that are strict, and show only tools of these names, as the Fake lists them.
func Only(tools ...string) func(u *config.Upstream) lists.Views {
	v := &only{tools}
	return func(*config.Upstream) lists.Views { return lists.Views{All: []lists.View{v}, IsStrict: true} }
}

// Hidden is why Only hides a tool.
const Hidden = "hidden by the test"

type only struct{ tools []string }

// Item implements lists.View.
func (o *only) Item(k lists.Kind, item lists.Item) (lists.Item, lists.Mark) {
	isKnown := slices.Contains(o.tools, item.Key) && string(item.Raw) == `{"name":"`+item.Key+`"}`
	return item, lists.Mark{IsHidden: k.Method == lists.OfTools.Method && !isKnown}
}

// Instructions implements lists.View.
func (*only) Instructions(text string) (string, lists.Mark) { return text, lists.Mark{} }

// Note implements lists.View.
func (*only) Note(m lists.Marked) string {
	if len(m.Keys(lists.OfTools)) == 0 {
		return ""
	}
	return Hidden
}
