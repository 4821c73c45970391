// Package policy says who makes a request. What that caller may use is a hook, [Rules]: what it
// does not grant does not exist for the caller. Without rules, a caller may use everything.
package policy

// Caller is who makes requests, on whatever connection. It is immutable.
type Caller struct {
	ID    string // the name of a token, or issuer, NUL and subject; the same for every token of a person
	Name  string // ID for people: in the log and the audit
	Rules Rules  // what it may use; nil: everything

	Headers map[string]string // of its request, by canonical name: those that upstreams get; nil: none
}

// Rules is what a caller may use. It is immutable and comparable. Equal rules should be one
// value, because registries keep what they show for each value. Its methods may be called
// concurrently, and never wait.
type Rules interface {
	// HasProfile reports whether anything in a profile is granted.
	HasProfile(profile string) bool
	// Extent returns how much of a server is granted. It depends on names alone, so that the
	// directory is the same whatever an upstream lists.
	Extent(profile, server string) Extent
	// HasTool reports whether a tool is granted.
	HasTool(t Tool) bool
}

// Extent is how much of a server is granted. A larger one includes the smaller ones.
type Extent int

// The extents.
const (
	Nothing         Extent = iota // the server does not exist for the caller
	SomeTools                     // some of its tools, and nothing else
	AllButSomeTools               // its prompts and resources, and some of its tools
	Everything                    // also tools that change something
)

// Tool is a tool to decide about.
type Tool struct {
	Profile, Server, Name string
	ReadOnly              bool // it says readOnlyHint: true
}

// HasProfile reports whether anything in a profile exists for the caller.
func (c Caller) HasProfile(profile string) bool { return c.Rules == nil || c.Rules.HasProfile(profile) }

// HasServer reports whether anything of a server exists for the caller.
func (c Caller) HasServer(profile, server string) bool { return c.Extent(profile, server) != Nothing }

// Extent returns how much of a server the caller may use.
func (c Caller) Extent(profile, server string) Extent {
	if c.Rules == nil {
		return Everything
	}
	return c.Rules.Extent(profile, server)
}
