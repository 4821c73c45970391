package results

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/selection"
)

// Reference is a reference to a part of a kept result.
type Reference struct {
	Text   string           // an id and a JSON Pointer, like r7/items/0/id
	Select *selection.Query // selects from that part; may be nil
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
	reading, err := t.read(ctx, client, k)
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

// value returns the value of a reference to the result, unless it is longer than limit.
func (r *reading) value(ref *Reference, limit int) ([]byte, error) {
	id, path := splitReference(ref.Text)
	if r.data == "" && path == "" && ref.Select == nil {
		if len(r.text) > limit {
			return nil, ErrLong
		}
		return []byte(quote(r.text)), nil
	}
	root, err := r.root()
	switch {
	case canceled(r.ctx) != nil:
		return nil, canceled(r.ctx)
	case err != nil:
		return nil, fmt.Errorf("%s is not JSON; {\"$r\": %q} is its whole text", id, id)
	}
	f, err := r.find(root, path)
	if err != nil {
		return nil, err
	}
	if ref.Select == nil {
		return f.json(limit)
	}
	selected, err := f.apply(r.ctx, ref.Select)
	switch {
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

// splitReference splits r7/items/0 or r7.items[0] into id and path.
func splitReference(reference string) (id, path string) {
	end := strings.IndexAny(reference, "/.[")
	if end < 0 {
		return reference, ""
	}
	return reference[:end], strings.TrimPrefix(reference[end:], ".")
}
