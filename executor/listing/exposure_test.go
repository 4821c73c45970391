package listing

import (
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func TestNamesOnTheFront(t *testing.T) {
	for _, c := range []struct {
		name  string
		style NameStyle
		in    [][2]string
		want  []string
	}{
		{"plain", PrefixedNames, [][2]string{{"Time", "now"}, {"zhipu-web-search", "web_search"}}, []string{"Time__now", "zhipu-web-search__web_search"}},
		{"no prefix", OwnNames, [][2]string{{"Time", "now"}, {"Time", "dotted.name"}, {"Time", "a/b c"}, {"Time", "日本"}, {"Time", strings.Repeat("x", 80)}},
			[]string{"now", "dotted.name", "a/b c", "日本", strings.Repeat("x", 80)}},
		{"odd characters", PrefixedNames, [][2]string{{"my server", "a/b.c"}, {"日本", "x"}}, []string{"my_server__a_b_c_5f46fbdc", "____x_1c28a9e8"}},
		{"collision", PrefixedNames, [][2]string{{"a", "b__c"}, {"a__b", "c"}}, []string{"a__b__c", "a__b__c_f1c4c9f5"}},
		{"long", PrefixedNames, [][2]string{{"server", strings.Repeat("x", 80)}, {"server", strings.Repeat("x", 81)}}, []string{
			"server__" + strings.Repeat("x", 47) + "_", "server__" + strings.Repeat("x", 47) + "_",
		}},
	} {
		names := newFrontNames(c.style)
		seen := map[string]bool{}
		for i, in := range c.in {
			got := names.add(in[0], in[1])
			if again := newFrontNames(c.style).add(in[0], in[1]); len(names.used) == 1 && again != got {
				t.Errorf("%s: %s the second time, %s the first", c.name, again, got)
			}
			if seen[got] {
				t.Errorf("%s: %s twice", c.name, got)
			}
			seen[got] = true
			if want := regexp.MustCompile("_[0-9a-f]{8}$").ReplaceAllString(c.want[i], "_"); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q is %s, want %s", c.name, in, got, c.want[i])
			}
		}
	}
}

// FuzzNames: whatever servers and tools are called, each gets a name of its own
// that every client takes, and gets the same again.
func FuzzNames(f *testing.F) {
	f.Add("Time", "now", "Time", "now2")
	f.Add("a", "b__c", "a__b", "c")
	f.Add("日本", "\x00", strings.Repeat("x", 100), "/")
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2 string) {
		if s1 == s2 && t1 == t2 {
			t.Skip()
		}
		var before []string
		for range 2 {
			names := newFrontNames(PrefixedNames)
			now := []string{names.add(s1, t1), names.add(s2, t2)}
			if now[0] == now[1] || !valid.MatchString(now[0]) || !valid.MatchString(now[1]) {
				t.Fatalf("%q", now)
			}
			if before != nil && (before[0] != now[0] || before[1] != now[1]) {
				t.Fatalf("%q, then %q", before, now)
			}
			before = now
		}
	})
}

// TestFlatDescriptions: the server's name comes first, and every byte of the upstream's
// text after it.
func TestFlatDescriptions(t *testing.T) {
	for _, c := range []struct {
		name, own string
		style     NameStyle
		want      string
	}{
		{"plain", `"Say it."`, PrefixedNames, "[srv] Say it."},
		{"white space", `"  Say\n it. \n\n"`, PrefixedNames, "[srv]   Say\n it. \n\n"},
		{"empty", `""`, PrefixedNames, "[srv]"},
		{"no prefix", `" Say it. "`, OwnNames, " Say it. "},
	} {
		raw := flatTool("srv", "echo", tool(t, `{"name":"echo","description":`+c.own+`}`), c.style)
		if got, _ := rawjson.String(rawjson.Get(raw, "description")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTemplatesThatAreNone(t *testing.T) {
	u := live.NewUpstream("a", nil)
	u.Templates = []lists.Item{{Key: "bad://{", Raw: []byte(`{"uriTemplate":"bad://{"}`)}}
	x := expose(&registry.Catalog{Upstreams: []*live.Upstream{u}}, nil, OwnNames)
	if got, _ := x.Resource("bad://{"); got != nil {
		t.Errorf("a URI is found: %+v", got)
	}
	if got, _ := x.Template("bad://{"); got == nil || !strings.HasPrefix(got.Key, "bad") {
		t.Errorf("the template is not found: %+v", got)
	}
}
