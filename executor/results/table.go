// Package results keeps results that later calls read or refer to: Fit cuts a result that
// is too long and keeps it, or returns the part that a query selects; Read and Resolve return
// parts of results that were kept.
package results

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// maxClientBytes limits the results kept for one client. The newest result is always kept:
// it is no longer than the message it came in.
const maxClientBytes = 64 << 20

// maxClients limits the clients for whom something is kept.
const maxClients = 10_000

// Options are the limits of a Table.
type Options struct {
	Tokens int           // a result with more is cut; 0: results are neither cut nor kept
	Head   int           // tokens shown of a cut result
	Bytes  int           // kept for all clients together
	Idle   time.Duration // how long a result is kept after its last use
	Work   *work.Budget  // for all work on results
	Shelf  Shelf         // where other processes read results too; nil: they are in memory alone
}

// Table holds results, each for the client that got it. It may be used concurrently.
type Table struct {
	Options

	mu      sync.Mutex
	results *list.List // of *entry, the least recently used first
	clients map[string]*client
	floor   int // forgotten clients may have got numbers up to here
	bytes   int
}

// client has the results of one client.
type client struct {
	results map[string]*entry // by id
	order   *list.List        // of the same entries, the least recently used first
	shapes  map[Tool]*lastResult
	number  int // of the last id given out
	bytes   int
}

// entry is one result.
type entry struct {
	client string
	id     string
	kept
	inAll  *list.Element // in the results of all clients
	inOwn  *list.Element // in those of its client
	used   time.Time
	shared time.Time // when it was last put on the shelf or renewed there; zero: it is not on the shelf
	isCopy bool      // another process has put it on the shelf, and removes it
}

// kept has the parts of a result that later calls can read.
type kept struct {
	text string // all texts, and structuredContent unless a text repeats it
	data string // the part of text that is JSON, which paths, select and references read; may be empty
	tree int    // memory that the tree of data needs
}

// newKept returns the parts of a result that later calls can read.
func newKept(text, data string) kept {
	return kept{text, data, rawjson.TreeBytes(rawjson.Bytes(data))}
}

// entryBytes is about the memory that an entry needs besides its texts.
const entryBytes = 300

// bytes returns the memory that is needed.
func (k kept) bytes() int { return entryBytes + len(k.text) }

// defaultWork is the budget of a Table without Work.
const defaultWork = 512 << 20

// New returns an empty table.
func New(o Options) *Table {
	if o.Work == nil {
		o.Work = work.New(defaultWork)
	}
	return &Table{Options: o, results: list.New(), clients: map[string]*client{}}
}

// Forget drops everything that is kept for a client. Other replicas can still read what is
// shared.
func (t *Table) Forget(name string) { t.forget(name, t.drop) }

// Remove is Forget for a client that is gone everywhere: nobody can read its results.
func (t *Table) Remove(name string) { t.forget(name, t.evict) }

// forget removes a client, and its results with drop or evict.
func (t *Table) forget(name string, remove func(*entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.clients[name]; ok {
		for _, e := range c.results {
			remove(e)
		}
		delete(t.clients, name)
	}
}

// save keeps a result for a client. If there is a shelf, it waits until the result is there.
func (t *Table) save(name string, k kept) handle {
	number := t.nextNumber(name)
	e := &entry{client: name, id: "r" + strconv.Itoa(number), kept: k, used: time.Now()}
	place := ""
	if t.Shelf != nil {
		var ok bool
		if e.id, ok = t.Shelf.Put(name, number, Kept{k.text, k.data}, t.Idle); ok {
			e.shared = time.Now()
		} else {
			place = onlyHere
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	t.insert(e)
	return handle{e.id, place}
}

// nextNumber returns a number that no result of the client has had.
func (t *Table) nextNumber(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.client(name)
	c.number++
	return c.number
}

// insert adds a result, and removes the least recently used ones if there are too many. The
// caller holds mu.
func (t *Table) insert(e *entry) {
	c := t.client(e.client)
	c.results[e.id] = e
	e.inAll, e.inOwn = t.results.PushBack(e), c.order.PushBack(e)
	c.bytes += e.bytes()
	t.bytes += e.bytes()
	for c.bytes > maxClientBytes && len(c.results) > 1 {
		t.evict(oldest(c.order))
	}
	for t.bytes > t.Bytes && t.results.Len() > 1 {
		t.evict(oldest(t.results))
	}
}

// client returns the results of a client. The caller holds mu.
func (t *Table) client(name string) *client {
	c, ok := t.clients[name]
	if !ok {
		t.makeRoom()
		c = &client{results: map[string]*entry{}, order: list.New(), shapes: map[Tool]*lastResult{}, number: t.floor}
		t.clients[name] = c
	}
	return c
}

// makeRoom forgets clients when there are too many: those without results, or else
// those with the least recently used results. Nobody tells when a client without a
// session is gone. Numbers are never used again.
func (t *Table) makeRoom() {
	if len(t.clients) < maxClients {
		return
	}
	hasIdle := false
	for _, c := range t.clients {
		hasIdle = hasIdle || len(c.results) == 0
	}
	if !hasIdle {
		for range maxClients / 10 {
			for _, e := range t.clients[oldest(t.results).client].results {
				t.evict(e)
			}
		}
	}
	for name, c := range t.clients {
		if len(c.results) == 0 {
			t.floor = max(t.floor, c.number)
			delete(t.clients, name)
		}
	}
}

// load returns a result of a client and marks it as used.
func (t *Table) load(ctx context.Context, name, id string) (kept, error) {
	k, err := t.local(name, id)
	if err != nil && t.Shelf != nil {
		return t.fetch(ctx, name, id, err)
	}
	return k, err
}

// local is load for a result that this replica has.
func (t *Table) local(name, id string) (kept, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	c, ok := t.clients[name]
	if !ok || len(c.results) == 0 {
		why := "none is kept any more; call the tool again"
		if t.Tokens <= 0 {
			why = "limits.result_tokens is 0, so none is kept; pass the value itself"
		}
		return kept{}, fmt.Errorf("no result %q: %s", plain.Cut(id, maxKey), why)
	}
	e, ok := c.results[id]
	if !ok {
		return kept{}, fmt.Errorf("no result %q: kept are %s; call the tool again for others", plain.Cut(id, maxKey), c.ids())
	}
	e.used = time.Now()
	t.results.MoveToBack(e.inAll)
	c.order.MoveToBack(e.inOwn)
	if !e.shared.IsZero() && time.Since(e.shared) > t.Idle/10 {
		e.shared = time.Now()
		t.Shelf.Keep(name, id, t.Idle)
	}
	return e.kept, nil
}

// ids lists the ids that a client can read here, the newest of many.
func (c *client) ids() string {
	ids := slices.SortedFunc(maps.Keys(c.results), func(a, b string) int {
		return cmp.Or(cmp.Compare(numberOf(a), numberOf(b)), cmp.Compare(a, b))
	})
	return strings.Join(ids[max(0, len(ids)-maxNames):], ", ")
}

// numberOf returns the number in an id.
func numberOf(id string) int {
	digits, _, _ := strings.Cut(id[1:], "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// expire drops results that were not used for too long.
func (t *Table) expire() {
	for t.results.Len() > 0 && time.Since(oldest(t.results).used) >= t.Idle {
		t.drop(oldest(t.results))
	}
}

// oldest returns the least recently used of some results.
func oldest(results *list.List) *entry { return results.Front().Value.(*entry) }

// evict drops a result, and removes it from the shelf if this process has put it there. The
// caller holds mu.
func (t *Table) evict(e *entry) {
	if !e.shared.IsZero() && !e.isCopy {
		t.Shelf.Keep(e.client, e.id, 0)
	}
	t.drop(e)
}

// drop removes a result. It keeps the client and its counter, so that an old id never
// means a new result.
func (t *Table) drop(e *entry) {
	c := t.clients[e.client]
	t.results.Remove(e.inAll)
	c.order.Remove(e.inOwn)
	delete(c.results, e.id)
	c.bytes -= e.bytes()
	t.bytes -= e.bytes()
}
