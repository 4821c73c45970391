package callers

import (
	"path"
	"strings"
	"testing"

	"mcpx/internal/policy"
)

func TestRules(t *testing.T) {
	for _, row := range []struct {
		name    string
		grants  []Grant
		tool    policy.Tool
		profile bool // it exists
		extent  policy.Extent
		has     bool
	}{
		{"a profile", []Grant{{Allow: []string{"work"}}}, policy.Tool{Profile: "work", Server: "github", Name: "get_issue"}, true, policy.Everything, true},
		{"another profile", []Grant{{Allow: []string{"work"}}}, policy.Tool{Profile: "home", Server: "github", Name: "get_issue"}, false, policy.Nothing, false},
		{"a server", []Grant{{Allow: []string{"work/github"}}}, policy.Tool{Profile: "work", Server: "github", Name: "get_issue"}, true, policy.Everything, true},
		{"another server", []Grant{{Allow: []string{"work/github"}}}, policy.Tool{Profile: "work", Server: "jira", Name: "get_issue"}, true, policy.Nothing, false},
		{"tools", []Grant{{Allow: []string{"work/github/get_*"}}}, policy.Tool{Profile: "work", Server: "github", Name: "get_issue"}, true, policy.SomeTools, true},
		{"another tool", []Grant{{Allow: []string{"work/github/get_*"}}}, policy.Tool{Profile: "work", Server: "github", Name: "delete"}, true, policy.SomeTools, false},
		{"a tool with a slash", []Grant{{Allow: []string{"work/github/get/*"}}}, policy.Tool{Profile: "work", Server: "github", Name: "get/a/b"}, true, policy.SomeTools, true},
		{"all tools are not all", []Grant{{Allow: []string{"work/github/*"}}}, policy.Tool{Profile: "work", Server: "github", Name: "a/b"}, true, policy.SomeTools, true},
		{"read only, a tool that writes", []Grant{{Allow: []string{"*"}, ReadOnly: true}}, policy.Tool{Profile: "work", Server: "github", Name: "x"}, true, policy.AllButSomeTools, false},
		{"read only, a tool that reads", []Grant{{Allow: []string{"*"}, ReadOnly: true}}, policy.Tool{Profile: "work", Server: "github", Name: "x", ReadOnly: true}, true, policy.AllButSomeTools, true},
		{"a union", []Grant{{Allow: []string{"*"}, ReadOnly: true}, {Allow: []string{"work/*/x"}}}, policy.Tool{Profile: "work", Server: "github", Name: "x"}, true, policy.AllButSomeTools, true},
		{"everything", []Grant{{Allow: []string{"home"}}, {Allow: []string{"*"}}}, policy.Tool{Profile: "any", Server: "any", Name: "any"}, true, policy.Everything, true},
		{"nothing", nil, policy.Tool{Profile: "work", Server: "github", Name: "x", ReadOnly: true}, false, policy.Nothing, false},
		{"an empty grant", []Grant{{}}, policy.Tool{Profile: "work", Server: "github", Name: "x", ReadOnly: true}, false, policy.Nothing, false},
		{"a broken glob", []Grant{{Allow: []string{"[", "work/", ""}}}, policy.Tool{Profile: "work", Server: "github", Name: "x", ReadOnly: true}, false, policy.Nothing, false},
	} {
		r := union(row.grants)
		if got := r.HasProfile(row.tool.Profile); got != row.profile {
			t.Errorf("%s: the profile exists: %v, want %v", row.name, got, row.profile)
		}
		if got := r.Extent(row.tool.Profile, row.tool.Server); got != row.extent {
			t.Errorf("%s: extent %v, want %v", row.name, got, row.extent)
		}
		if got := r.HasTool(row.tool); got != row.has {
			t.Errorf("%s: the tool exists: %v, want %v", row.name, got, row.has)
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
	for _, r := range []*rules{nil, union([]Grant{{Allow: []string{"*"}, ReadOnly: true}}), union([]Grant{{Allow: []string{"work", "home"}}})} {
		part := r.within([]string{"work"})
		if r.within(nil) != r || part.Extent("work", "x") < policy.AllButSomeTools || part.HasProfile("home") || part.Extent("home", "x") != policy.Nothing || part.HasTool(policy.Tool{Profile: "home", Server: "x", Name: "y", ReadOnly: true}) {
			t.Errorf("%v in work is %v", r, part)
		}
	}
}

func TestCheckRule(t *testing.T) {
	for text, want := range map[string]string{
		"work": "", "work/github": "", "work/git*/get_[ab]?": "", "work/github/a/b": "", "*": "",
		"": "empty part", "/": "empty part", "work/": "empty part", "work//x": "empty part", "work/[": `invalid glob "["`, "a/b/[x": `invalid glob "[x"`,
	} {
		err := checkRule(text)
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
		free, bound := union([]Grant{{Allow: []string{allow}}}), union([]Grant{{Allow: []string{allow}, ReadOnly: true}})
		asked := policy.Tool{Profile: profile, Server: server, Name: tool, ReadOnly: readOnly}
		for _, r := range []*rules{free, bound} {
			extent := r.Extent(profile, server)
			if r.HasTool(asked) && extent == policy.Nothing || extent != policy.Nothing && !r.HasProfile(profile) || extent == policy.Everything && !r.HasTool(asked) {
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
