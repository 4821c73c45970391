// Command searchbench measures the tool search on public benchmarks, beside a plain BM25 in
// the same run. It needs a folder with clones of
//
//	https://github.com/icip-cas/LiveMCPBench   (Apache 2.0)
//	https://github.com/HowieHwong/MetaTool     (MIT)
//
// under these names; one of them is enough. Nothing of them is part of mcpx.
//
//	go run ./e2e/searchbench FOLDER
//
// The tools are served over HTTP, and mcpx is asked as by an agent. docs/economy.md explains
// the figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
)

func main() {
	if len(os.Args) != 2 {
		exit(errors.New("usage: searchbench FOLDER"))
	}
	exit(measureAll(os.Args[1]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measureAll prints the figures of all benchmarks in a folder. The lists are not left in the
// user's cache.
func measureAll(folder string) error {
	cache, err := os.MkdirTemp("", "searchbench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME"} { // the key of the cache is in the second
		if err := os.Setenv(name, cache); err != nil {
			return err
		}
	}
	benchmarks, err := read(folder)
	if err != nil {
		return err
	}
	fmt.Println("| queries | number | search | figure | @1 | @5 | @10 | tokens | ms |")
	fmt.Println("|---|---:|---|---|---:|---:|---:|---:|---:|")
	for _, b := range benchmarks {
		if err := b.measure(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// benchmark are tools, and queries for them.
type benchmark struct {
	name    string
	servers []server
	sets    []querySet
}

// server is a server and its tools.
type server struct {
	name        string
	description string // in the config; may be empty
	tools       []tool
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// querySet are queries with one figure.
type querySet struct {
	name    string
	figure  figure
	queries []query
}

// query is a text and the tools that are right, as SERVER/TOOL.
type query struct {
	text string
	gold []string
}

// figure is what is counted among the first k hits.
type figure string

const (
	recall figure = "recall" // the share of the right tools, on average
	anyHit figure = "hit"    // the share of queries with a right tool
)

// read returns the benchmarks that are in the folder.
func read(folder string) (all []benchmark, err error) {
	for _, reader := range []struct {
		name string
		read func(folder string) ([]benchmark, error)
	}{
		{"LiveMCPBench", readLive},
		{"MetaTool", readMetaTool},
	} {
		clone := filepath.Join(folder, reader.name)
		if _, err := os.Stat(clone); err != nil {
			continue
		}
		benchmarks, err := reader.read(clone)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", reader.name, err)
		}
		all = append(all, benchmarks...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no clone of LiveMCPBench or MetaTool in %s", folder)
	}
	return all, nil
}

// measure prints the figures of mcpx and of BM25.
func (b benchmark) measure(ctx context.Context) error {
	c, stop, err := b.serve()
	if err != nil {
		return err
	}
	defer stop()
	a, err := app.New(c, "default", os.Stderr)
	if err != nil {
		return err
	}
	return b.run(ctx, a, func(set querySet, way searcher, r result) {
		r.print(b.name+", "+set.name, way.name(), set.figure)
	})
}

// run runs the queries with BM25 and with an mcpx, and reports the figures of each set.
func (b benchmark) run(ctx context.Context, a *app.App, report func(set querySet, way searcher, r result)) error {
	plain := newBM25(b.servers)
	return a.Run(ctx, func(ctx context.Context) error {
		if err := allReady(ctx, a); err != nil {
			return err
		}
		for _, set := range b.sets {
			for _, way := range []searcher{plain, mcpxSearch{a.Profiles()[0].Executor}} {
				r := result{}
				for _, q := range set.queries {
					if err := r.add(ctx, way, q, set.figure); err != nil {
						return err
					}
				}
				report(set, way, r)
			}
		}
		return nil
	})
}

// serve serves the tools and returns a config with the servers.
func (b benchmark) serve() (c *config.Config, stop func(), err error) {
	address, stop, err := serve(b.servers)
	if err != nil {
		return nil, nil, err
	}
	upstreams := map[string]any{}
	for i, s := range b.servers {
		entry := map[string]any{"url": fmt.Sprintf("%s/%d", address, i)}
		if s.description != "" {
			entry["description"] = s.description
		}
		upstreams[s.name] = entry
	}
	text, err := json.Marshal(map[string]any{"mcpServers": upstreams, "logging": map[string]string{"level": "error"}})
	if err == nil {
		c, err = app.ConfigHooks().Parse("searchbench.json", text, os.LookupEnv)
	}
	if err != nil {
		stop()
	}
	return c, stop, err
}

// allReady waits until every server has listed its tools.
func allReady(ctx context.Context, a *app.App) error {
	for _, u := range a.ToolLists(ctx)[0].Upstreams {
		if u.State != live.Ready {
			return fmt.Errorf("%s is %s: %s", u.Name, u.State, u.Reason)
		}
	}
	return nil
}

// searcher finds tools, as SERVER/TOOL, best first, at most ten. It also returns the text that
// an agent reads, if there is one.
type searcher interface {
	name() string
	search(ctx context.Context, query string) (tools []string, text string, err error)
}

// mcpxSearch is exec("mcpx", "search").
type mcpxSearch struct{ *executor.Executor }

func (mcpxSearch) name() string { return "mcpx" }

func (s mcpxSearch) search(ctx context.Context, query string) (tools []string, text string, err error) {
	arguments, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return nil, "", err
	}
	result, err := s.Call(ctx, executor.Call{Server: executor.Builtin, Tool: "search", Arguments: arguments})
	if err != nil {
		return nil, "", err
	}
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		text, _ = rawjson.String(rawjson.Get(item, "text"))
	}
	return hitsOf(text), text, nil
}

// hitsOf returns the tools in an answer of search.
func hitsOf(text string) (tools []string) {
	for line := range strings.SplitSeq(text, "\n") {
		server, rest, ok := strings.Cut(line, ": ")
		if ok && !strings.HasPrefix(rest, "only the server's name") {
			tools = append(tools, server+"/"+rest[:strings.IndexAny(rest+":", "(:")])
		}
	}
	return tools
}

// result are the figures of one searcher over one set.
type result struct {
	queries int
	at      [len(places)]float64 // sums
	tokens  int
	times   time.Duration
}

// places are how many of the first hits count.
var places = [...]int{1, 5, 10}

func (r *result) add(ctx context.Context, s searcher, q query, f figure) error {
	start := time.Now()
	tools, text, err := s.search(ctx, q.text)
	if err != nil {
		return err
	}
	r.times += time.Since(start)
	r.tokens += tokens.Count(text)
	r.queries++
	for i, k := range places {
		r.at[i] += f.of(tools[:min(k, len(tools))], q.gold)
	}
	return nil
}

// of returns the figure of one query.
func (f figure) of(tools, gold []string) float64 {
	found := 0
	for _, g := range gold {
		if slices.Contains(tools, g) {
			found++
		}
	}
	if f == anyHit {
		return float64(min(found, 1))
	}
	return float64(found) / float64(len(gold))
}

func (r *result) print(set, way string, f figure) {
	n := float64(max(r.queries, 1))
	size := "–"
	if r.tokens > 0 {
		size = fmt.Sprintf("%.0f", float64(r.tokens)/n)
	}
	fmt.Printf("| %s | %d | %s | %s | %.3f | %.3f | %.3f | %s | %.2f |\n",
		set, r.queries, way, f, r.at[0]/n, r.at[1]/n, r.at[2]/n, size, r.times.Seconds()*1000/n)
}
