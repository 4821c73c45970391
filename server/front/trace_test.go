package front

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
	headers := map[string]string{"traceparent": parent, "tracestate": "a=1", "baggage": "user=ü"}
	const all = `"traceparent":"` + parent + `","tracestate":"a=1","baggage":"user=ü"`
	for _, c := range []struct {
		name    string
		headers map[string]string
		params  string
		want    string
	}{
		{"copied", headers, `{"name":"x","n":12345678901234567890}`, `{"name":"x","n":12345678901234567890,"_meta":{` + all + `}}`},
		{"next to others", headers, `{"_meta":{"progressToken":1}}`, `{"_meta":{"progressToken":1,` + all + `}}`},
		{"without params", headers, ``, `{"_meta":{` + all + `}}`},
		{"the client's own", headers, `{"_meta":{"traceparent":"00-1"}}`, `{"_meta":{"traceparent":"00-1"}}`},
		{"own baggage", headers, `{"_meta":{"baggage":"b"}}`, `{"_meta":{"baggage":"b","traceparent":"` + parent + `","tracestate":"a=1"}}`},
		{"none", nil, `{"name":"x"}`, `{"name":"x"}`},
		{"an invalid parent", map[string]string{"traceparent": "00-xyz", "tracestate": "a=1"}, `{"name":"x"}`, `{"name":"x"}`},
		{"baggage alone", map[string]string{"baggage": "a=1"}, `{}`, `{"_meta":{"baggage":"a=1"}}`},
		{"too long", map[string]string{"baggage": strings.Repeat("x", maxTrace+1)}, `{}`, `{}`},
		{"_meta is no object", headers, `{"_meta":5}`, `{"_meta":5}`},
		{"params are no object", headers, `[]`, `[]`},
	} {
		h := http.Header{}
		for name, value := range c.headers {
			h.Set(name, value)
		}
		m := rpc.Message{ID: []byte("1"), Method: "tools/call", Params: []byte(c.params)}
		if c.params == "" {
			m.Params = nil
		}
		if got := string(withTrace(m, h).Params); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
