package redis

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
)

// startSentinels starts Sentinels that monitor a primary as "main".
func startSentinels(t *testing.T, primary *storetest.Server, number int) []*storetest.Server {
	t.Helper()
	var all []*storetest.Server
	host, port, _ := strings.Cut(primary.Host(), ":")
	for range number {
		s := storetest.Start(t, "--sentinel", "--sentinel", "monitor", "main", host, port, fmt.Sprint(number/2+1))
		s.Do("SENTINEL SET main down-after-milliseconds 500 failover-timeout 3000")
		all = append(all, s)
	}
	for _, s := range all {
		await(t, "the other Sentinels", func() bool { return s.Do("SENTINEL SENTINELS main") == fmt.Sprintf("*%d", number-1) })
	}
	return all
}

// syncAtOnce are options of a primary whose replica need not wait for further replicas.
var syncAtOnce = []string{"--repl-diskless-sync-delay", "0"}

// group is a primary with a replica and three Sentinels.
type group struct {
	primary, replica *storetest.Server
	sentinels        []*storetest.Server
}

func startGroup(t *testing.T, options ...string) *group {
	t.Helper()
	g := &group{primary: storetest.Start(t, append(options, syncAtOnce...)...)}
	host, port, _ := strings.Cut(g.primary.Host(), ":")
	g.replica = storetest.Start(t, "--replicaof", host, port)
	await(t, "the replication", func() bool { return g.replica.Says("INFO replication", "master_link_status:up") })
	g.sentinels = startSentinels(t, g.primary, 3)
	for _, s := range g.sentinels {
		await(t, "the replica at the Sentinels", func() bool { return s.Do("SENTINEL REPLICAS main") == "*1" })
	}
	return g
}

// address names the first Sentinel and others.
func (g *group) address(others ...*storetest.Server) string {
	address := g.sentinels[0].Address() + "?master_name=main"
	for _, s := range others {
		address += "&addr=" + s.Host()
	}
	return address
}

// TestFailover: after a failover, requests and messages reach the new primary, whatever
// happens to the old one, and nothing more reaches the old one.
func TestFailover(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []string
		fail    func(g *group)
		after   func(g *group)
	}{
		{"the primary is gone", nil, func(g *group) { g.primary.Stop() }, nil},
		{"the primary hangs and comes back", nil, func(g *group) { g.primary.Pause() }, func(g *group) { g.primary.Resume() }},
		{"the primary becomes a replica", nil, func(g *group) { g.sentinels[0].Do("SENTINEL FAILOVER main") }, nil},
		// It cannot be told to become a replica, and goes on as if it were the primary.
		{"the primary does not know that it is replaced", []string{"--rename-command", "SLAVEOF", "", "--rename-command", "REPLICAOF", ""},
			func(g *group) { g.sentinels[0].Do("SENTINEL FAILOVER main") }, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			mcptest.NothingLeft(t)
			g := startGroup(t, row.options...)
			r, _ := openLogged(t, g.address(g.sentinels[1]))
			load := startLoad(t, r)
			heard := listen(t, r)
			await(t, "requests that succeed", load.next(&load.succeeded))
			await(t, "a message", func() bool { return heard(r) })
			row.fail(g)
			await(t, "the new primary", func() bool { return g.replica.Says("INFO replication", "role:master") })
			await(t, "a value at the new primary", func() bool {
				_ = r.Set(t.Context(), "key", []byte("new"), time.Minute)
				return g.replica.Says("GET mcpx:key", "new")
			})
			if row.after != nil {
				row.after(g)
			}
			await(t, "a message from the new primary", func() bool { return heard(r) })
			for i := range 50 {
				value := fmt.Sprint(i)
				if err := r.Set(t.Context(), "count", []byte(value), time.Minute); err != nil {
					t.Fatalf("write %d: %v", i, err)
				}
				if got := g.replica.Do("GET mcpx:count"); got != value {
					t.Fatalf("write %d: the new primary has %q", i, got)
				}
			}
			load.stop()
			if took := time.Duration(load.longest.Load()); took > bound {
				t.Errorf("a request took %s", took)
			}
		})
	}
}

// TestFurtherSentinels: Sentinels that the address does not name are found through one that
// it names.
func TestFurtherSentinels(t *testing.T) {
	mcptest.NothingLeft(t)
	g := startGroup(t)
	r, _ := openLogged(t, g.address())
	await(t, "a request", func() bool { return r.Set(t.Context(), "key", nil, time.Minute) == nil })
	g.sentinels[0].Stop()
	g.primary.Stop()
	await(t, "a value at the new primary", func() bool {
		_ = r.Set(t.Context(), "key", []byte("new"), time.Minute)
		return g.replica.Says("INFO replication", "role:master") && g.replica.Says("GET mcpx:key", "new")
	})
}

// TestOlderOpinions: until the Sentinels agree, the newest opinion about the primary holds.
// Another primary makes connections old.
func TestOlderOpinions(t *testing.T) {
	s := newSentinel(&sentinel{}, limits{})
	begun := time.Now()
	for i, row := range []struct {
		after    time.Duration
		address  string
		epoch    int
		want     string
		switches int64
	}{
		{0, "a", 1, "a", 0},
		{time.Second, "b", 2, "b", 1},
		{time.Second, "a", 1, "b", 1},
		{agreeTime, "a", 1, "b", 1},
		{agreeTime + time.Second, "a", 1, "a", 2}, // such as: the Sentinels were set up again
		{agreeTime + time.Second, "a", 1, "a", 2},
	} {
		got := s.believe(opinion[string]{value: row.address, epoch: row.epoch}, begun.Add(row.after))
		if got != row.want || s.switches.Load() != row.switches || s.epoch.Load() != row.switches {
			t.Errorf("%d: %s, %d switches", i, got, s.switches.Load())
		}
	}
}

// TestPasswordOfTheGroup: the servers have another password than the Sentinels.
func TestPasswordOfTheGroup(t *testing.T) {
	mcptest.NothingLeft(t)
	primary := storetest.Start(t)
	primary.Do("CONFIG SET requirepass secret-password")
	s := startSentinels(t, primary, 1)[0]
	s.Do("ACL SETUSER me on >other-password +@all allchannels")
	address := strings.Replace(s.Address(), "//", "//me:other-password@", 1) + "/3?master_name=main&password=secret-password"
	r := opener(t, address)()
	if err := r.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if info := text(must[any](t)(r.(*Store).client.do(t.Context(), "", "CLIENT", "INFO"))); !strings.Contains(info, " db=3 ") {
		t.Errorf("another database: %s", info)
	}
}

// TestUnknownGroup: the error says that the Sentinels do not know the name.
func TestUnknownGroup(t *testing.T) {
	mcptest.NothingLeft(t)
	s := startSentinels(t, storetest.Start(t), 1)[0]
	r, _ := openLogged(t, s.Address()+"?master_name=other")
	await(t, "the state of the store", func() bool { return r.Err() != nil })
	if err := r.Err(); !strings.Contains(err.Error(), `does not know "other"`) {
		t.Errorf("got %v", err)
	}
}

// TestRoleOfThePrimary: a server that a Sentinel names, but that is a replica, is not used.
func TestRoleOfThePrimary(t *testing.T) {
	mcptest.NothingLeft(t)
	primary := storetest.Start(t, syncAtOnce...)
	host, port, _ := strings.Cut(primary.Host(), ":")
	replica := storetest.Start(t, "--replicaof", host, port)
	r, _ := openLogged(t, "redis://"+wrongSentinel(t, replica)+"?master_name=main")
	await(t, "the state of the store", func() bool { return r.Err() != nil })
	if err := r.Err(); !strings.Contains(err.Error(), replica.Host()+" is not the primary") {
		t.Errorf("got %v", err)
	}
}

// wrongSentinel returns the address of a Sentinel that knows nothing but the address of one server.
func wrongSentinel(t *testing.T, s *storetest.Server) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	host, port, _ := strings.Cut(s.Host(), ":")
	respond := func(client net.Conn) {
		defer func() { _ = client.Close() }()
		for request := bufio.NewScanner(client); request.Scan(); {
			switch request.Text() {
			case "GET-MASTER-ADDR-BY-NAME":
				_, _ = fmt.Fprintf(client, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port)
			case "MASTER", "SENTINELS", "SUBSCRIBE":
				_, _ = fmt.Fprint(client, "-ERR unknown command\r\n")
			}
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { respond(client) })
		}
	})
	return listener.Addr().String()
}
