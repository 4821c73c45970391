package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

//go:embed testdata/results/*.json
var recorded embed.FS

// selections are what an agent asks of recorded results.
var selections = []struct{ result, query string }{
	{"issues", "number, title, state, user.login, comments"},
	{"issues", "number, title where title ~ 1 limit 3"},
	{"issues", "count where state = open"},
	{"search", "number, title, state, user.login, html_url"},
	{"labels", "name, color"},
	{"repository", "full_name, default_branch, open_issues_count, license.spdx_id"},
	{"long", "number, title, state, user.login, comments limit 20"},
}

// longCopies makes "long" a result that is cut.
const longCopies = 12

// resultTexts returns the recorded results by name.
func resultTexts() (map[string]string, error) {
	texts := map[string]string{}
	for _, name := range []string{"issues", "search", "labels", "repository"} {
		text, err := recorded.ReadFile(path.Join("testdata/results", name+".json"))
		if err != nil {
			return nil, err
		}
		texts[name] = strings.TrimSpace(string(text))
	}
	rows := strings.Trim(texts["issues"], "[]")
	texts["long"] = "[" + strings.Repeat(rows+",", longCopies-1) + rows + "]"
	return texts, nil
}

// serveResults is a server with a tool for each recorded result.
func serveResults() error {
	texts, err := resultTexts()
	if err != nil {
		return err
	}
	var tools []map[string]any
	for name := range texts {
		tools = append(tools, map[string]any{"name": name, "inputSchema": map[string]string{"type": "object"}})
	}
	list, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		return err
	}
	return answerLines(list, func(tool string) []byte { return executor.TextResult(texts[tool]) })
}

// measureResults runs a measurement of the recorded results.
func measureResults(ctx context.Context, measure func(context.Context, *executor.Executor) error) error {
	return run(ctx, map[string][]string{"recorded": {"results"}}, func(ctx context.Context, a *app.App) error {
		return measure(ctx, a.Profiles()[0].Executor)
	})
}

// printResults prints what results cost whole and selected.
func printResults(ctx context.Context, e *executor.Executor) error {
	texts, err := resultTexts()
	if err != nil {
		return err
	}
	fmt.Println("\n| result | select | tokens | shown without select | with select |")
	fmt.Println("|---|---|---:|---:|---:|")
	for _, s := range selections {
		shown, err := shownTokens(ctx, e, s.result, "")
		if err != nil {
			return err
		}
		selected, err := shownTokens(ctx, e, s.result, s.query)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | `%s` | %d | %d | %d |\n", s.result, s.query, tokens.Count(texts[s.result]), shown, selected)
	}
	return nil
}

// shownTokens returns the tokens of a result as an agent gets it.
func shownTokens(ctx context.Context, e *executor.Executor, tool, query string) (sum int, err error) {
	call := executor.Call{Server: "recorded", Tool: tool, Arguments: []byte("{}")}
	if query != "" {
		call.Select = rawjson.AppendString(nil, query)
	}
	texts, err := ask(ctx, e, call)
	for _, text := range texts {
		sum += tokens.Count(text)
	}
	return sum, err
}
