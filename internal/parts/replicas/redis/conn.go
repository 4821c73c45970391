package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sync/semaphore"
)

// conn is a connection to one server. Its requests end with their contexts.
type conn struct {
	redis.Conn
	raw   net.Conn
	epoch int64       // of its pool, when it was dialed
	isOld func() bool // whether another server should be used now; nil: no
	isCut atomic.Bool // closed in the middle of a request
}

// cut closes the connection, which ends a request that waits.
func (c *conn) cut() {
	c.isCut.Store(true)
	_ = c.raw.Close()
}

// Err implements redis.Conn.
func (c *conn) Err() error {
	if c.isCut.Load() {
		return net.ErrClosed
	}
	return c.Conn.Err()
}

// DoContext implements redis.ConnWithContext. Unlike the method of the library, it does not
// return before the arguments have been read for the last time.
func (c *conn) DoContext(ctx context.Context, command string, args ...any) (any, error) {
	return c.during(ctx, func() (any, error) { return c.Do(command, args...) })
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) { return c.during(ctx, c.Receive) }

// during cuts the connection if the context ends before the request.
func (c *conn) during(ctx context.Context, request func() (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.cut)
	reply, err := request()
	if stop() {
		return reply, err
	}
	c.cut() // AfterFunc may not have done it yet
	if err != nil && !isReply(err) {
		err = ctx.Err()
	}
	return reply, err
}

// isReply reports whether an error is the response of a server.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// dialer dials servers with the same user, password, database and TLS config.
type dialer struct {
	options []redis.DialOption
	tls     *tls.Config // nil: no TLS
}

// as returns the dialer of a user.
func (d *dialer) as(user, password string) *dialer {
	options := append(slices.Clone(d.options), redis.DialUsername(user), redis.DialPassword(password))
	return &dialer{options: options, tls: d.tls}
}

// to returns a function that dials one address.
func (d *dialer) to(address string) func(ctx context.Context) (*conn, error) {
	return func(ctx context.Context) (*conn, error) { return d.dial(ctx, address) }
}

// dial connects to a host and port.
func (d *dialer) dial(ctx context.Context, address string) (*conn, error) {
	c := &conn{}
	connect := func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.raw = raw
		if d.tls == nil {
			return raw, nil
		}
		encrypted := tls.Client(raw, d.tls)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		return encrypted, nil
	}
	var err error
	c.Conn, err = redis.DialContext(ctx, "tcp", address, append([]redis.DialOption{redis.DialContextFunc(connect)}, d.options...)...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// trustIdle is how long an idle connection counts as good. After that it is checked before
// it is used: the server, or something on the way, may have closed it.
const trustIdle = 100 * time.Millisecond

var (
	errOld    = errors.New("an old connection")
	errClosed = errors.New("the connections are closed")
)

// limits bound the connections of a pool.
type limits struct {
	open, idle         int
	idleTime, lifetime time.Duration // 0: no limit
}

// pool is a bounded number of connections to one server. It is the client of one server, or
// of the primary of a Sentinel group.
type pool struct {
	dial  func(ctx context.Context) (*conn, error)
	free  *semaphore.Weighted // the library's own limit panics if a request ends while the pool is closed
	conns redis.Pool

	epoch    atomic.Int64 // idle connections of older epochs are not used
	isClosed atomic.Bool
}

func newPool(dial func(ctx context.Context) (*conn, error), l limits) *pool {
	p := &pool{dial: dial, free: semaphore.NewWeighted(int64(l.open))}
	p.conns = redis.Pool{
		MaxIdle: l.idle, IdleTimeout: l.idleTime, MaxConnLifetime: l.lifetime, TestOnBorrowContext: p.check,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			epoch := p.epoch.Load() // before dial asks for the address
			c, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			c.epoch = epoch
			return c, nil
		},
	}
	return p
}

// check returns an error if an idle connection must not be used.
func (p *pool) check(ctx context.Context, idle redis.Conn, used time.Time) error {
	c := idle.(*conn)
	if c.epoch != p.epoch.Load() {
		return errOld
	}
	if time.Since(used) < trustIdle {
		return nil
	}
	_, err := c.DoContext(ctx, "PING")
	if err != nil && isReply(err) { // such as: no permission
		return nil
	}
	return err
}

// do implements client.
func (p *pool) do(ctx context.Context, _ string, command string, args ...any) (any, error) {
	return p.send(ctx, false, command, args)
}

// send sends a command. With isAsking, it may be for a key that the server of a cluster is
// about to get.
func (p *pool) send(ctx context.Context, isAsking bool, command string, args []any) (any, error) {
	if err := p.free.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.free.Release(1)
	c, err := p.conns.GetContext(ctx)
	if err != nil && p.isClosed.Load() {
		return nil, errClosed
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // back to the pool, or closed if it is broken
	if isAsking {
		if _, err := redis.DoContext(c, ctx, "ASKING"); err != nil {
			return nil, err
		}
	}
	return redis.DoContext(c, ctx, command, args...)
}

// connect implements client.
func (p *pool) connect(ctx context.Context, _ string) (*conn, error) { return p.dial(ctx) }

// reset implements client.
func (p *pool) reset() { p.epoch.Add(1) }

// close implements client.
func (p *pool) close() {
	p.isClosed.Store(true)
	_ = p.conns.Close()
}
