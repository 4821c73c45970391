// Package unread keeps the messages that clients have not read yet: in memory up to a
// limit, and responses above it in temporary files. So a client that does not read costs
// little memory, nobody waits for it, and no response is lost.
package unread

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Limits of a Budget.
const (
	memoryOfAll = 4       // times its unread bytes: in memory, for all accounts
	diskOfOne   = 4 << 30 // bytes in files, for one account
	diskOfAll   = 8 << 30 // bytes in files, for all accounts
)

// Shares are how many bytes each account may have in memory, even if others have used up the
// memory of all. So the short messages of a client that reads never go through a file. A call
// without a client session has only a piece of a file, since there can be any number of them.
const (
	share     = 256 << 10
	callShare = filePiece
)

// freedBytes is how much memory is freed before Freed is called.
const freedBytes = 1 << 20

// Budget bounds the unread messages of all clients of a front. Its methods may be called
// concurrently.
type Budget struct {
	Log   zerolog.Logger // set before use
	Freed func()         // called whenever much memory was freed; set before use; may be nil

	unread               int   // limits.unread_bytes
	diskOfOne, diskOfAll int64 // bytes
	memory               atomic.Int64
	freed                atomic.Int64 // bytes since Freed was called

	mu   sync.Mutex
	disk int64 // size of all segments
}

// NewBudget returns a Budget for clients that may have that many bytes unread.
func NewBudget(unread int) *Budget {
	return &Budget{Log: zerolog.Nop(), unread: unread, diskOfOne: diskOfOne, diskOfAll: diskOfAll}
}

// Account counts the unread messages of one client session. Its methods may be called
// concurrently.
type Account struct {
	budget *Budget
	limit  int
	share  int
	count  func(bytes int)
	memory atomic.Int64

	createFile func() (file *os.File, name string, err error)

	mu      sync.Mutex
	disk    int64    // size of its segments; guarded by Budget.mu
	current *segment // takes the next message; may be nil
}

// NewAccount returns an Account that keeps limit bytes in memory, or one longer message. count
// gets the size of each response that Keep keeps and, as a negative number, of each one that is
// released; it may be nil.
func (b *Budget) NewAccount(limit int, count func(bytes int)) *Account {
	if count == nil {
		count = func(int) {}
	}
	return &Account{budget: b, limit: limit, share: min(share, limit), count: count, createFile: temporaryFile}
}

// NewCallAccount returns an Account for one call without a client session.
func (b *Budget) NewCallAccount(limit int) *Account {
	a := b.NewAccount(limit, nil)
	a.share = min(callShare, limit)
	return a
}

// Message is a message that waits to be written. It must be released once, after it was
// written or dropped. The zero Message is no message.
type Message struct {
	account *Account
	text    []byte // nil if it is in a file
	file    *spilled
	memory  int // counted in the account
	size    int // reported to count; 0 for a message from Add
}

// IsZero reports whether there is no message.
func (m *Message) IsZero() bool { return m.account == nil }

// Add returns a message that is kept in memory, on one line; false if there is no room for it.
// The message may be shared with other accounts.
func (a *Account) Add(message []byte) (Message, bool) {
	if !a.reserve(len(message)) {
		return Message{}, false
	}
	if bytes.ContainsAny(message, "\r\n") {
		message = bytes.Clone(message)
		rpc.OneLine(message)
	}
	return Message{account: a, text: message, memory: len(message)}, true
}

// Keep returns a response that is kept in memory or, if there is no room, in a file. The
// memory of the response passes to Keep. If the file cannot be written, the client gets an
// error instead. The result for nil is the zero Message. Keep may wait for the disk.
func (a *Account) Keep(response []byte) Message {
	if response == nil {
		return Message{}
	}
	size := len(response)
	a.count(size)
	if a.reserve(size) {
		text := rpc.Trim(response)
		a.add(cap(text) - size)
		return Message{account: a, text: text, memory: cap(text), size: size}
	}
	file, err := a.spill(response)
	if err != nil {
		a.budget.Log.Warn().Err(err).Int("bytes", size).Msg("dropped a response that its client has not read")
		return a.keepError(response, size, err)
	}
	rpc.Recycle(response)
	return Message{account: a, file: file, size: size}
}

// keepError returns the error for a response that could not be kept.
func (a *Account) keepError(response []byte, size int, cause error) Message {
	e := rpc.Errorf(rpc.CodeInternal, "The call was made, but its response of %d bytes was dropped: this client has not read its earlier responses, and %v. Read responses while calls run, or make fewer calls at a time.", size, cause)
	var text []byte
	if rawjson.Kind(response) == '[' {
		text = []byte("[")
		for r := range rawjson.Elements(response) {
			text = rawjson.AppendElement(text, rpc.AppendError(nil, rawjson.Get(r, "id"), e))
		}
		text = append(text, ']')
	} else {
		text = rpc.AppendError(nil, rawjson.Get(response, "id"), e)
	}
	a.add(len(text))
	return Message{account: a, text: text, memory: len(text), size: size}
}

// reserve counts bytes in memory; false if there is no room for them.
func (a *Account) reserve(bytes int) bool {
	n := int64(bytes)
	own, all := a.memory.Add(n), a.budget.memory.Add(n)
	isFirst := own == n
	switch {
	case own <= int64(a.share):
		return true
	case (isFirst || own <= int64(a.limit)) && all <= int64(memoryOfAll*a.budget.unread):
		return true
	}
	a.add(-bytes)
	return false
}

// add counts bytes in memory, whether or not there is room for them.
func (a *Account) add(bytes int) {
	a.memory.Add(int64(bytes))
	a.budget.memory.Add(int64(bytes))
}

// Len returns the number of bytes.
func (m *Message) Len() int {
	if m.file != nil {
		return m.file.size
	}
	return len(m.text)
}

// Sizes of the pieces of a message. A piece of a file takes memory until the client has read
// it; a piece of a message in memory takes no more.
const (
	memoryPiece = 256 << 10
	filePiece   = 32 << 10
)

// Each calls write with each piece of the message, in order. A piece is valid until write
// returns. Each stops at the first error.
func (m *Message) Each(write func(piece []byte) error) error {
	if m.file != nil {
		return m.file.each(write)
	}
	for piece := range slices.Chunk(m.text, memoryPiece) {
		if err := write(piece); err != nil {
			return err
		}
	}
	return nil
}

// EachOnOneLine is Each with the line breaks of the message replaced by spaces.
func (m *Message) EachOnOneLine(write func(piece []byte) error) error {
	return m.Each(func(piece []byte) error {
		rpc.OneLine(piece) // only a response can have any, and it belongs to nobody else
		return write(piece)
	})
}

// Text returns the whole message, whose memory then belongs to the caller. If the file
// cannot be read, it returns the error for the client.
func (m *Message) Text() []byte {
	if m.file == nil {
		text := m.text
		m.text = nil
		return text
	}
	text := make([]byte, m.file.size, m.file.size+rpc.EnvelopeBytes)
	if err := m.file.read(text, 0); err != nil {
		m.account.budget.Log.Error().Err(err).Msg("lost a response that its client has not read")
		return rpc.AppendError(nil, m.file.id, rpc.Errorf(rpc.CodeInternal, "The call was made, but its response was lost: %v. Repeat the call only if it is safe to run it twice.", err))
	}
	return text
}

// Release frees the memory or the file of the message.
func (m *Message) Release() {
	if m.account == nil {
		return
	}
	freed := m.memory
	if m.file != nil {
		m.file.segment.release()
		freed = min(m.file.size, filePiece)
	}
	a := m.account
	a.add(-m.memory)
	if m.size > 0 {
		rpc.Recycle(m.text) // a response belongs to nobody else
		a.count(-m.size)
	}
	*m = Message{}
	a.budget.noteFreed(freed)
}

// noteFreed counts bytes that were freed, and calls Freed if they are many.
func (b *Budget) noteFreed(bytes int) {
	if b.freed.Add(int64(bytes)) >= freedBytes && b.freed.Swap(0) >= freedBytes && b.Freed != nil {
		b.Freed()
	}
}

// errFull is returned if the files have too many bytes.
type errFull struct{ limit int64 }

func (e errFull) Error() string {
	return fmt.Sprintf("more than %d MiB of them wait on disk", e.limit>>20)
}
