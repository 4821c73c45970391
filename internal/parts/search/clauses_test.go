package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestClauses(t *testing.T) {
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"read the sheet, then draw a chart", []string{"read sheet", "draw chart"}},
		{"Read the sheet. Draw a chart!", []string{"read sheet", "draw chart"}},
		{"read the sheet AND draw a chart", []string{"read sheet", "draw chart"}},
		{"create, read and delete notes", []string{"creat read", "delet note"}},
		{"create and delete a note", []string{"creat delet note"}},
		{"sand thunder", nil},
		{"read report.v2.xlsx now", nil},
		{"", nil},
	} {
		var got []string
		for _, words := range clauses(test.query) {
			var terms []string
			for _, w := range words {
				terms = append(terms, w.term)
			}
			got = append(got, strings.Join(terms, " "))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("clauses(%q) = %q, want %q", test.query, got, test.want)
		}
	}
}

func TestClausesAreBounded(t *testing.T) {
	const two = "read the sheet, draw a chart, "
	for repeat, want := range map[int]int{1: 2, 3: 6, 20: maxClauses, 1 + maxClauseBytes/len(two): 0} {
		if got := len(clauses(strings.Repeat(two, repeat))); got != want {
			t.Errorf("%d clauses in %d, want %d", got, 2*repeat, want)
		}
	}
}

func TestPrepared(t *testing.T) {
	for query, want := range map[string]string{
		"save it to /data/notes/a.md":      "save it to file /data/notes/a.md",
		"open ~/a.xlsx and ./b.csv":        "open file ~/a.xlsx and file ./b.csv",
		`open C:\data\a.xlsx`:              `open file C:\data\a.xlsx`,
		"read `/tmp/a.go`":                 "read `file /tmp/a.go`",
		"see https://example.com/a.html":   "see https://example.com/a.html",
		"list /tmp, read/write 1/2":        "list /tmp, read/write 1/2",
		"server: files, tool: read sheets": "\n files, \n read sheets",
		"file server for tools":            "file server for tools",
	} {
		if got := prepared(query); got != want {
			t.Errorf("prepared(%q) = %q, want %q", query, got, want)
		}
	}
}

// TestLongQueries: each of the things that a long query asks for is among the first hits.
func TestLongQueries(t *testing.T) {
	index := newIndex([]document{
		{Name: "read_sheet", Server: "office", Description: "Reads a sheet of an Excel workbook."},
		{Name: "excel_workbook_sheet_names", Server: "office", Description: "Names the sheets of an Excel workbook."},
		{Name: "excel_workbook_sheet_copy", Server: "office", Description: "Copies the sheet of an Excel workbook."},
		{Name: "excel_workbook_sheet_move", Server: "office", Description: "Moves the sheet of an Excel workbook."},
		{Name: "generate_chart", Server: "draw", Description: "Draws a pie."},
		{Name: "write_file", Server: "disk", Description: "Writes text."},
	})
	hits, _ := index.search("Read the sheet of the Excel workbook, draw a pie chart and save it to /tmp/a.md", 3)
	for _, want := range []int{0, 4, 5} {
		if !slices.Contains(documents(hits), want) {
			t.Errorf("found %v, want %d among them", documents(hits), want)
		}
	}
}

func TestEmptyWords(t *testing.T) {
	var tools []document
	for i := range 5 {
		tools = append(tools, document{Name: fmt.Sprintf("draw_%d", i), Server: "mcp-server-chart"})
	}
	tools = append(tools,
		document{Name: "read", Server: "files", Description: "Reads a sheet."},
		document{Name: "delete_server", Server: "machines"},
		document{Name: "delete_disk", Server: "machines"},
	)
	index := newIndex(tools)
	for _, test := range []struct {
		name, query string
		hits        []int
		servers     []string
	}{
		{"as labels", "server: files, tool: read a sheet", []int{5}, nil},
		{"in a server's name", "mcp server tools", []int{6}, nil},
		{"in a tool's name", "delete the server", []int{6, 7}, nil},
		{"beside a server's name", "chart server", []int{6}, []string{"mcp-server-chart"}},
		{"numbers", "read 5 sheets of 2024", []int{5}, nil},
	} {
		hits, servers := index.search(test.query, 10)
		if got := documents(hits); !slices.Equal(got, test.hits) || !slices.Equal(servers, test.servers) {
			t.Errorf("%s: %v, %q, want %v, %q", test.name, got, servers, test.hits, test.servers)
		}
	}
}

// TestServerDescription: the description of a server in the config finds its tools, after
// tools that have the word themselves.
func TestServerDescription(t *testing.T) {
	var tools []document
	for i := range 5 {
		tools = append(tools, document{Name: fmt.Sprintf("run_%c", 'a'+i), Server: "acme", About: "Payroll of all employees"})
	}
	tools = append(tools, document{Name: "payroll_report", Server: "books"})
	hits, servers := newIndex(tools).search("payroll", 3)
	if got := documents(hits); len(got) != 1 || got[0] != 5 || servers != nil {
		t.Errorf("found %v, %q, want only 5, which has the word in its name", got, servers)
	}
	hits, _ = newIndex(tools).search("payroll employees", 3)
	if got := documents(hits); !slices.Contains(got, 0) {
		t.Errorf("found %v, want the tools of the described server too", got)
	}
}

// TestNamedServerBelowTheLimit: a server whose tools have words of the query is not reported
// as one whose name alone matches, also if its tools are not among the hits shown.
func TestNamedServerBelowTheLimit(t *testing.T) {
	tools := []document{{Name: "email", Server: "crm"}, {Name: "email_email", Server: "crm"}}
	for i := range 5 {
		tools = append(tools, document{Name: fmt.Sprintf("find_%d", i), Server: "email", Description: "Finds an email."})
	}
	hits, servers := newIndex(tools).search("email", 1)
	if len(hits) != 1 || servers != nil {
		t.Errorf("found %v, %q", documents(hits), servers)
	}
}

// TestToolsOfMcpxGiveWay: a tool of a server comes before a tool of mcpx with the same words.
func TestToolsOfMcpxGiveWay(t *testing.T) {
	index := newIndex([]document{
		{Name: "search", Server: "mcpx", Description: "Find tools.", Minor: true},
		{Name: "search_papers", Server: "arxiv", Description: "Find papers of a topic in the archive."},
	})
	if hits, _ := index.search("search", 2); !slices.Equal(documents(hits), []int{1, 0}) {
		t.Errorf("found %v", documents(hits))
	}
}
