package results

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
)

// maxNames limits the keys or ids that an error lists.
const maxNames = 20

var errNotJSON = errors.New("the result is not JSON; use offset or grep")

// parse reads the JSON of a result.
func (k kept) parse() (rawjson.Node, error) {
	if k.data == "" {
		return rawjson.Node{}, errNotJSON
	}
	return rawjson.Parse([]byte(k.data))
}

// stepsOf reads a path: a JSON Pointer, whose slash at the start may be missing, or a path
// like items[3].title.
func stepsOf(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	if !strings.Contains(path, "/") && strings.ContainsAny(path, ".[") {
		p, err := selection.ParsePath(path)
		return p.Tokens(), err
	}
	return rawjson.Tokens(path), nil
}

// find returns the values at a path. A key that contains the signs of a path is found as
// it is.
func find(root rawjson.Node, path string) (found []rawjson.Node, several bool, err error) {
	if whole := root.Get(path); path != "" && path[0] != '/' && !whole.IsZero() {
		return []rawjson.Node{whole}, false, nil
	}
	steps, err := stepsOf(path)
	if err != nil {
		return nil, false, err
	}
	found, err = walk(root, steps)
	return found, slices.Contains(steps, "*"), err
}

// walk finds at least one value or fails. Where a * leads to several values, those
// without the rest of the path are skipped.
func walk(root rawjson.Node, steps []string) ([]rawjson.Node, error) {
	found := []rawjson.Node{root}
	for _, step := range steps {
		var next []rawjson.Node
		for _, n := range found {
			next = append(next, follow(n, step)...)
		}
		if len(next) == 0 {
			return nil, missing(found[0], step)
		}
		found = next
	}
	return found, nil
}

// follow returns the members or elements that a step leads to.
func follow(value rawjson.Node, step string) (list []rawjson.Node) {
	if step == "*" {
		for _, member := range value.Members() {
			list = append(list, member)
		}
		return append(list, value.Elements()...)
	}
	if child := value.Child(step); !child.IsZero() {
		return []rawjson.Node{child}
	}
	return nil
}

// missing explains why a step leads nowhere, by the keys or indexes that exist.
func missing(value rawjson.Node, step string) error {
	step = plain.Cut(step, maxKey)
	switch n := value.Len(); {
	case n > 0 && value.Kind() == '{':
		return fmt.Errorf("no %q here; there are %s", step, names(value, step))
	case n > 0:
		return fmt.Errorf("no %q in an array; use 0 to %d, or *", step, n-1)
	}
	return fmt.Errorf("no %q in %s", step, plain.Cut(string(rawjson.Compact(value.Raw())), maxKey))
}

// names lists the keys of an object. Of many keys it lists those similar to like,
// or else the first ones.
func names(object rawjson.Node, like string) string {
	var keys []string
	for key := range object.Members() {
		keys = append(keys, label(key))
	}
	if len(keys) <= maxNames {
		return strings.Join(keys, ", ")
	}
	if near := nearest.Words(like, keys, maxNames); len(near) > 0 {
		keys = near
	}
	return strings.Join(keys[:min(len(keys), maxNames)], ", ") + ", …"
}

// join returns one value as it is, or an array of several. The caller must not change it.
func join(found []rawjson.Node, several bool) []byte {
	if !several {
		return found[0].Raw()
	}
	array := []byte("[")
	for _, n := range found {
		array = rawjson.AppendElement(array, n.Raw())
	}
	return append(array, ']')
}

// joined is join for a select, which needs the value parsed.
func joined(found []rawjson.Node, several bool) rawjson.Node {
	if !several {
		return found[0]
	}
	array, _ := rawjson.Parse(join(found, several)) // its parts are valid
	return array
}
