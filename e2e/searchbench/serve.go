package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/rawjson"
)

// serve serves the tools of each server as MCP over HTTP, at its place in the list, until stop
// is called.
func serve(servers []server) (address string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	lists := make([][]byte, len(servers))
	for i, s := range servers {
		if lists[i], err = json.Marshal(map[string]any{"tools": s.tools}); err != nil {
			return "", nil, err
		}
	}
	h := http.Server{Handler: replay(lists), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(listener)
	}()
	return "http://" + listener.Addr().String(), func() { _ = h.Close(); <-done }, nil
}

// replay answers requests for the lists.
func replay(lists [][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || i < 0 || i >= len(lists) || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		id := rawjson.Get(body, "id")
		if id == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		method, _ := rawjson.String(rawjson.Get(body, "method"))
		switch method {
		case "initialize":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"replay","version":"1"}}}`, id)
		case "tools/list":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, lists[i])
		case "ping":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not found"}}`, id)
		}
	}
}
