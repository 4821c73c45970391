package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Report is what a check found, for a SARIF file (2.1.0), which code hosts show next to a
// pull request.
type Report struct {
	Version string   // of mcpx
	File    string   // the lock file, relative to the root of the repository
	Text    []byte   // of the lock file
	Changes []Change // in any order
}

// SARIF returns the report as a SARIF file.
func (r Report) SARIF() []byte {
	type object = map[string]any
	results, rules, known := []object{}, []object{}, map[string]bool{}
	for _, c := range r.Changes {
		rule, level := strings.ReplaceAll(c.verb()+"-"+nouns[c.Kind], " ", "-"), "error"
		if c.IsNotice() {
			level = "note"
		}
		if !known[rule] {
			known[rule] = true
			rules = append(rules, object{"id": rule, "shortDescription": object{"text": c.verb() + " " + nouns[c.Kind]}})
		}
		results = append(results, object{
			"ruleId": rule, "level": level,
			"message": object{"text": c.Review(false)},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": r.File},
				"region":           object{"startLine": lineOf(r.Text, c)},
			}}},
			"partialFingerprints": object{"mcpx/v1": hash(c.Kind, c.Server+"\x00"+c.Name+"\x00"+c.New)},
		})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(object{ // cannot fail: strings and numbers
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []object{{
			"tool":    object{"driver": object{"name": "mcpx", "version": r.Version, "rules": rules}},
			"results": results,
		}},
	})
	return b.Bytes()
}

// lineOf returns the line of a lock file that a change is about: that of the definition,
// or the nearest above it.
func lineOf(text []byte, c Change) int {
	found, rest := 1, []string{c.Server, string(c.Kind), c.Name}
	for i, line := range strings.Split(string(text), "\n") {
		if len(rest) > 0 && strings.HasPrefix(line, fmt.Sprintf("%s: {", quote(rest[0]))) {
			found, rest = i+1, rest[1:]
		}
	}
	return found
}
