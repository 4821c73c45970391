package search

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func documents(hits []hit) (found []int) {
	for _, hit := range hits {
		found = append(found, hit.document)
	}
	return found
}

func TestAlternatives(t *testing.T) {
	index := newIndex([]document{
		0: {Name: "create_invoice", Server: "books", Description: "Creates an invoice.", Parameters: ""},
		1: {Name: "add_line", Server: "books", Description: "Adds a line to an invoice.", Parameters: ""},
		2: {Name: "list_employees", Server: "people", Description: "Lists all employees.", Parameters: "color of the paper for a bill"},
		3: {Name: "get_weather", Server: "sky", Description: "Returns the weather of a city.", Parameters: ""},
		4: {Name: "power_off", Server: "machines", Description: "Powers a server off.", Parameters: ""},
		5: {Name: "get_server", Server: "machines", Description: "Returns a server.", Parameters: ""},
		6: {Name: "delete_server", Server: "machines", Description: "Deletes a server.", Parameters: ""},
	})
	for _, test := range []struct {
		name  string
		query string
		first int
	}{
		{"the word itself before a synonym", "create invoice", 0},
		{"a synonym", "make a bill", 0},
		{"a synonym in a name before the word in a parameter", "bill", 0},
		{"an irregular form", "made an invoice", 0},
		{"a phrase", "virtual machine", 5},
		{"a phrase whose words mean something else", "get rid of the server", 6},
		{"a verb apart from its particle", "turn that old server off", 4},
		{"a phrase that is also a name", "power off", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			hits, _ := index.search(test.query, 3)
			if got := documents(hits); len(got) == 0 || got[0] != test.first {
				t.Errorf("Search(%q) = %v, want %d first", test.query, got, test.first)
			}
		})
	}
}

func TestServersThatAQueryNames(t *testing.T) {
	var tools []document
	for _, server := range []string{"asana", "slack", "mcp-server-a", "mcp-server-b", "mcp-server-c", "mcp-server-d"} {
		for i := range 5 {
			tools = append(tools, document{Name: fmt.Sprintf("%s_do_%c", server, 'v'+rune(i)), Server: server})
		}
	}
	tools = append(tools,
		document{Name: "slack_post_message", Server: "slack"},
		document{Name: "fetch", Server: "fetch"},
	)
	index := newIndex(tools)
	for _, test := range []struct {
		name, query string
		hits        []int
		servers     []string
	}{
		{"only the server's name", "asana", nil, []string{"asana"}},
		{"the server's name beside a tool of another", "asana message", []int{30}, []string{"asana"}},
		{"the server's name beside a tool of its own", "slack message", []int{30}, nil},
		{"two servers", "asana or slack", nil, []string{"asana", "slack"}},
		{"a server with few tools", "fetch", []int{31}, nil},
		{"a word in too many names", "server", nil, nil},
		{"no server", "xyzzy", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			hits, servers := index.search(test.query, 10)
			if got := documents(hits); !slices.Equal(got, test.hits) || !slices.Equal(servers, test.servers) {
				t.Errorf("Search(%q) = %v, %q, want %v, %q", test.query, got, servers, test.hits, test.servers)
			}
		})
	}
}

// TestToolsNamedLikeTheirServer: a server's name finds the tools that have it in their own names
// or descriptions, unless it is only a prefix of their names.
func TestToolsNamedLikeTheirServer(t *testing.T) {
	index := newIndex([]document{
		{Name: "send_email", Server: "email"},
		{Name: "email_folders", Server: "email"},
		{Name: "find", Server: "email", Description: "Finds an email."},
		{Name: "move", Server: "email"},
		{Name: "email", Server: "email"},
		{Name: "email_person", Server: "crm"},
		{Name: "find_person", Server: "crm"},
	})
	hits, servers := index.search("email", 10)
	if got, want := documents(hits), []int{4, 0, 5, 2}; !slices.Equal(got, want) || servers != nil {
		t.Errorf("found %v, %q, want %v", got, servers, want)
	}
}

func TestQueryWordsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "w%d turn off ", i)
	}
	for name, query := range map[string]string{
		"many words": b.String(),
		"one word":   strings.Repeat("a", 1<<20),
		"no spaces":  strings.Repeat("天气", 1<<20),
		"no letters": strings.Repeat("\xff", 1<<20),
	} {
		words := queryWords(query)
		if len(words) > maxTerms {
			t.Errorf("%s: %d words", name, len(words))
		}
		for _, w := range words {
			if len(w.term) > maxQueryBytes {
				t.Errorf("%s: a word of %d bytes", name, len(w.term))
			}
		}
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	index := newIndex(manyTools())
	want, _ := index.search("bill a client for the storage of files", 50)
	for range 5 {
		index = newIndex(manyTools())
		if got, _ := index.search("bill a client for the storage of files", 50); !slices.Equal(got, want) {
			t.Fatalf("%v and %v", got, want)
		}
	}
}

func TestParseSynonyms(t *testing.T) {
	got := parseSynonyms("# a comment\n\nbill invoices charge\nfiles document_type: record\nget_rid_of delete\n")
	want := map[string][]string{
		"bill":          {"invoic", "charg"},
		"invoic":        {"bill", "charg"},
		"charg":         {"bill", "invoic"},
		"file":          {"record"},
		"document type": {"record"},
		"get rid of":    {"delet"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestSynonymTable(t *testing.T) {
	for line := range strings.Lines(synonymText) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		from, to, oneWay := strings.Cut(line, ": ")
		if oneWay && (from == "" || to == "" || strings.Contains(to, "_")) || !oneWay && len(strings.Fields(line)) < 2 {
			t.Errorf("no synonyms: %q", line)
		}
		if strings.Trim(line, "abcdefghijklmnopqrstuvwxyz0123456789_ :") != "" {
			t.Errorf("odd characters: %q", line)
		}
		for word := range strings.FieldsSeq(from) {
			if len(strings.Split(word, "_")) > maxPhrase {
				t.Errorf("the phrase %q is too long", word)
			}
		}
	}
	if n := len(synonyms()); n < 500 || n > 5000 {
		t.Errorf("%d words have synonyms", n)
	}
}
