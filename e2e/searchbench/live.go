package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Files of LiveMCPBench. The last has the conversations of an agent, and may be missing.
const (
	liveTools  = "tools/LiveMCPTool/tools.json"
	liveTasks  = "annotated_data/all_annotations.json"
	liveOutput = "baseline/output/claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"
)

// liveTask is a task of LiveMCPBench, with the conversation of the agent if it is from the
// agent's output.
type liveTask struct {
	ID       string `json:"task_id"`
	Question string
	Metadata struct{ Tools string } `json:"Annotator Metadata"`
	Messages []struct {
		ToolCalls []struct {
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	} `json:"messages"`
}

// readLive reads LiveMCPBench: once with nothing but the tools, and once with the descriptions
// of the servers in the config.
func readLive(folder string) ([]benchmark, error) {
	servers, err := readLiveServers(folder)
	if err != nil {
		return nil, err
	}
	var tasks, conversations []liveTask
	if err := readJSON(filepath.Join(folder, liveTasks), &tasks); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(folder, liveOutput), &conversations); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	sets := []querySet{{name: "tasks (A)", figure: recall}, {name: "agent's queries (B)", figure: anyHit}}
	gold := map[string][]string{}
	for _, t := range tasks {
		if gold[t.ID] = t.gold(servers); len(gold[t.ID]) > 0 {
			sets[0].queries = append(sets[0].queries, query{t.Question, gold[t.ID]})
		}
	}
	for _, t := range conversations {
		if len(gold[t.ID]) == 0 {
			continue
		}
		for _, text := range t.searches() {
			sets[1].queries = append(sets[1].queries, query{text, gold[t.ID]})
		}
	}
	sets = slices.DeleteFunc(sets, func(s querySet) bool { return len(s.queries) == 0 })
	bare := slices.Clone(servers)
	for i := range bare {
		bare[i].description = ""
	}
	return []benchmark{{"LiveMCPBench", bare, sets}, {"LiveMCPBench with descriptions of servers", servers, sets}}, nil
}

func readLiveServers(folder string) (servers []server, err error) {
	var entries []struct {
		Description string
		Tools       map[string]struct{ Tools []tool }
	}
	if err := readJSON(filepath.Join(folder, liveTools), &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		for name, s := range e.Tools {
			servers = append(servers, server{name, e.Description, s.Tools})
		}
	}
	slices.SortFunc(servers, func(a, b server) int { return strings.Compare(a.name, b.name) })
	return servers, nil
}

// numbering is "1. " or "1) " before a name.
var numbering = regexp.MustCompile(`^\s*\d+[.)]\s*`)

// gold returns the tools that a person used for the task, on every server that has them.
func (t liveTask) gold(servers []server) (gold []string) {
	for name := range strings.FieldsFuncSeq(t.Metadata.Tools, func(r rune) bool { return r == '\n' || r == ';' }) {
		name = strings.TrimSpace(numbering.ReplaceAllString(name, ""))
		for _, s := range servers {
			found := slices.ContainsFunc(s.tools, func(t tool) bool { return t.Name == name })
			if key := s.name + "/" + name; found && !slices.Contains(gold, key) {
				gold = append(gold, key)
			}
		}
	}
	return gold
}

// tags are the tags that the agent puts around a query.
var tags = regexp.MustCompile(`</?\w+>`)

// searches returns the queries that the agent wrote for the task.
func (t liveTask) searches() (queries []string) {
	for _, m := range t.Messages {
		for _, c := range m.ToolCalls {
			var arguments struct{ Query string }
			if c.Function.Name != "route" || json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil {
				continue
			}
			if text := strings.TrimSpace(tags.ReplaceAllString(arguments.Query, "")); text != "" {
				queries = append(queries, text)
			}
		}
	}
	return queries
}

func readJSON(file string, v any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
