package search

import (
	"crypto/sha256"
	"fmt"

	"mcpx/executor"
	"mcpx/internal/plain"
)

// toolTexts are the texts of the tools of an index, as an endpoint gets them, by document.
type toolTexts struct {
	texts []string // empty for the tools of mcpx itself, which have no vectors
	keys  []vectorKey
}

// texts returns the texts of the tools. They are made when they are first needed.
func (x *toolIndex) texts() *toolTexts {
	x.textsOnce.Do(func() {
		t := &toolTexts{texts: make([]string, len(x.tools)), keys: make([]vectorKey, len(x.tools))}
		for i, tool := range x.tools {
			if tool.server == executor.Builtin {
				continue
			}
			text := fmt.Sprintf("%s: %s\n%s\n%s", tool.server, tool.tool.Name, tool.tool.Description, parameters(tool.tool))
			t.texts[i] = plain.Cut(text, maxTextBytes)
			t.keys[i] = sha256.Sum256([]byte(t.texts[i]))
		}
		x.textsMade = t
	})
	return x.textsMade
}

// missing returns the tools without a vector, at most as many as there may be vectors.
func (t *toolTexts) missing(v *vectors) (tools []int) {
	known, room := v.get(t.keys), v.room()
	wanted := map[vectorKey]bool{}
	for i, vector := range known {
		if t.texts[i] == "" || wanted[t.keys[i]] || len(wanted) == room {
			continue
		}
		wanted[t.keys[i]] = true
		if vector == nil {
			tools = append(tools, i)
		}
	}
	return tools
}
