package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// collector sends spans to a collector: OTLP over HTTP, as protobuf. The exporter of
// OpenTelemetry would do the same, and bring gRPC along (ADR 18).
type collector struct {
	host    string
	url     string
	headers http.Header
	gzip    bool
	wait    time.Duration // before the second try
	client  *http.Client
	closed  context.Context
	close   context.CancelFunc
}

// newCollector reads the variables for the collector. Errors have no values of headers.
func newCollector() (*collector, error) {
	address, err := collectorURL()
	if err != nil {
		return nil, err
	}
	headers, err := parseHeaders(setting("HEADERS"))
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = tlsConfig(); err != nil {
		return nil, err
	}
	limit := 10 * time.Second
	if ms, err := strconv.Atoi(setting("TIMEOUT")); err == nil && ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	c := &collector{host: address.Host, url: address.String(), headers: headers, gzip: setting("COMPRESSION") == "gzip", wait: firstWait}
	c.client = &http.Client{Transport: transport, Timeout: limit, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the headers are for this collector alone
	}}
	c.closed, c.close = context.WithCancel(context.Background())
	return c, nil
}

// setting returns the value of a variable for traces, or of the one for all signals.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// collectorURL returns the URL that spans are posted to.
func collectorURL() (*url.URL, error) {
	u, err := url.Parse(setting("ENDPOINT"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the collector is not an http or https URL")
	}
	if os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		u = u.JoinPath("v1/traces")
	}
	return u, nil
}

// parseHeaders reads NAME=VALUE pairs with commas between them. Values may be escaped like
// those of a URL.
func parseHeaders(text string) (http.Header, error) {
	headers := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=VALUE pairs with commas between them")
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// tlsConfig returns the certificates that the variables name, nil if they name none.
func tlsConfig() (*tls.Config, error) {
	trusted, own, key := setting("CERTIFICATE"), setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY")
	if trusted == "" && own == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if trusted != "" {
		text, err := os.ReadFile(trusted)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", trusted)
		}
	}
	if own != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Times between tries, while the collector says that it is busy. The SDK ends them all after
// 30 s.
const (
	firstWait = 2 * time.Second
	maxWait   = 30 * time.Second
)

// ExportSpans implements sdk.SpanExporter.
func (c *collector) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	body := encode(spans)
	if c.gzip {
		body = compress(body)
	}
	for wait := c.wait; ; wait = min(2*wait, maxWait) {
		err := c.post(ctx, body)
		busy, ok := errors.AsType[busyError](err)
		if !ok {
			return err
		}
		select {
		case <-time.After(max(busy.after, wait/2+rand.N(wait))):
		case <-ctx.Done():
			return err
		}
	}
}

// Shutdown implements sdk.SpanExporter. It ends requests, too. It is safe to call twice.
func (c *collector) Shutdown(context.Context) error {
	c.close()
	c.client.CloseIdleConnections()
	return nil
}

// busyError is the response of a collector that can be tried again.
type busyError struct {
	error
	after time.Duration // the collector's wish
}

// protobuf is the type of requests and responses.
const protobuf = "application/x-protobuf"

// maxResponse is how many bytes of a response are read.
const maxResponse = 64 << 10

// post sends one request.
func (c *collector) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.headers.Clone()
	request.Header.Set("Content-Type", protobuf)
	if c.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	switch code := response.StatusCode; {
	case code >= 200 && code <= 299 && response.Header.Get("Content-Type") == protobuf && rejected(text) > 0:
		return fmt.Errorf("it rejected %d spans", rejected(text))
	case code >= 200 && code <= 299:
		return nil
	default:
		err = fmt.Errorf("HTTP status %d %s", code, http.StatusText(code))
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return busyError{err, min(time.Duration(max(0, seconds))*time.Second, maxWait)}
	}
	return err
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}
