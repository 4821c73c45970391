package executor

import (
	"sync"

	"mcpx/internal/policy"
	"mcpx/registry"
)

// rulesOf returns what a client may use; nil: everything.
func rulesOf(c registry.Client) *policy.Rules {
	if c == nil || c.Caller() == nil {
		return nil
	}
	return c.Caller().Rules
}

// parts caches values that are made from the parts of a catalog that callers see, one for
// each set of rules. Its methods may be called concurrently.
type parts[T any] struct {
	mu      sync.Mutex
	byRules map[*policy.Rules]part[T]
}

type part[T any] struct {
	catalog *registry.Catalog // that the value was made from
	value   T
}

// maxParts bounds the values that are cached.
const maxParts = 64

// of returns the value for a catalog, and makes it if the rules have another catalog now.
func (p *parts[T]) of(rules *policy.Rules, catalog *registry.Catalog, from func(*registry.Catalog) T) T {
	p.mu.Lock()
	cached, ok := p.byRules[rules]
	p.mu.Unlock()
	if ok && cached.catalog == catalog {
		return cached.value
	}
	value := from(catalog)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRules == nil || len(p.byRules) >= maxParts {
		p.byRules = map[*policy.Rules]part[T]{}
	}
	p.byRules[rules] = part[T]{catalog, value}
	return value
}

// clear forgets all values.
func (p *parts[T]) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byRules = nil
}
