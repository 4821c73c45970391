package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"mcpx/internal/app"
	"mcpx/internal/tokens/exact"
)

// tokensCmd shows what the tools of the config cost a client's context.
type tokensCmd struct {
	configFile
	Schema   string `default:"default" env:"MCPX_SCHEMA" help:"The schema of the config to count (${default})."`
	JSON     bool   `help:"Print the figures as JSON."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`
}

// tokenReport are the figures, in tokens of o200k_base.
type tokenReport struct {
	Servers []serverTokens `json:"servers"`
	Without int            `json:"without"` // every tool of every server
	With    int            `json:"with"`    // inspect and exec
	Saved   int            `json:"saved"`
}

type serverTokens struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
}

// Run implements the command.
func (c *tokensCmd) Run(t *terminal) error {
	file, err := load(c.Path)
	if err != nil {
		return err
	}
	file.Logging.Level = c.LogLevel
	a, err := app.New(file, c.Schema, t.stderr)
	if err != nil {
		return usageError{err}
	}
	return a.With(t.ctx, func(ctx context.Context) error {
		report := count(a.ToolLists(ctx))
		if !c.JSON {
			return report.print(t.stdout)
		}
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(t.stdout, "%s\n", text)
		return err
	})
}

func count(lists app.ToolLists) tokenReport {
	r := tokenReport{Servers: []serverTokens{}, With: exact.Count(string(lists.With))}
	for i, u := range lists.Upstreams {
		s := serverTokens{Name: u.Name, State: string(u.State), Reason: u.Reason, Tools: len(u.Tools), Tokens: exact.Count(string(lists.Without[i]))}
		r.Servers = append(r.Servers, s)
		r.Without += s.Tokens
	}
	r.Saved = r.Without - r.With
	return r
}

// barWidth is the width of the longest bar.
const barWidth = 40

// print shows the figures with a bar for each server.
func (r tokenReport) print(w io.Writer) error {
	longest, tools := max(r.With, 1), 0
	for _, s := range r.Servers {
		longest = max(longest, s.Tokens)
		tools += s.Tools
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "server\ttools\ttokens\t")
	for _, s := range r.Servers {
		if s.State != "ready" {
			fmt.Fprintf(table, "%s\t–\t–\t%s: %s\n", s.Name, s.State, s.Reason)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", s.Name, s.Tools, thousands(s.Tokens), bar(s.Tokens, longest))
	}
	fmt.Fprintln(table, "\t\t\t")
	fmt.Fprintf(table, "without mcpx\t%d\t%s\t\n", tools, thousands(r.Without))
	fmt.Fprintf(table, "with mcpx\t2\t%s\t%s\n", thousands(r.With), bar(r.With, longest))
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Saved <= 0 {
		_, err := fmt.Fprintln(w, "so few tools that mcpx saves nothing yet")
		return err
	}
	_, err := fmt.Fprintf(w, "saves %s tokens, %.1f %%\n", thousands(r.Saved), 100*float64(r.Saved)/float64(r.Without))
	return err
}

// bar is a part of the longest bar, in eighths of a character.
func bar(n, longest int) string {
	eighths := (n*barWidth*8 + longest - 1) / longest
	rest := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}[eighths%8]
	return strings.Repeat("█", eighths/8) + rest
}

// thousands is a number with commas.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
