//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watched is a run of mcpx under load, and what it costs.
type watched struct {
	name    string
	program *program
	caller  caller
	url     string // of mcpx-sse

	filesBefore, filesAfter           int
	goroutinesBefore, goroutinesAfter int // 0: not told
	peak                              int // KiB
}

// settle waits until every upstream answers.
func (s *soak) settle(f *watched) error {
	for _, server := range allServers {
		s.signal(f, server, syscall.SIGCONT)
		begin := time.Now()
		for {
			c := call{nonce: fmt.Sprintf("nonce-%d-", lastNonce.Add(1)), server: server, how: "text"}
			a, err := f.caller.call(c)
			o := judge(c, a, err)
			s.ledger.note(c, o, a, 0)
			if o == ok {
				break
			}
			if time.Since(begin) > time.Minute {
				return fmt.Errorf("%s: %s %s %w", server, o, a.Result, err)
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	return nil
}

func (f *watched) measureBefore() {
	f.filesBefore, f.goroutinesBefore = openFiles(f.program.cmd.Process.Pid), f.goroutines()
}

// measureAfter waits until what the load has opened is closed again: idle
// connections need a while.
func (f *watched) measureAfter() {
	if w, ok := f.caller.(*webClient); ok {
		w.web.http.CloseIdleConnections()
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Second; <-time.After(100 * time.Millisecond) {
		f.filesAfter, f.goroutinesAfter = openFiles(f.program.cmd.Process.Pid), f.goroutines()
		if f.filesAfter <= f.filesBefore+slack && f.goroutinesAfter <= f.goroutinesBefore+3*slack {
			break
		}
	}
	f.sample()
}

// slack is for connections of the one client that looks.
const slack = 4

// watch samples the memory until ctx ends.
func (f *watched) watch(ctx context.Context) {
	for ctx.Err() == nil {
		f.sample()
		sleep(ctx, time.Second)
	}
}

func (f *watched) sample() {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.program.cmd.Process.Pid))
	if found := peakLine.FindSubmatch(text); found != nil {
		kib, _ := strconv.Atoi(string(found[1]))
		f.peak = max(f.peak, kib)
	}
}

var (
	peakLine      = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	goroutineLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
)

// goroutines is what mcpx-sse says of itself.
func (f *watched) goroutines() int {
	if f.url == "" {
		return 0
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, f.url+"/metrics", nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	found := goroutineLine.FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

func openFiles(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// processes are the live processes of a run, by the mark in their environment.
func (s *soak) processes(name string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && environ(pid, "SOAK_RUN") == s.mark+" "+name {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killSurvivors ends what should not be there any more, after it was counted.
func (s *soak) killSurvivors() {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && strings.HasPrefix(environ(pid, "SOAK_RUN"), s.mark+" ") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// environ is a variable of a process that has not ended.
func environ(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// parent is the id of a process's parent.
func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

// stop ends both runs.
func (s *soak) stop(fronts []*watched, pipe *stdio) {
	for _, f := range fronts {
		ask := func() { _ = f.program.cmd.Process.Signal(syscall.SIGTERM) }
		if f.program == pipe.program {
			ask = func() { _ = pipe.in.Close() }
		}
		s.stopProgram(f.program, ask, 0)
	}
}
