//go:build linux

package main

import (
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestLaw has a row for each rule. Each row is a call from 10 to 13 s, after a successful
// call of the same session from 8 to 8.1 s, both in process 1.
func TestLaw(t *testing.T) {
	const (
		begin, end = 10, 13
		never      = -1
	)
	for _, test := range []struct {
		name     string
		outcome  outcome
		server   string
		got      int     // the process that received the call; 0: none
		answered float64 // never: not recorded
		faults   []fault
		want     promise // "": it is explained
	}{
		{name: "a timeout without any fault", outcome: timedOut, got: 1, answered: never, want: unexplained},
		{name: "a timeout of a call that did not arrive", outcome: timedOut, answered: never, want: unexplained},
		{name: "a timeout while the process is paused", outcome: timedOut, got: 1, answered: never, faults: []fault{during(paused, 1, 9, 14)}},
		{name: "a timeout while another process is paused", outcome: timedOut, got: 1, answered: never, faults: []fault{during(paused, 2, 9, 14)}, want: unexplained},
		{name: "a timeout after a pause", outcome: timedOut, got: 1, answered: never, faults: []fault{during(paused, 1, 5, 9.5)}, want: unexplained},
		{name: "a timeout of a killed process", outcome: timedOut, got: 1, answered: never, faults: []fault{during(killed, 1, 11, 11)}, want: unexplained},
		{name: "a timeout during a fault that harms no call", outcome: timedOut, got: 1, answered: never, faults: []fault{during("log flood", 1, 10, 14)}, want: unexplained},
		{name: "a timeout while answers are held", outcome: timedOut, server: remoteServer, got: 1, answered: 13.4, faults: []fault{during(mcptest.HoldAnswers, 1, 9.5, 13.4)}},

		{name: "an answer and a timeout", outcome: timedOut, got: 1, answered: 10.1, want: lostAnswer},
		{name: "an answer and a timeout, the process paused later", outcome: timedOut, got: 1, answered: 10.1, faults: []fault{during(paused, 1, 10.2, 14)}, want: lostAnswer},
		{name: "an answer just before the timeout, after a pause", outcome: timedOut, got: 1, answered: 12.5, faults: []fault{during(paused, 1, 9, 12.4)}},
		{name: "an answer just before the timeout, without a pause", outcome: timedOut, got: 1, answered: 12.5, want: unexplained},
		{name: "an answer and a timeout over HTTP", outcome: timedOut, server: legacyServer, got: 1, answered: 10.1, faults: []fault{during(mcptest.CutConnections, 1, 10.2, 10.2)}, want: lostAnswer},
		{name: "an answer and a timeout, the machine stalled for a part of the time", outcome: timedOut, got: 1, answered: 10.1, faults: []fault{during(stalled, 0, 10.2, 11)}, want: lostAnswer},
		{name: "an answer and a timeout, the machine stalled in between", outcome: timedOut, got: 1, answered: 10.1, faults: []fault{during(stalled, 0, 10.2, 12.9)}},
		{name: "a timeout, the machine stalled for a part of the time", outcome: timedOut, got: 1, answered: never, faults: []fault{during(stalled, 0, 10.1, 11.9)}, want: unexplained},
		{name: "a timeout, the machine stalled for nearly all of the time", outcome: timedOut, got: 1, answered: never, faults: []fault{during(stalled, 0, 9, 12.5)}},
		{name: "stopped, the machine stalled", outcome: stopped, got: 1, answered: never, faults: []fault{during(stalled, 0, 9, 12.9)}, want: unexplained},

		{name: "stopped without any fault", outcome: stopped, got: 1, answered: never, want: unexplained},
		{name: "stopped by SIGKILL", outcome: stopped, got: 1, answered: never, faults: []fault{during(killed, 1, 11, 11)}},
		{name: "stopped, another process killed", outcome: stopped, got: 1, answered: never, faults: []fault{during(killed, 2, 11, 11)}, want: unexplained},
		{name: "stopped before the fault", outcome: stopped, got: 1, answered: never, faults: []fault{during(killed, 1, 13.1, 13.1)}, want: unexplained},
		{name: "stopped by a pause", outcome: stopped, got: 1, answered: never, faults: []fault{during(paused, 1, 9, 14)}, want: unexplained},
		{name: "stopped by a fault that showed with the next message", outcome: stopped, got: 1, answered: never, faults: []fault{during("close stdin", 1, 5, 5)}},
		{name: "stopped before it arrived", outcome: stopped, answered: never, faults: []fault{during(killed, 2, 9, 9)}},
		{name: "stopped before it arrived, by the process that answered last", outcome: stopped, answered: never, faults: []fault{during("close stdin", 1, 5, 5)}},
		{name: "stopped before it arrived, the fault long over", outcome: stopped, answered: never, faults: []fault{during(killed, 2, 5, 5)}, want: unexplained},
		{name: "stopped by a cut connection", outcome: stopped, server: remoteServer, got: 1, answered: never, faults: []fault{during(mcptest.CutConnections, 1, 11, 11)}},
		{name: "stopped, the connections cut long before", outcome: stopped, server: remoteServer, got: 1, answered: never, faults: []fault{during(mcptest.CutConnections, 1, 5, 5)}, want: unexplained},
		{name: "stopped, the session forgotten after a restart", outcome: stopped, server: remoteServer, answered: never, faults: []fault{during(remoteKilled, 7, 8.2, 8.7)}},

		{name: "an answer, stopped without any fault", outcome: stopped, got: 1, answered: 10.1, want: lostAnswer},
		{name: "an answer, stopped by a kill just after", outcome: stopped, got: 1, answered: 10.1, faults: []fault{during(killed, 1, 10.2, 10.2)}},
		{name: "an answer, stopped by a kill long after", outcome: stopped, got: 1, answered: 10.1, faults: []fault{during(killed, 1, 12.5, 12.5)}, want: lostAnswer},
		{name: "an answer, stopped by a cut just after", outcome: stopped, server: remoteServer, got: 1, answered: 10.1, faults: []fault{during(mcptest.CutConnections, 1, 10.2, 10.2)}},
		{name: "an answer, stopped by a cut long before", outcome: stopped, server: remoteServer, got: 1, answered: 10.1, faults: []fault{during(mcptest.CutConnections, 1, 5, 5)}, want: lostAnswer},

		{name: "an answer, stopped by garbage", outcome: stopped, got: 1, answered: 10.1, faults: []fault{during("garbage", 1, 10, 10)}, want: lostAnswer},
		{name: "an answer, broken by garbage of another process", outcome: broken, got: 1, answered: 10.1, faults: []fault{during("garbage", 2, 10, 10)}, want: lostAnswer},

		{name: "broken without any fault", outcome: broken, got: 1, answered: never, want: unexplained},
		{name: "broken by garbage", outcome: broken, got: 1, answered: never, faults: []fault{during("garbage", 1, 11, 11)}},
		{name: "stopped by garbage", outcome: stopped, got: 1, answered: never, faults: []fault{during("garbage", 1, 11, 11)}, want: unexplained},

		{name: "unavailable without any fault", outcome: unavailable, answered: never, want: unexplained},
		{name: "unavailable after a kill", outcome: unavailable, answered: never, faults: []fault{during(killed, 2, 9, 9)}},
		{name: "unavailable, but recovered from the kill", outcome: unavailable, answered: never, faults: []fault{during(killed, 2, 5, 5)}, want: unexplained},
		{name: "unavailable, but it arrived", outcome: unavailable, got: 1, answered: never, faults: []fault{during(killed, 1, 9, 9)}, want: saidUnsent},
		{name: "any failure while mcpx ends", outcome: stopped, got: 1, answered: 10.1, faults: []fault{{kind: mcpxEnds, part: "test", from: second(12)}}},
		{name: "a failure before mcpx ends", outcome: stopped, got: 1, answered: never, faults: []fault{{kind: mcpxEnds, part: "test", from: second(13.1)}}, want: unexplained},

		{name: "right", outcome: ok, got: 1, answered: 10.1},
		{name: "right, but nobody was asked", outcome: ok, answered: never, want: wrongAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := part{name: "test"}
			if test.server == "" {
				test.server = victims[0]
			}
			before, c := plainCall(p, test.server), plainCall(p, test.server)
			name := p.upstream(test.server)
			events := []mcptest.Event{event(mcptest.Got, before.Nonce, name, 1, 8), event(mcptest.Answered, before.Nonce, name, 1, 8.1)}
			if test.got > 0 {
				events = append(events, event(mcptest.Got, c.Nonce, name, test.got, begin))
			}
			if test.answered != never {
				events = append(events, event(mcptest.Answered, c.Nonce, name, test.got, test.answered))
			}
			for i := range test.faults {
				if test.faults[i].part == "" && test.faults[i].kind != stalled {
					test.faults[i].upstream = name
				}
			}
			l := newLedger()
			l.note(entry{call: before, outcome: ok, begin: second(8), end: second(8.1)}, answer{}, nil)
			l.note(entry{call: c, outcome: test.outcome, begin: second(begin), end: second(end)}, answer{}, nil)
			l.audit(newEvidence(events, test.faults))
			switch {
			case test.want == "" && len(l.violations) > 0:
				t.Errorf("got %v, want none", l.violations)
			case test.want != "" && (len(l.violations) != 1 || l.violations[0].promise != test.want):
				t.Errorf("got %v, want one %q", l.violations, test.want)
			}
		})
	}
}

// TestLawOfRepeatedCalls: a call that arrives twice is reported, whatever its outcome, and
// so is a call that no client made.
func TestLawOfRepeatedCalls(t *testing.T) {
	c := plainCall(part{name: "test"}, victims[0])
	l := newLedger()
	l.note(entry{call: c, outcome: canceled, begin: second(1), end: second(2)}, answer{}, nil)
	l.audit(newEvidence([]mcptest.Event{
		event(mcptest.Got, c.Nonce, "test/anna", 1, 1), event(mcptest.Got, c.Nonce, "test/anna", 2, 1.5), event(mcptest.Got, "stranger", "test/anna", 2, 1.5),
	}, nil))
	if len(l.violations) != 2 || l.violations[0].promise != doneTwice || l.violations[1].promise != other {
		t.Errorf("got %v", l.violations)
	}
}

// TestOwnSessions: with a session per client, the recovery of another client's session does
// not affect the explanation of a failure.
func TestOwnSessions(t *testing.T) {
	p := part{name: "own", isolated: true}
	mine, theirs, failed := plainCall(p, victims[0]), plainCall(p, victims[0]), plainCall(p, victims[0])
	kill := fault{kind: killed, upstream: p.upstream(victims[0]), pid: 9, from: second(5)}
	for name, test := range map[string]struct {
		id   string
		want int
	}{"of the session that was hit": {"mine", 0}, "of the session that recovered": {"theirs", 1}} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.note(entry{call: mine, outcome: ok, session: session{"mine", second(1)}, begin: second(2), end: second(3)}, answer{}, nil)
			l.note(entry{call: theirs, outcome: ok, session: session{"theirs", second(1)}, begin: second(7), end: second(8)}, answer{}, nil)
			l.note(entry{call: failed, outcome: stopped, session: session{test.id, second(1)}, begin: second(9), end: second(9.1)}, answer{}, nil)
			l.audit(newEvidence([]mcptest.Event{event(mcptest.Got, mine.Nonce, "own/anna", 9, 2), event(mcptest.Got, theirs.Nonce, "own/anna", 10, 7)}, []fault{kill}))
			if len(l.violations) != test.want {
				t.Errorf("got %v, want %d", l.violations, test.want)
			}
		})
	}
}

func second(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

func during(kind string, pid int, from, to float64) fault {
	return fault{kind: kind, pid: pid, from: second(from), to: second(to)}
}

func event(kind, subject, server string, pid int, at float64) mcptest.Event {
	return mcptest.Event{Time: second(at).UnixNano(), PID: pid, Server: server, Kind: kind, Subject: subject}
}
