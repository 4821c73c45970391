package listing

import (
	"strings"
	"testing"

	"mcpx/registry/lists"
)

// TestSharedByAllLines: what all tools of a listing have in common is shown once, or left out.
func TestSharedByAllLines(t *testing.T) {
	one := func(name, description, properties string) *lists.Tool {
		return tool(t, `{"name":"`+name+`","description":"`+description+`","inputSchema":{"type":"object","properties":{`+properties+`},"required":["id"]}}`)
	}
	const page, id = `"page":{"type":"integer"}`, `"id":{"type":"string"}`
	for _, row := range []struct {
		name  string
		tools []*lists.Tool
		want  string
	}{
		{
			"parameters and prefix",
			[]*lists.Tool{
				one("a", "[Feishu/Lark]-Docs-App-Create an app", id+","+page),
				one("b", "[Feishu/Lark]-Docs-App-Copy an app", page+","+id+`,"x":{"type":"boolean"}`),
				one("c", "[Feishu/Lark]-Docs-Table-List tables", id+","+page),
			},
			"all: page?: integer\na(id: string): App-Create an app\nb(id: string, x?: boolean): App-Copy an app\nc(id: string): Table-List tables",
		},
		{
			"another type, and a short prefix",
			[]*lists.Tool{one("a", "Use this to run", id+","+page), one("b", "Use this to stop", id+","+page), one("c", "Use it", id+`,"page":{"type":"string"}`)},
			"a(id: string, page?: integer): Use this to run\nb(id: string, page?: integer): Use this to stop\nc(id: string, page?: string): Use it",
		},
		{
			"a sentence that is all prefix",
			[]*lists.Tool{one("a", "Manage all things", id), one("b", "Manage all things", id), one("c", "Manage all things", id)},
			"a(id: string): Manage all things\nb(id: string): Manage all things\nc(id: string): Manage all things",
		},
		{
			"two tools",
			[]*lists.Tool{one("a", "Use this to run it", id+","+page), one("b", "Use this to stop it", id+","+page)},
			"a(id: string, page?: integer): Use this to run it\nb(id: string, page?: integer): Use this to stop it",
		},
		{
			"a word border",
			[]*lists.Tool{one("a", "Use this to read", id), one("b", "Use this to remove", id), one("c", "Use this to re-add", id)},
			"a(id: string): read\nb(id: string): remove\nc(id: string): re-add",
		},
	} {
		_, got, _ := strings.Cut(listing(upstreamOf("srv", row.tools), row.tools, 4000), "\n")
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}
