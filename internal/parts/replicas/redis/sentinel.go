package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"mcpx/internal/tasks"
)

const (
	// maxSentinels bounds the Sentinels that are asked.
	maxSentinels = 15
	// agreeTime is how long Sentinels may take to agree after a failover. They tell each
	// other about it every two seconds.
	agreeTime = 10 * time.Second
)

// sentinel is the client of a Sentinel group. Every new connection asks the Sentinels for
// the address of the primary. When they announce another primary, all connections are
// replaced, so that nothing is written to the old one.
type sentinel struct {
	*pool
	name       string
	configured []string // addresses of Sentinels
	sentinels  *dialer
	servers    *dialer
	limit      time.Duration

	switches atomic.Int64 // how often there was another primary
	watch    func()
	ctx      context.Context // until close
	cancel   context.CancelFunc
	tasks    tasks.Group

	mu      sync.Mutex
	learned []string        // addresses of Sentinels that others have named
	primary opinion[string] // the last one that was believed
	at      time.Time       // when primary was last confirmed
}

// newSentinel returns the client of a Sentinel group, of which name, addresses, dialers and
// limit are set.
func newSentinel(s *sentinel, l limits) *sentinel {
	s.pool = newPool(s.dialPrimary, l)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.watch = sync.OnceFunc(func() {
		for _, address := range s.configured {
			s.tasks.Go(func() { s.listen(address) })
		}
	})
	return s
}

// listen waits for the announcements of one Sentinel.
func (s *sentinel) listen(address string) {
	subscription{
		channel: "+switch-master",
		connect: s.sentinels.to(address),
		limit:   s.limit,
		begin:   s.reset, // there may have been announcements before
		receive: func(message []byte) {
			if name, _, _ := strings.Cut(string(message), " "); name == s.name {
				s.replace()
			}
		},
	}.run(s.ctx)
}

// dialPrimary connects to the primary.
func (s *sentinel) dialPrimary(ctx context.Context) (*conn, error) {
	s.watch()
	newest := survey(ctx, s.addresses(), s.ask)
	if newest.err != nil {
		return nil, newest.err
	}
	address := s.believe(newest, time.Now())
	c, err := s.servers.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	role, err := redis.Values(c.DoContext(ctx, "ROLE"))
	if err == nil && (len(role) == 0 || text(role[0]) != "master") {
		err = fmt.Errorf("%s is not the primary", address)
	}
	if err != nil && !isReply(err) { // a user without the permission for ROLE may still write
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// believe returns the address of the primary, after an opinion about it. Shortly after a
// failover, an older opinion than the last one is not believed.
func (s *sentinel) believe(o opinion[string], now time.Time) string {
	s.mu.Lock()
	last := s.primary
	isOlder := o.epoch < last.epoch && now.Sub(s.at) < agreeTime
	if !isOlder {
		s.primary, s.at = o, now
	}
	s.mu.Unlock()
	if isOlder {
		return last.value
	}
	if last.value != "" && last.value != o.value {
		s.replace()
	}
	return o.value
}

// replace makes all requests and subscriptions use new connections: there is another primary.
func (s *sentinel) replace() {
	s.switches.Add(1)
	s.reset()
}

// connect implements client.
func (s *sentinel) connect(ctx context.Context, key string) (*conn, error) {
	switches := s.switches.Load()
	c, err := s.pool.connect(ctx, key)
	if err != nil {
		return nil, err
	}
	c.isOld = func() bool { return s.switches.Load() != switches }
	return c, nil
}

// addresses returns the addresses of the Sentinels.
func (s *sentinel) addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(slices.Clone(s.configured), s.learned...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ask returns the address of the primary, as one Sentinel knows it.
func (s *sentinel) ask(ctx context.Context, address string) (o opinion[string]) {
	c, err := s.sentinels.dial(ctx, address)
	if err != nil {
		return opinion[string]{err: err}
	}
	defer func() { _ = c.Close() }()
	primary, err := redis.Strings(c.DoContext(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.name))
	if errors.Is(err, redis.ErrNil) || err == nil && len(primary) != 2 {
		err = fmt.Errorf("the Sentinel %s does not know %q", address, s.name)
	}
	if err != nil {
		return opinion[string]{err: err}
	}
	o.value = net.JoinHostPort(primary[0], primary[1])
	if facts, err := redis.StringMap(c.DoContext(ctx, "SENTINEL", "MASTER", s.name)); err == nil {
		o.epoch, _ = strconv.Atoi(facts["config-epoch"])
	}
	if others, err := redis.Values(c.DoContext(ctx, "SENTINEL", "SENTINELS", s.name)); err == nil {
		s.learn(address, others)
	}
	return o
}

// learn keeps the addresses of a Sentinel and of those that it knows, for the time when the
// configured ones are gone.
func (s *sentinel) learn(address string, others []any) {
	addresses := []string{address}
	for _, other := range others[:min(len(others), maxSentinels)] {
		if facts, err := redis.StringMap(other, nil); err == nil && facts["ip"] != "" && facts["port"] != "" {
			addresses = append(addresses, net.JoinHostPort(facts["ip"], facts["port"]))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learned = addresses
}

// close implements client.
func (s *sentinel) close() {
	s.cancel()
	s.tasks.Close()
	s.pool.close()
}

// text returns a text in a reply, "" if it is none.
func text(reply any) string {
	t, _ := redis.String(reply, nil)
	return t
}
