package cli

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"mcpx/internal/rawjson"
)

// progress is what a tool last said of how far it is.
type progress struct {
	mu   sync.Mutex
	last string
}

// note takes the params of a progress notification.
func (p *progress) note(params []byte) {
	message, _ := rawjson.String(rawjson.Get(params, "message"))
	done, err := strconv.ParseFloat(string(rawjson.Get(params, "progress")), 64)
	total, _ := strconv.ParseFloat(string(rawjson.Get(params, "total")), 64)
	text := message
	switch {
	case err != nil:
	case total > 0:
		text = strings.TrimSpace(fmt.Sprintf("%s %s/%s (%.0f %%)", message, figure(done), figure(total), 100*done/total))
	case message == "":
		text = figure(done)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = text
}

// text is the line to show while the tool runs.
func (p *progress) text(tool string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" {
		return "calling " + tool + "…"
	}
	return tool + ": " + p.last
}

// figure is a number as a person writes it.
func figure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
