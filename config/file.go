package config

import (
	"fmt"
	"io"
	"os"
	"time"
)

// MaxBytes is the size of the largest config that mcpx reads.
const MaxBytes = 4 << 20

// readTime bounds how long a file that is not regular may take: a FIFO may have
// no writer, and a device may never end.
const readTime = 8 * time.Second

// ReadFile reads a file of at most limit bytes. Unlike os.ReadFile it always
// returns, with bounded memory, whatever the file is.
func ReadFile(path string, limit int) ([]byte, error) {
	return readFile(path, limit, readTime)
}

func readFile(path string, limit int, within time.Duration) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return readAtMost(path, limit)
	}
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	// Opening a FIFO cannot be canceled. After a timeout the goroutine stays until
	// there is a writer; mcpx ends without its config anyway.
	go func() {
		data, err := readAtMost(path, limit)
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, o.err
	case <-time.After(within):
		return nil, fmt.Errorf("%s: could not be read within %s; name a regular file, or check that a program writes to it", path, within)
	}
}

func readAtMost(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("%s: larger than %d MiB; check that this is the right file", path, limit>>20)
	}
	return data, err
}
