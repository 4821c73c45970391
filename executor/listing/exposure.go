package listing

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/yosida95/uritemplate/v3"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Exposure has every tool, prompt, resource and template of a catalog, under the name
// that clients see. It is immutable.
type Exposure struct {
	Tools     []Exposed // flat mode
	Prompts   []Exposed
	Resources []Exposed
	Templates []Exposed

	catalog   *registry.Catalog
	tools     map[string]*Exposed
	prompts   map[string]*Exposed
	resources map[string]*Exposed
}

// Exposed is one tool, prompt, resource or template.
type Exposed struct {
	Name     string // that clients see: a name or a URI
	Key      string // the upstream's own name or URI
	Upstream *live.Upstream
	Raw      []byte // the definition that clients see

	matches func() *regexp.Regexp // matches the URIs of a template; nil if the template is invalid
}

// ExposureOf returns the Exposure of a catalog, which keeps it. If names are prefixed, it has
// the tools of builtin too.
func ExposureOf(c *registry.Catalog, builtin *live.Upstream, style NameStyle) *Exposure {
	from := func(c *registry.Catalog) any { return expose(c, builtin, style) }
	return c.Derived(style, from).(*Exposure)
}

// Tool returns a tool by its name on the front, nil if there is none.
func (x *Exposure) Tool(name string) *Exposed { return x.tools[name] }

// Prompt returns a prompt by its name on the front, nil if there is none.
func (x *Exposure) Prompt(name string) *Exposed { return x.prompts[name] }

// Definition returns the definition of a tool by its name on the front, nil if there is
// none.
func (x *Exposure) Definition(name string) []byte {
	if t := x.tools[name]; t != nil {
		return t.Raw
	}
	return nil
}

// NameStyle decides which names tools and prompts have on the front.
type NameStyle int

// The two styles.
const (
	PrefixedNames NameStyle = iota // Server__name
	OwnNames                       // the upstream's own names: mcpx is a transparent proxy
)

func expose(c *registry.Catalog, builtin *live.Upstream, style NameStyle) *Exposure {
	x := &Exposure{catalog: c}
	tools, prompts, resources, templates := newFrontNames(style), newFrontNames(style), newFrontNames(style), newFrontNames(style)
	addTool := func(u *live.Upstream, t *lists.Tool) {
		name := tools.add(u.Name, t.Name)
		x.Tools = append(x.Tools, Exposed{Name: name, Key: t.Name, Upstream: u, Raw: flatTool(u.Name, name, t, style)})
	}
	for _, u := range c.Upstreams {
		for _, t := range u.Tools {
			addTool(u, t)
		}
		for _, p := range u.Prompts {
			name := prompts.add(u.Name, p.Key)
			x.Prompts = append(x.Prompts, Exposed{Name: name, Key: p.Key, Upstream: u, Raw: rename(p.Raw, "name", name, p.Key)})
		}
		for _, r := range u.Resources {
			uri := resources.addURI(u.Name, r.Key)
			x.Resources = append(x.Resources, Exposed{Name: uri, Key: r.Key, Upstream: u, Raw: rename(r.Raw, "uri", uri, r.Key)})
		}
		for _, t := range u.Templates {
			uri := templates.addURI(u.Name, t.Key)
			x.Templates = append(x.Templates, Exposed{Name: uri, Key: t.Key, Upstream: u, Raw: rename(t.Raw, "uriTemplate", uri, t.Key), matches: matcher(uri)})
		}
	}
	if style == PrefixedNames {
		for _, t := range builtin.Tools {
			addTool(builtin, t)
		}
	}
	x.tools, x.prompts, x.resources = byName(x.Tools), byName(x.Prompts), byName(x.Resources)
	return x
}

func byName(list []Exposed) map[string]*Exposed {
	names := make(map[string]*Exposed, len(list))
	for i := range list {
		names[list[i].Name] = &list[i]
	}
	return names
}

// rename returns a definition with the name that it has on the front.
func rename(raw []byte, member, name, key string) []byte {
	if name == key {
		return raw
	}
	return rawjson.With(raw, member, rawjson.AppendString(nil, name))
}

// flatTool returns the definition of a tool in flat mode. If names are prefixed, the
// description begins with the server's name. All other members are unchanged.
func flatTool(server, name string, t *lists.Tool, style NameStyle) []byte {
	raw := rename(t.Raw, "name", name, t.Name)
	if style == OwnNames {
		return raw
	}
	description := "[" + server + "]"
	if t.Description != "" {
		description += " " + t.Description
	}
	return rawjson.With(raw, "description", rawjson.AppendString(nil, description))
}

// matcher compiles a template on first use. It returns nil for an invalid template.
func matcher(template string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		t, err := uritemplate.New(template)
		if err != nil {
			return nil
		}
		return t.Regexp()
	})
}

// frontNames assigns the names that one kind of items has on the front.
type frontNames struct {
	style NameStyle
	used  map[string]bool
}

func newFrontNames(style NameStyle) *frontNames {
	return &frontNames{style: style, used: map[string]bool{}}
}

// maxToolName is the longest tool name that model APIs accept.
const maxToolName = 64

// add returns the name of a tool or prompt on the front. A prefixed name that is too
// long, has characters that clients refuse, or is in use, is shortened and ends with a
// hash of the whole name, which is the same every time.
func (n *frontNames) add(server, name string) string {
	if n.style == OwnNames {
		return name
	}
	whole := server + "__" + name
	short := strings.Map(plainName, whole)
	if short != whole || len(short) > maxToolName || n.used[short] {
		sum := sha256.Sum256([]byte(server + "\x00" + name))
		suffix := "_" + hex.EncodeToString(sum[:4])
		short = short[:min(len(short), maxToolName-len(suffix))] + suffix
	}
	n.used[short] = true
	return short
}

// plainName replaces a character that tool names must not have.
func plainName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
		return r
	}
	return '_'
}

// Prefix returns what the prefixed names of a server's tools and prompts begin with, unless they
// had to be shortened.
func Prefix(server string) string { return strings.Map(plainName, server) + "__" }

// addURI returns the URI of a resource or template on the front: its own, or one with the
// prefix of the server if another server has the same.
func (n *frontNames) addURI(server, uri string) string {
	if n.used[uri] {
		uri = uriPrefix(server) + uri
	}
	n.used[uri] = true
	return uri
}

func uriPrefix(server string) string { return "mcpx://" + url.PathEscape(server) + "/" }

// Template returns a template by its URI on the front, or else the resource with that
// URI.
func (x *Exposure) Template(uri string) (found *Exposed, isFinal bool) {
	for i := range x.Templates {
		if x.Templates[i].Name == uri {
			return &x.Templates[i], true
		}
	}
	return x.Resource(uri)
}

// Resource finds the upstream that has a URI: the one whose prefix the URI has, the first
// that lists it or has a template for it, or the only one that has resources. It returns
// nil if there is none. isFinal is false if an upstream in its first start may list the URI
// and would take precedence.
func (x *Exposure) Resource(uri string) (found *Exposed, isFinal bool) {
	var only *live.Upstream
	several := false
	isFinal = true
	for _, u := range x.catalog.Upstreams {
		if key, ok := strings.CutPrefix(uri, uriPrefix(u.Name)); ok && !u.ToolsOnly {
			return &Exposed{Name: uri, Key: key, Upstream: u}, true
		}
		if found := x.listed(uri, u); found != nil {
			return found, isFinal
		}
		isFinal = isFinal && !u.InFirstStart()
		if u.Has("resources") {
			several = only != nil
			only = u
		}
	}
	if only == nil || several {
		return nil, isFinal
	}
	return &Exposed{Name: uri, Key: uri, Upstream: only}, isFinal
}

// listed returns the resource with a URI if one upstream lists it or has a template for
// it.
func (x *Exposure) listed(uri string, u *live.Upstream) *Exposed {
	if r := x.resources[uri]; r != nil && r.Upstream == u {
		return r
	}
	for _, t := range x.Templates {
		if t.Upstream != u {
			continue
		}
		if re := t.matches(); re != nil && re.MatchString(uri) {
			return &Exposed{Name: uri, Key: strings.TrimPrefix(uri, strings.TrimSuffix(t.Name, t.Key)), Upstream: u}
		}
	}
	return nil
}

// WhyHidden returns why a resource cannot be read that its upstream does not list, and that
// matches a hidden template; "" if it can.
func (x *Exposure) WhyHidden(found *Exposed) string {
	if x.listed(found.Name, found.Upstream) != nil {
		return ""
	}
	for _, template := range found.Upstream.Hidden(lists.OfTemplates) {
		if re := matcher(template)(); re == nil || re.MatchString(found.Key) {
			return found.Upstream.WhyHidden(lists.OfTemplates, template)
		}
	}
	return ""
}
