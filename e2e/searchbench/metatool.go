package main

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of MetaTool.
const (
	metaTools   = "dataset/plugin_des.json"
	metaQueries = "dataset/data/all_clean_data.csv"
)

// readMetaTool reads MetaTool: the tools of one server, and a question with one right tool each.
func readMetaTool(folder string) ([]benchmark, error) {
	var descriptions map[string]string
	if err := readJSON(filepath.Join(folder, metaTools), &descriptions); err != nil {
		return nil, err
	}
	plugins := server{name: "plugins"}
	for name, description := range descriptions {
		plugins.tools = append(plugins.tools, tool{Name: name, Description: description, InputSchema: []byte(`{"type":"object"}`)})
	}
	slices.SortFunc(plugins.tools, func(a, b tool) int { return strings.Compare(a.Name, b.Name) })
	file, err := os.Open(filepath.Join(folder, metaQueries))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], []string{"Query", "Tool"}) {
		return nil, errors.New("no columns Query and Tool in " + metaQueries)
	}
	set := querySet{name: "questions", figure: recall}
	for _, row := range rows[1:] {
		set.queries = append(set.queries, query{row[0], []string{plugins.name + "/" + row[1]}})
	}
	return []benchmark{{"MetaTool", []server{plugins}, []querySet{set}}}, nil
}
