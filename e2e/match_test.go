package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// bindings are the values of the "$names" in a transcript.
type bindings map[string]any

// match compares a message with an expected one, as JSON values with numbers as written.
// In the expected one "$any" matches any value, "$string" any string and "$number" any
// number. Any other "$name" matches one value, the same for each use of the name. The
// member "..." allows more members, the last element "..." more elements. The error
// says where they differ.
func (b bindings) match(want, got string) error {
	w, err := decode(want)
	if err != nil {
		return fmt.Errorf("the expected message is not JSON: %w", err)
	}
	g, err := decode(got)
	if err != nil {
		return fmt.Errorf("the message is not JSON: %w", err)
	}
	next := maps.Clone(b)
	if err := next.compare("", w, g); err != nil {
		return err
	}
	maps.Copy(b, next)
	return nil
}

// decode reads one JSON value, with numbers as written.
func decode(text string) (value any, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err = decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err = decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

// compare compares two values at a path.
func (b bindings) compare(path string, want, got any) error {
	differ := fmt.Errorf("at %s/: want %s, got %s", path, clip(show(want)), clip(show(got)))
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return differ
		}
		return b.compareObjects(path, w, g)
	case []any:
		g, ok := got.([]any)
		more := len(w) > 0 && w[len(w)-1] == "..."
		if more {
			w = w[:len(w)-1]
		}
		if !ok || len(g) < len(w) || len(g) > len(w) && !more {
			return differ
		}
		for i := range w {
			if err := b.compare(fmt.Sprintf("%s/%d", path, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		if !b.matchString(w, got) {
			return differ
		}
		return nil
	}
	if want != got {
		return differ
	}
	return nil
}

// compareObjects compares the members of two objects.
func (b bindings) compareObjects(path string, want, got map[string]any) error {
	_, more := want["..."]
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := got[key]
		switch {
		case key == "...":
		case !ok:
			return fmt.Errorf("at %s/: no member %q", path, key)
		default:
			if err := b.compare(path+"/"+key, want[key], value); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok && !more {
			return fmt.Errorf("at %s/: unexpected member %q: %s", path, key, clip(show(got[key])))
		}
	}
	return nil
}

// matchString reports whether an expected string matches a value.
func (b bindings) matchString(want string, got any) bool {
	switch {
	case want == "$any":
		return true
	case want == "$string":
		_, ok := got.(string)
		return ok
	case want == "$number":
		_, ok := got.(json.Number)
		return ok
	case !strings.HasPrefix(want, "$"):
		return want == got
	}
	if bound, ok := b[want]; ok {
		return show(bound) == show(got)
	}
	b[want] = got
	return true
}

// fill replaces names by their values.
func (b bindings) fill(text string) string {
	for name, value := range b {
		text = strings.ReplaceAll(text, `"`+name+`"`, show(value))
	}
	return text
}

// show returns a value as JSON.
func show(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return strings.TrimSpace(b.String())
}
