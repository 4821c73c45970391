//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"time"

	"mcpx/internal/mcptest"
)

// The law: a call is answered once, with the right bytes, or fails in a way that a
// recorded fault explains. judge checks each call by itself when it ends; this file
// compares all calls with the records of the upstreams and the faults.

// Tolerances for events at about the same time.
const (
	// margin is the time that an answer may take from the upstream to mcpx, and that
	// mcpx may take to notice a fault: a call may time out if its answer was written
	// less than this before.
	margin = time.Second
	// hitMargin is the same for a fault after the answer: the answer may be lost if it
	// was written less than this before the fault.
	hitMargin = 500 * time.Millisecond
)

// effect is the effect of a fault on calls.
type effect struct {
	ends     bool // the process or mcpx's session to it ends; at once, or with the next message
	cuts     bool // connections break, the process goes on
	silences bool // nothing is answered while it lasts
	garbles  bool // output that is not JSON-RPC
}

// effects are the faults that may make calls fail. All others must not.
var effects = map[string]effect{
	killed:                 {ends: true},
	remoteKilled:           {ends: true},
	"exit":                 {ends: true},
	"close stdin":          {ends: true},
	"close stdout":         {ends: true},
	"endless line":         {ends: true},
	mcptest.CutConnections: {cuts: true},
	mcptest.CloseIdle:      {cuts: true}, // a call may just have been sent
	mcptest.HoldAnswers:    {silences: true},
	paused:                 {silences: true},
	"garbage":              {garbles: true},
}

// evidence holds the records of the upstreams and the faults.
type evidence struct {
	got      map[string][]mcptest.Event // by nonce
	answered map[string]mcptest.Event   // by nonce
	faults   map[string][]fault         // by upstream
	ended    map[string]time.Time       // when the stop of a part's mcpx began
	stalls   []fault
}

func readRecord(file string) (events []mcptest.Event, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e mcptest.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

func newEvidence(events []mcptest.Event, faults []fault) *evidence {
	v := &evidence{got: map[string][]mcptest.Event{}, answered: map[string]mcptest.Event{}, faults: map[string][]fault{}, ended: map[string]time.Time{}}
	for _, e := range events {
		switch e.Kind {
		case mcptest.Got:
			v.got[e.Subject] = append(v.got[e.Subject], e)
		case mcptest.Answered:
			v.answered[e.Subject] = e
		case mcptest.Fault:
			f := fault{kind: e.Subject, upstream: e.Server, pid: e.PID, from: at(e.Time), to: at(e.Time)}
			if e.Until > 0 {
				f.to = at(e.Until)
			}
			faults = append(faults, f)
		}
	}
	for _, f := range faults {
		switch {
		case f.kind == mcpxEnds:
			v.ended[f.part] = f.from
		case f.kind == stalled:
			v.stalls = append(v.stalls, f)
		case f.kind == killed:
			f.to = f.from
		case f.to.IsZero():
			f.to = time.Now()
		}
		if f.upstream != "" {
			v.faults[f.upstream] = append(v.faults[f.upstream], f)
		}
	}
	return v
}

func at(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds) }

// audit applies the law to every call.
func (l *ledger) audit(v *evidence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = len(v.answered)
	known := map[string]bool{}
	lasts := newLasts(l.entries)
	for _, e := range l.entries {
		known[e.call.Nonce] = true
		reached := len(v.got[e.call.Nonce])
		switch {
		case reached > 1:
			l.broke(doneTwice, e, "%s reached an upstream %d times", e, reached)
		case e.outcome == ok && reached == 0:
			l.broke(wrongAnswer, e, "%s was answered, but never reached an upstream", e)
		case e.outcome == unavailable && reached > 0:
			l.broke(saidUnsent, e, "%s reached an upstream", e)
		}
		if e.outcome == unavailable || e.outcome == stopped || e.outcome == timedOut || e.outcome == broken {
			l.explain(e, v, lasts)
		}
	}
	for nonce := range v.got {
		if !known[nonce] {
			l.violations = append(l.violations, violation{other, "", nonce + " reached an upstream, but was never sent"})
		}
	}
}

// explain finds the fault that explains a failure.
func (l *ledger) explain(e entry, v *evidence, lasts lasts) {
	switch {
	case v.isLost(e):
		a := v.answered[e.call.Nonce]
		l.broke(lostAnswer, e, "%s; process %d wrote its answer %s before", e, a.PID, e.end.Sub(at(a.Time)).Round(time.Millisecond))
	case !v.explains(e, lasts.before(e)):
		l.broke(unexplained, e, "%s", e)
	default:
		l.explained++
	}
}

// isLost reports whether mcpx has dropped the answer of a call: it was written well before
// the call ended, and before any fault of the upstream.
func (v *evidence) isLost(e entry) bool {
	a, isAnswered := v.answered[e.call.Nonce]
	if !isAnswered || v.isEnding(e) {
		return false
	}
	written := at(a.Time)
	if e.outcome == timedOut { // only a late answer explains that: the death of a process is another failure
		return v.awake(written, e.end) > margin
	}
	for _, f := range v.faults[a.Server] {
		does, isRecent := effects[f.kind], f.to.Add(margin).After(e.begin)
		mayLose := does.ends || does.cuts && isRecent || does.garbles && isRecent && e.outcome == broken
		if mayLose && f.pid == a.PID && v.awake(written, f.from) < hitMargin && f.from.Before(e.end) {
			return false
		}
	}
	return true
}

// awake returns how long the machine ran between two times.
func (v *evidence) awake(from, to time.Time) time.Duration {
	ran := to.Sub(from)
	for _, f := range v.stalls {
		begin, end := max(f.from.UnixNano(), from.UnixNano()), min(f.to.UnixNano(), to.UnixNano())
		ran -= time.Duration(max(0, end-begin))
	}
	return ran
}

// isEnding reports whether the stop of mcpx began before the end of the call.
func (v *evidence) isEnding(e entry) bool {
	ended, isEnded := v.ended[e.call.part.name]
	return isEnded && ended.Before(e.end)
}

// last returns the last successful call before another one, in the same upstream session
// if that is known.
type last struct {
	begin time.Time
	nonce string
}

// explains reports whether a fault explains the failure of a call. A fault before the last
// successful call does not, unless a process that was about to end answered that call.
func (v *evidence) explains(e entry, before last) bool {
	if v.isEnding(e) || e.outcome == timedOut && v.awake(e.begin, e.end) < margin {
		return true
	}
	pid, lastPID := v.pid(e.call.Nonce), v.pid(before.nonce)
	since := before.begin.Add(-margin)
	for _, f := range v.faults[e.call.part.upstream(e.call.server)] {
		if f.from.After(e.end) {
			continue
		}
		does := effects[f.kind]
		isDuring := f.to.After(e.begin) && (pid == 0 || pid == f.pid)
		isRecent := f.to.Add(margin).After(e.begin) && (pid == 0 || pid == f.pid)
		isSince := f.to.After(since)
		switch e.outcome {
		case timedOut:
			if does.silences && isDuring {
				return true
			}
		case unavailable: // it was never sent, so any process may be the reason
			if (does.ends || does.cuts || does.silences) && (isSince || f.pid == lastPID) {
				return true
			}
		case stopped, broken:
			isEnd := does.ends && (f.pid == pid && pid != 0 || pid == 0 && (isSince || f.pid == lastPID))
			if isEnd || does.cuts && (isRecent || pid == 0 && isSince) || does.garbles && e.outcome == broken && isRecent {
				return true
			}
		}
	}
	return false
}

// pid returns the process that received a call, or 0.
func (v *evidence) pid(nonce string) int {
	if got := v.got[nonce]; len(got) > 0 {
		return got[0].PID
	}
	return 0
}

// lasts finds the successful calls before another one.
type lasts map[string][]finished

// finished is a successful call, with the latest begin among all calls that ended before
// its end.
type finished struct {
	end  time.Time
	last last
}

func newLasts(entries []entry) lasts {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return a.end.Compare(b.end) })
	all := lasts{}
	for _, e := range sorted {
		if e.outcome != ok {
			continue
		}
		for _, key := range []string{e.key(), e.sessionKey()} {
			l := last{e.begin, e.call.Nonce}
			if n := len(all[key]); n > 0 && all[key][n-1].last.begin.After(l.begin) {
				l = all[key][n-1].last
			}
			all[key] = append(all[key], finished{e.end, l})
		}
	}
	return all
}

// key identifies a shared upstream session, sessionKey that of one client.
func (e entry) key() string        { return e.call.part.name + " " + e.call.server }
func (e entry) sessionKey() string { return e.key() + " " + e.session.id }

// before returns the last successful call before e began, in the client's own session or,
// for its first call, in any.
func (l lasts) before(e entry) last {
	if found, ok := l.find(e.sessionKey(), e.begin); ok {
		return found
	}
	found, _ := l.find(e.key(), e.begin)
	if opened := e.session.opened; !opened.IsZero() && opened.Before(found.begin) {
		found.begin = opened
	}
	return found
}

func (l lasts) find(key string, begin time.Time) (last, bool) {
	all := l[key]
	n, _ := slices.BinarySearchFunc(all, begin, func(f finished, t time.Time) int { return f.end.Compare(t) })
	if n == 0 {
		return last{}, false
	}
	return all[n-1].last, true
}
