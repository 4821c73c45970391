// Package traces adds OpenTelemetry spans of requests, and sends them to a collector with
// OTLP over HTTP. It does so only if the environment names a collector, with the variables
// that all OpenTelemetry programs share (ADR 18). Hooks: server.Tracer, registry.Tracer.
//
// A request of a client has a server span (Receive). The request that mcpx sends to an
// upstream for it has a client span (Send). Each is the parent of the next:
//
//	span of the client > server span > client span > span of the upstream
//
// Names and attributes follow the semantic conventions for MCP. Arguments, results, URIs,
// texts of errors and IDs of sessions are not recorded.
package traces

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mcpx/internal/neterr"
	"mcpx/internal/plain"
)

// Tracer records spans. Its methods may be called concurrently, except Start and Close.
type Tracer struct {
	log      zerolog.Logger
	version  string
	exporter *exporter
	provider *sdk.TracerProvider
	tracer   trace.Tracer // nil before Start, and if Start failed
}

// New returns a Tracer, nil if the environment names no collector or turns spans off.
func New(version string, log zerolog.Logger) *Tracer {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if setting("ENDPOINT") == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || exporter != "" && exporter != "otlp" {
		return nil
	}
	return &Tracer{log: log, version: version}
}

// Start begins to record spans. If the settings are wrong, it logs why and records
// nothing: spans are no reason to refuse calls. Start accepts nil.
func (t *Tracer) Start() {
	if t == nil {
		return
	}
	if err := t.start(); err != nil {
		t.log.Warn().Err(err).Msg("no spans are recorded; correct the OTEL_ variables")
	}
}

func (t *Tracer) start() error {
	otel.SetLogger(logr.Discard()) // it would print wrong settings to stderr, secret headers among them
	ctx := context.Background()
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "mcpx"), attribute.String("service.version", t.version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return err
	}
	client, err := newCollector()
	if err != nil {
		return err
	}
	t.exporter = &exporter{SpanExporter: client, log: t.log}
	t.provider = sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(t.exporter))
	t.tracer = t.provider.Tracer("mcpx", trace.WithInstrumentationVersion(t.version))
	t.log.Info().Str("collector", client.host).Msg("recording OpenTelemetry spans")
	return nil
}

// closeTime bounds how long Close waits for the collector.
const closeTime = 2 * time.Second

// Close sends the spans that are left, for closeTime at most. Close accepts nil.
func (t *Tracer) Close() {
	if t == nil || t.provider == nil {
		return
	}
	ctx := context.Background()
	interrupt := time.AfterFunc(closeTime, func() { _ = t.exporter.Shutdown(ctx) }) // then every request to the collector fails at once
	defer interrupt.Stop()
	_ = t.provider.Shutdown(ctx) // it waits for the SDK's goroutine
}

// exporter logs why spans could not be sent.
type exporter struct {
	sdk.SpanExporter
	log    zerolog.Logger
	logged time.Time // the last time
	lost   int       // spans since then
}

// logEvery is how often a collector that fails is logged.
const logEvery = time.Minute

// ExportSpans implements sdk.SpanExporter. The SDK never calls it concurrently.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.lost += len(spans)
	if time.Since(e.logged) >= logEvery {
		e.log.Warn().Str("reason", reason(err)).Int("spans", e.lost).Msg("the collector did not accept the spans; they are lost")
		e.logged, e.lost = time.Now(), 0
	}
	return nil
}

// reason returns why spans were not sent. It has no words of the collector's own: they may
// repeat a secret header.
func reason(err error) string { return plain.Cut(plain.Line(neterr.Reason(err)), maxReason) }

// maxReason bounds a reason in the log.
const maxReason = 300
