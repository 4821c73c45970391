package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"mcpx/internal/neterr"
	"mcpx/internal/rpc"
)

// Legacy SSE, the HTTP transport before Streamable HTTP, has one stream from the
// upstream. Its first event has the address to post to. mcpx does not use mcp-go's
// client, which treats an upstream's request as a response and does not notice the end of
// the stream.

func dialSSE(ctx context.Context, o Options) (Link, error) {
	l := newHTTPLink(o)
	if err := l.openSSE(ctx); err != nil {
		l.cancel(err)
		l.running.Close()
		l.base.CloseIdleConnections()
		return nil, err
	}
	return l, nil
}

// dialRemote opens a Link to a URL without a configured type: it tries Streamable HTTP
// first, then legacy SSE.
func dialRemote(_ context.Context, o Options) (Link, error) {
	l := newHTTPLink(o)
	l.fallback = true
	return l, nil
}

// speaksSSE reports whether the response to initialize means that the upstream only
// knows legacy SSE. MCP names these status codes.
func (l *httpLink) speaksSSE(m outgoing, status int) bool {
	return l.fallback && m.method == "initialize" && !l.isLegacy() &&
		(status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed)
}

// openSSE opens the stream and waits for the address to post to.
func (l *httpLink) openSSE(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		if l.ctx.Err() == nil {
			l.cancel(context.Cause(ctx))
		}
	})()
	response, err := l.get(l.ctx, "")
	if l.ctx.Err() != nil {
		if err == nil {
			_ = response.Body.Close()
		}
		return context.Cause(l.ctx) // it explains more than the error of the request
	}
	if err != nil {
		if denied := l.unauthorized(err); denied != nil {
			return denied
		}
		f := &Failure{Reason: l.redact(neterr.Reason(err))}
		if unreachable(err) {
			f.Cause = CauseUnreachable
		}
		return f
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		if denied := l.denied(response, "HTTP status "+response.Status); denied != nil {
			return denied
		}
		return &Failure{Reason: fmt.Sprintf("its stream cannot be opened: HTTP status %s", response.Status)}
	}
	endpoint := make(chan string, 1)
	l.running.Go(func() {
		defer func() { _ = response.Body.Close() }()
		err := l.readEvents(l.ctx, response.Body, &position{}, func(name string, data rpc.Line) {
			if name != "endpoint" {
				l.received(data, nil)
				return
			}
			data.Room.Free()
			select {
			case endpoint <- string(data.Text):
			default:
			}
		})
		if err == nil {
			err = io.EOF
		}
		l.end(&Failure{Reason: "its stream ended: " + err.Error()})
	})
	select {
	case path := <-endpoint:
		return l.postTo(path)
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// postTo sets the address to post to. It must be on the same server: the
// configured headers go there.
func (l *httpLink) postTo(path string) error {
	base, err := url.Parse(l.Upstream.URL)
	if err != nil {
		return err
	}
	address, err := base.Parse(path)
	if err != nil || address.Host != base.Host || address.Scheme != base.Scheme {
		return errors.New("its stream names an address on another server, where its headers must not go")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoint, l.common = address.String(), nil
	return nil
}
