package mcptest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// Event is one line of the file that the flag -record names. Many processes append
// to the same file.
type Event struct {
	Time    int64  `json:"time"` // Unix nanoseconds
	PID     int    `json:"pid"`
	Server  string `json:"server"` // the flag -name
	Kind    string `json:"kind"`
	Subject string `json:"subject"`         // the nonce of the call, or the kind of the fault
	Until   int64  `json:"until,omitempty"` // when a fault ends by itself
}

// The kinds of events.
const (
	Got      = "got"      // a call of the tool work has arrived
	Answered = "answered" // the whole response is in the pipe, or flushed to the connection
	Fault    = "fault"    // the server is about to misbehave
)

// record appends an event to the file of -record, in one write: other processes
// append to it too.
func (s *server) record(e Event) {
	e.Time, e.PID, e.Server = time.Now().UnixNano(), os.Getpid(), s.name
	line, _ := json.Marshal(e)
	f, err := os.OpenFile(s.recordFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		return
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
}

// Work are the arguments of the tool work.
type Work struct {
	Nonce string `json:"nonce"`
	MS    int    `json:"ms"`    // before the response
	Bytes int    `json:"bytes"` // of the result after the nonce, approximately
	Steps int    `json:"steps"` // progress notifications
	How   string `json:"how"`   // text, rows, isError or error
}

// WorkError is the code of the JSON-RPC error of work if How is error. Its message is
// the nonce.
const WorkError = -32042

// Text returns the nonce and a payload that is derived from it. Every nonce has another
// payload.
func (w Work) Text() string {
	if w.How == "rows" {
		return w.rows()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.Nonce))
	random := rand.NewPCG(h.Sum64(), 0)
	var b strings.Builder
	b.WriteString(w.Nonce)
	for range w.Bytes {
		b.WriteString(pieces[random.Uint64()%uint64(len(pieces))])
	}
	return b.String()
}

// rowSize is the approximate size of a row.
const rowSize = 40

// rows returns a JSON array with objects: the number of the row, the nonce, and a number from 0
// to 9.
func (w Work) rows() string {
	b := []byte{'['}
	for i := range max(w.Bytes/rowSize, 1) {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"n":%d,"nonce":%q,"digit":%d}`, i, w.Nonce, i%10)
	}
	return string(append(b, ']'))
}

// pieces are the parts of payloads: letters and digits, characters that JSON escapes, and
// characters with several bytes.
var pieces = append(strings.Split(`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;-_/\"'<>&[]{}`, ""), " ", " ", "\n", "\t", "é", "日", "😀", "\u2028")

// Result returns the result of work, byte for byte. If How is error there is none.
func (w Work) Result() string {
	result := `{"content":[{"type":"text","text":` + quote(w.Text()) + `}]`
	if w.How == "isError" {
		result += `,"isError":true`
	}
	return result + "}"
}
