package results

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/selection"
)

// memoryShelf is a Shelf that several Tables share.
type memoryShelf struct {
	mu     sync.Mutex
	kept   map[string]shelvedText // by client and id
	isDown bool
	reads  int
	keeps  int // calls of Keep, except removals
}

type shelvedText struct {
	Kept
	until time.Time
}

func newMemoryShelf() *memoryShelf { return &memoryShelf{kept: map[string]shelvedText{}} }

var errDown = errors.New("the shelf cannot be used")

func (m *memoryShelf) Put(client string, number int, k Kept, keep time.Duration) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := fmt.Sprintf("r%d-%04d", number, len(m.kept))
	if !m.isDown {
		m.kept[client+" "+id] = shelvedText{k, time.Now().Add(keep)}
	}
	return id, !m.isDown
}

func (m *memoryShelf) Get(_ context.Context, client, id string) (Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[client+" "+id]
	if m.isDown {
		return Found{}, errDown
	}
	if !ok || time.Now().After(k.until) {
		return Found{}, ErrNoResult
	}
	return Found{len(k.Text), func(context.Context) (Kept, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reads++
		return k.Kept, nil
	}}, nil
}

func (m *memoryShelf) Keep(client, id string, keep time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[client+" "+id]
	switch {
	case !ok:
	case keep <= 0:
		delete(m.kept, client+" "+id)
	default:
		m.keeps++
		m.kept[client+" "+id] = shelvedText{k.Kept, time.Now().Add(keep)}
	}
}

// replica returns the results of one replica.
func replica(s Shelf, tokens int) *Table {
	o := limits(tokens)
	o.Shelf = s
	return New(o)
}

// TestSharedResults reads what one replica keeps on another, in every way.
func TestSharedResults(t *testing.T) {
	shelf := newMemoryShelf()
	a, b := replica(shelf, 1000), replica(shelf, 1000)
	q, err := selection.Parse("id limit 2")
	if err != nil {
		t.Fatal(err)
	}
	long := `{"items":[` + strings.Repeat(`{"id":12345678901234567890,"name":"é"},`, 20_000) + `{"id":2}]}`
	for _, k := range []kept{asKept(`{"items":[{"id":1},{"id":2}]}`), asKept(long), textOnly("plain text"), textOnly(strings.Repeat("é\n", 150_000)), {text: "note\n" + long, data: long}} {
		h := a.save("me", k)
		if h.place != "" || !idForm.MatchString(h.id) {
			t.Fatalf("kept as %+v", h)
		}
		for _, query := range []Query{{}, {Limit: 7}, {Offset: len(k.text) / 2}, {Offset: -3}, {Offset: 1 << 40}, {Grep: "2"}, {Path: "/items/0"}, {Select: q}} {
			query.ID = h.id
			want, wantErr := a.Read(context.Background(), "me", query)
			got, err := replica(shelf, 1000).Read(context.Background(), "me", query) // one that has cached nothing
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%+v: %q, %v\nwant %q, %v", query, got, err, want, wantErr)
			}
		}
		want, wantErr := resolved(a, "me", h.id+"/items/0/id")
		got, err := resolved(b, "me", h.id+"/items/0/id")
		if string(got) != string(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("a reference: %q, %v, want %q, %v", got, err, want, wantErr)
		}
	}
}

// TestFetchIsShared: requests for one result of another replica fetch it once, within the
// budget.
func TestFetchIsShared(t *testing.T) {
	shelf := newMemoryShelf()
	h := replica(shelf, 1000).save("me", asKept(largeData(1 << 20)["rows"]))
	b := replica(shelf, 1000)
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			q := Query{ID: h.id, Offset: i}
			if i%2 == 0 {
				q = Query{ID: h.id, Select: query("count")}
			}
			if _, err := b.Read(t.Context(), "me", q); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if shelf.reads != 1 {
		t.Errorf("%d of 20 requests fetched the result", shelf.reads)
	}
}

// TestSharedResultsBelongToTheirClient: another client does not find a result.
func TestSharedResultsBelongToTheirClient(t *testing.T) {
	shelf := newMemoryShelf()
	a, b := replica(shelf, 1000), replica(shelf, 1000)
	h := a.save("me", textOnly("mine"))
	for _, from := range []*Table{a, b} {
		if got, err := from.Read(context.Background(), "you", Query{ID: h.id}); err == nil || !strings.Contains(err.Error(), "no result") {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := b.Read(context.Background(), "me", Query{ID: h.id}); err != nil || !strings.HasPrefix(got, "mine\n") {
		t.Errorf("the client itself: %q, %v", got, err)
	}
}

// TestShelfDown keeps results while the shelf cannot be used: they say so, and are read here.
func TestShelfDown(t *testing.T) {
	shelf := newMemoryShelf()
	a, b := replica(shelf, 1000), replica(shelf, 1000)
	before := a.save("me", textOnly("before"))
	shelf.isDown = true
	for _, row := range []struct{ name, got, want string }{
		{"kept", string(fitted(a, []byte(`{"content":[`+textItem(strings.Repeat("word ", 500))+`]}`))), `kept as ID (only on this replica); use {\"$r\": \"ID\", \"lines\": \"5-9\"} (or match, replace) or select \"/RE2/\"`},
		{"cut", string(fitted(a, []byte(`{"content":[`+textItem(strings.Repeat("word ", 5000))+`]}`))), `Kept as ID (only on this replica): exec(`},
		{"selected", string(selected(a, []byte(`{"structuredContent":{"id":1}}`), &selection.Query{Pattern: "1"})), `tokens) (only on this replica)"`},
	} {
		if got := idForm.ReplaceAllString(row.got, "ID"); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s", row.name, got)
		}
	}
	local := a.save("me", textOnly("local"))
	if _, err := a.Read(context.Background(), "me", Query{ID: local.id}); err != nil || local.place != onlyHere {
		t.Errorf("%+v: %v", local, err)
	}
	for _, query := range []Query{{ID: before.id}, {ID: before.id, Grep: "x"}} {
		if _, err := b.Read(context.Background(), "me", query); !errors.Is(err, errDown) {
			t.Errorf("on another replica: %v", err)
		}
	}
	shelf.isDown = false
	if _, err := b.Read(context.Background(), "me", Query{ID: before.id}); err != nil {
		t.Errorf("the shelf is back: %v", err)
	}
	if _, err := replica(shelf, 1000).Read(context.Background(), "me", Query{ID: local.id}); err == nil || !strings.Contains(err.Error(), "none is kept") {
		t.Errorf("a result of another replica: %v", err)
	}
}

// TestWhatStaysShared checks what other replicas can read after a replica has dropped it.
func TestWhatStaysShared(t *testing.T) {
	shelf := newMemoryShelf()
	a := replica(shelf, 1000)
	for _, row := range []struct {
		name string
		drop func(id string)
		want bool
	}{
		{"the session ends on one replica", func(string) { a.Forget("me") }, true},
		{"the session ends everywhere", func(string) { a.Remove("me") }, false},
		{"there is no room", func(string) {
			a.Bytes = 1000
			a.save("you", textOnly(strings.Repeat("x", 1000)))
			a.Bytes = 256 << 20
		}, false},
		{"a copy is dropped", func(id string) {
			c := replica(shelf, 1000)
			_, _ = c.load(context.Background(), "me", id)
			c.Remove("me")
		}, true},
	} {
		h := a.save("me", textOnly("text"))
		row.drop(h.id)
		if _, err := replica(shelf, 1000).Read(context.Background(), "me", Query{ID: h.id}); (err == nil) != row.want {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestUseKeepsSharedResults checks that a result which is used expires nowhere.
func TestUseKeepsSharedResults(t *testing.T) {
	shelf := newMemoryShelf()
	a := replica(shelf, 1000)
	h := a.save("me", textOnly("text"))
	for _, query := range []Query{{ID: h.id}, {ID: h.id, Grep: "x"}} {
		before := shelf.keeps
		if _, err := replica(shelf, 1000).Read(context.Background(), "me", query); err != nil {
			t.Fatal(err)
		}
		if shelf.keeps == before {
			t.Errorf("%+v: the use of a shared result does not keep it", query)
		}
	}
	a.clients["me"].results[h.id].shared = time.Now().Add(-a.Idle / 2)
	before := shelf.keeps
	for range 10 {
		_, _ = a.Read(context.Background(), "me", Query{ID: h.id})
	}
	if n := shelf.keeps - before; n != 1 {
		t.Errorf("10 uses keep a result %d times, want once", n)
	}
}

// TestUseOfACopyKeepsSharedResults uses a result only on a replica that has cached it.
func TestUseOfACopyKeepsSharedResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := newMemoryShelf()
		a, b, c := replica(shelf, 1000), replica(shelf, 1000), replica(shelf, 1000)
		h := a.save("me", textOnly("text"))
		for range 10 {
			if _, err := b.load(context.Background(), "me", h.id); err != nil {
				t.Fatal(err)
			}
			<-time.After(b.Idle / 3)
		}
		if _, err := c.Read(context.Background(), "me", Query{ID: h.id}); err != nil {
			t.Errorf("on a third replica: %v", err)
		}
	})
}

// idForm finds ids in notes.
var idForm = regexp.MustCompile(`r[0-9]+-[a-z0-9]{4}`)
