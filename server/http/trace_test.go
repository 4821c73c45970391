package httpfront

import (
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/rpc"
)

// TestTraceHeaders: the trace of a request's headers goes into _meta, unless the client has
// put one there.
func TestTraceHeaders(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	headers := http.Header{"Traceparent": {parent}, "Tracestate": {"a=1"}, "Baggage": {"user=ü"}}
	parents := func(values ...string) http.Header { return http.Header{"Traceparent": values, "Tracestate": {"a=1"}} }
	const noTrace, noParent = "00000000000000000000000000000000", "0000000000000000"
	const all = `"traceparent":"` + parent + `","tracestate":"a=1","baggage":"user=ü"`
	for _, c := range []struct {
		name    string
		headers http.Header
		params  string
		want    string
	}{
		{"copied", headers, `{"name":"x","n":12345678901234567890}`, `{"name":"x","n":12345678901234567890,"_meta":{` + all + `}}`},
		{"next to others", headers, `{"_meta":{"progressToken":1}}`, `{"_meta":{"progressToken":1,` + all + `}}`},
		{"without params", headers, ``, `{"_meta":{` + all + `}}`},
		{"the client's own", headers, `{"_meta":{"traceparent":"00-1"}}`, `{"_meta":{"traceparent":"00-1"}}`},
		{"own baggage", headers, `{"_meta":{"baggage":"b"}}`, `{"_meta":{"baggage":"b","traceparent":"` + parent + `","tracestate":"a=1"}}`},
		{"none", nil, `{"name":"x"}`, `{"name":"x"}`},
		{"an invalid parent", parents("00-xyz"), `{"name":"x"}`, `{"name":"x"}`},
		{"a trace ID of zeros", parents("00-" + noTrace + parent[35:]), `{"name":"x"}`, `{"name":"x"}`},
		{"a parent ID of zeros", parents(parent[:36] + noParent + "-01"), `{"name":"x"}`, `{"name":"x"}`},
		{"a flag of zeros", parents(parent[:53] + "00"), `{}`, `{"_meta":{"traceparent":"` + parent[:53] + `00","tracestate":"a=1"}}`},
		{"an invalid version", parents("ff" + parent[2:]), `{"name":"x"}`, `{"name":"x"}`},
		{"version 00 with more", parents(parent + "-more"), `{"name":"x"}`, `{"name":"x"}`},
		{"a later version with more", parents("01" + parent[2:] + "-more"), `{}`, `{"_meta":{"traceparent":"01` + parent[2:] + `-more","tracestate":"a=1"}}`},
		{"two parents", parents(parent, parent), `{"name":"x"}`, `{"name":"x"}`},
		{"baggage alone", http.Header{"Baggage": {"a=1"}}, `{}`, `{"_meta":{"baggage":"a=1"}}`},
		{"too long", http.Header{"Baggage": {strings.Repeat("x", maxTrace+1)}}, `{}`, `{}`},
		{"_meta is no object", headers, `{"_meta":5}`, `{"_meta":5}`},
		{"params are no object", headers, `[]`, `[]`},
	} {
		m := rpc.Message{ID: []byte("1"), Method: "tools/call", Params: []byte(c.params)}
		if c.params == "" {
			m.Params = nil
		}
		if got := string(withTrace(m, c.headers).Params); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
