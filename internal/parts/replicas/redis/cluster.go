package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	slotCount        = 16384
	defaultRedirects = 3
	// maxAsked bounds the nodes that are asked where the slots are.
	maxAsked = 5
	// tryAgain is about the time until a command is sent again whose keys are being moved.
	tryAgain = 10 * time.Millisecond
)

// cluster is the client of a cluster. It asks where the slots are before the first request,
// and again after a redirect or a failure.
type cluster struct {
	dialer    *dialer
	limits    limits
	seeds     []string // addresses of nodes
	redirects int      // at most, for one request

	mu       sync.Mutex
	nodes    map[string]*pool // by address
	slots    []slots
	isStale  bool
	isClosed bool
}

// slots are the slots from first to last, which a node has.
type slots struct {
	first, last int
	address     string
}

// do implements client.
func (c *cluster) do(ctx context.Context, key, command string, args ...any) (any, error) {
	address, err := c.address(ctx, key)
	isAsking := false
	for redirects := 0; err == nil; {
		var reply any
		reply, err = c.node(address).send(ctx, isAsking, command, args)
		kind, to := refusal(err)
		if kind == "" || redirects == c.redirects {
			return reply, err
		}
		err = nil
		switch kind {
		case "MOVED", "ASK":
			redirects++
			isAsking, address = kind == "ASK", reachable(to, address)
			if !isAsking {
				c.outdate()
			}
		case "TRYAGAIN":
			select {
			case <-time.After(jitter(tryAgain)):
			case <-ctx.Done():
				err = ctx.Err()
			}
		case "CLOSED":
			redirects++
		}
	}
	return nil, err
}

// refusal returns why a command was not run although it may be sent again, and where to;
// "" if it was run, or if that is not known. TRYAGAIN means that its keys are being moved,
// CLOSED that the node was not known for a moment.
func refusal(err error) (kind, address string) {
	if errors.Is(err, errClosed) {
		return "CLOSED", ""
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return "", ""
	}
	words := strings.Fields(string(reply))
	switch {
	case len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK"):
		return words[0], words[2]
	case len(words) > 0 && words[0] == "TRYAGAIN":
		return words[0], ""
	}
	return "", ""
}

// reachable returns the address of a node as another node has named it, with what only the
// other's address says: an unknown host, or a loopback address of another machine.
func reachable(address, namedBy string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // an IPv6 address without brackets
		i := strings.LastIndexByte(address, ':')
		host, port = address[:max(i, 0)], address[i+1:]
	}
	otherHost, otherPort, _ := net.SplitHostPort(namedBy)
	if ip := net.ParseIP(host); host == "" || host == "?" || ip.IsLoopback() && !isLoopback(otherHost) {
		host = otherHost
	}
	if port == "0" { // a cluster with TLS alone may say so
		port = otherPort
	}
	return net.JoinHostPort(host, port)
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".docker.internal") || net.ParseIP(host).IsLoopback()
}

// connect implements client.
func (c *cluster) connect(ctx context.Context, key string) (*conn, error) {
	address, err := c.address(ctx, key)
	if err != nil {
		return nil, err
	}
	node, err := c.dialer.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	node.isOld = func() bool { return !c.has(address) }
	return node, nil
}

// has reports whether a node has slots.
func (c *cluster) has(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.slots, func(s slots) bool { return s.address == address })
}

// address returns the address of the node that has a key.
func (c *cluster) address(ctx context.Context, key string) (string, error) {
	c.mu.Lock()
	known, isStale := c.slots, c.isStale || c.slots == nil
	c.isStale = false // others need not ask as well
	c.mu.Unlock()
	if isStale {
		asked := survey(ctx, c.some(), c.ask)
		switch {
		case asked.err == nil:
			known = asked.value
			c.adopt(asked.value)
		case known == nil:
			return "", asked.err
		default:
			c.outdate()
		}
	}
	slot := slotOf(key)
	for _, s := range known {
		if s.first <= slot && slot <= s.last {
			return s.address, nil
		}
	}
	c.outdate()
	return "", errors.New("no node of the cluster has the key's slot")
}

// some returns addresses of nodes to ask: some that are known to have slots, and some seeds.
func (c *cluster) some() []string {
	c.mu.Lock()
	all := slices.Clone(c.seeds)
	for _, s := range c.slots {
		all = append(all, s.address)
	}
	c.mu.Unlock()
	slices.Sort(all)
	all = slices.Compact(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), maxAsked)]
}

var currentEpoch = regexp.MustCompile(`(?m)^cluster_current_epoch:(\d+)`)

// ask returns where the slots are, as one node knows it.
func (c *cluster) ask(ctx context.Context, address string) (o opinion[[]slots]) {
	node, err := c.dialer.dial(ctx, address)
	if err != nil {
		return opinion[[]slots]{err: err}
	}
	defer func() { _ = node.Close() }()
	ranges, err := redis.Values(node.DoContext(ctx, "CLUSTER", "SLOTS"))
	if err == nil && len(ranges) == 0 {
		err = errors.New("the node has no cluster")
	}
	if err != nil {
		return opinion[[]slots]{err: err}
	}
	for _, one := range ranges {
		var s slots
		var primary []any
		if fields, err := redis.Values(one, nil); err != nil || len(fields) < 3 {
			continue
		} else if _, err := redis.Scan(fields, &s.first, &s.last, &primary); err != nil || len(primary) < 2 {
			continue
		}
		port, _ := redis.Int(primary[1], nil)
		s.address = reachable(net.JoinHostPort(text(primary[0]), strconv.Itoa(port)), address)
		o.value = append(o.value, s)
	}
	if info, err := redis.String(node.DoContext(ctx, "CLUSTER", "INFO")); err == nil {
		if found := currentEpoch.FindStringSubmatch(info); found != nil {
			o.epoch, _ = strconv.Atoi(found[1])
		}
	}
	return o
}

// adopt remembers where the slots are, and forgets nodes that have none.
func (c *cluster) adopt(asked []slots) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots = asked
	for address, p := range c.nodes {
		if !slices.ContainsFunc(asked, func(s slots) bool { return s.address == address }) {
			p.close()
			delete(c.nodes, address)
		}
	}
}

// node returns the connections to a node.
func (c *cluster) node(address string) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.nodes[address]
	if p == nil {
		p = newPool(c.dialer.to(address), c.limits)
		if c.isClosed {
			p.close()
		}
		c.nodes[address] = p
	}
	return p
}

// outdate makes the next request ask where the slots are.
func (c *cluster) outdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isStale = true
}

// reset implements client.
func (c *cluster) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isStale = true
	for _, p := range c.nodes {
		p.reset()
	}
}

// close implements client.
func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	for _, p := range c.nodes {
		p.close()
	}
}

// slotOf returns the slot of a key: of the part in the first braces, if there is one.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16 // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slotCount
}
