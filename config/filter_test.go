package config

import "testing"

func TestFilter(t *testing.T) {
	tests := []struct {
		name   string
		filter Filter
		tool   string
		want   bool
	}{
		{"empty allows all", Filter{}, "anything", true},
		{"allowed", Filter{Allow: []string{"read", "list_*"}}, "list_files", true},
		{"not allowed", Filter{Allow: []string{"read", "list_*"}}, "write", false},
		{"denied", Filter{Deny: []string{"delete_*"}}, "delete_file", false},
		{"not denied", Filter{Deny: []string{"delete_*"}}, "read", true},
		{"deny wins", Filter{Allow: []string{"*"}, Deny: []string{"read"}}, "read", false},
		{"star crosses a slash", Filter{Allow: []string{"repos*"}}, "repos/issues/list", true},
		{"star inside", Filter{Allow: []string{"*/issues/*"}}, "repos/a/issues/list", true},
		{"slash is itself", Filter{Allow: []string{"a/b"}}, "a-b", false},
		{"question mark", Filter{Allow: []string{"get_?"}}, "get_é", true},
		{"question mark is one", Filter{Allow: []string{"get_?"}}, "get_ab", false},
		{"set", Filter{Allow: []string{"v[12]"}}, "v2", true},
		{"outside a set", Filter{Allow: []string{"v[^12]"}}, "v2", false},
		{"whole names", Filter{Allow: []string{"read"}}, "read_file", false},
		{"case counts", Filter{Allow: []string{"Read"}}, "read", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.filter.Allows(test.tool); got != test.want {
				t.Errorf("%+v.Allows(%q) = %v", test.filter, test.tool, got)
			}
		})
	}
}
