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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func main() {
	serveIfAsked()
	if len(os.Args) != 2 {
		exit(errors.New("usage: economy FOLDER"))
	}
	exit(measureAll(os.Args[1]))
}

// serveIfAsked runs a server, and does not return, if the process was started as one.
func serveIfAsked() {
	child.WatchIfAsked()
	switch {
	case len(os.Args) == 3 && os.Args[1] == "replay":
		exit(replay(os.Args[2]))
	case len(os.Args) == 2 && os.Args[1] == "results":
		exit(serveResults())
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "economy:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measureAll prints all figures. The lists are not left in the user's cache.
func measureAll(folder string) error {
	cache, err := os.MkdirTemp("", "economy-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME"} { // the key of the cache is in the second
		if err := os.Setenv(name, cache); err != nil {
			return err
		}
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
	servers, err := replays(folder)
	if err != nil {
		return err
	}
	return run(context.Background(), servers, func(ctx context.Context, a *app.App) error {
		r := report{}
		if err := r.addAll(ctx, a); err != nil {
			return err
		}
		r.print()
		return measureSearch(ctx, a.Profiles()[0].Executor)
	})
}

// replays returns a server for each list of the folder: its name, and the arguments of
// this program.
func replays(folder string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no tool lists in %s", folder)
	}
	servers := map[string][]string{}
	for _, file := range files {
		// A name has no two underscores in a row.
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".json"), "__", "_")
		servers[name] = []string{"replay", file}
	}
	return servers, nil
}

// run runs mcpx with servers that are this program with some arguments, by name.
func run(ctx context.Context, servers map[string][]string, use func(ctx context.Context, a *app.App) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	upstreams := map[string]any{}
	for name, arguments := range servers {
		upstreams[name] = map[string]any{"command": self, "args": arguments}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": upstreams, "logging": map[string]string{"level": "error"}})
	if err != nil {
		return err
	}
	c, err := config.Parse("economy.json", text, os.LookupEnv)
	if err != nil {
		return err
	}
	a, err := app.New(c, "default", os.Stderr)
	if err != nil {
		return err
	}
	return a.Run(ctx, func(ctx context.Context) error { return use(ctx, a) })
}

// ask makes a call and returns the texts of its result.
func ask(ctx context.Context, e *executor.Executor, c executor.Call) (texts []string, err error) {
	result, err := e.Call(ctx, c)
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		text, _ := rawjson.String(rawjson.Get(item, "text"))
		texts = append(texts, text)
	}
	return texts, err
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

// addAll measures the tools of all servers.
func (r *report) addAll(ctx context.Context, a *app.App) error {
	lists := a.ToolLists(ctx)[0]
	r.with = tokens.CountBytes(lists.With)
	for _, u := range lists.Upstreams {
		if u.State != live.Ready {
			return fmt.Errorf("%s is %s: %s", u.Name, u.State, u.Reason)
		}
		if err := r.add(ctx, a.Profiles()[0].Executor, u, string(u.ToolList())); err != nil {
			return err
		}
	}
	return nil
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
	answers, err := ask(ctx, e, executor.Call{Server: executor.Builtin, Tool: "search", Arguments: query})
	if err != nil {
		return err
	}
	for _, answer := range answers {
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
	fmt.Printf("\ntools/list and instructions with mcpx: %d tokens\n", r.with)
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
