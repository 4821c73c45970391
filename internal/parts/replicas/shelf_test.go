package replicas

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/executor/results"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// sharedStores are the stores that the tests of shelves run over.
var sharedStores = map[string]func(t testing.TB) store.Store{
	"memory": func(testing.TB) store.Store { return store.NewMemory() },
	"redis": func(t testing.TB) store.Store {
		r, err := redis.Open(storetest.Start(t).Address(), redis.Options{Limit: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	},
}

// overStores runs a test over each store, with the shelves of two replicas.
func overStores(t *testing.T, test func(t *testing.T, s *failing, a, b results.Shelf)) {
	for name, open := range sharedStores {
		t.Run(name, func(t *testing.T) {
			s := &failing{Store: open(t)}
			test(t, s, newShelf(t, s), newShelf(t, s))
		})
	}
}

// newShelf returns the shelf of one replica.
func newShelf(t testing.TB, s store.Store) results.Shelf {
	changes := newBackground()
	t.Cleanup(changes.close)
	return &shelf{s, "default", changes}
}

// failing is a store that can be down.
type failing struct {
	store.Store
	isDown atomic.Bool
}

var errDown = errors.New("the store cannot be used: connection refused")

func (f *failing) Err() error {
	if f.isDown.Load() {
		return errDown
	}
	return f.Store.Err()
}

func (f *failing) Part(ctx context.Context, key string, from, to int) ([]byte, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return f.Store.Part(ctx, key, from, to)
}

// get reads a whole result.
func get(s results.Shelf, client, id string) (results.Kept, error) {
	found, err := s.Get(context.Background(), client, id)
	if err != nil {
		return results.Kept{}, err
	}
	k, err := found.Read(context.Background())
	if err == nil && found.Size != len(k.Text) {
		return k, fmt.Errorf("the size is %d, the text has %d bytes", found.Size, len(k.Text))
	}
	return k, err
}

// text is a result without JSON.
func text(s string) results.Kept { return results.Kept{Text: s} }

// noise returns a text that is hard to compress.
func noise(size int) string {
	return base64.StdEncoding.EncodeToString(random(size))[:size]
}

// random returns bytes that cannot be compressed.
func random(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

// rows returns JSON of about that size.
func rows(size int) string {
	return `{"items":[` + strings.Repeat(`{"id":12345678,"name":"a name"},`, size/32) + `{}]}`
}

// TestShelves: what one replica puts onto its shelf is on that of another.
func TestShelves(t *testing.T) {
	overStores(t, func(t *testing.T, _ *failing, a, b results.Shelf) {
		long := rows(1 << 20)
		for i, k := range []results.Kept{
			{}, text("plain text"), {Text: "{}", Data: "{}"}, {Text: long, Data: long}, {Text: "note\n" + long, Data: long}, text(noise(300_000)),
			text(noise(rawBytes - 1)), text(noise(rawBytes)), text(noise(rawBytes + 1)),
		} {
			id, ok := a.Put("me", i, k, time.Hour)
			if !ok || !idForm.MatchString(id) {
				t.Fatalf("%d: put as %q", i, id)
			}
			if got, err := get(b, "me", id); err != nil || got != k {
				t.Errorf("%d: %d bytes, with %d of JSON: %v", i, len(got.Text), len(got.Data), err)
			}
		}
	})
	if value := pack(text(string(random(packedBytes)))); value != nil {
		t.Errorf("a result that is too long is packed in %d bytes", len(value))
	}
}

// TestLongSharedResult reads a result for which Get of a slow store has no time.
func TestLongSharedResult(t *testing.T) {
	s := newShelf(t, &hasty{store.NewMemory()})
	for _, size := range []int{1, startBytes, 300_000} {
		want := noise(size)
		id, _ := s.Put("me", 1, text(want), time.Hour)
		if k, err := get(s, "me", id); err != nil || k.Text != want {
			t.Errorf("%d bytes: %d are read, %v", size, len(k.Text), err)
		}
	}
}

// hasty is a store whose Get fails for long values.
type hasty struct{ *store.Memory }

func (s *hasty) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.Memory.Get(ctx, key)
	if len(value) > startBytes {
		return nil, errDown
	}
	return value, err
}

// TestSharedResultsBelongToTheirClient tries to read results with other names and ids.
func TestSharedResultsBelongToTheirClient(t *testing.T) {
	overStores(t, func(t *testing.T, s *failing, a, b results.Shelf) {
		id, _ := a.Put("me", 1, text("mine"), time.Hour)
		other := &shelf{s, "another profile", newBackground()}
		for _, row := range []struct {
			name, client, id string
			from             results.Shelf
		}{
			{"another client", "you", id, b},
			{"another client on the same replica", "you", id, a},
			{"no client", "", id, b},
			{"another profile", "me", id, other},
			{"the key of another client", "you", "me:" + id, b},
			{"a pattern", "me", "r1-*", b},
			{"a path", "me", "../" + id, b},
			{"a longer id", "me", id + "x", b},
			{"a line", "me", id + "\n", b},
			{"no id", "me", "", b},
		} {
			if got, err := get(row.from, row.client, row.id); !errors.Is(err, results.ErrNoResult) {
				t.Errorf("%s: %q, %v", row.name, got, err)
			}
		}
		if got, err := get(b, "me", id); err != nil || got.Text != "mine" {
			t.Errorf("the client itself: %q, %v", got, err)
		}
	})
}

// TestShelfWithoutItsStore: results that cannot be put or read are errors that say what to do.
func TestShelfWithoutItsStore(t *testing.T) {
	overStores(t, func(t *testing.T, s *failing, a, b results.Shelf) {
		before, _ := a.Put("me", 1, text("before"), time.Hour)
		s.isDown.Store(true)
		if id, ok := a.Put("me", 2, text("text"), time.Hour); ok || !idForm.MatchString(id) {
			t.Errorf("put as %q", id)
		}
		if _, err := get(b, "me", before); err == nil || !strings.Contains(err.Error(), "on this replica, and the store cannot be used") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		cancel(gone)
		if _, err := b.Get(ctx, "me", before); !errors.Is(err, gone) {
			t.Errorf("canceled: %v", err)
		}
		s.isDown.Store(false)
		if _, err := get(b, "me", before); err != nil {
			t.Errorf("the store is back: %v", err)
		}
	})
}

// TestIDsNeverCollide lets replicas put results of one client at the same time.
func TestIDsNeverCollide(t *testing.T) {
	overStores(t, func(t *testing.T, _ *failing, a, b results.Shelf) {
		var all sync.WaitGroup
		var owners sync.Map
		for i, s := range []results.Shelf{a, b, a, b} {
			all.Go(func() {
				for n := range 100 {
					own := fmt.Sprint("result ", i, " ", n)
					id, _ := s.Put("me", n, text(own), time.Hour)
					if old, taken := owners.LoadOrStore(id, own); taken {
						t.Errorf("%s is %q and %q", id, old, own)
					}
				}
			})
		}
		all.Wait()
		for id, own := range owners.Range {
			if k, err := get(b, "me", id.(string)); err != nil || k.Text != own {
				t.Errorf("%s: %q, %v, want %q", id, k.Text, err, own)
			}
		}
	})
}

// TestTakenID checks that an id which another replica has given out is not used again.
func TestTakenID(t *testing.T) {
	full := &takenKeys{Memory: store.NewMemory(), refuse: 2}
	s := newShelf(t, full)
	if id, ok := s.Put("me", 1, text("text"), time.Hour); !ok || full.refuse != 0 {
		t.Errorf("put as %s: %t, %d ids left to try", id, ok, full.refuse)
	}
	full.refuse = 100
	if id, ok := s.Put("me", 1, text("text"), time.Hour); ok {
		t.Errorf("put as %s", id)
	}
}

// takenKeys is a store in which some keys have a value already.
type takenKeys struct {
	*store.Memory
	refuse int
}

func (s *takenKeys) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	if s.refuse > 0 {
		s.refuse--
		return false, nil
	}
	return s.Memory.Add(ctx, key, value, keep)
}

// TestKeep: a result expires, unless it is kept, and can be removed.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{store.NewMemory(), "default", newBackground()}
		kept, _ := s.Put("me", 1, text("kept"), time.Minute)
		expired, _ := s.Put("me", 2, text("expired"), time.Minute)
		removed, _ := s.Put("me", 3, text("removed"), time.Hour)
		s.Keep("me", kept, time.Hour)
		s.Keep("me", removed, 0)
		s.close()
		<-time.After(2 * time.Minute)
		if k, err := get(s, "me", kept); err != nil || k.Text != "kept" {
			t.Errorf("a result that is kept: %v", err)
		}
		for _, id := range []string{expired, removed} {
			if k, err := get(s, "me", id); !errors.Is(err, results.ErrNoResult) {
				t.Errorf("%q: %v", k.Text, err)
			}
		}
	})
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
	b.close()
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
		b.close()
		if took := time.Since(begin); took > closeTime+store.Limit {
			t.Errorf("it took %s", took)
		}
	})
}

// stored returns what a replica reads if the store has that value.
func stored(t *testing.T, value []byte) (results.Kept, error) {
	t.Helper()
	shared := store.NewMemory()
	s := &shelf{shared, "default", newBackground()}
	if err := shared.Set(t.Context(), s.key("me", "r1-aaaa"), value, time.Hour); err != nil {
		t.Fatal(err)
	}
	return get(s, "me", "r1-aaaa")
}

// TestDamagedResults reads values whose header and text do not belong together, and those of
// another version.
func TestDamagedResults(t *testing.T) {
	long := pack(text(strings.Repeat("x", 2*rawBytes)))
	changed := func(number, to int) []byte { // of the header
		value := append([]byte{}, long...)
		binary.BigEndian.PutUint32(value[len(packMark)+4*number:], uint32(to))
		return value
	}
	for name, row := range map[string]struct {
		value []byte
		want  error
	}{
		"as it is":         {long, nil},
		"a longer text":    {changed(0, rawBytes+1), errPacked},
		"a shorter text":   {changed(0, 3*rawBytes), errPacked},
		"cut":              {long[:len(long)-1], errPacked},
		"JSON past itself": {changed(1, 1), results.ErrNoResult},
		"JSON past text":   {changed(2, 3*rawBytes), results.ErrNoResult},
		"much too long":    {changed(0, textBytes+1), results.ErrNoResult},
		"another version":  {append([]byte("mcpx1"), long[5:]...), results.ErrNoResult},
		"a short value":    {[]byte(packMark), results.ErrNoResult},
	} {
		if got, err := stored(t, row.value); !errors.Is(err, row.want) {
			t.Errorf("%s: %d bytes, %v", name, len(got.Text), err)
		}
	}
}

// TestFetchWeight: reading a result needs no more memory than results.Table acquires for it.
func TestFetchWeight(t *testing.T) {
	s := newShelf(t, store.NewMemory())
	for name, k := range map[string]results.Kept{"rows": text(rows(1 << 20)), "noise": text(noise(1 << 20))} {
		id, _ := s.Put("me", 1, k, time.Hour)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := get(s, "me", id); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := int(after.TotalAlloc - before.TotalAlloc); got > results.FetchWeight*len(k.Text) {
			t.Errorf("%s: %d bytes for %d", name, got, len(k.Text))
		}
	}
}

// FuzzPack checks that a packed result is read as it was, and that damaged values are errors.
func FuzzPack(f *testing.F) {
	f.Add("text", 1, 2, 0)
	f.Add(noise(200_000), 65_000, 130_000, 7)
	f.Add(strings.Repeat("é", 50_000), 1, 2, 100)
	f.Fuzz(func(t *testing.T, all string, from, to, damage int) {
		want := text(all)
		if from >= 0 && from < to && to <= len(all) {
			want.Data = all[from:to]
		}
		value := pack(want)
		if got, err := stored(t, value); err != nil || got != want {
			t.Fatalf("the whole result: %v", err)
		}
		if damage >= 0 && damage < len(value) {
			value[damage] ^= 0x55
			_, _ = stored(t, value) // must not panic, nor allocate without a bound
			if got, err := stored(t, value[:damage]); err == nil && got.Text != all {
				t.Error("a value that was cut is read as another text")
			}
		}
	})
}

// BenchmarkPut measures what a shared store adds to a call whose result is kept.
func BenchmarkPut(b *testing.B) {
	s := newShelf(b, sharedStores["redis"](b))
	for _, size := range []int{2 << 10, 64 << 10, 1 << 20} {
		k := text(rows(size))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				s.Put("me", 1, k, time.Minute)
			}
		})
	}
}
