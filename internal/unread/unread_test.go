package unread

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/rawjson"
)

// response returns a response of that size.
func response(id, size int) []byte {
	b := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":"`, id)
	b = append(b, strings.Repeat(fmt.Sprint(id, "abcdefg"), size/8)[:size-len(b)-2]...)
	return slices.Clip(append(b, `"}`...))
}

// whole reads a message piece by piece.
func whole(t *testing.T, m *Message) []byte {
	t.Helper()
	var b []byte
	if err := m.Each(func(piece []byte) error { b = append(b, piece...); return nil }); err != nil {
		t.Error(err)
	}
	return b
}

// TestMemory: only so many bytes are kept in memory, for one client and for all. The
// responses that do not fit are in files.
func TestMemory(t *testing.T) {
	const unread = 1 << 20
	for name, c := range map[string]struct {
		accounts, messages, size int
		inMemory                 int // most bytes
	}{
		"short messages of one client": {1, 100, 30_000, unread},
		"long messages of one client":  {1, 20, 700_000, unread},
		"one that is longer":           {1, 3, 2 << 20, 2 << 20},
		"many clients":                 {20, 2, 500_000, memoryOfAll * unread},
		"many clients with a share":    {100, 2, 200_000, memoryOfAll*unread + 100*share},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(unread)
			var kept []Message
			var sums [][sha256.Size]byte
			counted := 0
			for range c.accounts {
				a := b.NewAccount(unread, func(bytes int) { counted += bytes })
				for i := range c.messages {
					r := response(i, c.size)
					sums = append(sums, sha256.Sum256(r))
					kept = append(kept, a.Keep(r))
				}
			}
			if got := b.memory.Load(); got > int64(c.inMemory) {
				t.Errorf("%d bytes are in memory, want at most %d", got, c.inMemory)
			}
			total := c.accounts * c.messages * c.size
			if got := b.memory.Load() + b.disk; got != int64(total) || counted != total {
				t.Errorf("%d bytes are kept and %d are counted, want %d", got, counted, total)
			}
			for i := range kept {
				if sha256.Sum256(whole(t, &kept[i])) != sums[i] || kept[i].Len() != c.size {
					t.Errorf("response %d has changed", i)
				}
				if sha256.Sum256(kept[i].Text()) != sums[i] {
					t.Errorf("the text of response %d has changed", i)
				}
				kept[i].Release()
			}
			if b.memory.Load() != 0 || b.disk != 0 || counted != 0 {
				t.Errorf("after all are released, %d bytes are in memory, %d in files, %d are counted", b.memory.Load(), b.disk, counted)
			}
		})
	}
}

// TestShare: a client that reads is not affected by others who have used up the memory of
// all.
func TestShare(t *testing.T) {
	b := NewBudget(1 << 20)
	for range 10 {
		a := b.NewAccount(1<<20, nil)
		for _, ok := a.Add(make([]byte, 100_000)); ok; _, ok = a.Add(make([]byte, 100_000)) {
		}
	}
	a := b.NewAccount(1<<20, nil)
	if m := a.Keep(response(1, 10_000)); m.file != nil {
		t.Error("a short response is in a file")
	}
	if _, ok := a.Add(make([]byte, 10_000)); !ok {
		t.Error("a notification is dropped")
	}
}

// TestShareOfACall: any number of calls without a client session can be unread, so each may have
// only little in memory when others have used up the memory of all.
func TestShareOfACall(t *testing.T) {
	b := NewBudget(1 << 20)
	b.memory.Add(memoryOfAll << 20)
	for size, isInFile := range map[int]bool{filePiece: false, filePiece + 1: true} {
		m := b.NewCallAccount(1 << 20).Keep(response(1, size))
		if got := m.file != nil; got != isInFile {
			t.Errorf("%d bytes are in a file: %v, want %v", size, got, isInFile)
		}
		m.Release()
	}
}

// TestUnusedMemory: the memory of a response counts, not only its length.
func TestUnusedMemory(t *testing.T) {
	const size, buffer, limit = 600_000, 1 << 20, 4 << 20
	b := NewBudget(limit)
	a := b.NewAccount(limit, nil)
	var kept []Message
	inMemory := 0
	for range 10 {
		m := a.Keep(append(make([]byte, 0, buffer), response(1, size)...))
		inMemory += cap(m.text)
		kept = append(kept, m)
	}
	if inMemory > limit+buffer {
		t.Errorf("the responses have %d bytes of memory, want at most %d", inMemory, limit+buffer)
	}
	for i := range kept {
		kept[i].Release()
	}
	if b.memory.Load() != 0 {
		t.Errorf("%d bytes are still counted", b.memory.Load())
	}
}

// TestFreed: after much was released, Freed is called, wherever the responses were.
func TestFreed(t *testing.T) {
	for name, c := range map[string]struct{ messages, size, limit, want int }{
		"little":   {1, freedBytes / 2, 8 << 20, 0},
		"long":     {2, freedBytes, 8 << 20, 2},
		"short":    {freedBytes / 1000 * 3, 1000, 8 << 20, 2},
		"in files": {2 * freedBytes / filePiece, 100_000, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			b := NewBudget(8 << 20)
			b.Freed = func() { got++ }
			a := b.NewAccount(c.limit, nil)
			if c.limit == 0 {
				a.memory.Add(1) // as if there were another message
			}
			var kept []Message
			for range c.messages {
				kept = append(kept, a.Keep(response(1, c.size)))
			}
			if got != 0 {
				t.Error("Freed is called before anything is released")
			}
			for i := range kept {
				kept[i].Release()
			}
			if got != c.want {
				t.Errorf("Freed is called %d times, want %d", got, c.want)
			}
		})
	}
}

// TestPieces: a response in a file takes little memory while it is written, however slowly its
// client reads.
func TestPieces(t *testing.T) {
	const messages, most = 64, 64 << 10
	a := NewBudget(1000).NewAccount(0, nil)
	var kept [messages]Message
	for i := range kept {
		kept[i] = a.keepInFile(t, 1<<20)
		defer kept[i].Release()
	}
	before := heap()
	var started, all sync.WaitGroup
	read := make(chan struct{})
	started.Add(messages)
	for i := range kept {
		all.Go(func() {
			isFirst := true
			err := kept[i].Each(func([]byte) error {
				if isFirst {
					isFirst = false
					started.Done()
					<-read
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	if got := (heap() - before) / messages; got > most {
		t.Errorf("each response takes %d bytes, want at most %d", got, most)
	}
	close(read)
	all.Wait()
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestOneLine: a message that must not have line breaks is written without them. A message that
// others share stays as it is.
func TestOneLine(t *testing.T) {
	b := NewBudget(1 << 20)
	text := func() []byte { return append(response(1, 100_000), "\r\n"...) }
	shared := text()
	notification, _ := b.NewAccount(1<<20, nil).Add(shared)
	full := b.NewAccount(0, nil)
	full.memory.Add(1) // as if there were another message
	inMemory, inFile := b.NewAccount(1<<20, nil).Keep(text()), full.Keep(text())
	if inMemory.file != nil || inFile.file == nil {
		t.Fatal("the responses are not where they should be")
	}
	want := append(response(1, 100_000), "  "...)
	for name, m := range map[string]*Message{"a notification": &notification, "in memory": &inMemory, "in a file": &inFile} {
		var got []byte
		if err := m.EachOnOneLine(func(piece []byte) error { got = append(got, piece...); return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the message has changed", name)
		}
		m.Release()
	}
	if !bytes.Equal(shared, text()) {
		t.Error("the shared message has changed")
	}
}

// TestDiskIsBounded: the files of one client and of all have a limit. A response that is over it
// is replaced by an error, and the next one is kept again when there is room.
func TestDiskIsBounded(t *testing.T) {
	const unread, ofOne, ofAll = 100_000, 64 * 100_000, 128 * 100_000
	b := NewBudget(unread)
	b.diskOfOne, b.diskOfAll = ofOne, ofAll
	var kept []Message
	fill := func(a *Account) (bytes int) {
		for {
			m := a.Keep(response(7, unread))
			kept = append(kept, m)
			if text := string(m.text); strings.Contains(text, `"error"`) {
				if string(rawjson.Get(m.text, "id")) != "7" || !strings.Contains(text, "of them wait on disk. Read responses") {
					t.Errorf("the error is %s", text)
				}
				return bytes
			}
			if m.file != nil {
				bytes += m.Len()
			}
		}
	}
	one := b.NewAccount(0, nil)
	if got := fill(one); got != ofOne {
		t.Errorf("one client has %d bytes in files", got)
	}
	fill(b.NewAccount(0, nil))
	if fill(b.NewAccount(0, nil)) != 0 || b.disk != ofAll {
		t.Errorf("all clients have %d bytes in files", b.disk)
	}
	release := func() {
		for i := range kept {
			kept[i].Release()
		}
	}
	release()
	if b.disk != 0 || b.memory.Load() != 0 {
		t.Errorf("%d bytes are in files, %d in memory", b.disk, b.memory.Load())
	}
	kept = nil
	if got := fill(one); got != ofOne {
		t.Errorf("later, one client has %d bytes in files", got)
	}
	release()
}

// TestNoTemporaryFolder: without one, a single response is still kept, and further ones are
// replaced by errors. In a batch, each request gets one.
func TestNoTemporaryFolder(t *testing.T) {
	a := NewBudget(1000).NewAccount(1000, nil)
	a.createFile = func() (*os.File, string, error) { return nil, "", errors.New("read-only file system") }
	first := a.Keep(response(1, 2000))
	if first.Len() != 2000 {
		t.Errorf("the first is %s", first.text)
	}
	second := a.Keep([]byte(`[{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", 2000) + `"},{"jsonrpc":"2.0","id":"b","result":{}}]`))
	var ids [][]byte
	for r := range rawjson.Elements(second.text) {
		ids = append(ids, rawjson.Get(r, "id"))
		if message := string(rawjson.Get(rawjson.Get(r, "error"), "message")); !strings.Contains(message, "TMPDIR") || !strings.Contains(message, "read-only file system") {
			t.Errorf("the error is %s", message)
		}
	}
	if string(bytes.Join(ids, []byte(" "))) != `2 "b"` {
		t.Errorf("the errors are for %q", ids)
	}
}

// TestFilesHaveNoName: nobody else can read them, and nothing is left if mcpx is killed.
func TestFilesHaveNoName(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	m := NewBudget(1000).NewAccount(0, nil).keepInFile(t, 2000)
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 && m.file.segment.name == "" {
		t.Errorf("the folder has %v, %v", left, err)
	}
	m.Release()
	if left, err = os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("at the end the folder has %v, %v", left, err)
	}
}

// keepInFile returns a response that is in a file.
func (a *Account) keepInFile(t *testing.T, size int) Message {
	t.Helper()
	a.memory.Add(1) // as if there were another
	m := a.Keep(response(1, size))
	if m.file == nil {
		t.Fatal("the response is in memory")
	}
	return m
}

// TestConcurrentUse: responses are kept, read and released at the same time.
func TestConcurrentUse(t *testing.T) {
	b := NewBudget(300_000)
	a := b.NewAccount(300_000, nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 20 {
				r := response(i, 100_000)
				want := bytes.Clone(r)
				m := a.Keep(r)
				if !bytes.Equal(whole(t, &m), want) {
					t.Error("a response has changed")
				}
				m.Release()
			}
		})
	}
	all.Wait()
	if a.current != nil || b.disk != 0 || b.memory.Load() != 0 {
		t.Errorf("%v, %d bytes in files, %d in memory", a.current, b.disk, b.memory.Load())
	}
}
