package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mcpx/internal/mcptest"
)

// A transcript is one whole conversation with mcpx: a txtar archive with
//
//	mcpx.json   the config; "command": "$UPSTREAM -full" is an mcptest upstream
//	            with those flags, and $DIR the folder with the archive's files
//	flags       the flags of mcpx, if any
//	fronts      the fronts it is for, if not for all
//	talk        the conversation
//
// and whatever other files the upstreams read. The talk has, one a line:
//
//	# a comment
//	== a section, which becomes a subtest; "[stdio]" at its end: for that front alone
//	> what the client sends
//	< what mcpx says next
//	<* the same, where the order of such lines in a row does not matter
//	stderr TEXT    waits until mcpx has written that
//	!stderr TEXT   mcpx has not written that so far
//	ends CODE      mcpx ends by itself
//
// A line that starts with a space continues the one before. "jsonrpc" may be left
// out of messages. What mcpx says is compared as match has it. Over HTTP there are
// several streams, and the order of what is said on one and another is open: there
// "next" is the next of any stream. List changes that no line expects are passed
// over: upstreams that start have some to tell. When the talk is over mcpx must
// have nothing more to say on any stream.
type transcript struct {
	file    string
	archive *txtar.Archive
	steps   []step
}

type step struct {
	line       int
	kind, text string
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range fronts {
		for _, file := range files {
			tr := parseTranscript(t, file)
			if only := tr.part("fronts"); only != "" && !slices.Contains(strings.Fields(only), f.name) {
				continue
			}
			t.Run(f.name+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				tr.run(t, f)
			})
		}
	}
}

func parseTranscript(t *testing.T, file string) *transcript {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript{file: file, archive: txtar.Parse(data)}
	before, talk, ok := bytes.Cut(data, []byte("-- talk --\n"))
	if !ok {
		t.Fatalf("%s: no talk", file)
	}
	line := bytes.Count(before, []byte("\n")) + 1
	for text := range strings.SplitSeq(string(talk), "\n") {
		line++
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if text[0] == ' ' && len(tr.steps) > 0 {
			tr.steps[len(tr.steps)-1].text += strings.TrimSpace(text)
			continue
		}
		kind, rest, _ := strings.Cut(text, " ")
		tr.steps = append(tr.steps, step{line, kind, strings.TrimSpace(rest)})
	}
	return tr
}

// part is the text of one of the archive's files.
func (tr *transcript) part(name string) string {
	for _, f := range tr.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// run starts mcpx behind the front and has the conversation.
func (tr *transcript) run(t *testing.T, f front) {
	dir := t.TempDir()
	if err := txtar.Write(tr.archive, dir); err != nil {
		t.Fatal(err)
	}
	var config any
	decoder := json.NewDecoder(strings.NewReader(tr.part("mcpx.json")))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		t.Fatalf("%s: mcpx.json: %v", tr.file, err)
	}
	talk := &talk{file: tr.file, bound: bindings{}}
	talk.conversation = f.open(t, upstreams(t, config, dir), options{flags: strings.Fields(tr.part("flags"))})
	for steps := tr.steps; len(steps) > 0; {
		name, section := "", steps
		if steps[0].kind == "==" {
			name, section = steps[0].text, steps[1:]
		}
		n := slices.IndexFunc(section, func(s step) bool { return s.kind == "==" })
		if n < 0 {
			n = len(section)
		}
		steps = section[n:]
		if _, only, ok := strings.Cut(name, " ["); ok && !slices.Contains(strings.Fields(strings.TrimSuffix(only, "]")), f.name) {
			continue
		}
		if name == "" {
			talk.have(t, section[:n])
		} else if !t.Run(name, func(t *testing.T) { talk.have(t, section[:n]) }) {
			t.FailNow() // what follows builds on it
		}
	}
	for _, m := range append(talk.waiting, talk.rest()...) {
		if !skippable(m) {
			t.Errorf("%s: mcpx said more than the transcript has:\n%s", tr.file, clip(m.line))
		}
	}
}

// upstreams puts mcptest upstreams in the place of "$UPSTREAM flags".
func upstreams(t *testing.T, value any, dir string) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = upstreams(t, v[i], dir)
		}
	case map[string]any:
		for key := range v {
			v[key] = upstreams(t, v[key], dir)
		}
		command, _ := v["command"].(string)
		if flags, ok := strings.CutPrefix(command, "$UPSTREAM"); ok {
			for key, own := range mcptest.Upstream(t, strings.Fields(strings.ReplaceAll(flags, "$DIR", dir))...) {
				v[key] = own
			}
		}
	}
	return value
}

// talk is a conversation under way.
type talk struct {
	conversation
	file    string
	bound   bindings
	waiting []message // received, but no step has been about it yet
}

// have goes through some steps of the conversation.
func (k *talk) have(t *testing.T, steps []step) {
	t.Helper()
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		switch s.kind {
		case ">":
			k.send(k.bound.fill(envelope(s.text)))
		case "<":
			k.expect(t, steps[i:i+1])
		case "<*":
			n := i + 1
			for n < len(steps) && steps[n].kind == "<*" {
				n++
			}
			k.expect(t, steps[i:n])
			i = n - 1
		case "stderr":
			k.waitStderr(s.text)
		case "!stderr":
			if log := k.errors(); strings.Contains(log, s.text) {
				t.Errorf("%s:%d: stderr has %q:\n%s", k.file, s.line, s.text, clip(log))
			}
		case "ends":
			if code := fmt.Sprint(k.waitEnd(stopTime)); code != s.text {
				t.Errorf("%s:%d: exit code %s, want %s", k.file, s.line, code, s.text)
			}
		default:
			t.Fatalf("%s:%d: a line starts with %q", k.file, s.line, s.kind)
		}
	}
}

// expect takes as many messages as there are steps, each of which one of the steps
// must match.
func (k *talk) expect(t *testing.T, steps []step) {
	t.Helper()
	wants := slices.Clone(steps)
	for len(wants) > 0 {
		reasons, found := k.take(&wants)
		if found {
			continue
		}
		m, ok := message{}, false
		if !k.isOver(wants) {
			m, ok = k.receive()
		}
		if !ok {
			t.Fatalf("%s:%d: want\n%s\n%s\nstderr:\n%s", k.file, wants[0].line, clip(wants[0].text), cmp.Or(reasons, "mcpx says nothing"), clip(k.errors()))
		}
		k.waiting = append(k.waiting, m)
	}
}

// take takes a message that is next on its stream and that one of the steps
// matches, if there is one, and else says what the next messages are.
func (k *talk) take(wants *[]step) (reasons string, found bool) {
	var others strings.Builder
	blocked := map[int]bool{}
	for i, m := range k.waiting {
		if blocked[m.stream] {
			continue
		}
		for n, s := range *wants {
			err := k.bound.match(envelope(s.text), m.line)
			if err == nil {
				*wants = slices.Delete(*wants, n, n+1)
				k.waiting = dropThrough(k.waiting, i)
				return "", true
			}
			if !skippable(m) {
				fmt.Fprintf(&others, "%s:%d: mcpx says\n%s\n%v\n", k.file, s.line, clip(m.line), err)
			}
		}
		blocked[m.stream] = !skippable(m)
	}
	return others.String(), false
}

// isOver reports whether nothing that may still come can match the steps: what
// has come is next on the one stream there is, or answers the same request.
func (k *talk) isOver(wants []step) bool {
	return slices.ContainsFunc(k.waiting, func(m message) bool {
		return !skippable(m) && (m.stream == 0 || m.Method == "" && slices.ContainsFunc(wants, func(s step) bool {
			want := parse(envelope(s.text))
			return want.Method == "" && want.ID != nil && string(want.ID) == string(m.ID)
		}))
	})
}

// dropThrough is the messages without one of them and those before it on its
// stream, which were passed over.
func dropThrough(messages []message, at int) (left []message) {
	for i, m := range messages {
		if i > at || m.stream != messages[at].stream {
			left = append(left, m)
		}
	}
	return left
}

// skippable reports whether a message is one that upstreams may cause at any time.
func skippable(m message) bool { return strings.HasSuffix(m.Method, "/list_changed") }

// envelope is a message with the "jsonrpc" that a transcript may leave out. What
// is no object stays as it is.
func envelope(text string) string {
	if strings.HasPrefix(text, "{") && !strings.Contains(text, `"jsonrpc"`) {
		return `{"jsonrpc":"2.0",` + text[1:]
	}
	return text
}
