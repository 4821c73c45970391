package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	wire "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/traces/tracestest"
	"mcpx/server"
)

// official is a client of OpenTelemetry's exporter. It keeps what that would send.
type official struct{ sent []*otlp.ResourceSpans }

func (o *official) Start(context.Context) error { return nil }
func (o *official) Stop(context.Context) error  { return nil }
func (o *official) UploadTraces(_ context.Context, spans []*otlp.ResourceSpans) error {
	o.sent = spans
	return nil
}

// TestEncode: mcpx sends what OpenTelemetry's exporter would send.
func TestEncode(t *testing.T) {
	about := resource.NewWithAttributes("https://schema.example/1", attribute.String("service.name", "mcpx"), attribute.String("empty", ""))
	scope := instrumentation.Scope{Name: "mcpx", Version: "1.2.3"}
	state, _ := trace.ParseTraceState("a=1,b=2")
	outer := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4}, TraceFlags: 1, TraceState: state, Remote: true})
	inner := outer.WithSpanID(trace.SpanID{5}).WithRemote(false)
	stubs := tracetest.SpanStubs{
		{
			Name: "tools/call add", SpanContext: inner, Parent: outer, SpanKind: trace.SpanKindServer, Resource: about, InstrumentationScope: scope,
			StartTime: time.Unix(1, 2), EndTime: time.Unix(3, 4), Attributes: []attribute.KeyValue{attribute.String("ä", "ö\n"), attribute.String("x", "")},
			Status: struct {
				Code        codes.Code
				Description string
			}{codes.Error, ""},
		},
		{Name: "", SpanContext: inner.WithSpanID(trace.SpanID{6}), Parent: inner, SpanKind: trace.SpanKindClient, Resource: about, InstrumentationScope: scope, StartTime: time.Unix(1, 0), EndTime: time.Unix(1, 0)},
		{Name: "root", SpanContext: inner, SpanKind: trace.SpanKindInternal, Resource: about, InstrumentationScope: scope, StartTime: time.Unix(1, 0), EndTime: time.Unix(1, 0)},
	}
	keep := &official{}
	if err := otlptrace.NewUnstarted(keep).ExportSpans(t.Context(), stubs.Snapshots()); err != nil {
		t.Fatal(err)
	}
	got := &wire.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(encode(stubs.Snapshots()), got); err != nil {
		t.Fatal(err)
	}
	if want := (&wire.ExportTraceServiceRequest{ResourceSpans: keep.sent}); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if b := encode(nil); b != nil {
		t.Errorf("no spans: %q", b)
	}
}

func FuzzRejected(f *testing.F) {
	for _, n := range []int64{0, 1, 1 << 40, -1} {
		text, _ := proto.Marshal(&wire.ExportTraceServiceResponse{PartialSuccess: &wire.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: "x"}})
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		response := &wire.ExportTraceServiceResponse{}
		if proto.Unmarshal(text, response) != nil {
			_ = rejected(text)
			return
		}
		again, _ := proto.Marshal(response) // each field once
		if got, want := rejected(again), response.GetPartialSuccess().GetRejectedSpans(); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}

// record sends one span and returns mcpx's log.
func record(t *testing.T, url string) string {
	t.Helper()
	var log bytes.Buffer
	tracer := started(t, url, zerolog.New(&log))
	_, span := tracer.Receive(t.Context(), server.TracedRequest{Method: "ping"})
	if span != nil {
		span.End(nil, "")
	}
	tracer.Close()
	return log.String()
}

// TestSettings: the variables for the collector do what they say.
func TestSettings(t *testing.T) {
	mcptest.NothingLeft(t)
	for _, row := range []struct {
		name string
		env  map[string]string
		path string
		sent map[string]string // headers
		log  string
	}{
		{name: "headers", env: map[string]string{"HEADERS": "x-key = a%20b , x-other=c=d"}, path: "/base/v1/traces", sent: map[string]string{"X-Key": "a b", "X-Other": "c=d"}},
		{name: "headers of traces", env: map[string]string{"HEADERS": "x-key=a", "TRACES_HEADERS": "x-key=b"}, path: "/base/v1/traces", sent: map[string]string{"X-Key": "b"}},
		{name: "a whole path", env: map[string]string{"TRACES_ENDPOINT": "URL/own"}, path: "/base/own"},
		{name: "gzip", env: map[string]string{"COMPRESSION": "gzip"}, path: "/base/v1/traces", sent: map[string]string{"Content-Encoding": "gzip"}},
		{name: "no pair", env: map[string]string{"HEADERS": "s3cret"}, log: "is not a list of NAME=VALUE pairs"},
		{name: "no certificate", env: map[string]string{"CERTIFICATE": "nowhere.pem"}, log: "nowhere.pem"},
		{name: "no key", env: map[string]string{"CLIENT_CERTIFICATE": "nowhere.pem"}, log: "nowhere.pem"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var request atomic.Pointer[http.Request]
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var body io.Reader = r.Body
				if r.Header.Get("Content-Encoding") == "gzip" {
					body, _ = gzip.NewReader(r.Body)
				}
				text, err := io.ReadAll(body)
				if err != nil || proto.Unmarshal(text, &wire.ExportTraceServiceRequest{}) != nil {
					t.Errorf("got %q, %v", text, err)
				}
				request.Store(r)
			}))
			defer server.Close()
			for name, value := range row.env {
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, strings.Replace(value, "URL", server.URL+"/base", 1))
			}
			log := record(t, server.URL+"/base")
			if !strings.Contains(log, row.log) || strings.Contains(log, "s3cret") {
				t.Errorf("log %s", log)
			}
			r := request.Load()
			if r == nil {
				if row.path != "" {
					t.Error("no request")
				}
				return
			}
			if r.URL.Path != row.path {
				t.Errorf("path %s, want %s", r.URL.Path, row.path)
			}
			for name, want := range row.sent {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestCertificate(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if log := record(t, server.URL); !strings.Contains(log, "certificate is not trusted") {
		t.Errorf("without the certificate: %s", log)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	if log := record(t, server.URL); requests.Load() != 1 {
		t.Errorf("with the certificate: %d requests, %s", requests.Load(), log)
	}
}

// TestBusyCollector: a collector that is busy gets the same spans again.
func TestBusyCollector(t *testing.T) {
	var tries atomic.Int32
	collector := tracestest.New(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		response, err := http.Post(collector.URL+r.URL.Path, protobuf, bytes.NewReader(body))
		if err == nil {
			_ = response.Body.Close()
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	c, err := newCollector()
	if err != nil {
		t.Fatal(err)
	}
	c.wait = time.Millisecond
	if err := c.ExportSpans(t.Context(), (tracetest.SpanStubs{{Name: "ping"}}).Snapshots()); err != nil {
		t.Error(err)
	}
	if names := collector.Names(); len(names) != 1 || tries.Load() != 2 {
		t.Errorf("%d tries, spans %q", tries.Load(), names)
	}
}

// TestRefusals: what is logged if the collector does not take the spans, and that a redirect
// is not followed with the headers for the collector.
func TestRefusals(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
	partial, _ := proto.Marshal(&wire.ExportTraceServiceResponse{PartialSuccess: &wire.ExportTracePartialSuccess{RejectedSpans: 7, ErrorMessage: "s3cret"}})
	for name, row := range map[string]struct {
		respond http.HandlerFunc
		want    string
	}{
		"some spans are rejected": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", protobuf)
			_, _ = w.Write(partial)
		}, "it rejected 7 spans"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/other" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, "HTTP status 307 Temporary Redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(row.respond)
			defer server.Close()
			if log := record(t, server.URL); !strings.Contains(log, row.want) || strings.Contains(log, "s3cret") {
				t.Errorf("log %s", log)
			}
		})
	}
}
