package server

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/plain"
)

// instructionsLimit is how many characters the instructions may have, however many
// servers there are.
const instructionsLimit = 1024

// instructions tells clients what mcpx is for. Clients that defer tools show the
// model nothing else at first, besides the names of the tools.
func (s *Server) instructions() string {
	switch {
	case s.lazy:
		return s.lazyInstructions
	case s.bare:
		for _, only := range s.registry.Catalog().Upstreams {
			return only.Instructions
		}
		return ""
	}
	return s.flatInstructions()
}

// lazyInstructions names every server and says how the two tools are used. If it
// gets too long, names are left out at the end.
func lazyInstructions(p *config.Profile) string {
	const use = "inspect(server_name) lists a server's tools, exec calls one. " +
		`exec("` + executor.Builtin + `", "search", {"query": …}) searches the tools of all servers.`
	var names []string
	for _, u := range p.Upstreams {
		names = append(names, u.Name)
	}
	text := func(names []string, more string) string {
		return "MCP servers behind two tools: " + strings.Join(names, ", ") + more + ". " + use
	}
	if len(names) == 0 {
		return use
	}
	whole := text(names, "")
	for n := len(names); utf8.RuneCountInString(whole) > instructionsLimit; {
		n--
		whole = text(names[:n], fmt.Sprintf(` and %d more, which inspect("%s") lists`, len(names)-n, executor.Builtin))
	}
	return whole
}

// flatInstructions names each server with the start of its own instructions, as far
// as they are known. All of them get the same room.
func (s *Server) flatInstructions() string {
	upstreams := s.registry.Catalog().Upstreams
	if len(upstreams) == 0 {
		return ""
	}
	room := instructionsLimit / len(upstreams)
	var lines []string
	for _, u := range upstreams {
		line := u.Name
		if own := plain.Line(u.Instructions); own != "" {
			line += ": " + own
		}
		lines = append(lines, cutRunes(line, room-1)) // 1: the line break
	}
	return cutRunes(strings.Join(lines, "\n"), instructionsLimit)
}

// cutRunes is the start of a text, at most that many characters.
func cutRunes(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:max(most-1, 0)])) + "…"
}
