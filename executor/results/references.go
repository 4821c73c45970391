package results

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
)

// Reference is a reference to a part of a kept result.
type Reference struct {
	Text   string           // an id and a JSON Pointer, like r7/items/0/id
	Select *selection.Query // selects from that part; may be nil
	Part   *TextPart        // a part of its text; may be nil
	Value  []byte           // the part as JSON, once Resolve has found it; nobody may change it
}

// ErrLong means that the values of references are longer than allowed.
var ErrLong = errors.New("the references are too long")

// Resolve sets the values of a client's references, which have at most limit bytes together.
// If a result is not JSON, its id alone refers to its text. Resolve waits until there is room
// for the work, and reads each result once. If it fails, it returns the reference with the
// error.
func (t *Table) Resolve(ctx context.Context, client string, references []*Reference, limit int) (*Reference, error) {
	left := limit
	for _, r := range references {
		if r.Select == nil {
			continue
		}
		var err error
		if r.Select, err = t.Bind(ctx, client, r.Select, limit); err != nil {
			return r, err
		}
	}
	var ids []string
	of := map[string][]*Reference{}
	for _, r := range references {
		id, _ := splitReference(r.Text)
		if of[id] == nil {
			ids = append(ids, id)
		}
		of[id] = append(of[id], r)
	}
	for _, id := range ids {
		k, err := t.load(ctx, client, id)
		if err != nil {
			return of[id][0], err
		}
		if failed, err := t.resolve(ctx, client, k, of[id], &left); err != nil {
			return failed, err
		}
	}
	return nil, nil
}

// resolve sets the values of the references to one result. left is how many bytes they may
// still have.
func (t *Table) resolve(ctx context.Context, client string, k kept, references []*Reference, left *int) (*Reference, error) {
	var queries []*selection.Query
	for _, r := range references {
		queries = append(queries, r.Select)
	}
	reading, err := t.read(ctx, client, k, queries...)
	if err != nil {
		return references[0], err
	}
	defer reading.lease.Release()
	for _, r := range references {
		if r.Value, err = reading.value(r, *left); err != nil {
			return r, err
		}
		if *left -= len(r.Value); *left < 0 {
			return r, ErrLong
		}
	}
	return nil, nil
}

// Bind returns a query with the values of its references, which have at most limit bytes
// together. It returns the query itself if it has none. It waits until there is room for the
// work.
func (t *Table) Bind(ctx context.Context, client string, q *selection.Query, limit int) (*selection.Query, error) {
	sets := q.References()
	if len(sets) == 0 {
		return q, nil
	}
	var references []*Reference
	for _, set := range sets {
		references = append(references, &Reference{Text: set.Text, Select: set.Select})
	}
	if failed, err := t.Resolve(ctx, client, references, limit); err != nil {
		return nil, fmt.Errorf("reference %q in select: %w", plain.Cut(failed.Text, maxLine), err)
	}
	values := map[*selection.SetReference][]byte{}
	for i, set := range sets {
		values[set] = references[i].Value
	}
	return q.Bind(values)
}

// value returns the value of a reference to the result, unless it is longer than limit.
func (r *reading) value(ref *Reference, limit int) ([]byte, error) {
	id, path := splitReference(ref.Text)
	if path == "" && (ref.Part != nil || r.data == "" && ref.Select == nil) {
		return ref.Part.of(r.ctx, r.text, limit)
	}
	f, err := r.at(path)
	switch {
	case canceled(r.ctx) != nil:
		return nil, canceled(r.ctx)
	case errors.Is(err, errNotJSON):
		return nil, fmt.Errorf("%s is not JSON; {\"$r\": %q} is its whole text", id, id)
	case err != nil:
		return nil, err
	case ref.Part != nil:
		text, err := f.json(maxPartBytes)
		if err != nil {
			return nil, err
		}
		if value, ok := rawjson.View(text); ok {
			return ref.Part.of(r.ctx, value, limit)
		}
		return ref.Part.of(r.ctx, rawjson.Text(text), limit)
	case ref.Select == nil:
		return f.json(limit)
	}
	return r.selected(f, ref.Select, limit)
}

// maxPartBytes limits the values of which a reference takes a part of the text.
const maxPartBytes = 64 << 20

// selected returns what a query selects as JSON, unless it is longer than limit.
func (r *reading) selected(f *found, q *selection.Query, limit int) ([]byte, error) {
	selected, err := r.apply(f, q)
	switch {
	case errors.Is(err, errNotJSON):
		return nil, errNoFields
	case err != nil:
		return nil, err
	case !selected.IsKnown():
		return nil, fmt.Errorf("select: %s", selected.Note())
	}
	value, err := selected.JSON(limit)
	if errors.Is(err, selection.ErrLong) {
		err = ErrLong
	}
	return value, err
}

// errNoFields means that a text has no fields to select.
var errNoFields = errors.New(`the result is not JSON and has no fields; use "lines", "match" or "replace", or select "a from /RE2/ as a"`)

// splitReference splits r7/items/0 or r7.items[0] into id and path.
func splitReference(reference string) (id, path string) {
	end := strings.IndexAny(reference, "/.[")
	if end < 0 {
		return reference, ""
	}
	return reference[:end], strings.TrimPrefix(reference[end:], ".")
}
