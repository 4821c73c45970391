package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// startCluster starts primaries of a cluster that have an equal number of slots each.
func startCluster(t *testing.T, primaries int, options ...string) []*storetest.Server {
	t.Helper()
	var nodes []*storetest.Server
	for i := range primaries {
		node := storetest.Start(t, append([]string{"--cluster-enabled", "yes"}, options...)...)
		node.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slotCount/primaries, (i+1)*slotCount/primaries-1))
		node.Do("CLUSTER SET-CONFIG-EPOCH " + strconv.Itoa(i+1))
		nodes = append(nodes, node)
		if i > 0 {
			meet(nodes[0], node)
		}
	}
	for _, node := range nodes {
		await(t, "the cluster", func() bool {
			info := node.Do("CLUSTER INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", primaries))
		})
	}
	return nodes
}

func meet(a, b *storetest.Server) { a.Do("CLUSTER MEET " + strings.Replace(b.Host(), ":", " ", 1)) }

func id(node *storetest.Server) string { return node.Do("CLUSTER MYID") }

// nodesOf returns the node that has a key's slot, and another one.
func nodesOf(t *testing.T, nodes []*storetest.Server, key string) (has, other *storetest.Server) {
	for _, node := range nodes {
		if strings.HasPrefix(node.Do("GET "+key), "-MOVED") {
			other = node
		} else {
			has = node
		}
	}
	if has == nil || other == nil {
		t.Fatalf("no node has %s, or all have", key)
	}
	return has, other
}

// TestMovedSlot moves a slot from one node to another: at every step, each request succeeds.
func TestMovedSlot(t *testing.T) {
	mcptest.NothingLeft(t)
	nodes := startCluster(t, 3)
	r, log := openLogged(t, nodes[0].Address()+"?addr="+nodes[1].Host())
	ctx := t.Context()
	const key, here = "mcpx:moved", "moved"
	slot := nodes[0].Do("CLUSTER KEYSLOT " + key)[1:]
	from, to := nodesOf(t, nodes, key)
	use := func(step string) {
		t.Helper()
		value := []byte("at the step: " + step)
		lock := must[store.Lock](t)(r.Lock(ctx, here))
		if err := lock.Set(ctx, value, time.Minute); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		lock.Unlock()
		if got := must[[]byte](t)(r.Get(ctx, here)); string(got) != string(value) {
			t.Errorf("%s: got %q", step, got)
		}
		if must[bool](t)(r.Add(ctx, here, value, time.Minute)) {
			t.Errorf("%s: a value is not there", step)
		}
	}
	migrate := func(key string) string {
		return from.Do("MIGRATE " + strings.Replace(to.Host(), ":", " ", 1) + " " + key + " 0 5000")
	}
	use("before") // the client knows where the slot is
	to.Do("CLUSTER SETSLOT " + slot + " IMPORTING " + id(from))
	from.Do("CLUSTER SETSLOT " + slot + " MIGRATING " + id(to))
	// The value is already there, the lock of the value is not: TRYAGAIN, until both are there.
	lock := must[store.Lock](t)(r.Lock(ctx, here)) // ASK, as the lock has no value yet
	if answer := migrate(key); answer != "+OK" {
		t.Fatal(answer)
	}
	if err := lock.Set(ctx, []byte("both are there"), time.Minute); err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
	use("values are moved")
	for _, node := range nodes {
		node.Do("CLUSTER SETSLOT " + slot + " NODE " + id(to))
	}
	use("the slot is moved")
	if text := log.String(); text != "" {
		t.Errorf("it is logged that %s", text)
	}
	if n := r.State().Failures; n != 0 {
		t.Errorf("%d requests have failed", n)
	}
}

// TestTryAgain: a script whose keys are on two nodes while their slot moves waits until they
// are on one.
func TestTryAgain(t *testing.T) {
	mcptest.NothingLeft(t)
	nodes := startCluster(t, 3)
	r := opener(t, nodes[0].Address()+"?addr="+nodes[1].Host())()
	ctx := t.Context()
	const key, lockKey = "mcpx:key", "mcpx:lock:{mcpx:key}"
	lock := must[store.Lock](t)(r.Lock(ctx, "key"))
	if err := lock.Set(ctx, []byte("old"), time.Minute); err != nil {
		t.Fatal(err)
	}
	slot := nodes[0].Do("CLUSTER KEYSLOT " + key)[1:]
	from, to := nodesOf(t, nodes, key)
	to.Do("CLUSTER SETSLOT " + slot + " IMPORTING " + id(from))
	from.Do("CLUSTER SETSLOT " + slot + " MIGRATING " + id(to))
	migrate := "MIGRATE " + strings.Replace(to.Host(), ":", " ", 1) + " %s 0 5000"
	from.Do(fmt.Sprintf(migrate, key))
	if answer := from.Do("EVAL return{} 2 " + key + " " + lockKey); !strings.HasPrefix(answer, "-TRYAGAIN") {
		t.Fatalf("the server says %q", answer)
	}
	done := make(chan error, 1)
	go func() { done <- lock.Set(ctx, []byte("new"), time.Minute) }()
	select {
	case err := <-done:
		t.Fatalf("the value is set while its lock is elsewhere: %v", err)
	case <-time.After(5 * tryAgain):
	}
	from.Do(fmt.Sprintf(migrate, lockKey))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(r.Get(ctx, "key")); string(got) != "new" {
		t.Errorf("got %q", got)
	}
	lock.Unlock()
}

// TestLostNode kills a primary of a cluster. Its replica takes over, and requests to all
// nodes succeed again. No write that was confirmed after that is lost.
func TestLostNode(t *testing.T) {
	mcptest.NothingLeft(t)
	options := append([]string{"--cluster-node-timeout", "500"}, syncAtOnce...)
	nodes := startCluster(t, 3, options...)
	replica := storetest.Start(t, append(options, "--cluster-enabled", "yes")...)
	lost, _ := nodesOf(t, nodes, "mcpx:key")
	meet(lost, replica)
	await(t, "the replica", func() bool { return replica.Do("CLUSTER REPLICATE "+id(lost)) == "+OK" })
	await(t, "the replication", func() bool { return replica.Says("INFO replication", "master_link_status:up") })
	for _, node := range nodes {
		await(t, "the replica in the cluster", func() bool { return node.Says("CLUSTER NODES", "slave "+id(lost)) })
	}
	r, _ := openLogged(t, lost.Address()+"?addr="+nodes[1].Host()+"&addr="+nodes[2].Host())
	await(t, "a value", func() bool { return r.Set(t.Context(), "key", []byte("old"), time.Minute) == nil })
	heard := listen(t, r)
	await(t, "a message", func() bool { return heard(r) })
	lost.Stop()
	await(t, "a value after the failover", func() bool { return r.Set(t.Context(), "key", []byte("new"), time.Minute) == nil })
	await(t, "the value", func() bool {
		got, err := r.Get(t.Context(), "key")
		return err == nil && string(got) == "new"
	})
	if !replica.Says("GET mcpx:key", "new") {
		t.Error("the new primary does not have the value")
	}
	await(t, "a message after the failover", func() bool { return heard(r) })
}

// TestSlots compares the slots of keys with the server's.
func TestSlots(t *testing.T) {
	server := storetest.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{"123456789", "mcpx:key", "mcpx:lock:{mcpx:key}", "a{}b", "a{b", "{}", "x{y}{z}", "{{y}}", "ü"} {
		if got, want := ":"+strconv.Itoa(slotOf(key)), server.Do("CLUSTER KEYSLOT "+key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// TestReachable: what a node says about addresses is completed by its own.
func TestReachable(t *testing.T) {
	for _, row := range []struct{ address, namedBy, want string }{
		{"10.0.0.2:7000", "10.0.0.1:7001", "10.0.0.2:7000"},
		{"node.example:7000", "10.0.0.1:7001", "node.example:7000"},
		{":7000", "10.0.0.1:7001", "10.0.0.1:7000"},
		{"?:7000", "host.example:7001", "host.example:7000"},
		{"127.0.0.1:7000", "10.0.0.1:7001", "10.0.0.1:7000"},
		{"127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7000"},
		{"127.0.0.1:7000", "localhost:7001", "127.0.0.1:7000"},
		{"10.0.0.2:0", "10.0.0.1:7001", "10.0.0.2:7001"},
		{"fd00::2:7000", "[fd00::1]:7001", "[fd00::2]:7000"},
		{"[fd00::2]:7000", "[fd00::1]:7001", "[fd00::2]:7000"},
	} {
		if got := reachable(row.address, row.namedBy); got != row.want {
			t.Errorf("%s, named by %s: %s, want %s", row.address, row.namedBy, got, row.want)
		}
	}
}

// TestSurvey: the newest opinion wins, and servers that hang or fail delay nobody for long.
func TestSurvey(t *testing.T) {
	ask := func(ctx context.Context, address string) opinion[string] {
		switch address {
		case "hangs":
			<-ctx.Done()
			return opinion[string]{err: ctx.Err()}
		case "fails":
			return opinion[string]{err: store.ErrLockLost}
		}
		epoch, _ := strconv.Atoi(address)
		return opinion[string]{value: address, epoch: epoch}
	}
	for _, row := range []struct{ servers, want string }{
		{"1", "1"}, {"1 2", "2"}, {"3 2 hangs", "3"}, {"fails 2 fails", "2"}, {"hangs hangs 2", "2"}, {"fails fails", ""}, {"hangs fails", ""}, {"", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), store.Limit)
		got := survey(ctx, strings.Fields(row.servers), ask)
		if got.value != row.want || (got.err == nil) != (row.want != "") {
			t.Errorf("%q: %q, %v", row.servers, got.value, got.err)
		}
		if row.want != "" && ctx.Err() != nil {
			t.Errorf("%q: no time is left for the request", row.servers)
		}
		cancel()
	}
}
