//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fifo creates a FIFO that nobody writes to.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadEndlessDevice: a config that never ends is an error, not a process that
// grows until the system kills it.
func TestLoadEndlessDevice(t *testing.T) {
	_, err := Hooks{}.Load("/dev/zero")
	if want := "reading the config: /dev/zero: larger than 4 MiB; check that this is the right file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadFileFIFO(t *testing.T) {
	t.Run("without a writer", func(t *testing.T) {
		path := fifo(t)
		_, err := readFile(path, MaxBytes, time.Millisecond)
		if want := path + ": could not be read within 1ms; name a regular file, or check that a program writes to it"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		// The reader still waits for a writer, or has not opened the file yet.
		// Opening both ends never blocks; closing them ends the reader.
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	})
	t.Run("with a writer", func(t *testing.T) {
		path := fifo(t)
		written := make(chan error, 1)
		go func() { written <- os.WriteFile(path, []byte("{}"), 0o600) }()
		data, err := ReadFile(path, MaxBytes)
		if err != nil || string(data) != "{}" {
			t.Errorf("got %q, %v", data, err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
}

func TestReadFileUnreadable(t *testing.T) {
	if _, err := ReadFile(t.TempDir(), MaxBytes); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder: %v", err)
	}
}
