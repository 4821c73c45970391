package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/registry/link"
	"mcpx/registry/lists"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
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
	_, s := supervise(t, Options{}, a)
	u := await(t, s, Ready)
	if u.Instructions != "be kind" || u.StartupTime <= 0 {
		t.Fatalf("%q, %s", u.Instructions, u.StartupTime)
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
	_, s = supervise(t, Options{}, mcptest.Upstream(t, "-no-tools"))
	if bare := await(t, s, Ready); len(bare.Tools) != 0 {
		t.Errorf("bare: %d tools", len(bare.Tools))
	}
}

// TestAListThatFailsIsTriedAgain: an upstream announces a change only once, so a list
// that fails is requested again.
func TestAListThatFailsIsTriedAgain(t *testing.T) {
	f := &registrytest.Fake{}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		f.Set(func(f *registrytest.Fake) {
			f.Script = func(l *registrytest.Link, method, id string, _ []byte) (bool, error) {
				if method == "tools/list" {
					l.Say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"not now"}}`)
				}
				return method == "tools/list", nil
			}
		})
		f.Current.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		registrytest.After(relistTime)
		if n := registrytest.Get(f, &f.Listed); n != 3 {
			t.Errorf("it was asked for its tools %d times in %s, want 3", n, relistTime)
		}
		f.Set(func(f *registrytest.Fake) { f.Script = nil })
		registrytest.After(relistTime)
		if tools := s.Upstream().Tools; len(tools) != 1 || tools[0].Name != "t4" {
			t.Errorf("its tools are %+v, want the fourth list", tools)
		}
		registrytest.After(time.Hour)
		if n := registrytest.Get(f, &f.Listed); n != 4 {
			t.Errorf("it was asked for its tools %d times in all, want 4", n)
		}
	})
}

// TestForgottenDuringTheStart: a session that is forgotten while its lists are read is never
// ready, though its link ends a moment later.
func TestForgottenDuringTheStart(t *testing.T) {
	f := &registrytest.Fake{}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		f.Set(func(f *registrytest.Fake) {
			f.Script = func(l *registrytest.Link, method, id string, _ []byte) (bool, error) {
				switch method {
				case "initialize":
					l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{},"prompts":{}}}}`)
				case "prompts/list":
					l.Broken <- &link.CallEnd{ID: []byte(id), Outcome: link.Forgotten, Reason: "forgotten"}
					time.AfterFunc(time.Second, func() { l.End(link.ErrSessionLost) })
				default:
					return false, nil
				}
				return true, nil
			}
		})
		f.Die()
		synctest.Wait()
		if u := s.Upstream(); u.State == Ready {
			t.Errorf("it is %s", u.State)
		}
	})
}

// lister is a fake upstream with all kinds of lists. The items are named after the version.
type lister struct {
	registrytest.Fake
	version string
	failing map[string]int // the codes of its errors, by method
	asked   []string       // the methods of the lists that were requested
}

func newLister() *lister {
	f := &lister{version: "1"}
	f.Script = func(l *registrytest.Link, method, id string, _ []byte) (bool, error) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
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
			l.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"not now"}}`, id, code))
		default:
			l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		}
		return true, nil
	}
	return f
}

// requested returns the methods of the lists that were requested since it was called last.
func (f *lister) requested() string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
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
			f.Views = func(*config.Upstream) lists.Views { return lists.Views{IsStrict: true} }
			inTime(t, &f.Fake, func(t *testing.T, s *Supervisor) {
				f.Set(func(*registrytest.Fake) { f.version, f.failing = "2", test.failing })
				for _, capability := range upstream.Listable {
					f.Say(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, capability)
				}
				registrytest.After(time.Second)
				if u := s.Upstream(); shown(u) != test.want || u.AwaitsList() != test.awaited {
					t.Errorf("%s is shown, want %s; calls wait: %t", shown(u), test.want, u.AwaitsList())
				}
				f.requested()
				for range 3 {
					registrytest.After(relistTime)
					if got := f.requested(); got != test.retried {
						t.Errorf("it was asked for %q again, want %q", got, test.retried)
					}
				}
				f.Set(func(*registrytest.Fake) { f.failing = nil })
				registrytest.After(relistTime)
				want := "[t2] [p2] [r2] [s2]"
				if test.retried == "" {
					want = test.want
				}
				if u := s.Upstream(); shown(u) != want || u.AwaitsList() {
					t.Errorf("%s is shown in the end, want %s; calls wait: %t", shown(u), want, u.AwaitsList())
				}
				f.requested()
				registrytest.After(time.Hour)
				if got := f.requested(); got != "" {
					t.Errorf("it was asked for %q although nothing has changed", got)
				}
			})
		})
	}
}

// shown returns the keys of the items that an upstream shows.
func shown(u *Upstream) string {
	var tools []string
	for _, t := range u.Tools {
		tools = append(tools, t.Name)
	}
	return fmt.Sprint(tools, names(u.Prompts), names(u.Resources), names(u.Templates))
}

func names(items []lists.Item) (keys []string) {
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

// recorded is a ListObserver that writes down what it gets.
type recorded struct {
	calls []string
}

func (r *recorded) Read(u *Upstream, tools []lists.Item, before func() []lists.Item) string {
	r.calls = append(r.calls, fmt.Sprint("read ", names(tools), ", before ", names(before()), ", shown ", shown(u)))
	return fmt.Sprint("news ", len(r.calls))
}

func (r *recorded) Published(u *Upstream, _ zerolog.Logger) {
	r.calls = append(r.calls, fmt.Sprint("published ", shown(u), ": ", u.News()))
}

// TestListObserver: an observer gets the tools before clients see them, and whoever reads a list
// that has changed also reads what is new.
func TestListObserver(t *testing.T) {
	r := &recorded{}
	f := &registrytest.Fake{}
	inTimeWith(t, f, Options{ListObserver: func() ListObserver { return r }}, func(t *testing.T, _ *Supervisor) {
		f.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		want := []string{
			"read [t1], before [], shown [] [] [] []", "published [t1] [] [] []: news 1",
			"read [t2], before [t1], shown [t1] [] [] []", "published [t2] [] [] []: news 3",
		}
		if !slices.Equal(r.calls, want) {
			t.Errorf("got %q, want %q", r.calls, want)
		}
	})
}
