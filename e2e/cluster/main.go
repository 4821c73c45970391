// Cluster is a load balancer for tests. It sends each request to the next replica of mcpx,
// whatever client session it belongs to, and prints its own address:
//
//	go run ./e2e/cluster http://127.0.0.1:8001 http://127.0.0.1:8002 http://127.0.0.1:8003
//
// The tests of this package run three replicas of the built mcpx-sse behind it, with a real
// Redis or Valkey, and kill and restart them under load.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run balances the load of the replicas with these URLs until the process is interrupted.
func run(urls []string) error {
	if len(urls) == 0 {
		return fmt.Errorf("no replicas; give their URLs")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := newBalancer()
	for i, url := range urls {
		if err := b.add(fmt.Sprint(i+1), url); err != nil {
			return err
		}
	}
	go b.checkHealth(ctx)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	s := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
