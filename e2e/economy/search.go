package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"mcpx/executor"
	"mcpx/internal/tokens"
)

//go:embed testdata/queries.txt
var queries string

//go:embed testdata/queries-tuning.txt
var queriesTuning string

//go:embed testdata/queries-after.txt
var queriesAfter string

// query is a need and the tools that answer it.
type query struct {
	level   string   // easy, medium or hard
	need    string   // in a user's words
	answers []string // globs of SERVER/TOOL
}

// parseQueries reads lines of LEVEL | NEED | ANSWERS.
func parseQueries(text string) (all []query, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 3 {
			return nil, fmt.Errorf("not LEVEL | NEED | ANSWERS: %s", line)
		}
		all = append(all, query{parts[0], parts[1], strings.Fields(parts[2])})
	}
	return all, nil
}

// halves returns every other query, from the first and from the second.
func halves(all []query) (first, second []query) {
	for i, q := range all {
		if i%2 == 0 {
			first = append(first, q)
		} else {
			second = append(second, q)
		}
	}
	return first, second
}

// searchReport are the figures of search over some queries.
type searchReport struct {
	ranks  map[string][]int // by level: the place of the first right tool, from 0; notFound if there is none
	tokens []int            // of each answer
	times  []time.Duration
}

const notFound = 1000

// measureSearch prints how well search finds tools, and what its answers cost.
func measureSearch(ctx context.Context, e *executor.Executor) error {
	sets, err := querySets()
	if err != nil {
		return err
	}
	fmt.Println("\n| queries | level | number | recall@1 | recall@5 | recall@10 |")
	fmt.Println("|---|---|---:|---:|---:|---:|")
	all := searchReport{}
	for _, set := range sets {
		r := searchReport{ranks: map[string][]int{}}
		for _, q := range set.queries {
			if err := r.add(ctx, e, q); err != nil {
				return err
			}
		}
		r.printRecall(set.name)
		all.tokens = append(all.tokens, r.tokens...)
		all.times = append(all.times, r.times...)
	}
	mean, p95 := stats(all.tokens)
	slices.Sort(all.times)
	fmt.Printf("\nan answer of search: %d tokens, p95 %d; time p95 %.1f ms\n",
		mean, p95, all.times[len(all.times)*95/100].Seconds()*1000)
	return nil
}

// querySet are queries with one role.
type querySet struct {
	name    string
	queries []query
}

func querySets() ([]querySet, error) {
	var files [3][]query
	for i, text := range []string{queries, queriesTuning, queriesAfter} {
		parsed, err := parseQueries(text)
		if err != nil {
			return nil, err
		}
		files[i] = parsed
	}
	tuned, held := halves(files[0])
	return []querySet{
		{"used for tuning", append(tuned, files[1]...)},
		{"not used for tuning", held},
		{"written after tuning", files[2]},
	}, nil
}

// add runs one query.
func (r *searchReport) add(ctx context.Context, e *executor.Executor, q query) error {
	arguments, err := json.Marshal(map[string]string{"query": q.need})
	if err != nil {
		return err
	}
	start := time.Now()
	answers, err := ask(ctx, e, executor.Call{Server: executor.Builtin, Tool: "search", Arguments: arguments})
	if err != nil {
		return err
	}
	r.times = append(r.times, time.Since(start))
	for _, answer := range answers {
		r.tokens = append(r.tokens, tokens.Count(answer))
		r.ranks[q.level] = append(r.ranks[q.level], q.rank(answer))
	}
	return nil
}

// rank returns the place of the first right tool in an answer of search.
func (q query) rank(answer string) int {
	for i, line := range strings.Split(answer, "\n") {
		server, rest, _ := strings.Cut(line, ": ")
		tool := rest[:strings.IndexAny(rest+":", "(:")]
		for _, glob := range q.answers {
			if ok, _ := path.Match(glob, server+"/"+tool); ok {
				return i
			}
		}
	}
	return notFound
}

func (r *searchReport) printRecall(name string) {
	var all []int
	for _, level := range []string{"easy", "medium", "hard"} {
		all = append(all, r.ranks[level]...)
		printRecall(name, level, r.ranks[level])
	}
	printRecall(name, "all", all)
}

func printRecall(name, level string, ranks []int) {
	fmt.Printf("| %s | %s | %d | %.2f | %.2f | %.2f |\n", name, level, len(ranks), recall(ranks, 1), recall(ranks, 5), recall(ranks, 10))
}

// recall returns the share of queries with a right tool among the first k.
func recall(ranks []int, k int) float64 {
	found := 0
	for _, rank := range ranks {
		if rank < k {
			found++
		}
	}
	return float64(found) / float64(max(len(ranks), 1))
}
