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

// transcript is a whole conversation with mcpx. Its file is a txtar archive with
//
//	mcpx.json   the config; "command": "$UPSTREAM -full" is an mcptest upstream
//	            with those flags, $DIR the folder of the archive's files
//	flags       the flags of mcpx, if any
//	fronts      the fronts that it runs over, by default all
//	talk        the conversation
//
// and any other files that the upstreams read. The lines of the talk are:
//
//	# a comment
//	== a section, which is a subtest; "[stdio]" at its end: over that front only
//	> a message to mcpx
//	< the next message from mcpx
//	<* the same; consecutive lines of this kind may come in any order
//	stderr TEXT    wait until the log has the text
//	!stderr TEXT   the log does not have the text so far
//	ends CODE      mcpx ends by itself
//
// A line that starts with a space continues the one before. "jsonrpc" may be left out of
// messages. Messages are compared by match. Over HTTP the next message is that of any
// stream. List changes that no line expects are skipped, since starting upstreams cause
// some. After the talk, mcpx must send nothing more on any stream.
type transcript struct {
	file    string
	archive *txtar.Archive
	steps   []step
}

// step is a line of the talk.
type step struct {
	line       int
	kind, text string
}

// TestTranscripts runs every transcript over every front.
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

// parseTranscript reads a transcript.
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

// part returns one of the archive's files.
func (tr *transcript) part(name string) string {
	for _, f := range tr.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// run starts mcpx behind a front and runs the talk.
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
			talk.play(t, section[:n])
		} else if !t.Run(name, func(t *testing.T) { talk.play(t, section[:n]) }) {
			t.FailNow() // later sections depend on it
		}
	}
	for _, m := range append(talk.waiting, talk.rest()...) {
		if !skippable(m) {
			t.Errorf("%s: mcpx said more than the transcript has:\n%s", tr.file, clip(m.line))
		}
	}
}

// upstreams replaces "$UPSTREAM flags" by mcptest upstreams.
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

// talk is a running conversation.
type talk struct {
	conversation
	file    string
	bound   bindings
	waiting []message // received, but not matched by a step yet
}

// play runs some steps.
func (k *talk) play(t *testing.T, steps []step) {
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

// expect receives one message for each of the steps, in any order.
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

// take removes a message that is next on its stream and matches one of the steps. If
// there is none, it returns why the next messages do not match.
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

// isOver reports whether no later message can match the steps: a waiting message is next
// on the only stream, or answers the same request.
func (k *talk) isOver(wants []step) bool {
	return slices.ContainsFunc(k.waiting, func(m message) bool {
		return !skippable(m) && (m.stream == 0 || m.Method == "" && slices.ContainsFunc(wants, func(s step) bool {
			want := parse(envelope(s.text))
			return want.Method == "" && want.ID != nil && string(want.ID) == string(m.ID)
		}))
	})
}

// dropThrough returns the messages without one of them and without the skipped ones
// before it on its stream.
func dropThrough(messages []message, at int) (left []message) {
	for i, m := range messages {
		if i > at || m.stream != messages[at].stream {
			left = append(left, m)
		}
	}
	return left
}

// skippable reports whether upstreams may cause this message at any time.
func skippable(m message) bool { return strings.HasSuffix(m.Method, "/list_changed") }

// envelope adds the member "jsonrpc", which a transcript may leave out, to an object.
func envelope(text string) string {
	if strings.HasPrefix(text, "{") && !strings.Contains(text, `"jsonrpc"`) {
		return `{"jsonrpc":"2.0",` + text[1:]
	}
	return text
}
