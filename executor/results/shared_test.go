package results

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/selection"
	"mcpx/internal/store"
	"mcpx/internal/store/storetest"
)

// sharedStores are the stores that the tests of shared results run over.
var sharedStores = map[string]func(t testing.TB) store.Store{
	"memory": func(testing.TB) store.Store { return store.NewMemory() },
	"redis": func(t testing.TB) store.Store {
		r, err := store.OpenRedis(storetest.Start(t).Address(), store.Options{Limit: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	},
}

// observed is a store that counts what is transferred, and that can fail.
type observed struct {
	store.Store
	read   atomic.Int64 // bytes
	isDown atomic.Bool
}

var errDown = errors.New("the store cannot be used: connection refused")

func (o *observed) Err() error {
	if o.isDown.Load() {
		return errDown
	}
	return o.Store.Err()
}

func (o *observed) Get(ctx context.Context, key string) ([]byte, error) {
	if err := o.Err(); err != nil {
		return nil, err
	}
	value, err := o.Store.Get(ctx, key)
	o.read.Add(int64(len(value)))
	return value, err
}

func (o *observed) Part(ctx context.Context, key string, from, to int) ([]byte, error) {
	if err := o.Err(); err != nil {
		return nil, err
	}
	value, err := o.Store.Part(ctx, key, from, to)
	o.read.Add(int64(len(value)))
	return value, err
}

// replica returns the results of one replica.
func replica(s store.Store, tokens int) *Store {
	o := limits(tokens)
	o.Sharing = Sharing{Store: s, Space: "default"}
	return New(o)
}

// overStores runs a test over each store with two replicas.
func overStores(t *testing.T, test func(t *testing.T, s *observed, a, b *Store)) {
	for name, open := range sharedStores {
		t.Run(name, func(t *testing.T) {
			s := &observed{Store: open(t)}
			a, b := replica(s, 1000), replica(s, 1000)
			t.Cleanup(func() { a.Close(); b.Close() })
			test(t, s, a, b)
		})
	}
}

// noise returns a text that is hard to compress, so that its blocks have a size.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%x é\n", random.Uint64())
	}
	return b.String()
}

// TestSharedResults reads what one replica keeps on another, in every way.
func TestSharedResults(t *testing.T) {
	overStores(t, func(t *testing.T, _ *observed, a, b *Store) {
		q, err := selection.Parse("id limit 2")
		if err != nil {
			t.Fatal(err)
		}
		long := `{"items":[` + strings.Repeat(`{"id":12345678901234567890,"name":"é"},`, 20_000) + `{"id":2}]}`
		for _, k := range []kept{asKept(`{"items":[{"id":1},{"id":2}]}`), asKept(long), textOnly("plain text"), textOnly(noise(300_000)), {text: "note\n" + long, data: long}} {
			h := a.save("me", k)
			if h.place != "" || !sharedID.MatchString(h.id) {
				t.Fatalf("kept as %+v", h)
			}
			for _, query := range []Query{{}, {Limit: 7}, {Offset: len(k.text) / 2}, {Offset: -3}, {Offset: 1 << 40}, {Grep: "2"}, {Path: "/items/0"}, {Select: q}} {
				query.ID = h.id
				want, wantErr := a.Read(context.Background(), "me", query)
				got, err := replica(b.Store, 1000).Read(context.Background(), "me", query) // one that has cached nothing
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
	})
}

// TestPartsAreReadAlone checks that reading by offset transfers only the blocks that it
// shows, and that the rest is read once.
func TestPartsAreReadAlone(t *testing.T) {
	overStores(t, func(t *testing.T, s *observed, a, b *Store) {
		text := noise(4 << 20)
		h := a.save("me", textOnly(text))
		for _, offset := range []int{0, 2 << 20, -2000} {
			s.read.Store(0)
			if _, err := b.Read(context.Background(), "me", Query{ID: h.id, Offset: offset, Limit: 1000}); err != nil {
				t.Fatal(err)
			}
			if n := s.read.Load(); n > 2*blockBytes+headerBytes {
				t.Errorf("offset %d: %d bytes were read", offset, n)
			}
		}
		for range 2 {
			s.read.Store(0)
			if _, err := b.Read(context.Background(), "me", Query{ID: h.id, Grep: "nothing like this"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.read.Load(); n != 0 {
			t.Errorf("%d bytes were read a second time", n)
		}
	})
}

// TestLongSharedResult reads the whole of a result for which Get of a slow store has no time.
func TestLongSharedResult(t *testing.T) {
	s := &hasty{store.NewMemory()}
	for _, size := range []int{1, headerBytes - 1, headerBytes, headerBytes + 1, 300_000} {
		text := noise(size)
		h := replica(s, 1000).save("me", textOnly(text))
		if k, err := replica(s, 1000).load(context.Background(), "me", h.id); err != nil || k.text != text {
			t.Errorf("%d bytes: %d are read, %v", size, len(k.text), err)
		}
	}
}

// hasty is a store whose Get fails for long values.
type hasty struct{ *store.Memory }

func (s *hasty) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.Memory.Get(ctx, key)
	if len(value) > headerBytes {
		return nil, errDown
	}
	return value, err
}

// TestSharedResultsBelongToTheirClient tries to read results with other names and ids.
func TestSharedResultsBelongToTheirClient(t *testing.T) {
	overStores(t, func(t *testing.T, s *observed, a, b *Store) {
		h := a.save("me", textOnly("mine"))
		other := replica(s, 1000)
		other.Space = "another schema"
		for _, row := range []struct {
			name, client, id string
			from             *Store
		}{
			{"another client", "you", h.id, b},
			{"another client on the same replica", "you", h.id, a},
			{"no client", "", h.id, b},
			{"another schema", "me", h.id, other},
			{"the key of another client", "you", "me:" + h.id, b},
			{"a pattern", "me", "r1-*", b},
			{"a path", "me", "../" + h.id, b},
			{"a longer id", "me", h.id + "x", b},
			{"a line", "me", h.id + "\n", b},
			{"no id", "me", "", b},
		} {
			if got, err := row.from.Read(context.Background(), row.client, Query{ID: row.id}); err == nil || !strings.Contains(err.Error(), "no result") {
				t.Errorf("%s: %q, %v", row.name, got, err)
			}
			if got, err := resolved(row.from, row.client, row.id); err == nil {
				t.Errorf("%s: a reference gives %q", row.name, got)
			}
		}
		if got, err := b.Read(context.Background(), "me", Query{ID: h.id}); err != nil || !strings.HasPrefix(got, "mine\n") {
			t.Errorf("the client itself: %q, %v", got, err)
		}
	})
}

// TestStoreDown keeps results while the store cannot be used: they say so, and are read here.
func TestStoreDown(t *testing.T) {
	overStores(t, func(t *testing.T, s *observed, a, b *Store) {
		before := a.save("me", textOnly("before"))
		s.isDown.Store(true)
		for _, row := range []struct{ name, got, want string }{
			{"kept", string(fitted(a, []byte(`{"content":[`+textItem(strings.Repeat("word ", 500))+`]}`))), `kept as ID (only on this replica); use {\"$r\": \"ID\"} or select \"/RE2/\"`},
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
			if _, err := b.Read(context.Background(), "me", query); err == nil || !strings.Contains(err.Error(), "on this replica, and the store cannot be used") {
				t.Errorf("on another replica: %v", err)
			}
		}
		s.isDown.Store(false)
		if _, err := b.Read(context.Background(), "me", Query{ID: before.id}); err != nil {
			t.Errorf("the store is back: %v", err)
		}
		if _, err := b.Read(context.Background(), "me", Query{ID: local.id}); err == nil || !strings.Contains(err.Error(), "none is kept") {
			t.Errorf("a result of another replica: %v", err)
		}
	})
}

// TestIDsNeverCollide lets replicas keep results of one client at the same time.
func TestIDsNeverCollide(t *testing.T) {
	overStores(t, func(t *testing.T, _ *observed, a, b *Store) {
		var all sync.WaitGroup
		var owners sync.Map
		for i, s := range []*Store{a, b, a, b} {
			all.Go(func() {
				for n := range 100 {
					text := fmt.Sprint("result ", i, " ", n)
					h := s.save("me", textOnly(text))
					if old, taken := owners.LoadOrStore(h.id, text); taken {
						t.Errorf("%s is %q and %q", h.id, old, text)
					}
				}
			})
		}
		all.Wait()
		for id, text := range owners.Range {
			if k, err := b.load(context.Background(), "me", id.(string)); err != nil || k.text != text {
				t.Errorf("%s: %q, %v, want %q", id, k.text, err, text)
			}
		}
	})
}

// TestTakenID checks that an id which another replica has given out is not used again.
func TestTakenID(t *testing.T) {
	full := &taken{Memory: store.NewMemory(), refuse: 2}
	h := replica(full, 1000).save("me", textOnly("text"))
	if h.place != "" || full.refuse != 0 {
		t.Errorf("kept as %+v, %d ids left to try", h, full.refuse)
	}
	full.refuse = 100
	if h := replica(full, 1000).save("me", textOnly("text")); h.place != onlyHere {
		t.Errorf("kept as %+v", h)
	}
}

// taken is a store in which some keys have a value already.
type taken struct {
	*store.Memory
	refuse int
}

func (s *taken) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	if s.refuse > 0 {
		s.refuse--
		return false, nil
	}
	return s.Memory.Add(ctx, key, value, keep)
}

// TestWhatStaysShared checks what other replicas can read after a replica has dropped it.
func TestWhatStaysShared(t *testing.T) {
	overStores(t, func(t *testing.T, _ *observed, a, b *Store) {
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
				c := replica(b.Store, 1000)
				_, _ = c.load(context.Background(), "me", id)
				c.Remove("me")
				c.Close()
			}, true},
		} {
			h := a.save("me", textOnly("text"))
			row.drop(h.id)
			a.Close()
			if _, err := replica(b.Store, 1000).Read(context.Background(), "me", Query{ID: h.id}); (err == nil) != row.want {
				t.Errorf("%s: %v", row.name, err)
			}
		}
	})
}

// TestUseKeepsSharedResults checks that a result which is used expires nowhere.
func TestUseKeepsSharedResults(t *testing.T) {
	kept := &keeping{Memory: store.NewMemory()}
	a, b := replica(kept, 1000), replica(kept, 1000)
	h := a.save("me", textOnly("text"))
	a.Idle = 0 // so that each use is long after the last
	for _, read := range []func() (string, error){
		func() (string, error) { return b.Read(context.Background(), "me", Query{ID: h.id}) },
		func() (string, error) { return b.Read(context.Background(), "me", Query{ID: h.id, Grep: "x"}) },
	} {
		before := kept.times.Load()
		if _, err := read(); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if kept.times.Load() == before {
			t.Error("the use of a shared result does not keep it")
		}
	}
	a.Idle = time.Hour
	h = a.save("me", textOnly("text"))
	a.clients["me"].results[h.id].shared = time.Now().Add(-time.Hour / 2)
	before := kept.times.Load()
	for range 10 {
		_, _ = a.Read(context.Background(), "me", Query{ID: h.id})
	}
	a.Close()
	if n := kept.times.Load() - before; n != 1 {
		t.Errorf("10 uses keep a result %d times, want once", n)
	}
}

// TestUseOfACopyKeepsSharedResults uses a result only on a replica that has cached it.
func TestUseOfACopyKeepsSharedResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory()
		a, b, c := replica(shared, 1000), replica(shared, 1000), replica(shared, 1000)
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

type keeping struct {
	*store.Memory
	times atomic.Int64
}

func (s *keeping) Keep(ctx context.Context, key string, keep time.Duration) error {
	s.times.Add(1)
	return s.Memory.Keep(ctx, key, keep)
}

// TestTasksAreBounded checks that tasks for a slow store are dropped.
func TestTasksAreBounded(t *testing.T) {
	b := newBackground()
	hold := make(chan struct{})
	var ran atomic.Int64
	for range 3 * maxTasks {
		b.later(func() { <-hold; ran.Add(1) })
	}
	close(hold)
	b.Close()
	if n := ran.Load(); n != maxTasks {
		t.Errorf("%d tasks ran", n)
	}
}

// TestCloseIsQuick checks that a slow store does not delay the end of mcpx for long.
func TestCloseIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackground()
		for range maxTasks {
			b.later(func() { <-time.After(store.Limit) })
		}
		begin := time.Now()
		b.Close()
		if took := time.Since(begin); took > closeTime+store.Limit {
			t.Errorf("it took %s", took)
		}
	})
}

// TestDamagedResults reads values whose header and blocks do not belong together.
func TestDamagedResults(t *testing.T) {
	long := pack(textOnly(strings.Repeat("x", blockBytes)))
	p, err := readHeader(long)
	if err != nil {
		t.Fatal(err)
	}
	header := []byte(packMark)
	for _, n := range []int{10, 0, 10, 1, len(long) - p.head} { // a text of 10 bytes in a block with more
		header = binary.AppendUvarint(header, uint64(n))
	}
	shared := store.NewMemory()
	r := replica(shared, 100_000)
	if err := shared.Set(t.Context(), r.key("me", "r1-aaaa"), append(header, long[p.head:]...), time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, query := range []Query{{}, {Offset: 5}, {Limit: 3}, {Grep: "x"}} {
		query.ID = "r1-aaaa"
		if got, err := r.Read(context.Background(), "me", query); !errors.Is(err, errPacked) {
			t.Errorf("%+v: %d bytes, %v", query, len(got), err)
		}
	}
}

// FuzzPack checks that any part of a packed result is the same part of its text, and that
// damaged values are errors.
func FuzzPack(f *testing.F) {
	f.Add("text", 0, 4, 0)
	f.Add(noise(200_000), 65_000, 130_000, 7)
	f.Add(strings.Repeat("é", 50_000), 1, 2, 100)
	f.Fuzz(func(t *testing.T, text string, from, to, damage int) {
		value := pack(kept{text: text, data: text})
		got, err := fetched(t, value)
		if err != nil || got.text != text || got.data != text {
			t.Fatalf("the whole result: %v", err)
		}
		p, err := readHeader(value[:min(len(value), headerBytes)])
		if err != nil {
			t.Fatal(err)
		}
		if from >= 0 && from < to && to <= len(text) {
			first, end := p.stored(from, to)
			part, at, err := p.text(value[first:end], from)
			if err != nil || at > from || at+len(part) < to || part[from-at:to-at] != text[from:to] {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
		}
		if damage >= 0 && damage < len(value) {
			value[damage] ^= 0x55
			_, _ = fetched(t, value) // must not panic, nor allocate without a bound
			if got, err := fetched(t, value[:damage]); err == nil && got.text != text {
				t.Error("a value that was cut is read as another text")
			}
		}
	})
}

// fetched returns a packed result as another replica reads it from the store.
func fetched(t *testing.T, value []byte) (kept, error) {
	t.Helper()
	shared := store.NewMemory()
	r := replica(shared, 100_000)
	if err := shared.Set(t.Context(), r.key("me", "r1-aaaa"), value, time.Hour); err != nil {
		t.Fatal(err)
	}
	return r.fetch(context.Background(), "me", "r1-aaaa", errors.New("there is none"))
}

// idForm finds ids in notes.
var idForm = regexp.MustCompile(`r[0-9]+-[a-z2-7]{4}`)

// BenchmarkSave measures what a shared store adds to a call whose result is kept.
func BenchmarkSave(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10, 1 << 20} {
		k := asKept(`{"items":[` + strings.Repeat(`{"id":12345678,"name":"a name"},`, size/32) + `{}]}`)
		for name, s := range map[string]*Store{"local": New(limits(1000)), "redis": replica(sharedStores["redis"](b), 1000)} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				for b.Loop() {
					s.save("me", k)
				}
			})
			s.Close()
		}
	}
}
