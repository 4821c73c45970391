package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// client sends commands to one server, to the primary of a Sentinel group, or to a cluster.
// It sends a command again only if a server has refused it. Its methods may be called
// concurrently.
type client interface {
	// do sends a command to the server that has the key, and returns its reply.
	do(ctx context.Context, key, command string, args ...any) (any, error)
	// connect returns a new connection to the server that has the key.
	connect(ctx context.Context, key string) (*conn, error)
	// reset makes requests use new connections, since one has failed: to the address that
	// the server has now.
	reset()
	// close closes the connections. Requests that run end with their contexts.
	close()
}

// pingEvery is the time between two checks that a subscription still has its server.
const pingEvery = 3 * time.Second

// subscription receives the messages of a channel.
type subscription struct {
	channel string
	connect func(ctx context.Context) (*conn, error)
	limit   time.Duration
	begin   func() // has subscribed, maybe again; nil: nothing to do
	receive func(message []byte)
}

// run subscribes until ctx ends, again after a failure.
func (s subscription) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.once(ctx)
		select {
		case <-time.After(jitter(retryEvery)):
		case <-ctx.Done():
		}
	}
}

// once subscribes until the connection fails.
func (s subscription) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	c, err := s.connect(limited)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, c.cut)()
	subscribed := redis.PubSubConn{Conn: c.Conn}
	if subscribed.Subscribe(s.channel) != nil {
		return
	}
	var pings sync.WaitGroup
	ended := make(chan struct{})
	pings.Go(func() { ping(subscribed, c, ended) })
	defer pings.Wait()
	defer close(ended)
	for {
		switch m := subscribed.ReceiveWithTimeout(pingEvery + s.limit + maxTransfer).(type) {
		case redis.Message:
			s.receive(m.Data)
		case redis.Subscription:
			if s.begin != nil {
				s.begin()
			}
		case error:
			return
		}
	}
}

// ping sends pings, so that silence means that the connection is broken.
func ping(subscribed redis.PubSubConn, c *conn, ended <-chan struct{}) {
	for {
		select {
		case <-time.After(pingEvery):
		case <-ended:
			return
		}
		if c.isOld != nil && c.isOld() || subscribed.Ping("") != nil {
			c.cut()
			return
		}
	}
}

// opinion is what one of several servers says about their group.
type opinion[T any] struct {
	value T
	epoch int // of the server's knowledge; the highest is the newest
	err   error
}

// survey asks several servers at once and returns the newest opinion. It waits until more
// than half of them have one, or half of the time is over: one that hangs must not delay
// others, and one that is cut off from the others must not prevail because it is near.
func survey[T any](ctx context.Context, addresses []string, ask func(ctx context.Context, address string) opinion[T]) opinion[T] {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opinions := make(chan opinion[T], len(addresses))
	for _, address := range addresses {
		all.Go(func() { opinions <- ask(ctx, address) })
	}
	patience := time.NewTimer(0)
	patience.Stop()
	if deadline, ok := ctx.Deadline(); ok {
		patience.Reset(time.Until(deadline) / 2)
	}
	defer patience.Stop()
	best, isOver := opinion[T]{err: errors.New("no server knows the group")}, false
	for answered, good := 0, 0; answered < len(addresses) && good <= len(addresses)/2 && (good == 0 || !isOver); {
		select {
		case o := <-opinions:
			answered++
			if o.err == nil {
				good++
			}
			if o.err == nil && (best.err != nil || o.epoch > best.epoch) || good == 0 {
				best = o
			}
		case <-patience.C:
			isOver = true
		}
	}
	return best
}
