package results

import (
	"context"
	"unsafe"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/work"
)

// Memory that work needs, as TestWeights measures it.
const (
	resultWeight = 4        // for each byte of a result: its decoded texts, and a copy to keep
	outputBytes  = 64 << 10 // for an answer
)

// reading is work on a result. The lease holds the memory that the work may use.
type reading struct {
	ctx context.Context
	kept
	lease *work.Lease
}

// read waits until there is room to read a kept result with some queries, of which some may be
// nil. The caller must release the lease.
func (t *Table) read(ctx context.Context, client string, k kept, queries ...*selection.Query) (*reading, error) {
	p := work.Piece{Client: client, Bytes: len(k.text) + outputBytes}
	if k.data != "" {
		p.Bytes = len(k.data) + outputBytes
		p.Key, p.KeyBytes = unsafe.StringData(k.data), k.tree
	}
	most := 0
	for _, q := range queries {
		if q != nil {
			most = max(most, q.Memory(len(k.text)))
		}
	}
	p.Bytes += most
	lease, err := t.Work.Acquire(ctx, p)
	if err != nil {
		return nil, err
	}
	return &reading{ctx, k, lease}, nil
}

// root returns the JSON of the result. All work on one kept result shares its tree.
func (r *reading) root() (rawjson.Node, error) {
	if r.data == "" {
		return rawjson.Node{}, errNotJSON
	}
	root, err := r.lease.Value(r.ctx, func() (any, error) {
		return rawjson.ParseContext(r.ctx, rawjson.Bytes(r.data))
	})
	if err != nil {
		return rawjson.Node{}, err
	}
	return root.(rawjson.Node), nil
}

// find returns the values at a path of the root.
func (r *reading) find(root rawjson.Node, path string) (*found, error) {
	f := &found{Watch: work.NewWatch(r.ctx), root: root}
	return f, f.find(path)
}

// at returns the values at a path, or the whole text of a result that is not JSON.
func (r *reading) at(path string) (*found, error) {
	if r.data == "" && path == "" {
		return &found{isText: true}, nil
	}
	root, err := r.root()
	if err != nil {
		return nil, err
	}
	return r.find(root, path)
}

// searched returns the scalar values in some values, or the lines of a text.
func (r *reading) searched(f *found) searched {
	if f.isText {
		return linesOf(r.text)
	}
	return valuesIn(f)
}
