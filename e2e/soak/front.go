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

// front is a running part, with its measurements.
type front struct {
	part
	program   *program
	control   caller        // for the soak itself
	newCaller func() caller // for a worker
	end       func()        // makes mcpx end
	web       *web          // nil on stdio

	filesBefore, filesAfter           int
	goroutinesBefore, goroutinesAfter int // 0: unknown
	peak                              int // KiB
}

func (s *soak) startFront(p part) (*front, error) {
	if p.isHTTP {
		w, err := startHTTP(s, p)
		if err != nil {
			return nil, err
		}
		end := func() { _ = w.cmd.Process.Signal(syscall.SIGTERM) }
		return &front{part: p, program: w.program, control: w.client(), newCaller: func() caller { return w.client() }, end: end, web: w}, nil
	}
	pipe, err := startStdio(s, p)
	if err != nil {
		return nil, err
	}
	return &front{part: p, program: pipe.program, control: pipe, newCaller: func() caller { return pipe }, end: func() { _ = pipe.in.Close() }}, nil
}

// settle waits until every upstream answers.
func (s *soak) settle(f *front) error {
	for _, server := range f.servers {
		for _, pid := range s.upstreams(f, server) {
			s.resume(pid)
		}
		begin := time.Now()
		for {
			c := plainCall(f.part, server)
			c.probe = true
			o := s.one(f.control, c)
			if o == ok {
				break
			}
			if time.Since(begin) > time.Minute {
				return fmt.Errorf("%s: %s is still %s", f.title, server, o)
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	return nil
}

func (f *front) measureBefore() {
	f.filesBefore, f.goroutinesBefore = openFiles(f.program.cmd.Process.Pid), f.goroutines()
}

// measureAfter waits until the files and goroutines of the load are gone. The remote
// upstreams close the idle connections that mcpx keeps.
func (s *soak) measureAfter(f *front) {
	if f.web != nil {
		f.web.http.CloseIdleConnections()
	}
	limit := 10 * time.Second
	if f.isolated {
		limit += f.sessionIdle // abandoned sessions keep upstream sessions
	}
	for begin := time.Now(); time.Since(begin) < limit; <-time.After(100 * time.Millisecond) {
		s.closeIdle()
		f.filesAfter, f.goroutinesAfter = openFiles(f.program.cmd.Process.Pid), f.goroutines()
		if f.filesAfter <= f.filesBefore+slack && f.goroutinesAfter <= f.goroutinesBefore+3*slack {
			break
		}
	}
	f.sample()
}

// slack allows for the connections of the client that measures.
const slack = 4

// watch samples the memory until ctx ends.
func (f *front) watch(ctx context.Context) {
	for ctx.Err() == nil {
		f.sample()
		sleep(ctx, time.Second)
	}
}

func (f *front) sample() {
	f.peak = max(f.peak, f.program.peak())
}

// peak returns the most memory that the program has had, in KiB.
func (p *program) peak() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	found := peakLine.FindSubmatch(text)
	if found == nil {
		return 0
	}
	kib, _ := strconv.Atoi(string(found[1]))
	return kib
}

var (
	peakLine      = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	goroutineLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
)

// goroutines returns the number of goroutines from /metrics.
func (f *front) goroutines() int {
	if f.web == nil {
		return 0
	}
	text, _ := requestOnce(http.MethodGet, f.web.url+"/metrics")
	found := goroutineLine.FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// requestOnce sends a request over a connection of its own: a kept one would count as
// left behind.
func requestOnce(method, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

func openFiles(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// processes returns the live processes of a part, or of all parts if the name is empty. It
// finds them by the mark in their environment.
func (s *soak) processes(name string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		mark, part, _ := strings.Cut(environ(pid, "SOAK_RUN"), " ")
		if err == nil && mark == s.mark && (name == "" || name == part) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killSurvivors ends processes that should be gone, after they were counted.
func (s *soak) killSurvivors() {
	for _, pid := range s.processes("") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// environ returns an environment variable of a live process.
func environ(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// parent returns the ID of a process's parent.
func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}
