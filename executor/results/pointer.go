package results

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/rawjson"
)

// maxNames limits the keys or ids that an error lists.
const maxNames = 20

// find returns the JSON at a path of a JSON text: as written there, or an array of
// everything found if the path has a *.
func find(text, path string) (string, error) {
	if !isJSON(text) {
		return "", errors.New("the text is not JSON; use offset or grep")
	}
	steps := rawjson.Tokens(path)
	found, err := walk([]byte(strings.TrimSpace(text)), steps)
	if err != nil {
		return "", err
	}
	if !slices.Contains(steps, "*") {
		return string(found[0]), nil
	}
	return "[" + string(bytes.Join(found, []byte(","))) + "]", nil
}

// walk finds at least one value or fails. Where a * leads to several values, those
// without the rest of the path are skipped.
func walk(value []byte, steps []string) (found [][]byte, err error) {
	if len(steps) == 0 {
		return [][]byte{value}, nil
	}
	index := 0
	for c := range rawjson.Children(value, 0) {
		key := strconv.Itoa(index)
		if c.Key != nil {
			key = keyOf(c)
		}
		index++
		if steps[0] != "*" && key != steps[0] {
			continue
		}
		below, failed := walk(value[c.Value:c.End], steps[1:])
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
	return nil, missing(value, steps[0])
}

// missing explains why a step leads nowhere, by the keys or indexes that exist.
func missing(value []byte, step string) error {
	there := slices.Collect(rawjson.Children(value, 0))
	step = shorten(step, maxKey)
	switch {
	case len(there) > 0 && value[0] == '{':
		return fmt.Errorf("no %q here; there are %s", step, names(there, step))
	case len(there) > 0:
		return fmt.Errorf("no %q in an array; use 0 to %d, or *", step, len(there)-1)
	}
	return fmt.Errorf("no %q in %s", step, shorten(string(rawjson.Compact(value)), maxKey))
}

// names lists the keys of an object. Of many keys it lists those similar to like,
// or else the first ones.
func names(members []rawjson.Child, like string) string {
	var keys []string
	for _, m := range members {
		keys = append(keys, label(keyOf(m)))
	}
	if len(keys) <= maxNames {
		return strings.Join(keys, ", ")
	}
	if near := nearest.Words(like, keys, maxNames); len(near) > 0 {
		keys = near
	}
	return strings.Join(keys[:min(len(keys), maxNames)], ", ") + ", …"
}
