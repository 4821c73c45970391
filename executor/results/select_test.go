package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/tokens"
)

// rowsResult returns a result with n rows.
func rowsResult(n int) []byte {
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	return []byte(`{"content":[` + textItem("["+strings.Join(rows, ",")+"]") + `]}`)
}

// onlyText returns the texts of a result.
func onlyText(t *testing.T, result []byte) (text string) {
	t.Helper()
	var decoded struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &decoded); err != nil {
		t.Fatal(err)
	}
	for _, item := range decoded.Content {
		text += item.Text
	}
	return text
}

// TestSelectKeepsToTheLimit: rows, notes and the handle together have no more tokens than
// a result may have.
func TestSelectKeepsToTheLimit(t *testing.T) {
	unknown := ""
	for i := range 20 {
		unknown += fmt.Sprintf(", unknown_field_%d", i)
	}
	for _, limit := range []int{400, 1000} {
		for _, fields := range []string{"*", "id, name", "id" + unknown, "name where id > 3" + "", "/n/", "/1/"} {
			s := New(limits(limit))
			got := onlyText(t, selected(s, rowsResult(2000), query(fields)))
			if n := tokens.Count(got); n > limit {
				t.Errorf("select %s within %d: %d tokens", fields, limit, n)
			}
			if !strings.Contains(got, "full result: r1 (") {
				t.Errorf("select %s within %d: no handle in %s", fields, limit, got)
			}
			read, err := s.Read(t.Context(), "me", Query{ID: "r1", Select: query(fields)})
			if n := tokens.Count(read); err != nil || n > limit {
				t.Errorf("read %s within %d: %d tokens, %v", fields, limit, n, err)
			}
		}
	}
}

// TestSelectWithoutLimit: where results are not cut, a selection is not either.
func TestSelectWithoutLimit(t *testing.T) {
	for fields, last := range map[string]string{"*": "1999,n1999", "/n/": "/1999/name: n1999\n[matches 1-2000 of 2000 in 4,000 values; end]"} {
		got := onlyText(t, selected(New(limits(0)), rowsResult(2000), query(fields)))
		if !strings.HasSuffix(got, last) {
			t.Errorf("select %s ends in %q", fields, got[max(0, len(got)-200):])
		}
	}
}
