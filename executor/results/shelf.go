package results

import (
	"context"
	"errors"
	"time"

	"mcpx/internal/work"
)

// Shelf keeps results where other processes can read them. A Table has its results in memory,
// too. The methods may be called concurrently.
type Shelf interface {
	// Put keeps a result of a client for that time. It returns the id, which begins with r and
	// the number, and which no other result of the client has. ok is false if the shelf could
	// not keep the result.
	Put(client string, number int, k Kept, keep time.Duration) (id string, ok bool)
	// Get finds a result of a client. The error is ErrNoResult if there is none.
	Get(ctx context.Context, client, id string) (Found, error)
	// Keep changes how long a result is kept from now on; 0 removes it. It does not wait.
	Keep(client, id string, keep time.Duration)
}

// Kept has the parts of a result that later calls can read.
type Kept struct {
	Text string // all texts, and structuredContent unless a text repeats it
	Data string // the part of Text that is JSON; may be empty
}

// Found is a result on a Shelf.
type Found struct {
	Size int // of its text
	Read func(ctx context.Context) (Kept, error)
}

// ErrNoResult is returned by a Shelf that does not have a result.
var ErrNoResult = errors.New("no such result")

// handle is the id of a kept result, with a remark if other replicas cannot read it.
type handle struct {
	id    string
	place string // empty, or onlyHere
}

const onlyHere = " (only on this replica)"

// shelved names a result on the shelf of a Table.
type shelved struct {
	table      *Table
	client, id string
}

// FetchWeight is how much memory a Shelf may use to read a result, for each byte of its text.
const FetchWeight = 2

// fetch returns a result that another process has put on the shelf. It is kept here as well,
// since later requests often read it again. Requests for the same result fetch it once. missing
// is the error if there is none.
func (t *Table) fetch(ctx context.Context, client, id string, missing error) (kept, error) {
	found, err := t.Shelf.Get(ctx, client, id)
	if errors.Is(err, ErrNoResult) {
		return kept{}, missing
	}
	if err != nil {
		return kept{}, err
	}
	t.Shelf.Keep(client, id, t.Idle)
	lease, err := t.Work.Acquire(ctx, work.Piece{Client: client, Key: shelved{t, client, id}, KeyBytes: FetchWeight * found.Size})
	if err != nil {
		return kept{}, err
	}
	defer lease.Release()
	lease.Idle() // it waits for the shelf
	k, err := lease.Value(ctx, func() (any, error) { return t.fetchNow(ctx, client, id, found) })
	if err != nil {
		return kept{}, err
	}
	return k.(kept), nil
}

// fetchNow reads a result from the shelf, unless another request has just done that.
func (t *Table) fetchNow(ctx context.Context, client, id string, found Found) (kept, error) {
	if k, err := t.local(client, id); err == nil {
		return k, nil
	}
	read, err := found.Read(ctx)
	if err != nil {
		return kept{}, err
	}
	k := newKept(read.Text, read.Data)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.client(client); c.results[id] == nil {
		now := time.Now()
		t.insert(&entry{client: client, id: id, kept: k, used: now, shared: now, isCopy: true})
	}
	return k, nil
}
