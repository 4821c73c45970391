package rawjson

import (
	"strconv"
	"testing"
)

func TestLocator(t *testing.T) {
	root := parse(t, `{"a":[1,{"b~/":[[],[2,3]]},4],"c":{"d":{"e":5}},"":[6]}`)
	locator := NewLocator(root)
	var visit func(n Node, pointer string)
	visit = func(n Node, pointer string) {
		if got := locator.Pointer(n); got != pointer {
			t.Errorf("%s, want %s", got, pointer)
		}
		for key, member := range n.Members() {
			visit(member, pointer+"/"+tokenEscapes.Replace(key))
		}
		for i, element := range n.Elements() {
			visit(element, pointer+"/"+strconv.Itoa(i))
		}
	}
	visit(root, "")
	inner := root.Get("a").At(1)
	if got, want := NewLocator(inner).Pointer(inner.Get("b~/").At(1).At(0)), "/b~0~1/1/0"; got != want {
		t.Errorf("from an inner value: %s, want %s", got, want)
	}
}
