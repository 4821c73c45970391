//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

// client is one client session.
type client struct {
	cluster *cluster
	session string
	lastID  atomic.Int64
}

// message is a message of a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// exchange is a request and its response: one message, or a stream of messages.
type exchange struct {
	backend  string // that responded; known for some failures too
	status   int
	session  string // header
	body     *bufio.Reader
	isStream bool
	stop     context.CancelFunc
}

// clearError is an error that says which backend failed.
type clearError struct {
	backend string
	text    string
}

func (e clearError) Error() string { return e.text }

// do makes a request to the balancer, or to a replica if at has its URL.
func (c *client) do(method, at, body string) (*exchange, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	r, err := http.NewRequestWithContext(ctx, method, at+"/mcp", strings.NewReader(body))
	if err != nil {
		stop()
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	answer, err := c.cluster.http.Do(r)
	if err != nil {
		stop()
		return nil, err
	}
	return &exchange{
		backend: answer.Header.Get(backendHeader), status: answer.StatusCode, session: answer.Header.Get(sessionHeader),
		body: bufio.NewReader(answer.Body), isStream: answer.Header.Get("Content-Type") == "text/event-stream",
		stop: func() { _ = answer.Body.Close(); stop() },
	}, nil
}

// send posts a request to an address.
func (c *client) send(at, method, params string) (*exchange, error) {
	id := fmt.Sprint(c.lastID.Add(1))
	return c.do(http.MethodPost, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
}

// next returns the next message of the response.
func (x *exchange) next() (m message, err error) {
	if !x.isStream {
		text, err := io.ReadAll(x.body)
		if err == nil && len(text) == 0 {
			err = io.EOF
		}
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		return m, err
	}
	for {
		line, err := x.body.ReadBytes('\n')
		if err != nil {
			return m, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			return m, json.Unmarshal(data, &m)
		}
	}
}

// text returns the rest of the response.
func (x *exchange) text() string {
	text, _ := io.ReadAll(x.body)
	return string(text)
}

// result reads the response and returns its result. The error is a clearError if an
// backend failed while it had the request.
func (x *exchange) result() (json.RawMessage, error) {
	defer x.stop()
	switch x.status {
	case http.StatusOK:
	case http.StatusBadGateway:
		return nil, clearError{x.backend, x.text()}
	default:
		return nil, fmt.Errorf("status %d: %s", x.status, x.text())
	}
	for {
		m, err := x.next()
		switch {
		case err != nil:
			return nil, clearError{x.backend, "the response was cut off: " + err.Error()}
		case m.Method != "":
		case m.Error != nil:
			return nil, fmt.Errorf("error %s", m.Error)
		default:
			return m.Result, nil
		}
	}
}

// requestAt makes a request to an address.
func (c *client) requestAt(at, method, params string) (json.RawMessage, error) {
	x, err := c.send(at, method, params)
	if err != nil {
		return nil, err
	}
	return x.result()
}

// allCapabilities are the capabilities of a client that answers every request.
const allCapabilities = `{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}`

// open opens the session at an address.
func (c *client) open(at string) error {
	x, err := c.send(at, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+allCapabilities+`,"clientInfo":{"name":"cluster","version":"1"}}`)
	if err != nil {
		return err
	}
	c.session = x.session
	if _, err := x.result(); err != nil {
		return err
	}
	return c.notify(at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// notify posts a message that gets no response.
func (c *client) notify(at, line string) error {
	x, err := c.do(http.MethodPost, at, line)
	if err != nil {
		return err
	}
	defer x.stop()
	if x.status != http.StatusAccepted {
		return fmt.Errorf("status %d: %s", x.status, x.text())
	}
	return nil
}

// execParams returns the params of a call to exec.
func execParams(server, tool, arguments string) string {
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q,"arguments":%s}}`, server, tool, arguments)
}

// exec calls a tool through the balancer and returns the text of its result.
func (c *client) exec(server, tool, arguments string) (string, error) {
	return c.execAt(c.cluster.url, server, tool, arguments)
}

// execAt calls a tool at an address.
func (c *client) execAt(at, server, tool, arguments string) (string, error) {
	result, err := c.requestAt(at, "tools/call", execParams(server, tool, arguments))
	if err != nil {
		return "", err
	}
	return textOf(result)
}

// textOf returns the text of a result of tools/call.
func textOf(result json.RawMessage) (string, error) {
	var r struct {
		Content []struct{ Text string } `json:"content"`
		IsError bool                    `json:"isError"`
	}
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		return "", fmt.Errorf("no text: %s", clip(string(result)))
	}
	if r.IsError {
		return "", fmt.Errorf("tool error: %s", clip(r.Content[0].Text))
	}
	return r.Content[0].Text, nil
}

// isConnectionError reports whether a request failed because its connection did.
func isConnectionError(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed) && !failed.Timeout()
}

// openClient opens a client session through the balancer.
func openClient(t *testing.T, c *cluster) *client {
	t.Helper()
	v := &client{cluster: c}
	if err := v.open(c.url); err != nil {
		t.Fatal(err)
	}
	return v
}

const pingLine = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`

// pingAt sends a ping to an address and returns the HTTP status, 0 if there was none.
func (c *client) pingAt(at string) int {
	x, err := c.do(http.MethodPost, at, pingLine)
	if err != nil {
		return 0
	}
	defer x.stop()
	return x.status
}

// whileBusy repeats an action while it fails because the store did not answer in time: on a
// loaded machine 250 ms may be too short. Nothing was sent to an upstream then.
func whileBusy(action func() error) error {
	limit := time.Now().Add(patience)
	for {
		err := action()
		if err == nil || !strings.Contains(err.Error(), "the store cannot be") || time.Now().After(limit) {
			return err
		}
	}
}
