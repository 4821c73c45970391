package cli

import (
	"fmt"
	"strings"

	"mcpx/cmd/internal/terminal"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/plain"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
)

// tokensCmd shows what the tools of the config cost a client's context.
type tokensCmd struct {
	configFile
	adHocFlags
	Profile  string `name:"schema" default:"default" env:"MCPX_SCHEMA" help:"The profile of the config to count (${default})."`
	JSON     bool   `help:"Print the figures as JSON."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`
}

// tokenReport has the costs in o200k_base tokens.
type tokenReport struct {
	Servers    []serverTokens `json:"servers"`
	NotCounted int            `json:"not_counted"` // servers that are not ready
	Without    int            `json:"without"`     // every tool of every ready server
	With       int            `json:"with"`        // inspect and exec
	Saved      int            `json:"saved"`
}

type serverTokens struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
}

func (tokensCmd) Help() string {
	return `Examples:
  mcpx tokens mcpx.json                   a bar for each server, and what mcpx saves
  mcpx tokens mcpx.json --schema work     another profile of the file
  mcpx tokens mcpx.json --json | jq .saved`
}

func (c *tokensCmd) Run(t *invocation) error {
	file, err := c.load(t, c.Path, c.LogLevel)
	if err != nil {
		return err
	}
	return t.connect(file, c.Profile, func(lists []app.ToolLists) error {
		report := count(lists[0])
		if c.JSON {
			return t.Encode(report)
		}
		return report.print(t)
	})
}

func count(lists app.ToolLists) tokenReport {
	r := tokenReport{Servers: []serverTokens{}, With: tokens.CountBytes(lists.With)}
	for _, u := range lists.Upstreams {
		s := serverTokens{Name: u.Name, State: finalState(u), Reason: u.Reason, Tools: len(u.Tools), Tokens: u.Tokens()}
		r.Servers = append(r.Servers, s)
		if u.State != live.Ready {
			r.NotCounted++
		}
		r.Without += s.Tokens
	}
	r.Saved = r.Without - r.With
	return r
}

// problem says why the server is not counted: its state and the reason. The state is left
// out if the reason begins with it.
func (s serverTokens) problem() string {
	if strings.HasPrefix(s.Reason, s.State) {
		return s.Reason
	}
	return s.State + ": " + s.Reason
}

// barWidth is the width of the longest bar, where there is room.
const barWidth = 40

// print prints the costs, with a bar for each server.
func (r tokenReport) print(t *invocation) error {
	longest, tools := max(r.With, 1), 0
	for _, s := range r.Servers {
		longest = max(longest, s.Tokens)
		tools += s.Tools
	}
	number := func(n int) terminal.Cell { return terminal.Cell{Text: plain.Number(n), Right: true} }
	list := t.Table("server", "tools", "tokens")
	bars := map[int]int{} // tokens of the bar in a row
	for _, s := range r.Servers {
		if s.State != "ready" {
			absent := terminal.Cell{Text: terminal.None, Right: true}
			list.Add(terminal.Cell{Text: s.Name, Style: ansi.Cyan}, absent, absent, terminal.Cell{Text: s.problem(), Style: ansi.Red})
			continue
		}
		bars[len(list.Rows)] = s.Tokens
		list.Add(terminal.Cell{Text: s.Name, Style: ansi.Cyan}, number(s.Tools), number(s.Tokens), terminal.Cell{Style: ansi.Yellow})
	}
	list.Add(terminal.Cell{})
	list.Add(terminal.Cell{Text: "without mcpx", Style: ansi.Bold}, number(tools), number(r.Without))
	bars[len(list.Rows)] = r.With
	list.Add(terminal.Cell{Text: "with mcpx", Style: ansi.Bold}, number(2), number(r.With), terminal.Cell{Style: ansi.Green})
	room := min(barWidth, list.Room(3))
	for row, n := range bars {
		list.Rows[row][3].Text = bar(n, longest, room)
	}
	list.Print(t.Stdout)
	if r.NotCounted > 0 {
		fmt.Fprintf(t.Stdout, "not counted: %d of %s, not ready\n", r.NotCounted, plain.Count(len(r.Servers), "server"))
	}
	if r.Saved <= 0 {
		return t.Printf("so few tools that mcpx saves nothing yet\n")
	}
	return t.Printf("saves %s tokens, %.1f %%\n", plain.Number(r.Saved), 100*float64(r.Saved)/float64(r.Without))
}

// bar returns a bar of n out of longest, in eighths of a character.
func bar(n, longest, width int) string {
	eighths := (n*width*8 + longest - 1) / longest
	rest := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}[eighths%8]
	return strings.Repeat("█", eighths/8) + rest
}
