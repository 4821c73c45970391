//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// web is a run of mcpx-sse.
type web struct {
	*program
	soak *soak
	url  string
	http *http.Client
}

func freeAddress() string {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

var urlInLog = regexp.MustCompile(`url=(http://[^/]+)/mcp/`)

func startHTTP(s *soak, p part) (*web, error) {
	cmd, err := s.command(p, "--port", "0")
	if err != nil {
		return nil, err
	}
	w := &web{soak: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if w.program, err = s.begin(p, cmd); err != nil {
		return nil, err
	}
	for begin := time.Now(); time.Since(begin) < stopTime; <-time.After(10 * time.Millisecond) {
		log, _ := os.ReadFile(filepath.Join(s.dir, p.name+".log"))
		if found := urlInLog.FindSubmatch(log); found != nil {
			w.url = string(found[1])
			return w, nil
		}
	}
	return nil, errors.New("mcpx-sse does not say where to connect")
}

// webClient is a client over HTTP, used by one worker.
type webClient struct {
	web     *web
	lastID  atomic.Int64
	opening sync.Mutex
	session session
	used    time.Time
	keep    bool          // the client keeps its session
	deaf    time.Duration // the client reads nothing of a response for this time
}

func (w *web) client() *webClient { return &webClient{web: w} }

// open opens a session, if there is none.
func (c *webClient) open() (session, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	rested := time.Since(c.used)
	c.used = time.Now()
	if c.session.id != "" && c.keep {
		return c.session, nil
	}
	if c.session.id != "" && rested < c.web.part.sessionIdle/2 && rand.IntN(50) > 0 {
		return c.session, nil // else it is abandoned, as after a crash of the client, until it expires
	}
	opened := time.Now()
	_, id, err := c.post(context.Background(), "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`, "0")
	c.session = session{id, opened}
	return c.session, err
}

// close ends the session.
func (c *webClient) close() {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.session.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.web.url+"/mcp", nil)
	if err != nil {
		return
	}
	r.Header.Set("Mcp-Session-Id", c.session.id)
	if response, err := c.web.http.Do(r); err == nil {
		_ = response.Body.Close()
	}
	c.session = session{}
}

func (c *webClient) call(k call) (answer, error) {
	in, err := c.open()
	if err != nil {
		return answer{}, err
	}
	c.deaf = k.deaf
	a, err := c.send(in, k.params, k.cancel, k.drop)
	c.deaf = 0
	if k.part.isolated {
		a.session = in
	}
	if err == nil && k.part.resultTokens > 0 {
		a.rest = readOn(a, func(server, tool, arguments string, cancel time.Duration) (answer, error) {
			return c.execIn(in, server, tool, arguments, cancel)
		})
	}
	return a, err
}

func (c *webClient) exec(server, tool, arguments string, cancel time.Duration) (answer, error) {
	in, err := c.open()
	if err != nil {
		return answer{}, err
	}
	return c.execIn(in, server, tool, arguments, cancel)
}

func (c *webClient) execIn(in session, server, tool, arguments string, cancel time.Duration) (answer, error) {
	return c.send(in, func(string) string { return execParams(server, tool, arguments) }, cancel, false)
}

// send sends tools/call with the params for a request ID. If giveUp is not 0, send cancels the
// call after that time: by a notification, or with drop by closing the connection.
func (c *webClient) send(in session, params func(id string) string, giveUp time.Duration, drop bool) (answer, error) {
	id := fmt.Sprint(c.lastID.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if giveUp > 0 {
		stop := time.AfterFunc(giveUp, func() {
			if drop {
				cancel()
				return
			}
			_, _, _ = c.post(context.Background(), in.id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, "")
		})
		defer stop.Stop()
	}
	a, _, err := c.post(ctx, in.id, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":`+params(id)+`}`, id)
	switch {
	case drop && ctx.Err() != nil:
		return a, errDropped
	case giveUp > 0 && errors.Is(err, errNone):
		return a, errGivenUp
	}
	return a, err
}

// post sends a message and reads the answer if it has an ID.
func (c *webClient) post(ctx context.Context, session, body, id string) (a answer, opened string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.web.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return a, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	response, err := c.web.http.Do(r)
	if err != nil {
		return a, "", err
	}
	defer func() { _ = response.Body.Close() }()
	opened = response.Header.Get("Mcp-Session-Id")
	if id == "" {
		return a, opened, nil
	}
	if response.StatusCode != http.StatusOK {
		return a, opened, fmt.Errorf("%w: HTTP status %s", errNone, response.Status)
	}
	if c.deaf > 0 {
		sleep(ctx, c.deaf)
	}
	answered := false
	lines := bufio.NewReaderSize(response.Body, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData && strings.HasPrefix(line, "{") {
			data, isData = line, true // the whole body is the answer
		}
		if isData && (err == nil || errors.Is(err, io.EOF)) { // otherwise the connection broke in the middle of the line
			answered = c.take(&a, data, id, answered)
		}
		switch {
		case errors.Is(err, io.EOF) && answered:
			return a, opened, nil
		case errors.Is(err, io.EOF):
			return a, opened, errNone
		case err != nil:
			return a, opened, err
		}
	}
}

// take handles a message of a stream and reports whether it is the answer.
func (c *webClient) take(a *answer, data, id string, answered bool) bool {
	var m message
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		c.web.soak.ledger.violation(wrongAnswer, "a stream has %.200q", data)
		return answered
	}
	switch {
	case m.Method == "notifications/progress" && string(m.Params.ProgressToken) == id:
		a.progress = append(a.progress, m.Params.Message)
	case m.Method == "notifications/progress":
		c.web.soak.ledger.violation(wrongAnswer, "the stream of %s has the progress of %s", id, m.Params.ProgressToken)
	case m.Method != "":
	case answered || string(m.ID) != id:
		c.web.soak.ledger.violation(doneTwice, "the stream of %s has another answer, to %s", id, m.ID)
	default:
		a.Result, a.Error = m.Result, m.Error
		return true
	}
	return answered
}
