package rawjson

import (
	"slices"
	"testing"
)

// TestLocator: the order in which values are located does not matter.
func TestLocator(t *testing.T) {
	root := parse(t, `{"a":[1,{"b~/":[[],[2,3]]},4],"c":{"d":{"e":5}},"":[6]}`)
	want := map[Node]string{}
	var values []Node
	var visit func(n Node, pointer string)
	visit = func(n Node, pointer string) {
		want[n] = pointer
		values = append(values, n)
		for key, member := range n.Members() {
			visit(member, pointer+"/"+tokenEscapes.Replace(key))
		}
		for i, element := range n.Elements() {
			visit(element, pointer+"/"+string(rune('0'+i)))
		}
	}
	visit(root, "")
	backward := slices.Clone(values)
	slices.Reverse(backward)
	var zigzag []Node
	for i := range values {
		zigzag = append(zigzag, values[i], backward[i])
	}
	for name, order := range map[string][]Node{"forward": values, "backward": backward, "back and forth": zigzag} {
		locator := NewLocator(root)
		for _, n := range order {
			if got := locator.Pointer(n); got != want[n] {
				t.Errorf("%s: %s, want %s", name, got, want[n])
			}
		}
	}
}
