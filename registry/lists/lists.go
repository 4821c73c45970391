// Package lists has the lists of one upstream, as it sent them and as clients see them. Lists is a value: copy it, then change the copy. Whoever has the original does
// not see the change. Copies share only News, so that it is shown once.
package lists

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/internal/tokens"
)

// Kind is a kind of list that upstreams have.
type Kind struct {
	Capability string // an upstream without it has no such list
	Method     string
	Member     string // of the result
	Key        string // the member that identifies an item
	set        func(l *Lists, items []Item) (changed bool)
}

// Kinds is the table of lists. A notifications/CAPABILITY/list_changed is about all
// kinds of that capability.
var Kinds = []Kind{
	{"tools", "tools/list", "tools", "name", setTools},
	{"prompts", "prompts/list", "prompts", "name", func(l *Lists, items []Item) bool { return setItems(&l.Prompts, items) }},
	{"resources", "resources/list", "resources", "uri", func(l *Lists, items []Item) bool { return setItems(&l.Resources, items) }},
	{"resources", "resources/templates/list", "resourceTemplates", "uriTemplate", func(l *Lists, items []Item) bool { return setItems(&l.Templates, items) }},
}

// The kinds of the lists.
var (
	OfTools     = Kinds[0]
	OfPrompts   = Kinds[1]
	OfResources = Kinds[2]
	OfTemplates = Kinds[3] // of resources
)

// Lists are the lists of an upstream, and its instructions.
type Lists struct {
	Tools        []*Tool
	Prompts      []Item
	Resources    []Item
	Templates    []Item // of resources
	Instructions string

	config *config.Upstream  // which tools are shown; nil: all
	listed map[string][]Item // the lists by method, with the tools that the config hides; never changed in place
	tools  map[string]*Tool
	tokens func() int // of all tools; nil before the first list

	instructions string // also if a view hides them
	views        Views
	marked       []Marked // by each of the views; never changed in place
	news         *news    // nil: none
}

// New returns the empty lists of an upstream.
func New(c *config.Upstream, v Views) Lists {
	l := Lists{config: c}
	l.setViews(v)
	return l
}

// With returns the lists with another config, which shows the same items in the same views.
func (l Lists) With(c *config.Upstream) Lists {
	l.config = c
	return l
}

// WithTools returns lists that have these tools, and show all of them.
func WithTools(tools []Item) (l Lists) {
	setTools(&l, tools)
	return l
}

// Reconfigure applies another config and its views to the lists.
func (l *Lists) Reconfigure(c *config.Upstream, v Views) {
	l.config = c
	l.setViews(v)
	l.SetLists(l.listed)
	l.SetInstructions(l.instructions)
}

// Sent returns the items of a list as they were set, also those that are not shown. They
// must not be changed.
func (l *Lists) Sent(k Kind) []Item { return l.listed[k.Method] }

// SentInstructions returns the instructions, also if a view hides them.
func (l *Lists) SentInstructions() string { return l.instructions }

// SetLists sets lists by their methods. Clients see what the config and the views show. It
// returns the capabilities whose lists have changed for clients.
func (l *Lists) SetLists(read map[string][]Item) (changed []string) {
	listed := maps.Clone(l.listed)
	if listed == nil {
		listed = map[string][]Item{}
	}
	maps.Copy(listed, read)
	l.listed = listed
	for _, k := range Kinds {
		items, isRead := read[k.Method]
		if isRead && k.set(l, l.see(k, items)) {
			changed = append(changed, k.Capability)
		}
	}
	return changed
}

// setTools keeps the old value of each unchanged tool, with everything derived from
// it.
func setTools(l *Lists, items []Item) (changed bool) {
	tools := make([]*Tool, 0, len(items))
	index := make(map[string]*Tool, len(items))
	for _, item := range items {
		t := l.tools[item.Key]
		if t == nil || string(t.sent) != string(item.asSent()) || string(t.Raw) != string(item.Raw) {
			t = newTool(item)
		}
		tools = append(tools, t)
		index[item.Key] = t
	}
	changed = !slices.Equal(l.Tools, tools)
	l.Tools, l.tools = tools, index
	if changed {
		l.countTokens()
	}
	return changed
}

func setItems(list *[]Item, items []Item) (changed bool) {
	changed = !slices.EqualFunc(*list, items, func(a, b Item) bool { return string(a.Raw) == string(b.Raw) })
	*list = items
	return changed
}

// countTokens resets the cached token count; the next Tokens counts again.
func (l *Lists) countTokens() {
	tools := slices.Clip(l.Tools)
	l.tokens = sync.OnceValue(func() int { return tokens.CountBytes(toolList(tools)) })
}

// Tool finds a tool by its exact name, nil if there is none.
func (l *Lists) Tool(name string) *Tool { return l.tools[name] }

// Tokens returns the number of tokens in ToolList. It counts them when it is called for
// the first time since the tools changed.
func (l *Lists) Tokens() int {
	if l.tokens == nil {
		return 0
	}
	return l.tokens()
}

// ToolList returns the full definitions of the tools, as a client without mcpx gets them
// from tools/list, or nil if there are none.
func (l *Lists) ToolList() []byte { return toolList(l.Tools) }

// Restrict returns the part of the lists of a server that the rules grant. Instructions and
// notes about hidden tools may name any tool, so only those see them who see all tools.
func (l *Lists) Restrict(profile, server string, rules policy.Rules) Lists {
	part := *l
	part.Tools, part.tools = nil, map[string]*Tool{}
	for _, t := range l.Tools {
		if rules.HasTool(policy.Tool{Profile: profile, Server: server, Name: t.Name, ReadOnly: t.isReadOnly()}) {
			part.Tools = append(part.Tools, t)
			part.tools[t.Name] = t
		}
	}
	extent := rules.Extent(profile, server)
	if extent < policy.AllButSomeTools {
		part.Prompts, part.Resources, part.Templates = nil, nil, nil
		part.unmark(func(method string) bool { return method != OfTools.Method })
	}
	if extent < policy.Everything {
		part.SetInstructions("")
		part.news = nil
		part.unmark(func(method string) bool { return method == OfTools.Method })
		part.countTokens()
	}
	return part
}

// unmark removes what the views have marked in the lists for which match returns true.
func (l *Lists) unmark(match func(method string) bool) {
	l.marked = slices.Clone(l.marked)
	for n := range l.marked {
		l.marked[n] = l.marked[n].without(match)
	}
}

// news is a text that is shown once.
type news struct {
	text   string
	isTold atomic.Bool
}

// News returns the text of SetNews the first time that it is called; then "".
func (l *Lists) News() string {
	if l.news == nil || l.news.isTold.Swap(true) {
		return ""
	}
	return l.news.text
}

// SetNews sets a text about the lists that the next listing shows once. An empty text changes
// nothing.
func (l *Lists) SetNews(text string) {
	if text != "" {
		l.news = &news{text: text}
	}
}
