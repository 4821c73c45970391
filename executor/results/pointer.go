package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/nearest"
)

// maxNames bounds the keys or ids that an error lists.
const maxNames = 20

// find returns the JSON at a path of a JSON text: as it is written there, or an
// array of everything found if the path has a *.
func find(text, path string) (string, error) {
	if !isJSON(text) {
		return "", errors.New("the text is not JSON; use offset or grep")
	}
	start := skipSpace(text, 0)
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")
	found, err := walk(text[start:skipValue(text, start)], steps)
	if err != nil {
		return "", err
	}
	if !slices.Contains(steps, "*") {
		return found[0], nil
	}
	return "[" + strings.Join(found, ",") + "]", nil
}

// unescape turns a step of a JSON Pointer into the key it stands for.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// walk finds at least one value or fails. Where a * leads to several, those
// without the rest of the path are passed over.
func walk(value string, steps []string) (found []string, err error) {
	if len(steps) == 0 {
		return []string{value}, nil
	}
	step := unescape.Replace(steps[0])
	index := 0
	for c := range children(value, 0) {
		key := strconv.Itoa(index)
		if c.key != "" {
			key = unquote(c.key)
		}
		index++
		if steps[0] != "*" && key != step {
			continue
		}
		below, failed := walk(value[c.value:c.end], steps[1:])
		if err == nil {
			err = failed
		}
		found = append(found, below...)
		if steps[0] != "*" {
			break
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, missing(value, step)
}

// missing explains a step that leads nowhere by what is there instead.
func missing(value, step string) error {
	there := slices.Collect(children(value, 0))
	step = shorten(step, maxKey)
	switch {
	case len(there) > 0 && value[0] == '{':
		return fmt.Errorf("no %q here; there are %s", step, names(there, step))
	case len(there) > 0:
		return fmt.Errorf("no %q in an array; use 0 to %d, or *", step, len(there)-1)
	}
	return fmt.Errorf("no %q in %s", step, shorten(compact(value), maxKey))
}

// names lists the keys of an object. Of many it lists those like a key, or else
// the first.
func names(members []child, like string) string {
	var keys []string
	for _, m := range members {
		keys = append(keys, label(unquote(m.key)))
	}
	if len(keys) <= maxNames {
		return strings.Join(keys, ", ")
	}
	if near := nearest.Words(like, keys, maxNames); len(near) > 0 {
		keys = near
	}
	return strings.Join(keys[:min(len(keys), maxNames)], ", ") + ", …"
}
