package results

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/work"
)

// Limits of the keys or ids that an error lists.
const (
	maxNames    = 20
	maxCompared = 10_000 // keys that are compared with the missing one
)

var errNotJSON = errors.New("the result is not JSON; use offset or grep")

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

// found are the values in a result that a path leads to.
type found struct {
	*work.Watch
	root    rawjson.Node
	one     rawjson.Node // the first value
	steps   []string
	several bool // the path has a *
	isText  bool // the result is a text, and the path leads to all of it
}

// find finds the first value at a path, or fails. It also finds a key that looks like a path,
// such as "a.b".
func (f *found) find(path string) (err error) {
	if whole := f.root.Get(path); path != "" && path[0] != '/' && !whole.IsZero() {
		f.one = whole
		return nil
	}
	if f.steps, err = stepsOf(path); err != nil {
		return err
	}
	f.several = slices.Contains(f.steps, "*")
	deepest, at := -1, rawjson.Node{}
	f.walk(f.root, 0, func(n rawjson.Node, depth int) bool {
		if depth > deepest {
			deepest, at = depth, n
		}
		return depth < len(f.steps)
	})
	switch {
	case f.Err() != nil:
		return f.Err()
	case deepest < len(f.steps):
		return missing(at, f.steps[deepest])
	}
	f.one = at
	return nil
}

// walk visits the values that the steps lead to, and those on the way, until visit returns
// false.
func (f *found) walk(n rawjson.Node, depth int, visit func(n rawjson.Node, depth int) bool) (more bool) {
	if !visit(n, depth) || f.IsOver() {
		return false
	}
	if depth == len(f.steps) {
		return true
	}
	if step := f.steps[depth]; step != "*" {
		child := n.Child(step)
		return child.IsZero() || f.walk(child, depth+1, visit)
	}
	for _, member := range n.Members() {
		if !f.walk(member, depth+1, visit) {
			return false
		}
	}
	for element := range n.Each() {
		if !f.walk(element, depth+1, visit) {
			return false
		}
	}
	return true
}

// each returns the values. Where a * leads to several values, it leaves out those without the
// rest of the path.
func (f *found) each() iter.Seq[rawjson.Node] {
	return func(yield func(rawjson.Node) bool) {
		if !f.several {
			yield(f.one)
			return
		}
		f.walk(f.root, 0, func(n rawjson.Node, depth int) bool {
			return depth < len(f.steps) || yield(n)
		})
	}
}

// json returns one value as it is, or an array of several. It fails if that has more than
// limit bytes. The caller must not change it.
func (f *found) json(limit int) ([]byte, error) {
	if !f.several {
		if len(f.one.Raw()) > limit {
			return nil, ErrLong
		}
		return f.one.Raw(), nil
	}
	size := len("[]")
	for n := range f.each() {
		if size += len(n.Raw()) + 1; size > limit {
			return nil, ErrLong
		}
	}
	array := append(make([]byte, 0, size), '[')
	for n := range f.each() {
		array = rawjson.AppendElement(array, n.Raw())
	}
	return append(array, ']'), f.Err()
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
	return fmt.Errorf("no %q in %s", step, plain.Cut(string(rawjson.AppendCompact(nil, value.Raw(), maxKey)), maxKey))
}

// names lists the keys of an object. Of many keys it lists those similar to like,
// or else the first ones.
func names(object rawjson.Node, like string) string {
	var keys []string
	for key := range object.Members() {
		if keys = append(keys, label(key)); len(keys) == maxCompared {
			break
		}
	}
	if len(keys) <= maxNames {
		return strings.Join(keys, ", ")
	}
	if near := nearest.Words(like, keys, maxNames); len(near) > 0 {
		keys = near
	}
	return strings.Join(keys[:min(len(keys), maxNames)], ", ") + ", …"
}
