//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"sync"
)

// relayMain runs the relay if the process was started as one, and then does not return.
// main calls it first.
func relayMain() {
	kind := os.Getenv(relayVariable)
	if kind == "" {
		return
	}
	if err := relayAs(kind); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// relayAs starts this program as the upstream and relays until it ends.
func relayAs(kind string) error {
	if err := os.Unsetenv(relayVariable); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, os.Args[1:]...)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	r := newRelay(kind, os.Getenv(onceVariable))
	go func() { // ends with the process
		passOn(in, os.Stdin, r.request)
		_ = in.Close()
	}()
	passOn(os.Stdout, out, r.answer)
	return child.Wait()
}

// passOn writes every line as change returns it.
func passOn(to io.Writer, from io.Reader, change func(line []byte) []byte) {
	for lines := bufio.NewReaderSize(from, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if _, err := to.Write(change(line)); err != nil {
			return
		}
	}
}

// httpRelay is the relay in front of a remote upstream.
type httpRelay struct {
	url     string
	server  *http.Server
	running sync.WaitGroup
}

// startHTTPRelay relays to the server at target until stop.
func startHTTPRelay(r *relay, target string) (*httpRelay, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &httpRelay{url: "http://" + l.Addr().String()}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // flush at once
		Transport:     &http.Transport{DisableKeepAlives: true},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			body, _ := io.ReadAll(p.In.Body)
			p.Out.Body = io.NopCloser(bytes.NewReader(r.request(body)))
		},
		ModifyResponse: func(response *http.Response) error {
			body := response.Body
			in, out := io.Pipe()
			h.running.Go(func() {
				defer func() { _ = body.Close() }()
				passOn(out, body, r.event)
				_ = out.Close()
			})
			response.Body = in
			response.Header.Del("Content-Length")
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // connections end when mcpx does
	}
	h.server = &http.Server{Handler: proxy, ReadHeaderTimeout: patience}
	h.running.Go(func() { _ = h.server.Serve(l) })
	return h, nil
}

func (h *httpRelay) stop() {
	_ = h.server.Close()
	h.running.Wait()
}

// event is answer for a line of a stream of events.
func (r *relay) event(line []byte) []byte {
	data, isData := bytes.CutPrefix(line, []byte("data: "))
	if !isData {
		return line
	}
	data = r.answer(data)
	if data == nil {
		return nil
	}
	return append([]byte("data: "), data...)
}
