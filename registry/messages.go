package registry

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry/child"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Limits of the messages that are recorded.
const (
	recordTime     = 15 * time.Second // a record that nobody reads ends
	recordMessages = 300              // of an upstream
	recordBytes    = 1 << 20          // likewise
	recordsAtOnce  = 4
	messageBytes   = 16 << 10 // of one message; the rest is cut
)

// Message is a JSON-RPC message between mcpx and an upstream, redacted and perhaps cut.
type Message struct {
	Number   int64     `json:"number"` // grows with each message
	At       time.Time `json:"at"`
	Received bool      `json:"received"` // from the upstream
	Text     string    `json:"text"`
	Bytes    int       `json:"bytes"` // of the whole message
}

// records are the messages of the upstreams that somebody watches. Nothing is recorded
// before the first read. It may be used concurrently.
type records struct {
	isActive atomic.Bool // there is a record; read for each message

	mu       sync.Mutex
	byServer map[string]*record
	last     int64 // the number of the newest message of any record
}

// record has the last messages of an upstream's shared session.
type record struct {
	messages []Message
	bytes    int
	read     time.Time // when it was read last
}

// Messages returns the messages of an upstream after a number, and begins to record them.
// The record ends when nobody reads it for some seconds. Sessions of single clients and
// callers are not recorded.
func (r *Registry) Messages(name string, after int64) ([]Message, error) {
	if r.Catalog().Upstream(name) == nil {
		return nil, ErrUnknown
	}
	return r.records.read(name, after, time.Now()), nil
}

func (t *records) read(name string, after int64, now time.Time) []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	found := t.byServer[name]
	if found == nil {
		t.makeRoom()
		found = &record{}
		t.byServer[name] = found
		t.isActive.Store(true)
	}
	found.read = now
	list := []Message{}
	for _, m := range found.messages {
		if m.Number > after {
			list = append(list, m)
		}
	}
	return list
}

// expire ends the records that nobody reads. The caller holds the mutex.
func (t *records) expire(now time.Time) {
	for name, r := range t.byServer {
		if now.Sub(r.read) > recordTime {
			delete(t.byServer, name)
		}
	}
	t.isActive.Store(len(t.byServer) > 0)
}

// makeRoom ends the record that was read least recently, if there are too many. The caller
// holds the mutex.
func (t *records) makeRoom() {
	if len(t.byServer) < recordsAtOnce {
		return
	}
	oldest := ""
	for name, r := range t.byServer {
		if oldest == "" || r.read.Before(t.byServer[oldest].read) {
			oldest = name
		}
	}
	delete(t.byServer, oldest)
}

// add adds a message, unless nobody watches its upstream.
func (t *records) add(name string, m Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(m.At)
	found := t.byServer[name]
	if found == nil {
		return
	}
	t.last++
	m.Number = t.last
	found.messages = append(found.messages, m)
	found.bytes += len(m.Text)
	for len(found.messages) > recordMessages || found.bytes > recordBytes {
		found.bytes -= len(found.messages[0].Text)
		found.messages = found.messages[1:]
	}
}

// Record implements live.Host. It records a message of the shared session, if somebody watches it.
func (r *Registry) Record(s *live.Session, d upstream.Direction, message []byte) {
	if s.Supervisor().Owner() != "" || !r.records.isActive.Load() {
		return
	}
	shown := withoutPasswords(s.Supervisor().Upstream(), message)
	text := strings.ToValidUTF8(string(shown[:min(len(shown), child.RedactBytes)]), "\uFFFD")
	r.records.add(s.Config.Name, Message{At: time.Now(), Received: bool(d), Text: plain.Cut(s.Config.Redact(text), messageBytes), Bytes: len(message)})
}

// withoutPasswords returns a message without the arguments that the tool's schema marks as
// secret.
func withoutPasswords(u *live.Upstream, message []byte) []byte {
	params := rawjson.Get(message, "params")
	arguments := rawjson.Get(params, "arguments")
	name, _ := rawjson.String(rawjson.Get(params, "name"))
	tool := u.Tool(name)
	if tool == nil || rawjson.Kind(arguments) != '{' {
		return message
	}
	hidden := arguments
	for key, property := range rawjson.Members(rawjson.Get(tool.SentSchema(), "properties")) {
		isSecret := string(rawjson.Get(property, "format")) == `"password"` || string(rawjson.Get(property, "writeOnly")) == "true"
		if isSecret && rawjson.Get(arguments, key) != nil {
			hidden = rawjson.With(hidden, key, []byte(`"***"`))
		}
	}
	if len(hidden) == len(arguments) && string(hidden) == string(arguments) {
		return message
	}
	return rawjson.With(message, "params", rawjson.With(params, "arguments", hidden))
}
