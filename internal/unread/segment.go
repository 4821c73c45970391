package unread

import (
	"bytes"
	"fmt"
	"os"

	"mcpx/internal/rawjson"
)

// segment is a temporary file with messages of one account. It is closed when none of its
// messages is needed any more. No other process can open it, and it takes no room after
// mcpx has ended, because it has no name.
type segment struct {
	account *Account
	file    *os.File
	name    string // empty, unless the system cannot remove an open file (Windows)

	// Guarded by Account.mu.
	size int64 // bytes that messages have taken
	live int   // messages that are not released
}

// spilled is a message in a segment.
type spilled struct {
	segment *segment
	offset  int64
	size    int
	id      []byte // of the response
}

// segmentBytes is the size above which an account begins a new segment, so that old files are
// freed while the client reads.
const segmentBytes = 64 << 20

// spill writes a message to a file.
func (a *Account) spill(message []byte) (*spilled, error) {
	size := int64(len(message))
	if err := a.budget.addDisk(a, size); err != nil {
		return nil, err
	}
	s, offset, err := a.allocate(size)
	if err != nil {
		a.budget.freeDisk(a, size)
		return nil, fmt.Errorf("no temporary file could be written (TMPDIR): %w", err)
	}
	if _, err := s.file.WriteAt(message, offset); err != nil {
		s.release()
		return nil, fmt.Errorf("no temporary file could be written (TMPDIR): %w", err)
	}
	return &spilled{segment: s, offset: offset, size: len(message), id: bytes.Clone(rawjson.Get(message, "id"))}, nil
}

// addDisk counts bytes in the files of an account.
func (b *Budget) addDisk(a *Account, size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.disk+size > b.diskOfOne:
		return errFull{b.diskOfOne}
	case b.disk+size > b.diskOfAll:
		return errFull{b.diskOfAll}
	}
	a.disk += size
	b.disk += size
	return nil
}

func (b *Budget) freeDisk(a *Account, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.disk -= size
	b.disk -= size
}

// allocate returns a segment with room for a message, and the message's place in it.
func (a *Account) allocate(size int64) (*segment, int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.size >= segmentBytes {
		file, name, err := a.createFile()
		if err != nil {
			return nil, 0, err
		}
		a.current = &segment{account: a, file: file, name: name}
	}
	s := a.current
	offset := s.size
	s.size += size
	s.live++
	return s, offset, nil
}

// release ends the use of a segment by one message.
func (s *segment) release() {
	a := s.account
	a.mu.Lock()
	s.live--
	isLast := s.live == 0
	if isLast && a.current == s {
		a.current = nil
	}
	a.mu.Unlock()
	if !isLast {
		return
	}
	_ = s.file.Close()
	if s.name != "" {
		_ = os.Remove(s.name)
	}
	a.budget.freeDisk(a, s.size)
}

// each calls write with each piece of the message.
func (f *spilled) each(write func(piece []byte) error) error {
	buffer := make([]byte, min(f.size, filePiece))
	for done := 0; done < f.size; {
		piece := buffer[:min(f.size-done, len(buffer))]
		if err := f.read(piece, done); err != nil {
			return err
		}
		if err := write(piece); err != nil {
			return err
		}
		done += len(piece)
	}
	return nil
}

// read fills b with the bytes of the message that begin at offset.
func (f *spilled) read(b []byte, offset int) error {
	if _, err := f.segment.file.ReadAt(b, f.offset+int64(offset)); err != nil {
		return fmt.Errorf("a temporary file could not be read: %w", err)
	}
	return nil
}

// temporaryFile returns a new file that only this user can read. It has no name, unless the
// system cannot remove an open file. /var/tmp is preferred, since /tmp is often in memory.
func temporaryFile() (file *os.File, name string, err error) {
	for _, folder := range []string{os.Getenv("TMPDIR"), "/var/tmp", os.TempDir()} {
		if folder == "" {
			continue
		}
		if file, err = os.CreateTemp(folder, "mcpx-unread-*"); err == nil {
			if os.Remove(file.Name()) != nil {
				name = file.Name()
			}
			return file, name, nil
		}
	}
	return nil, "", err
}
