package executor

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
)

// Exposure is what clients see of a catalog: every tool, prompt, resource and
// template under the name it has on the front. It never changes.
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

// Exposed is one of them.
type Exposed struct {
	Name     string // on the front: a name or a URI
	Key      string // the upstream's own
	Upstream *registry.Upstream
	Raw      []byte // its definition under the name on the front

	matches func() *regexp.Regexp // the URIs of a template
}

// Exposure is what clients see now. It is made anew when the catalog has changed.
func (e *Executor) Exposure() *Exposure {
	catalog := e.registry.Catalog()
	if x := e.exposure.Load(); x != nil && x.catalog == catalog {
		return x
	}
	x := expose(catalog, e.builtin.flat, e.profile.Prefix)
	e.exposure.Store(x)
	return x
}

// Definition is the definition of a tool by its name on the front, nil if there is none.
func (x *Exposure) Definition(name string) []byte {
	if t := x.tools[name]; t != nil {
		return t.Raw
	}
	return nil
}

// expose lists what a catalog has, and builtin, which is mcpx's own server. Without
// a prefix mcpx is a transparent proxy: it changes no name and adds nothing.
func expose(c *registry.Catalog, builtin *registry.Upstream, prefix bool) *Exposure {
	x := &Exposure{catalog: c}
	tools, prompts, resources, templates := taken{}, taken{}, taken{}, taken{}
	addTools := func(u *registry.Upstream) {
		for _, t := range u.Tools {
			name := tools.take(u.Name, t.Name, prefix)
			x.Tools = append(x.Tools, Exposed{Name: name, Key: t.Name, Upstream: u, Raw: flatTool(u.Name, name, t, prefix)})
		}
	}
	for _, u := range c.Upstreams {
		addTools(u)
		for _, p := range u.Prompts {
			name := prompts.take(u.Name, p.Key, prefix)
			x.Prompts = append(x.Prompts, Exposed{Name: name, Key: p.Key, Upstream: u, Raw: rename(p.Raw, "name", name, p.Key)})
		}
		for _, r := range u.Resources {
			uri := resources.takeURI(u.Name, r.Key)
			x.Resources = append(x.Resources, Exposed{Name: uri, Key: r.Key, Upstream: u, Raw: rename(r.Raw, "uri", uri, r.Key)})
		}
		for _, t := range u.Templates {
			uri := templates.takeURI(u.Name, t.Key)
			x.Templates = append(x.Templates, Exposed{Name: uri, Key: t.Key, Upstream: u, Raw: rename(t.Raw, "uriTemplate", uri, t.Key), matches: matcher(uri)})
		}
	}
	if prefix {
		addTools(builtin)
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

// rename is a definition under the name it has on the front.
func rename(raw []byte, member, name, key string) []byte {
	if name == key {
		return raw
	}
	return rawjson.With(raw, member, rawjson.AppendString(nil, name))
}

// flatTool is a tool's definition in flat mode: its name, the server in front of
// its description, and everything else as it came.
func flatTool(server, name string, t *registry.Tool, prefix bool) []byte {
	raw := rename(t.Raw, "name", name, t.Name)
	if !prefix {
		return raw
	}
	return rawjson.With(raw, "description", rawjson.AppendString(nil, strings.TrimSpace("["+server+"] "+t.Description)))
}

// matcher compiles a template on first use. One that is none matches nothing.
func matcher(template string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		t, err := uritemplate.New(template)
		if err != nil {
			return nil
		}
		return t.Regexp()
	})
}

// taken are the names taken on the front.
type taken map[string]bool

// longestName is what model APIs take as the name of a tool.
const longestName = 64

// take is the name of something of a server on the front: Server__name. A name
// that is too long, has characters that clients refuse, or is taken, is shortened
// and told apart by a hash of the whole, so that it is the same every time. Without
// a prefix it stays as it is.
func (n taken) take(server, name string, prefix bool) string {
	if !prefix {
		return name
	}
	whole := server + "__" + name
	short := strings.Map(plainName, whole)
	if short != whole || len(short) > longestName || n[short] {
		sum := sha256.Sum256([]byte(server + "\x00" + name))
		suffix := "_" + hex.EncodeToString(sum[:4])
		short = short[:min(len(short), longestName-len(suffix))] + suffix
	}
	n[short] = true
	return short
}

func plainName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
		return r
	}
	return '_'
}

// takeURI is the URI of something of a server on the front: its own, or one of
// mcpx if another server has that already.
func (n taken) takeURI(server, uri string) string {
	if n[uri] {
		uri = ownURI(server) + uri
	}
	n[uri] = true
	return uri
}

func ownURI(server string) string { return "mcpx://" + url.PathEscape(server) + "/" }

// template finds a template by what it is on the front, or the one that a URI
// was made with.
func (x *Exposure) template(uri string, settled bool) *Exposed {
	for i := range x.Templates {
		if x.Templates[i].Name == uri {
			return &x.Templates[i]
		}
	}
	return x.resource(uri, settled)
}

// resource finds who has a URI: the server it names, if it is one of mcpx; who
// lists it; who has a template for it; or the only one with resources at all.
// While a server that would come before the one found is in its first start,
// nobody has it, unless things have settled.
func (x *Exposure) resource(uri string, settled bool) *Exposed {
	var only *registry.Upstream
	starting := false
	several := false
	for _, u := range x.catalog.Upstreams {
		if key, ok := strings.CutPrefix(uri, ownURI(u.Name)); ok {
			return &Exposed{Name: uri, Key: key, Upstream: u}
		}
		if found := x.listed(uri, u); found != nil && (settled || !starting) {
			return found
		}
		starting = starting || u.InFirstStart()
		if u.Has("resources") {
			several = only != nil
			only = u
		}
	}
	if only == nil || several || starting && !settled {
		return nil
	}
	return &Exposed{Name: uri, Key: uri, Upstream: only}
}

// listed finds a URI among what one upstream lists, or in one of its templates.
func (x *Exposure) listed(uri string, u *registry.Upstream) *Exposed {
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
