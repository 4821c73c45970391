// Package audit adds the audit: a file with one line for each call, which says who called
// what, and with which arguments, but never their values. Hooks: executor.Observer. Config:
// logging.audit.
package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
)

// Section has the key logging.audit.
var Section = config.NewSection(config.InLogging, Settings{}, func(s *Settings) []config.Field {
	return []config.Field{
		{Name: "audit", Kind: config.File(&s.File), Doc: "File that gets one JSON line per call, without values, relative to the config file."},
	}
})

// Settings are the values of the Section.
type Settings struct {
	File string // absolute; empty: there is no audit
}

// Audit writes one line for each call to a file. Its methods may be called concurrently.
type Audit struct {
	log    *logging.Log
	key    []byte        // of the HMAC of arguments
	failed atomic.Int64  // lines that could not be written
	file   *logging.File // nil: there is no audit

	mu        sync.Mutex
	isFailing bool // the last line could not be written, or the file is closed
	isTorn    bool // the file may end with a part of a line
}

// record is a line of the file.
type record struct {
	Time      string         `json:"time"`
	Caller    string         `json:"caller,omitempty"`         // a token's name, or issuer and subject; none: a caller without a name
	Client    string         `json:"client,omitempty"`         // the ID of the client session
	Program   string         `json:"client_name,omitempty"`    // what the client reports about itself
	Version   string         `json:"client_version,omitempty"` // of that program
	Profile   string         `json:"schema"`
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`      // or the method of another request
	Arguments map[string]int `json:"arguments"` // bytes by name
	HMAC      string         `json:"hmac"`      // of the arguments: equal arguments have the same
	Outcome   string         `json:"outcome"`
	MS        float64        `json:"ms"`
	BytesIn   int            `json:"bytes_in"`
	BytesOut  int            `json:"bytes_out"`
}

// Limits of a line: clients choose the names.
const (
	maxNames     = 100
	maxNameBytes = 128
)

// keyBytes is the length of the key.
const keyBytes = 32

// Open opens the file of the audit, and the file with its key beside it. Both are made if
// they do not exist. Without a path there is no audit, and no file. Lines are written in the
// goroutine of the log.
func Open(path string, log *logging.Log) (*Audit, error) {
	if path == "" {
		return &Audit{}, nil
	}
	key, err := readKey(path + ".key")
	if err != nil {
		return nil, fmt.Errorf("the key of the audit cannot be used: %w", err)
	}
	a := &Audit{log: log, key: key}
	if a.file, err = logging.OpenFile(path); err != nil {
		return nil, fmt.Errorf("the audit file cannot be opened: %w; its folder must exist, and mcpx must be allowed to write there", err)
	}
	return a, nil
}

// readKey reads the key, or makes one.
func readKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if key, err = os.ReadFile(path); err == nil && len(key) != keyBytes {
			err = fmt.Errorf("%s has %d bytes, not %d; delete it to get a new key", path, len(key), keyBytes)
		}
		return key, err
	}
	if err != nil {
		return nil, err
	}
	_, err = f.Write(key)
	return key, errors.Join(err, f.Close())
}

// Observe writes the line of a call.
func (a *Audit) Observe(e executor.Event) {
	if a.file == nil {
		return
	}
	line := a.line(e)
	a.log.Later(func() {
		if err := a.write(line); err != nil {
			a.log.Error().Err(err).Msg("the audit file cannot be written; calls go on, and /status counts the lost lines")
		}
	})
}

// line returns the line of a call. It is called while the arguments are valid.
func (a *Audit) line(e executor.Event) []byte {
	l := record{
		Time:   time.Now().UTC().Format(time.RFC3339Nano),
		Caller: e.Caller, Client: e.Client, Program: e.Program.Name, Version: e.Program.Version, Profile: e.Profile, Server: shortName(e.Server), Tool: shortName(e.Tool),
		Arguments: map[string]int{}, Outcome: e.Outcome,
		MS: float64(e.Took.Microseconds()) / 1000, BytesIn: e.BytesIn, BytesOut: e.BytesOut,
	}
	if e.Method != "" { // its key may have values in it: a URI
		l.Tool = e.Method
	}
	if rawjson.Kind(e.Arguments) == '{' {
		for name, value := range rawjson.Members(e.Arguments) {
			if len(l.Arguments) < maxNames {
				l.Arguments[shortName(name)] = len(value)
			}
		}
	}
	sum := hmac.New(sha256.New, a.key)
	sum.Write(e.Arguments)
	l.HMAC = hex.EncodeToString(sum.Sum(nil))
	text, _ := json.Marshal(l) // it has no value that cannot be encoded
	return append(text, '\n')
}

// shortName returns the beginning of a name that a client may have invented.
func shortName(name string) string { return name[:min(len(name), maxNameBytes)] }

// write appends a line. If it cannot, the line is counted: a call never fails for it. It
// returns the error for the first of several lines in a row.
func (a *Audit) write(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isTorn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.file.Write(line)
	isFirst := !a.isFailing
	a.isFailing, a.isTorn = err != nil, err != nil && (a.isTorn || n > 0)
	if err == nil {
		return nil
	}
	a.failed.Add(1)
	if !isFirst {
		return nil
	}
	return err
}

// Failed returns how many lines could not be written.
func (a *Audit) Failed() int64 { return a.failed.Load() }

// Reopen opens the file again, which another program may have renamed.
func (a *Audit) Reopen() error { return a.file.Reopen() }

// Close closes the file. Later lines are counted as failed.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isFailing = true
	return a.file.Close()
}
