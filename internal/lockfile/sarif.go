package lockfile

import (
	"bytes"
	"encoding/json"
	"strings"

	"mcpx/internal/jsonfile"
	"mcpx/internal/rawjson"
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
	file := jsonfile.New(r.File, r.Text)
	root, _ := file.Parse()
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
				"region":           object{"startLine": file.Line(nodeOf(root, c))},
			}}},
			"partialFingerprints": object{"mcpx/v1": hash(c.Kind, c.Server+"\x00"+c.Name+"\x00"+c.New)},
		})
	}
	var b bytes.Buffer
	_ = json.Indent(&b, rawjson.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []object{{
			"tool":    object{"driver": object{"name": "mcpx", "version": r.Version, "rules": rules}},
			"results": results,
		}},
	}), "", "  ")
	return append(b.Bytes(), '\n')
}

// nodeOf returns what a change is about in a lock file: the name of the definition, or the
// nearest name above it.
func nodeOf(root jsonfile.Node, c Change) jsonfile.Node {
	found, object := root, root
	for _, key := range []string{"servers", c.Server, string(c.Kind), c.Name} {
		m, ok := object.Member(key)
		if !ok {
			break
		}
		found, object = m.Name, m.Value
	}
	return found
}
