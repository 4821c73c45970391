//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stdio is a run of mcpx on stdio, and the client on its pipes.
type stdio struct {
	*program
	soak *soak
	in   io.WriteCloser
	out  io.ReadCloser

	writing sync.Mutex
	hearing sync.Mutex // held while the client does not read: then no further line is read

	mu      sync.Mutex
	lastID  int
	waiting map[string]*exchange
	over    map[string]bool // true: answered; false: canceled, one answer may still come
	ended   chan struct{}   // closed when stdout has ended
}

// exchange is a pending request.
type exchange struct {
	answer   answer
	answered chan struct{}
}

func startStdio(s *soak, run part) (*stdio, error) {
	cmd, err := s.command(run)
	if err != nil {
		return nil, err
	}
	p := &stdio{soak: s, waiting: map[string]*exchange{}, over: map[string]bool{}, ended: make(chan struct{})}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if p.program, err = s.begin(run, cmd); err != nil {
		return nil, err
	}
	go p.read(p.out)
	if _, err := p.request(`"initialize"`, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}`, 0); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return p, p.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// read handles the lines of stdout.
func (p *stdio) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReaderSize(out, 1<<16)
	for {
		p.hearing.Lock()
		p.hearing.Unlock() //nolint:staticcheck // it only waits
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		p.take(line)
	}
}

func (p *stdio) take(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		p.soak.ledger.violation(wrongAnswer, "stdout has %.200q", line)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.waiting[string(m.ID)]
	switch answered, known := p.over[string(m.ID)]; {
	case m.Method == "notifications/progress":
		if x := p.waiting[string(m.Params.ProgressToken)]; x != nil {
			x.answer.progress = append(x.answer.progress, m.Params.Message)
		}
	case m.Method != "":
	case x != nil:
		delete(p.waiting, string(m.ID))
		p.over[string(m.ID)] = true
		x.answer.Result, x.answer.Error = m.Result, m.Error
		close(x.answered)
	case known && !answered:
		p.over[string(m.ID)] = true // it was sent before the cancellation arrived
	default:
		p.soak.ledger.violation(doneTwice, "request %s of %s was answered twice", m.ID, p.part.name)
	}
}

func (p *stdio) write(line string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

// request sends a request and waits for its answer, or cancels it after a while.
func (p *stdio) request(method, params string, giveUp time.Duration) (answer, error) {
	p.mu.Lock()
	p.lastID++
	id := strconv.Itoa(p.lastID)
	x := &exchange{answered: make(chan struct{})}
	p.waiting[id] = x
	p.mu.Unlock()
	params = strings.ReplaceAll(params, tokenPlace, id)
	if p.write(`{"jsonrpc":"2.0","id":`+id+`,"method":`+method+`,"params":`+params+`}`) != nil {
		return answer{}, errDropped
	}
	limit, err := patience, errNone
	if giveUp > 0 {
		limit, err = giveUp, errGivenUp
	}
	select {
	case <-x.answered:
		return x.answer, nil
	case <-p.ended:
		select {
		case <-x.answered: // at the same time
			return x.answer, nil
		default:
			return answer{}, errDropped
		}
	case <-time.After(limit):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[id] == nil {
		return x.answer, nil
	}
	delete(p.waiting, id)
	p.over[id] = false
	if giveUp > 0 {
		go func() {
			_ = p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}()
	}
	return answer{}, err
}

// tokenPlace is replaced by the progress token, which is the request's ID.
const tokenPlace = "@TOKEN@"

func (p *stdio) call(c call) (answer, error) {
	a, err := p.request(`"tools/call"`, c.params(tokenPlace), c.cancel)
	if err == nil && c.part.resultTokens > 0 {
		a.rest = readOn(a, p.exec)
	}
	return a, err
}

func (p *stdio) exec(server, tool, arguments string, cancel time.Duration) (answer, error) {
	return p.request(`"tools/call"`, execParams(server, tool, arguments), cancel)
}

func execParams(server, tool, arguments string) string {
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q,"arguments":%s}}`, server, tool, arguments)
}
