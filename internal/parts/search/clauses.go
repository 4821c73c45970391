package search

import (
	"regexp"
	"strings"
)

// The bounds on the work for clauses. Longer queries are searched only as a whole.
const (
	maxClauses     = 12
	maxClauseBytes = 1024
)

// clauseWords is how many words a clause has at least. A shorter one belongs to the next.
const clauseWords = 2

// clauseEnd matches what ends a clause. A period inside a word does not.
var clauseEnd = regexp.MustCompile(`[.:!?]+(?:\s|$)|[,;\n，。；：、！？]|(?i:\b(?:and|then)\b)`)

// clauses returns the words of each clause of a query, without those after maxClauses. "Read
// the sheet, then draw a chart" needs two tools, and each has few of the words.
func clauses(query string) (all [][]queryWord) {
	if len(query) > maxClauseBytes {
		return nil
	}
	ends := clauseEnd.FindAllStringIndex(query, -1)
	if len(ends) == 0 {
		return nil
	}
	start := 0
	for _, end := range append(ends, []int{len(query), len(query)}) {
		words := queryWords(query[start:end[0]])
		if len(words) < clauseWords {
			continue
		}
		all = append(all, words)
		start = end[1]
		if len(all) == maxClauses {
			break
		}
	}
	return all
}

var (
	// label matches an empty word as a label: "server: files, tool: read a sheet".
	label = regexp.MustCompile(`(?i)\b(?:api|mcp|server|tool)s?:`)
	// filePath matches the path of a file, which has an extension.
	filePath = regexp.MustCompile(`(^|[\s"'(\x60])((?:~?/|[A-Za-z]:\\|\.{1,2}/)[^\s"'()\x60]*\.[A-Za-z][A-Za-z0-9]{0,4}\b)`)
)

// prepared returns a query without labels, and with the word "file" before each path of a
// file: the path is data, and what is asked for is a tool for files.
func prepared(query string) string {
	if strings.ContainsRune(query, ':') {
		query = label.ReplaceAllString(query, "\n")
	}
	if strings.ContainsAny(query, `/\`) {
		query = filePath.ReplaceAllString(query, "${1}file ${2}")
	}
	return query
}
