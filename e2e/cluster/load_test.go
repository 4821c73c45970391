//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// workers is the number of calls that a load has in flight.
const workers = 16

// load is many client sessions that make calls through the balancer, each on any replica.
// It checks every result. A call fails the test unless the replica that had it was killed,
// and no call is made twice.
type load struct {
	t         *testing.T
	cluster   *cluster
	noHandles bool // make no calls that need kept results
	running   sync.WaitGroup
	cancel    context.CancelFunc
	done      atomic.Int64 // calls with the right result
	cut       atomic.Int64 // calls that ended with their replica

	mu       sync.Mutex
	visitors []*visitor
	made     map[string]bool // calls of the tool work by nonce: whether the result came
	problems []string
}

// visitor is a client session with a kept result.
type visitor struct {
	client
	name   string
	handle string
	used   atomic.Int64 // words of the kept result that were passed on by reference
}

// startLoad opens that many client sessions and begins to use them.
func startLoad(t *testing.T, c *cluster, sessions int) *load {
	t.Helper()
	return (&load{t: t, cluster: c, made: map[string]bool{}}).start(sessions)
}

// startCalls is startLoad for calls that do not need kept results.
func startCalls(t *testing.T, c *cluster, sessions int) *load {
	t.Helper()
	return (&load{t: t, cluster: c, made: map[string]bool{}, noHandles: true}).start(sessions)
}

func (l *load) start(sessions int) *load {
	l.t.Helper()
	names := make(chan string, sessions)
	for range sessions {
		names <- fmt.Sprint("v", l.cluster.visitors.Add(1))
	}
	close(names)
	var opening sync.WaitGroup
	for range workers {
		opening.Go(func() {
			for name := range names {
				l.visit(name)
			}
		})
	}
	opening.Wait()
	if len(l.visitors) != sessions {
		l.t.Fatalf("%d of %d sessions opened: %s", len(l.visitors), sessions, clip(strings.Join(l.problems, "\n")))
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.t.Cleanup(func() { cancel(); l.running.Wait() })
	for range workers {
		l.running.Go(func() {
			for ctx.Err() == nil {
				l.use(l.any())
			}
		})
	}
	return l
}

// words is the number of words in the kept result of a visitor.
const words = 200

var keptAs = regexp.MustCompile(`kept as (r[0-9]+-?[0-9a-z]*)`)

// visit opens a session and makes a result that is kept.
func (l *load) visit(name string) {
	v := &visitor{name: name}
	v.cluster = l.cluster
	if err := v.open(l.cluster.url); err != nil {
		l.problem(v, "initialize", err)
		return
	}
	handle, err := v.keepShared(l.cluster.url, name)
	if err != nil {
		l.problem(v, "a result that is kept", err)
		return
	}
	v.handle = handle
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visitors = append(l.visitors, v)
}

// keep makes a call at an address whose result is kept, and returns its handle and the
// note about it.
func (c *client) keep(at, name string) (handle, note string, err error) {
	var all []string
	for n := range words {
		all = append(all, fmt.Sprintf("%s-%d", name, n))
	}
	text, _ := json.Marshal(map[string]any{"name": name, "words": all})
	result, _ := json.Marshal(map[string]any{"result": map[string]any{"content": []any{map[string]any{"type": "text", "text": string(text)}}}})
	answer, err := c.requestAt(at, "tools/call", execParams("count", "raw", string(result)))
	if err != nil {
		return "", "", err
	}
	found := keptAs.FindSubmatch(answer)
	if found == nil {
		return "", "", fmt.Errorf("no handle: %s", clip(string(answer)))
	}
	return string(found[1]), string(answer[len(answer)-min(300, len(answer)):]), nil
}

// onlyHere is in the note about a result that is not in the store.
const onlyHere = "only on this replica"

// keepShared is keep for a result that all replicas can read.
func (c *client) keepShared(at, name string) (handle string, err error) {
	err = whileBusy(func() error {
		var note string
		handle, note, err = c.keep(at, name)
		if err == nil && strings.Contains(note, onlyHere) {
			return errors.New("the store cannot be used")
		}
		return err
	})
	return handle, err
}

// any returns one of the visitors.
func (l *load) any() *visitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visitors[rand.IntN(len(l.visitors))]
}

// use makes one call of a visitor: mostly a small or a slow one, otherwise one that needs
// the kept result.
func (l *load) use(v *visitor) {
	switch n := rand.IntN(10); {
	case n < 5, l.noHandles:
		l.work(v, fmt.Sprintf("%s.%d", v.name, v.lastID.Add(1)), `"%s"`, 0)
	case n < 7:
		l.work(v, fmt.Sprintf("%s.%d", v.name, v.lastID.Add(1)), `"%s"`, 100)
	case n < 8 && v.used.Load() < words:
		word := v.used.Add(1) - 1
		l.work(v, fmt.Sprintf("%s-%d", v.name, word), fmt.Sprintf(`{"$r":"%s/words/%d"}`, v.handle, word), 0)
	default:
		l.read(v)
	}
}

// work makes a call of the tool work with a nonce that no other call has. argument is how
// the nonce is written; %s in it is the nonce itself.
func (l *load) work(v *visitor, nonce, argument string, ms int) {
	if strings.Contains(argument, "%s") {
		argument = fmt.Sprintf(argument, nonce)
	}
	got, err := v.execShared("count", "work", fmt.Sprintf(`{"nonce":%s,"ms":%d}`, argument, ms))
	l.mu.Lock()
	l.made[nonce] = err == nil
	l.mu.Unlock()
	l.check(v, "work "+argument, got == nonce, got, err)
}

// read reads a part of the visitor's kept result.
func (l *load) read(v *visitor) {
	word := rand.IntN(words)
	got, err := v.execShared("mcpx", "read_result", fmt.Sprintf(`{"id":%q,"path":"/words/%d"}`, v.handle, word))
	l.check(v, "read_result", strings.Contains(got, fmt.Sprintf("%s-%d", v.name, word)), got, err)
}

// execShared is exec for a call that may need the store.
func (c *client) execShared(server, tool, arguments string) (text string, err error) {
	err = whileBusy(func() error {
		text, err = c.exec(server, tool, arguments)
		return err
	})
	return text, err
}

// check counts a call.
func (l *load) check(v *visitor, what string, isRight bool, got string, err error) {
	var failed clearError
	switch {
	case err == nil && isRight:
		l.done.Add(1)
	case err == nil:
		l.problem(v, what, fmt.Errorf("got %q", clip(got)))
	case errors.As(err, &failed) && l.cluster.wasKilled(failed.backend):
		l.cut.Add(1)
	default:
		l.problem(v, what, err)
	}
}

func (l *load) problem(v *visitor, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) < 20 {
		l.problems = append(l.problems, fmt.Sprintf("%s: %s: %v", v.name, what, err))
	}
}

// waitFor waits until that many more calls had the right result.
func (l *load) waitFor(calls int64) {
	l.t.Helper()
	goal := l.done.Load() + calls
	eventually(l.t, "calls that go on", func() (string, bool) {
		return fmt.Sprintf("%d calls, want %d", l.done.Load(), goal), l.done.Load() >= goal
	})
}

// end ends the load and reports what was wrong. Each result came from exactly one call of
// the upstream, and no call reached it twice.
func (l *load) end() {
	l.t.Helper()
	l.cancel()
	l.running.Wait()
	if len(l.problems) > 0 {
		l.t.Errorf("%d or more calls went wrong:\n%s", len(l.problems), strings.Join(l.problems, "\n"))
	}
	got := l.cluster.calls()
	for nonce, answered := range l.made {
		if n := got[nonce]; n > 1 || answered && n != 1 {
			l.t.Errorf("the upstream got the call %s %d times; its result came: %t", nonce, n, answered)
		}
	}
	l.t.Logf("%d calls with the right result, %d ended with their replica", l.done.Load(), l.cut.Load())
}
