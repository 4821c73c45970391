package policy

import (
	"path"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for _, row := range []struct {
		name    string
		grants  []Grant
		tool    Tool
		profile bool // it exists
		server  bool
		all     bool
		has     bool
	}{
		{"a profile", []Grant{{Allow: []string{"work"}}}, Tool{"work", "github", "get_issue", false}, true, true, true, true},
		{"another profile", []Grant{{Allow: []string{"work"}}}, Tool{"home", "github", "get_issue", false}, false, false, false, false},
		{"a server", []Grant{{Allow: []string{"work/github"}}}, Tool{"work", "github", "get_issue", false}, true, true, true, true},
		{"another server", []Grant{{Allow: []string{"work/github"}}}, Tool{"work", "jira", "get_issue", false}, true, false, false, false},
		{"tools", []Grant{{Allow: []string{"work/github/get_*"}}}, Tool{"work", "github", "get_issue", false}, true, true, false, true},
		{"another tool", []Grant{{Allow: []string{"work/github/get_*"}}}, Tool{"work", "github", "delete", false}, true, true, false, false},
		{"a tool with a slash", []Grant{{Allow: []string{"work/github/get/*"}}}, Tool{"work", "github", "get/a/b", false}, true, true, false, true},
		{"all tools are not all", []Grant{{Allow: []string{"work/github/*"}}}, Tool{"work", "github", "a/b", false}, true, true, false, true},
		{"read only, a tool that writes", []Grant{{Allow: []string{"*"}, ReadOnly: true}}, Tool{"work", "github", "x", false}, true, true, true, false},
		{"read only, a tool that reads", []Grant{{Allow: []string{"*"}, ReadOnly: true}}, Tool{"work", "github", "x", true}, true, true, true, true},
		{"a union", []Grant{{Allow: []string{"*"}, ReadOnly: true}, {Allow: []string{"work/*/x"}}}, Tool{"work", "github", "x", false}, true, true, true, true},
		{"everything", []Grant{{Allow: []string{"home"}}, {Allow: []string{"*"}}}, Tool{"any", "any", "any", false}, true, true, true, true},
		{"nothing", nil, Tool{"work", "github", "x", true}, false, false, false, false},
		{"an empty grant", []Grant{{}}, Tool{"work", "github", "x", true}, false, false, false, false},
		{"a broken glob", []Grant{{Allow: []string{"[", "work/", ""}}}, Tool{"work", "github", "x", true}, false, false, false, false},
	} {
		r := Union(row.grants...)
		got := [4]bool{r.HasProfile(row.tool.Profile), r.HasServer(row.tool.Profile, row.tool.Server), r.HasAllOf(row.tool.Profile, row.tool.Server), r.HasTool(row.tool)}
		if want := [4]bool{row.profile, row.server, row.all, row.has}; got != want {
			t.Errorf("%s: profile, server, all, tool are %v, want %v", row.name, got, want)
		}
	}
}

func TestUnionOfEverythingIsNil(t *testing.T) {
	for _, allow := range []string{"*", "*/*"} {
		if r := Union(Grant{Allow: []string{allow}}); r != nil {
			t.Errorf("%s: %v", allow, r)
		}
	}
	for _, g := range []Grant{{Allow: []string{"*"}, ReadOnly: true}, {Allow: []string{"*/*/*"}}, {}} {
		if Union(g) == nil {
			t.Errorf("%v grants everything", g)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, r := range []*Rules{nil, Union(Grant{Allow: []string{"*"}, ReadOnly: true}), Union(Grant{Allow: []string{"work", "home"}})} {
		part := r.Within([]string{"work"})
		if r.Within(nil) != r || !part.HasAllOf("work", "x") || part.HasProfile("home") || part.HasServer("home", "x") || part.HasTool(Tool{"home", "x", "y", true}) {
			t.Errorf("%v in work is %v", r, part)
		}
	}
}

func TestCheckRule(t *testing.T) {
	for text, want := range map[string]string{
		"work": "", "work/github": "", "work/git*/get_[ab]?": "", "work/github/a/b": "", "*": "",
		"": "empty part", "/": "empty part", "work/": "empty part", "work//x": "empty part", "work/[": `invalid glob "["`, "a/b/[x": `invalid glob "[x"`,
	} {
		err := CheckRule(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzRules: a tool is granted only if its server is, and a server only if its profile is.
// A grant that is read-only grants nothing that the same grant without it does not, and
// no tool that writes.
func FuzzRules(f *testing.F) {
	f.Add("work/github/get_*", "work", "github", "get_issue", true)
	f.Add("*", "a", "b", "c", false)
	f.Add("w?rk/[gj]*", "work", "jira", "x/y", false)
	f.Fuzz(func(t *testing.T, allow, profile, server, tool string, readOnly bool) {
		free, bound := Union(Grant{Allow: []string{allow}}), Union(Grant{Allow: []string{allow}, ReadOnly: true})
		asked := Tool{profile, server, tool, readOnly}
		for _, r := range []*Rules{free, bound} {
			if r.HasTool(asked) && !r.HasServer(profile, server) || r.HasServer(profile, server) && !r.HasProfile(profile) || r.HasAllOf(profile, server) && !r.HasServer(profile, server) {
				t.Fatalf("%q grants a part of what it does not grant: %+v", allow, asked)
			}
		}
		if bound.HasTool(asked) && (!free.HasTool(asked) || !readOnly) {
			t.Fatalf("%q, read only, grants %+v", allow, asked)
		}
		if ok, err := path.Match(allow, profile); err == nil && !strings.Contains(allow, "/") && !strings.Contains(profile, "/") && allow != "" && ok != free.HasProfile(profile) {
			t.Fatalf("%q: profile %q is granted: %v", allow, profile, !ok)
		}
	})
}
