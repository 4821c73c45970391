// Command economy measures what an agent spends until it can call a tool, over
// every tool of a folder of tool lists: NAME.json is the result of tools/list of
// one server.
//
//	go run ./e2e/economy FOLDER
//
// Each list is served by a child of its own, and mcpx is asked as by an agent.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/child"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func main() {
	child.WatchIfAsked()
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "replay":
		err = replay(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "results":
		err = serveResults()
	case len(os.Args) == 2:
		err = measureAll(os.Args[1])
	default:
		err = fmt.Errorf("usage: economy FOLDER")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "economy:", err)
		os.Exit(1)
	}
}

// measureAll prints all figures. The lists are not left in the user's cache.
func measureAll(folder string) error {
	cache, err := os.MkdirTemp("", "economy-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	if err := os.Setenv("XDG_CACHE_HOME", cache); err != nil {
		return err
	}
	if err := measure(folder); err != nil {
		return err
	}
	return measureResults(context.Background(), printResults)
}

// replay is a server whose tools are those of a file.
func replay(file string) error {
	list, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return answerLines(rawjson.Compact(list), func(string) []byte { return nil })
}

// answerLines answers requests on stdin: with a list of tools, and with the result of a
// tool.
func answerLines(list []byte, call func(tool string) []byte) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Bytes()
		id := rawjson.Get(line, "id")
		method, _ := rawjson.String(rawjson.Get(line, "method"))
		switch {
		case id == nil:
		case method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"replay","version":"1"}}}`+"\n", id)
		case method == "tools/call":
			tool, _ := rawjson.String(rawjson.Get(rawjson.Get(line, "params"), "name"))
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, call(tool))
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, list)
		}
	}
	return lines.Err()
}

// measure serves the lists of a folder and prints what they cost.
func measure(folder string) error {
	c, err := serve(folder)
	if err != nil {
		return err
	}
	a, err := app.New(c, "default", os.Stderr)
	if err != nil {
		return err
	}
	return a.Run(context.Background(), func(ctx context.Context) error {
		lists := a.ToolLists(ctx)[0]
		r := report{with: tokens.CountBytes(lists.With)}
		for i, u := range lists.Upstreams {
			if u.State != live.Ready {
				return fmt.Errorf("%s is %s: %s", u.Name, u.State, u.Reason)
			}
			if err := r.add(ctx, a.Profiles()[0].Executor, u, string(lists.Without[i])); err != nil {
				return err
			}
		}
		r.print()
		return measureSearch(ctx, a.Profiles()[0].Executor)
	})
}

// serve is a config with a server for each list of the folder.
func serve(folder string) (*config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no tool lists in %s", folder)
	}
	var servers []map[string]any
	for _, file := range files {
		// A name has no two underscores in a row.
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".json"), "__", "_")
		servers = append(servers, map[string]any{"name": name, "command": self, "args": []string{"replay", file}})
	}
	text, err := json.Marshal(map[string]any{"mcp_servers": servers, "logging": map[string]string{"level": "error"}})
	if err != nil {
		return nil, err
	}
	return config.Parse("economy.json", text, os.LookupEnv)
}

// report are the figures over all tools.
type report struct {
	with, without       int // tokens of the tool lists
	tools, servers      int // how many
	schemas, signatures int // tokens
	lines               lineShares
	listings            int   // tokens of inspect(server)
	byServer            []int // tokens until a call, by tool: inspect(server), and the tool if its line has no types
	byTool              []int // inspect(server, tool)
	bySearch            []int // search for the words of the tool's name
	found               int   // how often the search has the tool among its first five
}

// add measures the tools of one server.
func (r *report) add(ctx context.Context, e *executor.Executor, u *live.Upstream, list string) error {
	r.servers++
	r.without += tokens.Count(list)
	listing, err := e.Inspect(ctx, nil, u.Name, "")
	if err != nil {
		return err
	}
	cost := tokens.Count(listing)
	r.listings += cost
	for _, t := range u.Tools {
		r.tools++
		r.schemas += tokens.CountBytes(rawjson.Compact(t.ShownSchema()))
		r.signatures += tokens.Count(t.Signature())
		one, err := e.Inspect(ctx, nil, u.Name, t.Name)
		if err != nil {
			return err
		}
		r.byTool = append(r.byTool, r.with+tokens.Count(one))
		spent := r.with + cost
		if !r.lines.add(listing, t) {
			spent += tokens.Count(one)
		}
		r.byServer = append(r.byServer, spent)
		if err := r.search(ctx, e, u, t, one); err != nil {
			return err
		}
	}
	return nil
}

// search measures the way over exec("mcpx", "search").
func (r *report) search(ctx context.Context, e *executor.Executor, u *live.Upstream, t *lists.Tool, one string) error {
	query, err := json.Marshal(map[string]any{"query": strings.NewReplacer("_", " ", "-", " ").Replace(t.Name) + " " + u.Name, "limit": 5})
	if err != nil {
		return err
	}
	result, err := e.Do(ctx, executor.Call{Server: executor.Builtin, Tool: "search", Arguments: query})
	if err != nil {
		return err
	}
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		answer, _ := rawjson.String(rawjson.Get(item, "text"))
		spent := r.with + tokens.Count(answer)
		if strings.Contains(answer, u.Name+": "+t.Name) {
			r.found++
		}
		if !strings.Contains(answer, u.Name+": "+t.Name+"(") {
			spent += tokens.Count(one) // it has to look there after all
		}
		r.bySearch = append(r.bySearch, spent)
	}
	return nil
}

func (r *report) print() {
	fmt.Printf("%d servers, %d tools; tokens of o200k_base\n\n", r.servers, r.tools)
	fmt.Println("| until a tool can be called | mean | p95 | of the flat list |")
	fmt.Println("|---|---:|---:|---:|")
	fmt.Printf("| flat: every tool of every server | %d | %d | 100 %% |\n", r.without, r.without)
	for _, way := range []struct {
		name  string
		costs []int
	}{
		{"mcpx: `inspect(server)`, and the tool where its line is not enough", r.byServer},
		{"mcpx: `inspect(server, tool)` alone", r.byTool},
		{"mcpx: `search` by the words of the name", r.bySearch},
	} {
		mean, p95 := stats(way.costs)
		fmt.Printf("| %s | %d | %d | %.2f %% |\n", way.name, mean, p95, 100*float64(mean)/float64(r.without))
	}
	fmt.Printf("\ntools/list with mcpx: %d tokens\n", r.with)
	fmt.Printf("inspect(server): %d tokens on average\n", r.listings/max(r.servers, 1))
	r.lines.print()
	fmt.Printf("signatures: %d tokens, %.1f %% of the %d of their schemas\n", r.signatures, 100*float64(r.signatures)/float64(r.schemas), r.schemas)
	fmt.Printf("search has the tool among its first five: %.1f %%\n", 100*float64(r.found)/float64(r.tools))
}

func stats(costs []int) (mean, p95 int) {
	sum := 0
	for _, c := range costs {
		sum += c
	}
	slices.SortFunc(costs, cmp.Compare)
	return sum / max(len(costs), 1), costs[min(len(costs)*95/100, len(costs)-1)]
}
