// Package tracestest is a collector of OpenTelemetry spans for tests.
package tracestest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans with OTLP over HTTP, on loopback. Its methods may be called
// concurrently.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	sent  map[string]string // attributes of the program that sends the spans
}

// Span is a span as the collector got it.
type Span struct {
	Name              string
	IsClient          bool // a span of a client; otherwise of a server
	Trace, ID, Parent string
	Attributes        map[string]string
	IsError           bool
	Text              string // what the status says
}

// New returns a Collector that stops after the test.
func New(t testing.TB) *Collector {
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.add(request.GetResourceSpans())
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) add(received []*otlp.ResourceSpans) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range received {
		c.sent = attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Name: s.GetName(), IsClient: s.GetKind() == otlp.Span_SPAN_KIND_CLIENT,
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Attributes: attributes(s.GetAttributes()),
					IsError:    s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR, Text: s.GetStatus().GetMessage(),
				})
			}
		}
	}
}

// Spans returns the spans with a name, or all for an empty name, in the order in which
// they ended.
func (c *Collector) Spans(name string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s Span) bool { return name != "" && s.Name != name })
}

// Names returns the names of all spans, sorted.
func (c *Collector) Names() (names []string) {
	for _, s := range c.Spans("") {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// Sender returns the attributes of the program that sent the spans.
func (c *Collector) Sender() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

func attributes(list []*common.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range list {
		texts[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return texts
}
