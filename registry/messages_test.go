package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// texts joins the messages with arrows for their directions.
func texts(list []Message) string {
	var b strings.Builder
	for _, m := range list {
		arrow := "→"
		if m.Received {
			arrow = "←"
		}
		fmt.Fprintf(&b, "%s %s\n", arrow, m.Text)
	}
	return b.String()
}

// TestMessagesAreRecorded: messages of a watched upstream are recorded in both directions,
// without secrets, and only from the first read on.
func TestMessagesAreRecorded(t *testing.T) {
	upstream := mcptest.Upstream(t)
	upstream["env"].(map[string]string)["API_KEY"] = "sesame-open-1234"
	r, _ := run(t, map[string]any{"one": upstream})
	if _, err := r.For(nil).Ready(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	mustCall(t, r, "one", "echo", `{"text":"before"}`)
	first, err := r.Messages("one", 0)
	if err != nil || len(first) != 0 {
		t.Fatalf("before the first read there are %v, %v", first, err)
	}
	mustCall(t, r, "one", "echo", `{"text":"key sesame-open-1234"}`)
	list, _ := r.Messages("one", 0)
	got := texts(list)
	for _, want := range []string{`→ {"jsonrpc":"2.0"`, `"method":"tools/call"`, "← {", "***"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "sesame") || strings.Contains(got, "before") {
		t.Errorf("a secret or an old message is in\n%s", got)
	}
	if later, _ := r.Messages("one", list[len(list)-1].Number); len(later) != 0 {
		t.Errorf("read twice: %v", later)
	}
	if _, err := r.Messages("none", 0); err == nil {
		t.Error("an unknown server has messages")
	}
}

// TestOwnMessagesAreNotRecorded: nobody reads the messages of sessions that belong to a client
// or a caller.
func TestOwnMessagesAreNotRecorded(t *testing.T) {
	for _, isolation := range []string{"client", "user"} {
		t.Run(isolation, func(t *testing.T) {
			entry := mcptest.Upstream(t)
			entry["isolation"] = isolation
			r, _ := run(t, map[string]any{"one": entry})
			ann := recorderOf("1", "ann")
			r.Attach(ann)
			r.Settled(t.Context(), "one")
			if _, err := r.Messages("one", 0); err != nil {
				t.Fatal(err)
			}
			if _, err := callFor(t.Context(), r, ann, "one", "echo", `{"text":"of ann"}`); err != nil {
				t.Fatal(err)
			}
			if list, _ := r.Messages("one", 0); strings.Contains(texts(list), "of ann") {
				t.Errorf("everybody reads\n%s", texts(list))
			}
		})
	}
}

// TestRecordsAreBounded: a record has bounds, ends when nobody reads it, and there are few.
func TestRecordsAreBounded(t *testing.T) {
	r := records{byServer: map[string]*record{}}
	now := time.Now()
	r.read("a", 0, now)
	for i := range 2 * recordMessages {
		r.add("a", Message{At: now, Text: fmt.Sprint(i)})
	}
	if n := len(r.read("a", 0, now)); n != recordMessages {
		t.Errorf("%d messages, want %d", n, recordMessages)
	}
	for range 2 * recordBytes / messageBytes {
		r.add("a", Message{At: now, Text: strings.Repeat("x", messageBytes)})
	}
	if b := r.byServer["a"].bytes; b > recordBytes {
		t.Errorf("%d bytes, want at most %d", b, recordBytes)
	}
	for i := range 3 * recordsAtOnce {
		r.read(fmt.Sprint(i), 0, now.Add(time.Duration(i)))
	}
	if n := len(r.byServer); n != recordsAtOnce {
		t.Errorf("%d records, want %d", n, recordsAtOnce)
	}
	r.add("a", Message{At: now.Add(2 * recordTime)})
	if len(r.byServer) != 0 || r.isActive.Load() {
		t.Errorf("records that nobody reads: %v", r.byServer)
	}
}
