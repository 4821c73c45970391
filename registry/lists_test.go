package registry

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/lockfile"
	"mcpx/internal/mcptest"
	"mcpx/internal/upstream"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func TestEveryToolIsCached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	odd := `[
		{"name":"odd","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[{}],"$defs":{"a":{}}},"annotations":{"x":1},"icons":[{"sizes":"any"}],"big":9007199254740993},
		{"title":"no name"}, 5, null, "text",
		{"name":"odd","description":"a second one"},
		{"name":"bool","inputSchema":true},
		{"name":"none"},
		{"name":"wrong","inputSchema":["not","a","schema"],"description":{"not":"text"}},
		{"name":"hidden_tool","inputSchema":{"type":["object","null"]}}
	]`
	if err := os.WriteFile(file, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mcptest.Upstream(t, "-tools", "50", "-page-size", "7", "-tools-file", file, "-instructions", "be kind")
	a["tools"] = map[string]any{"deny": []string{"hidden*", "pid"}}
	r, _ := run(t, map[string]any{"a": a, "bare": mcptest.Upstream(t, "-no-tools")})
	u := r.Settled(t.Context(), "a")
	if u.State != live.Ready || u.Instructions != "be kind" || u.StartupTime <= 0 {
		t.Fatalf("%s %q %q", u.State, u.Reason, u.Instructions)
	}
	for _, name := range []string{"echo", "extra_0", "extra_49", "odd", "bool", "none", "wrong"} {
		if u.Tool(name) == nil {
			t.Errorf("no tool %s", name)
		}
	}
	for _, name := range []string{"hidden_tool", "pid", ""} {
		if u.Tool(name) != nil {
			t.Errorf("there is a tool %q", name)
		}
	}
	var want []json.RawMessage
	if err := json.Unmarshal([]byte(odd), &want); err != nil {
		t.Fatal(err)
	}
	if got := string(u.Tool("odd").Raw); got != string(want[0]) {
		t.Errorf("the definition is\n%s\nwant\n%s", got, want[0])
	}
	if got := u.Tool("echo").Signature(); !strings.HasPrefix(got, "text: string, times?: integer") {
		t.Errorf("signature %q", got)
	}
	if got := u.Tool("echo").RequiredParameters(); got != "text, …" {
		t.Errorf("required parameters %q", got)
	}
	if bare := r.Settled(t.Context(), "bare"); bare.State != live.Ready || len(bare.Tools) != 0 {
		t.Errorf("bare: %s, %d tools", bare.State, len(bare.Tools))
	}
}

func TestListsAreAnnounced(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-full", "-start-delay", "3s")}) // not ready before the client is there
	c := newRecorder("one")
	r.Attach(c)
	c.wait(t, "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed")
	u := r.Settled(t.Context(), "a")
	for what, keys := range map[string][2][]string{
		"prompts":   {{"plain", "choice", "needs"}, names(u.Prompts)},
		"resources": {{"test://one", "own://test"}, names(u.Resources)},
		"templates": {{"item://{id}", "own://test/{category}/{id}"}, names(u.Templates)},
	} {
		if !slices.Equal(keys[0], keys[1]) {
			t.Errorf("%s are %q, want %q", what, keys[1], keys[0])
		}
	}
	if !u.Has("completions") || u.Has("tasks") {
		t.Errorf("capabilities %s", u.Capabilities)
	}
}

// TestStartsAreAnnouncedTogether: while upstreams start, their changes are announced
// together, however many there are.
func TestStartsAreAnnouncedTogether(t *testing.T) {
	upstreams := map[string]any{"late": mcptest.Upstream(t, "-start-delay", "1s")}
	for i := range 6 {
		upstreams[fmt.Sprint("early", i)] = mcptest.Upstream(t)
	}
	begin := time.Now()
	r, _ := run(t, upstreams)
	c := newRecorder("one")
	r.Attach(c)
	for name := range upstreams {
		if _, err := r.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c.wait(t, "notifications/tools/list_changed")
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 2 + int(time.Since(begin)/startPause)
	if n := len(c.told); n > most {
		t.Errorf("%d notifications, want at most %d: %q", n, most, c.told)
	}
}

func names(items []lists.Item) (keys []string) {
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

func TestListChangedIsCoalesced(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t)})
	before := r.Settled(t.Context(), "a")
	mustCall(t, r, "a", "change", `{"notices":200}`)
	l.wait(t, "list changed")
	after := r.Settled(t.Context(), "a")
	if before.Tool("extra_0") != nil || after.Tool("extra_0") == nil {
		t.Error("the new tool is not there")
	}
	if before.Tool("echo") != after.Tool("echo") {
		t.Error("a tool that did not change was made anew")
	}
	mustCall(t, r, "a", "sleep", `{"ms":1500}`)
	count, err := strconv.Atoi(mustCall(t, r, "a", "lists", "{}"))
	if err != nil || count > 3 {
		t.Errorf("200 notices caused %d lists besides the first, want 2 at most", count-1)
	}
}

// TestAListThatFailsIsTriedAgain: an upstream announces a change only once, so a list
// that fails is requested again.
func TestAListThatFailsIsTriedAgain(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				if method == "tools/list" {
					l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"not now"}}`)
				}
				return method == "tools/list", nil
			}
		})
		f.current.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		after(relistTime)
		if n := get(f, &f.listed); n != 3 {
			t.Errorf("it was asked for its tools %d times in %s, want 3", n, relistTime)
		}
		f.set(func(f *fake) { f.script = nil })
		after(relistTime)
		if tools := r.Catalog().Upstream("a").Tools; len(tools) != 1 || tools[0].Name != "t4" {
			t.Errorf("its tools are %+v, want the fourth list", tools)
		}
		after(time.Hour)
		if n := get(f, &f.listed); n != 4 {
			t.Errorf("it was asked for its tools %d times in all, want 4", n)
		}
	})
}

// TestForgottenDuringTheStart: a session that is forgotten while its lists are read is never
// ready, though its link ends a moment later.
func TestForgottenDuringTheStart(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				switch method {
				case "initialize":
					l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{},"prompts":{}}}}`)
				case "prompts/list":
					l.broken <- &link.CallEnd{ID: []byte(id), Outcome: link.Forgotten, Reason: "forgotten"}
					time.AfterFunc(time.Second, func() { l.end(link.ErrSessionLost) })
				default:
					return false, nil
				}
				return true, nil
			}
		})
		f.die()
		synctest.Wait()
		if u := r.Catalog().Upstream("a"); u.State == live.Ready {
			t.Errorf("it is %s", u.State)
		}
	})
}

// lister is a fake upstream with all kinds of lists. The items are named after the version.
type lister struct {
	fake
	version string
	failing map[string]int // the codes of its errors, by method
	asked   []string       // the methods of the lists that were requested
}

func newLister() *lister {
	f := &lister{version: "1"}
	f.script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		result := map[string]string{
			"tools/list":               `{"tools":[{"name":"t` + f.version + `"}]}`,
			"prompts/list":             `{"prompts":[{"name":"p` + f.version + `"}]}`,
			"resources/list":           `{"resources":[{"uri":"r` + f.version + `"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"s` + f.version + `"}]}`,
			"initialize":               `{"capabilities":{"tools":{},"prompts":{},"resources":{}}}`,
		}[method]
		if strings.HasSuffix(method, "/list") {
			f.asked = append(f.asked, method)
		}
		switch code := f.failing[method]; {
		case result == "":
			return false, nil
		case code != 0:
			l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"not now"}}`, id, code))
		default:
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		}
		return true, nil
	}
	return f
}

// requested returns the methods of the lists that were requested since it was called last.
func (f *lister) requested() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked = nil }()
	return strings.Join(f.asked, " ")
}

// TestListsThatFail: a list that cannot be read keeps its last value, is read again later,
// and delays neither calls nor other lists. Only the tools are waited for.
func TestListsThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		failing map[string]int
		want    string // what is shown after the change
		awaited bool   // calls wait for the lists
		retried string
	}{
		"a method that it lacks": {map[string]int{"resources/templates/list": -32601}, "[t2] [p2] [r2] []", false, ""},
		"a list":                 {map[string]int{"prompts/list": -32000}, "[t2] [p1] [r2] [s2]", false, "prompts/list"},
		"the tools":              {map[string]int{"tools/list": -32000}, "[t1] [p1] [r1] [s1]", true, "tools/list"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newLister()
			inTime(t, &f.fake, func(t *testing.T, r *Registry) {
				f.set(func(*fake) { f.version, f.failing = "2", test.failing })
				for _, capability := range upstream.Listable {
					f.say(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, capability)
				}
				after(time.Second)
				if u := r.Catalog().Upstream("a"); shown(u) != test.want || u.AwaitsList() != test.awaited {
					t.Errorf("%s is shown, want %s; calls wait: %t", shown(u), test.want, u.AwaitsList())
				}
				f.requested()
				for range 3 {
					after(relistTime)
					if got := f.requested(); got != test.retried {
						t.Errorf("it was asked for %q again, want %q", got, test.retried)
					}
				}
				f.set(func(*fake) { f.failing = nil })
				after(relistTime)
				want := "[t2] [p2] [r2] [s2]"
				if test.retried == "" {
					want = test.want
				}
				if u := r.Catalog().Upstream("a"); shown(u) != want || u.AwaitsList() {
					t.Errorf("%s is shown in the end, want %s; calls wait: %t", shown(u), want, u.AwaitsList())
				}
				f.requested()
				after(time.Hour)
				if got := f.requested(); got != "" {
					t.Errorf("it was asked for %q although nothing has changed", got)
				}
			}, func(c *config.Upstream) {
				approved := &lockfile.Server{}
				for _, version := range []string{"1", "2"} {
					approved.Add(lockfile.Tools, "t"+version, []byte(`{"name":"t`+version+`"}`))
					approved.Add(lockfile.Prompts, "p"+version, []byte(`{"name":"p`+version+`"}`))
					approved.Add(lockfile.Templates, "s"+version, []byte(`{"uriTemplate":"s`+version+`"}`))
				}
				c.Trust = config.Trust{Pin: config.PinBlock, Approved: approved}
			})
		})
	}
}

// shown returns the keys of the items that an upstream shows.
func shown(u *live.Upstream) string {
	var tools []string
	for _, t := range u.Tools {
		tools = append(tools, t.Name)
	}
	return fmt.Sprint(tools, names(u.Prompts), names(u.Resources), names(u.Templates))
}
